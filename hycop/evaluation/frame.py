"""Rows of tables as pandas frames."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Sequence
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hycop.errors import InvalidInputError
from hycop.evaluation.row import Row
from hycop.files import read_text

if TYPE_CHECKING:
    import pandas as pd


def frame(rows: Sequence[Row] | str | os.PathLike[str]) -> pd.DataFrame:
    """The rows of ``hycop.evaluate`` as a pandas DataFrame, with a column for each field of ``Row``. Also takes a JSON
    file that ``hycop evaluate`` or ``hycop table`` has written.

    >>> import hycop
    >>> problem = hycop.problem("ad1d")
    >>> schemes = hycop.composed([hycop.splitting("lie"), hycop.splitting("strang")], problem.dictionary)
    >>> rows = hycop.evaluate(schemes, [problem.sample(4, estimated=0)])
    >>> frame(rows)[["method", "metric", "samples"]].values.tolist()
    [['Lie', 'rel_l2', 4], ['Strang', 'rel_l2', 4]]
    """
    import pandas as pd  # takes most of a second

    if not isinstance(rows, str | os.PathLike | Iterable):
        raise InvalidInputError(
            f"rows: a {type(rows).__name__} holds none; give what hycop.evaluate returns, or a file"
        )
    found = _of_file(Path(rows)) if isinstance(rows, str | os.PathLike) else list(rows)
    for row in found:
        if not isinstance(row, Row):
            raise InvalidInputError(f"rows: a {type(row).__name__} is no row; give what hycop.evaluate returns")
    names = [field.name for field in fields(Row)]
    return pd.DataFrame([{**row.to_json(), "value": row.value} for row in found], columns=names)


def _of_file(path: Path) -> list[Row]:
    """The rows of a JSON file."""
    try:
        content: Any = json.loads(read_text(path))
        return [Row.from_json(row) for row in content["rows"]]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise InvalidInputError(
            f"{path}: holds no rows; give a file that 'hycop evaluate --json' or 'hycop table --json' wrote"
        ) from None
