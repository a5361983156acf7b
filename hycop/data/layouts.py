"""The layouts in which datasets are written, by name."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

from hycop.data.blocks import BlockWriter
from hycop.data.netcdf import SUFFIXES, writer
from hycop.data.pdebench import PDEBENCH, PDEBenchWriter
from hycop.data.well_writer import WellWriter
from hycop.errors import OutputError, UnknownNameError
from hycop.files import checked_output


class Layout(NamedTuple):
    """Suffixes of the files, and what writes them."""

    suffixes: tuple[str, ...]
    writer: Callable[[str | os.PathLike[str], int], BlockWriter]


LAYOUTS: Mapping[str, Layout] = {
    "hycop": Layout(SUFFIXES, writer),
    "pdebench": Layout(PDEBENCH, PDEBenchWriter),
    "well": Layout(PDEBENCH, WellWriter),
}


def checked_layout(layout: str, path: str | os.PathLike[str]) -> Path:
    """The path, if a file of that layout can be written there."""
    if layout not in LAYOUTS:
        raise UnknownNameError("layout", layout, LAYOUTS)
    if Path(path).suffix.lower() not in LAYOUTS[layout].suffixes:
        written = "; ".join(f"{name} writes {', '.join(each.suffixes)}" for name, each in LAYOUTS.items())
        raise OutputError(f"{path}: unknown suffix '{Path(path).suffix}' for layout {layout}; {written}")
    return checked_output(path)


def dataset_writer(path: str | os.PathLike[str], samples: int, layout: str = "hycop") -> BlockWriter:
    """Writes a dataset of ``samples`` samples block by block, whole or not at all: use it in a ``with`` statement."""
    return LAYOUTS[layout].writer(checked_layout(layout, path), samples)
