"""Figures and axes: without a window, except where somebody works with pyplot already."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:  # importing matplotlib takes half a second, so only drawing pays for it
    from matplotlib.axes import Axes as _Axes
    from matplotlib.figure import Figure as _Figure

Figure: TypeAlias = "_Figure"
Axes: TypeAlias = "_Axes"

SMALLEST_SHOWN = 1e-8
"""Smallest error that is drawn: errors at rounding would squeeze all others together."""

BESIDE: dict[str, Any] = {"loc": "upper left", "bbox_to_anchor": (1.01, 1.0), "borderaxespad": 0.0, "frameon": False}
"""Place of a legend that hides nothing: to the right of its axes."""

ABOVE: dict[str, Any] = {"loc": "lower center", "bbox_to_anchor": (0.5, 1.0), "frameon": False}
"""The same above the axes, for a few short names."""


def new_figure(width: float, height: float) -> Figure:
    """An empty figure of a size in inches, without a window."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    _widen(figure)
    return figure


def _widen(figure: Figure) -> None:
    """Space around the axes, in inches: no label touches the edge of the picture."""
    engine: Any = figure.get_layout_engine()
    engine.set(w_pad=0.07, h_pad=0.07)


def new_axes(rows: int = 1, columns: int = 1, width: float = 7.0, height: float = 4.5, **options: Any) -> Any:
    """Axes (rows, columns) of a new figure that a notebook, or ``plt.show()`` in a script, will show.

    Pyplot keeps every figure until it is closed, so it gets the figure only where pyplot is in use already, or where
    a notebook displays what pyplot holds at the end of a cell.
    """
    if "matplotlib.pyplot" in sys.modules or _in_notebook():
        from matplotlib import pyplot

        figure = pyplot.figure(figsize=(width, height), layout="constrained")
        _widen(figure)
    else:
        figure = new_figure(width, height)
    return figure.subplots(rows, columns, squeeze=False, **options)


def _in_notebook() -> bool:
    """Whether a Jupyter kernel runs this code; in IPython's own terminal no figure is displayed by itself."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return hasattr(shell, "kernel")
