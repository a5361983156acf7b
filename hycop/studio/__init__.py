"""The studio: a page on which a model is asked, read, edited and compared; also in notebooks (extra ``studio``)."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

from hycop.data import Dataset
from hycop.errors import HyCOPError, InvalidInputError
from hycop.surrogate import HyCOP

__all__ = ["MissingPanelError", "explore", "serve_run"]


class MissingPanelError(HyCOPError, ImportError):
    """Panel, which the extra ``studio`` brings, is not installed."""


def explore(model: HyCOP, data: Dataset | None = None) -> Any:
    """The studio of a model for a notebook cell: an object that shows itself. ``data`` are queries to start from, with
    their truth if they have one.

    In a script, ``explore(model).show()`` opens it in a browser.
    """
    if not isinstance(model, HyCOP):
        raise InvalidInputError(f"explore takes a model, not a {type(model).__name__}: give one that fit has made")
    page = _needing_panel("hycop.studio.page")
    return page.in_notebook(model, data)


def serve_run(folder: Path, *, port: int, host: str, show: bool, tell: Callable[[str], None]) -> None:
    """Serves the studio of a run folder until it is interrupted."""
    server, session = _needing_panel("hycop.studio.server"), import_module("hycop.studio.session")
    model = HyCOP.load(folder)
    server.serve(model, session.held_out_data(folder), port=port, host=host, show=show, tell=tell)


def _needing_panel(module: str) -> Any:
    """A module of the page. Panel takes a second to import, so only the studio pays for it."""
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] not in ("panel", "bokeh", "param", "tornado"):
            raise
        raise MissingPanelError(
            f"the studio needs {error.name}; install it with: pip install 'hycop[studio]'"
        ) from None
