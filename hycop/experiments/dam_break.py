"""Table ``dambreak``: a policy trained on smooth periodic shallow water answers dam breaks in a walled basin of 320².

The policy is that of ``swe2d``; nothing is retrained. Its programs run without internal refinement: repeated so that no
step is longer than in training (``program^m``), twice as finely (``program^2m``, the default of ``swap`` for another
boundary), or once (``one program``).

- ``HyCOP (periodic)`` runs in the periodic box that it was trained in, ``HyCOP (walls)`` after the boundary was
  swapped, with the primitives it was trained with and with those of second order, which are faster (``muscl``). Beside
  them, with walls too: the classical scheme of the gate, repeated as often, and the unsplit solver. ``by its worth`` is
  what ``swap`` gives: the solver and the grid are chosen by a coarse version of each query.
- The truth is PyClaw's file at 2, 5, 10 and 15 s, if ``HYCOP_FIXTURES`` has it (it replaces the finite elements of the
  source paper). At 5 s, before waves come back, it is also Stoker's exact solution of the straight dam and, for the
  unsplit solver alone, Ritter's of a dam onto a dry bed, where the split is ill-posed.
- Relative L2 error and bRMSE are of the depth; ``least depth`` and ``mass drift`` are the worst over the samples.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from hycop.data import Dataset
from hycop.dictionary import Dictionary
from hycop.evaluation import Composed, Contender, Row, Solver, Timed, Variant, timed
from hycop.experiments.bench import Bench
from hycop.experiments.fixtures import DAMS, dam_breaks
from hycop.experiments.judging import CLASSICAL, UNSPLIT, UnsplitRival, classical_alone, unsplit
from hycop.experiments.monolithic import contender
from hycop.experiments.table import Table
from hycop.metrics import brmse_paper, invariants, rel_l2
from hycop.model import Model
from hycop.plots import Figure, dam_figure
from hycop.problems import find_problem
from hycop.program import ProgramBatch
from hycop.query import Query, Setting
from hycop.references.dam_break import straight_dam
from hycop.surrogate import HyCOP
from hycop.transfer import ELSEWHERE, swap

NAME, SOURCE = "dambreak2d", "swe2d"
EXACT_TIME = 5.0
DEEP, SHALLOW, GRAVITY = 2.0, 1.0, 9.81
PERIODIC, WALLS = "HyCOP (periodic)", "HyCOP (walls)"
MUSCL = "muscl"
LONGER, FINER, ONCE = (Variant.of({word: ""}) for word in ("program^m", f"program^{ELSEWHERE}m", "one program"))
CHOSEN = Variant.of({"by its worth": ""})
NETWORK = "AR-LocalNO"
PAPER = {PERIODIC: 3.82e-2, WALLS: 9.92e-3, NETWORK: 3.84e-1}
"""Relative L2 error of the depth in the source paper, which does not describe its case; shown at 5 s."""

SECONDS = {PERIODIC: 1.397, WALLS: 1.360, NETWORK: 0.345}
"""The source paper's seconds per sample."""


@dataclass(frozen=True)
class WholeTime:
    """Writes one program of the policy for the whole time, however long."""

    model: Model

    def programs(self, query: Query, dictionary: Dictionary) -> ProgramBatch:
        inputs = self.model.scope.view(query, self.model.equation)
        return self.model.policy.programs(self.model.theta[None], inputs)


def exact_dam(shallow: float, split: str, cells: int) -> Dataset:
    """A straight dam at x = 50 m at 5 s, by its exact solution."""
    chosen = find_problem(NAME)
    grid = chosen.grid((cells, cells))
    faces = np.linspace(-0.5, 0.5, cells + 1) * chosen.lengths[0]
    states = np.zeros((1, 2, 3, cells, cells))
    for index, time in enumerate((0.0, EXACT_TIME)):
        states[0, index, :2] = straight_dam(faces, time, DEEP, shallow, GRAVITY)[:, :, None]
    setting = Setting(grid, chosen.channels, {"g": np.array([GRAVITY])})
    reference = "Stoker" if shallow else "Ritter"
    return Dataset(NAME, split, states, np.array([[0.0, EXACT_TIME]]), setting, reference=reference)


def judges(cells: int) -> list[Dataset]:
    """All datasets with water everywhere, at all their times."""
    return [exact_dam(SHALLOW, "stoker", cells), *dam_breaks().values()]


def contenders(model: HyCOP) -> list[Contender]:
    plain = replace(model.model, refinement=1, economical=False)
    walls = swap(HyCOP.of(plain), boundary="wall", substeps=ELSEWHERE).model
    chosen = swap(model, boundary="wall").model
    longer = swap(walls, substeps=1).model
    coarser = swap(walls, primitives=dict.fromkeys(walls.dictionary, MUSCL)).model
    walled = walls.model
    return [
        _contender(PERIODIC, LONGER, plain, HyCOP.of(plain), "periodic"),
        _contender(WALLS, LONGER, longer.model, longer),
        _contender(WALLS, FINER, walled, walls),
        _contender(WALLS, Variant.of({MUSCL: "", **FINER}), coarser.model, coarser),
        Contender(WALLS, chosen, "", CHOSEN, "wall"),
        _contender(PERIODIC, ONCE, plain, Composed(WholeTime(plain), plain.dictionary), "periodic"),
        _contender(WALLS, ONCE, walled, Composed(WholeTime(walled), walled.dictionary)),
        _contender(CLASSICAL, FINER, walled, classical_alone(walled)),
        walled_unsplit(),
    ]


def _contender(method: str, variant: Variant, model: Model, solver: Solver, boundary: str = "wall") -> Contender:
    return Contender(method, solver, find_problem(NAME).name_of(model.dictionary), variant, boundary)


def walled_unsplit() -> Contender:
    return replace(unsplit(NAME), boundary="wall")


METRICS: Mapping[str, Callable[[Dataset, Timed], float]] = {
    "rel_l2 of h": lambda data, done: float(rel_l2(done.states[:, :1], data.truth[:, :1], _depth(data)).mean()),
    "brmse of h": lambda data, done: float(brmse_paper(done.states[:, :1], data.truth[:, :1], _depth(data)).mean()),
    "least depth": lambda data, done: float(done.states[:, 0].min()),
    "mass drift": lambda data, done: float(np.abs(_mass(data, done.states) / _mass(data, data.query.u0) - 1).max()),
}


def _depth(data: Dataset) -> Setting:
    return replace(data.setting, channels=data.setting.channels[:1])


def _mass(data: Dataset, states: np.ndarray) -> np.ndarray:
    return invariants(states, data.setting)[:, 0]


def _rows(who: Contender, data: Dataset) -> Iterator[Row]:
    done = timed(who, data.query)
    time = float(data.times[0, 1])
    values = {"seconds per sample": done.seconds, **{name: metric(data, done) for name, metric in METRICS.items()}}
    published = {"rel_l2 of h": PAPER, "seconds per sample": SECONDS}
    for metric, value in values.items():
        shown = (who.variant in (LONGER, FINER) or who.method == NETWORK) and time == EXACT_TIME
        yield Row.of(
            data,
            method=who.method,
            dictionary=who.dictionary,
            variant=who.variant.adding({"T": time}),
            metric=metric,
            value=value,
            paper=published.get(metric, {}).get(who.method) if shown else None,
            **done.cost,
        )


def _on_wet_beds(every: Sequence[Contender]) -> list[Row]:
    """The rows of some contenders on all datasets with water everywhere."""
    return [
        row
        for data in judges(find_problem(NAME).shape[0])
        for index in range(1, data.times.shape[1])
        for each in every
        for row in _rows(each, data.at(index))
    ]


def _wet(bench: Bench, seed: int) -> list[Row]:
    return _on_wet_beds(contenders(bench.learned(SOURCE, seed).model))


def _dry(bench: Bench, seed: int) -> list[Row]:
    return list(_rows(walled_unsplit(), exact_dam(0.0, "ritter", find_problem(NAME).shape[0])))


def _wet_unsplit(bench: Bench, seed: int) -> list[Row]:
    """The step was chosen on the periodic queries of the policy, as the policy was."""
    learned = bench.learned(SOURCE, seed)
    rival = UnsplitRival.of(learned, bench.held_out(SOURCE, seed, learned.model.model.record.config))
    assert rival is not None, "shallow water has an unsplit solver"
    return _on_wet_beds([replace(rival.contender, solver=rival.rung.solver(), boundary="wall")])


def _wet_baselines(bench: Bench, seed: int) -> list[Row]:
    """Networks know no walls: they run in the periodic box that they were trained in."""
    return _on_wet_beds([replace(contender(bench, SOURCE, NETWORK, seed), boundary="periodic")])


def figures(bench: Bench, rows: Sequence[Row]) -> Mapping[str, Figure]:
    """The paper's figures: the depth as a surface and its slice at y = 50 m, for each dataset at its last time."""
    shown = {(PERIODIC, LONGER), (WALLS, FINER), (CLASSICAL, FINER), (UNSPLIT, Variant())}
    every = [each for each in contenders(bench.learned(SOURCE, 0).model) if (each.method, each.variant) in shown]
    out = {}
    for data in judges(find_problem(NAME).shape[0]):
        last = data.at(-1)
        states = {each.method: each.solve(last.query).states[0, 0] for each in every}
        title = f"{last.split}: depth at {last.times[0, 1]:g} s"
        out[f"dambreak_{last.split.replace(' ', '_')}"] = dam_figure(
            last.truth[0, 0], states, last.setting.grid.lengths[0].tolist(), title
        )
    return out


TABLE = Table(
    "dambreak",
    "dam breaks in a walled basin by a policy from the periodic box (swe2d)",
    {"wet bed": _wet, "dry bed": _dry, "wet bed unsplit": _wet_unsplit, "wet bed baselines": _wet_baselines},
    figures,
    (DAMS,),
)
