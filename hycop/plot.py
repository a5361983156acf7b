"""Pictures of programs, answers, data, comparisons and diagnoses, for notebooks and scripts.

Every function draws on ``ax`` if one is given, and otherwise on a new figure, which a notebook shows. It returns the
matplotlib axes, so ``.set_title("…")`` and ``.figure.savefig("out.png")`` follow as usual.

>>> import hycop
>>> axes = hycop.plot.program(hycop.Program.parse("advection 0.1 → reaction 0.2 → advection 0.1"))
>>> axes.get_xlabel(), len(axes.patches)
('time spent, summed over the processes', 3)
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from hycop.answer import Answer
from hycop.data import Dataset
from hycop.diagnosis import Diagnosis
from hycop.diagnosis.budget import TERMS
from hycop.errors import InvalidInputError, UnknownNameError
from hycop.evaluation import Row, family
from hycop.grid import Array
from hycop.plots import (
    Axes,
    Frames,
    Point,
    check_movie,
    draw_budget,
    draw_difference,
    draw_error_against_work,
    draw_field,
    draw_frames,
    draw_space_time,
    draw_timelines,
    new_axes,
    write_movie,
)
from hycop.program import Program, ProgramBatch
from hycop.progress import counting
from hycop.surrogate import HyCOP

__all__ = ["budget", "comparison", "error_against_work", "fields", "front", "movie", "program", "space_time"]

MOST_PROGRAMS = 12
"""Programs of a batch that are drawn, from the first on."""


def program(
    programs: Program | Mapping[str, Program] | ProgramBatch | Answer,
    *,
    names: Sequence[str] | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Programs as timelines: a bar for each step, as wide as its duration, with a colour for each primitive.

    Takes one program, several by label, a batch, or an answer (the first programs of it). ``names`` fixes which
    primitives have a colour, and in which order, so that several pictures agree.

    >>> strang = Program.of(("advection", 0.1), ("reaction", 0.2), ("advection", 0.1))
    >>> axes = program({"Strang": strang, "by hand": Program.of(("reaction", 0.2), ("advection", 0.2))})
    >>> [label.get_text() for label in axes.get_yticklabels()]
    ['Strang', 'by hand']
    """
    shown = _labelled(programs)
    known = list(names or ()) or (list(programs.names) if isinstance(programs, ProgramBatch) else [])
    axes = ax or new_axes(width=8.0, height=1.2 + 0.4 * len(shown))[0, 0]
    draw_timelines(axes, shown, known)
    return axes


def fields(
    source: Answer | Dataset, *, sample: int = 0, channel: str | None = None, ax: Axes | Array | None = None
) -> Axes | Array:
    """The states of one sample: in 1D one panel for each channel, with a line for each time; in 2D and 3D a row of
    panels for each channel, one for each time (at most six), on one scale of colours.

    Returns an array of axes (channel, time), or the axes alone if there is one panel. ``ax`` is the same.

    >>> import hycop
    >>> data = hycop.problem("ad1d").sample(2, times=[0.1, 0.2], estimated=0)
    >>> axes = fields(data, sample=1)
    >>> len(axes.lines), axes.get_ylabel()
    (3, 'u')
    """
    frames = frames_of(source, sample, channel).some()
    rows, columns = len(frames.channels), 1 if frames.axes == 1 else len(frames.times)
    size = (7.0, 2.9 * rows + 0.4) if frames.axes == 1 else (2.5 * columns + 0.8, 2.6 * rows + 0.3)
    panels = _given(ax, rows, columns) if ax is not None else new_axes(rows, columns, *size)
    draw_frames(panels, frames)
    return panels[0, 0] if panels.size == 1 else panels


def space_time(
    source: Answer | Dataset, *, sample: int = 0, channel: str | None = None, ax: Axes | None = None
) -> Axes:
    """One channel of a sample in 1D over space (across) and time (upwards); the first channel by default.

    >>> import hycop
    >>> data = hycop.problem("ad1d").sample(1, times=[0.1, 0.2, 0.5], estimated=0)
    >>> space_time(data).get_ylabel()
    't'
    """
    frames = frames_of(source, sample, channel)
    if frames.axes != 1:
        raise InvalidInputError(f"space_time is for data in 1D, these have {frames.axes} axes: use fields or movie")
    axes = ax or new_axes(width=6.0, height=4.5)[0, 0]
    draw_space_time(axes, frames)
    return axes


def comparison(
    answer: Answer | Dataset, truth: Dataset, *, sample: int = 0, channel: str | None = None, ax: Array | None = None
) -> Array:
    """An answer beside the truth at the last time, and the difference on a scale with white at zero.

    ``sample`` counts the samples of both. Returns three axes: truth, answer, difference.

    >>> import hycop
    >>> data = hycop.problem("ad1d").sample(1, times=[0.2], estimated=0)
    >>> [axes.get_title() for axes in comparison(data, data)]
    ['truth, u, t = 0.2', 'answer', 'answer − truth']
    """
    mine, theirs = frames_of(answer, sample, channel), frames_of(truth, sample, channel)
    if mine.states.shape[1:] != theirs.states.shape[1:]:
        raise InvalidInputError(
            f"answer and truth have shapes {mine.states.shape[1:]} and {theirs.states.shape[1:]}, (channel, *grid): "
            "compare states on the same grid"
        )
    one, other = mine.states[-1, 0], theirs.states[-1, 0]
    panels = _given(ax, 1, 3)[0] if ax is not None else new_axes(1, 3, 10.5, 3.0)[0]
    both = Frames(np.stack([one, other])[:, None], theirs.times[-1:], mine.channels, mine.lengths)
    low, high = both.range_of(0)
    when = f"truth, {theirs.channels[0]}, t = {theirs.times[-1]:.4g}"
    for axes, u, title in zip(panels, (other, one), (when, "answer"), strict=False):
        draw_field(axes, u, mine.lengths, title, vmin=low, vmax=high, cmap="viridis")
        if u.ndim == 1:
            axes.set_ylim(low - 0.04 * (high - low), high + 0.04 * (high - low))
    draw_difference(panels[2], one - other, mine.lengths, "answer − truth")
    result: Array = panels
    return result


def error_against_work(rows: Sequence[Row], *, metric: str = "rel_l2", ax: Axes | None = None) -> Axes:
    """Error against work of the methods in the rows of ``hycop.evaluate``, a line for each method over its substeps,
    and the limit of the dictionary if the rows have it.

    >>> import hycop
    >>> problem = hycop.problem("ad1d")
    >>> schemes = [hycop.splitting(name) for name in ("lie", "strang", "strang x2")]
    >>> data = problem.sample(4, estimated=0)
    >>> axes = error_against_work(hycop.evaluate(hycop.composed(schemes, problem.dictionary), [data]))
    >>> [text.get_text() for text in axes.get_legend().get_texts()]
    ['Lie', 'Strang']
    """
    chosen = [row for row in rows if row.metric == metric and row.work > 0]
    if not chosen:
        found = ", ".join(dict.fromkeys(row.metric for row in rows)) or "no rows"
        raise InvalidInputError(f"rows: none has the metric '{metric}' and a work above zero (there are: {found})")
    limits = [row.value for row in rows if row.is_limit and row.metric == metric]
    axes = ax or new_axes(width=8.0, height=4.5)[0, 0]
    points = [Point(family(row.method), row.work, row.value, row.std) for row in chosen]
    draw_error_against_work(axes, points, limits[0] if limits else None)
    axes.set_ylabel(NAMED.get(metric, metric))
    return axes


NAMED = {"rel_l2": "relative L2 error", "nrmse": "normalised RMS error", "splitting_rel_l2": "relative splitting error"}
"""Metrics in words."""


def front(models: Sequence[HyCOP], *, ax: Axes | None = None) -> Axes:
    """Held-out error against work of the models of ``HyCOP.front``, beside the best classical scheme at equal work.

    Example: ``hycop.plot.front(hycop.HyCOP(problem.dictionary).front(problem))``
    """
    if not models:
        raise InvalidInputError("models: give at least one, as HyCOP(dictionary).front(problem) does")
    gates = [model.model.gate for model in models]
    points = [Point("HyCOP", gate.work, gate.error) for gate in gates]
    points += [Point("best classical scheme", gate.classical_work, gate.classical_error) for gate in gates]
    axes = ax or new_axes(width=8.0, height=4.5)[0, 0]
    draw_error_against_work(axes, points)
    return axes


def budget(diagnosis: Diagnosis, *, ax: Axes | None = None) -> Axes:
    """The error budget of a diagnosis: total, mismatch, splitting and primitive, with the level below which a term is
    not blamed, because the trusted part is not known better.

    Example: ``hycop.plot.budget(hycop.diagnose(model, data))``
    """
    found = diagnosis.budget
    means = {name: float(sizes.mean()) for name, sizes in found.sizes.items()}
    axes = ax or new_axes(width=6.0, height=4.0)[0, 0]
    draw_budget(axes, means, {term: found.floor.of(term) for term in TERMS if term in means})
    return axes


def movie(
    source: Answer | Dataset,
    path: str | os.PathLike[str],
    *,
    sample: int = 0,
    channel: str | None = None,
    title: str | None = None,
) -> None:
    """Writes a movie of one sample, a frame for each of its times: ``.gif``, or ``.mp4`` with ffmpeg. All frames have
    the same scales.

    Example: ``hycop.plot.movie(model.answer(model.query(u0, params, np.linspace(0.01, 0.5, 50))), "fields.gif")``
    """
    target = check_movie(Path(path))
    frames = frames_of(source, sample, channel)
    name = source.problem if title is None else title
    with counting(len(frames.times), "movie") as advance:
        write_movie(frames, target, name, advance)


def frames_of(source: Answer | Dataset, sample: int = 0, channel: str | None = None) -> Frames:
    """The states of one sample of an answer or a dataset at all its times, of one channel or of all."""
    data = source.to_dataset() if isinstance(source, Answer) else source
    if not isinstance(data, Dataset):
        raise InvalidInputError(f"{type(source).__name__}: an Answer or a Dataset is needed")
    if not 0 <= sample < data.samples:
        raise InvalidInputError(f"sample {sample}: there are {data.samples}, counted from 0")
    names = [each.name for each in data.setting.channels]
    frames = Frames(data.states[sample], data.times[sample], names, data.setting.grid.lengths[sample].tolist())
    if channel is None:
        return frames
    if channel not in names:
        raise UnknownNameError("channel", channel, names)
    return frames.only(channel)


def _labelled(programs: Program | Mapping[str, Program] | ProgramBatch | Answer) -> dict[str, Program]:
    if isinstance(programs, Program):
        return {"": programs}
    if isinstance(programs, Mapping):
        return dict(programs)
    batch = programs.programs if isinstance(programs, Answer) else programs
    if not isinstance(batch, ProgramBatch):
        raise InvalidInputError(f"{type(programs).__name__}: a Program, several by label, or an Answer is needed")
    shown = {}
    for index in range(min(len(batch), MOST_PROGRAMS)):
        when = f", T = {programs.query.time[index]:.4g}" if isinstance(programs, Answer) else ""
        shown[f"query {index}{when}"] = batch[index]
    return shown


def _given(ax: Any, rows: int, columns: int) -> Array:
    """Somebody's axes as an array (rows, columns)."""
    panels = np.asarray(ax, dtype=object)
    if panels.size != rows * columns:
        raise InvalidInputError(
            f"ax: {panels.size} axes are given, but {rows * columns} ({rows} x {columns}) are needed"
        )
    return panels.reshape(rows, columns)
