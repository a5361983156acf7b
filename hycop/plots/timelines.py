"""Programs as bars from left to right."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hycop.colours import by_name
from hycop.plots.figure import ABOVE, Axes, Figure, new_figure
from hycop.program import Program

MOST_BESIDE = 4
"""Names side by side in a legend."""


def draw_timelines(axes: Axes, programs: Mapping[str, Program], names: Sequence[str]) -> None:
    """Programs as bars from left to right, a colour a primitive, as wide as the step is long. Steps back in time are
    hatched."""
    from matplotlib.patches import Patch

    names = list(dict.fromkeys([*names, *(step.primitive for program in programs.values() for step in program)]))
    colours, longest = by_name(names), 0.0
    for row, program in enumerate(programs.values()):
        left = 0.0
        for step in program:
            width = abs(step.duration)
            hatch = "//" if step.duration < 0 else None
            axes.barh(row, width, left=left, height=0.62, color=colours[step.primitive], edgecolor="white", hatch=hatch)
            left += width
        longest = max(longest, left)
    axes.set_yticks(range(len(programs)), list(programs), fontsize=8)
    axes.invert_yaxis()
    axes.set_xlim(0.0, longest or 1.0)
    axes.tick_params(axis="y", length=0)
    axes.set_xlabel("time spent, summed over the processes")
    handles = [Patch(color=colours[name], label=name) for name in names]
    axes.legend(handles=handles, fontsize=8, ncols=min(len(names), MOST_BESIDE), **ABOVE)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)


def timeline_figure(programs: Mapping[str, Program], names: Sequence[str]) -> Figure:
    figure = new_figure(9, 1.6 + 0.4 * len(programs))
    draw_timelines(figure.subplots(), programs, names)
    return figure
