"""Table ``ns``: compressible Navier–Stokes flow with PDEBench's viscosity on 128², by models that were trained on
coarser grids.

- ``ns2d-pdebench`` was trained on PDEBench's scheme. It is compared with PDEBench's own file if ``HYCOP_FIXTURES`` has
it (split ``pdebench``; nothing is trained on it), and with the scheme on queries of our own (``id``, ``ood``).
- ``ns2d`` was trained against the dictionary's limit. It is compared with the converged solution from the initial
  states of PDEBench's file (``converged``) and of our own queries, these on 64² (a finer truth takes minutes).
- Programs of at most 17 steps, and of at most 33: the program for half the time, twice.
- Beside them: the static program, the best classical scheme at equal work, the source paper's Strang (a single step),
  the unsplit solver, the learned programs with the ``conservative`` dictionary, and the limit.
- nRMSE and PDEBench's other metrics are of density, velocity and pressure. ``crmse`` compares the totals of mass,
  momentum and energy with those of the truth; ``drift`` is how much they change over the query time, over ∫|u|.
- ``speedup``: seconds of PDEBench's scheme, as implemented here and measured in the same run, or of PDEBench's own
  generator (12 s per sample on two cores), divided by those of HyCOP.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from math import nan
from time import perf_counter
from typing import Any

import numpy as np

from hycop.data import Dataset
from hycop.data.pdebench import PDEBenchFile
from hycop.dictionary import Dictionary
from hycop.evaluation import Composed, Contender, DictionaryLimit, Opponents, Row, Solver, Variant, evaluate
from hycop.experiments.bench import Bench, Learned
from hycop.experiments.fixtures import PDEBENCH, fixture
from hycop.experiments.judging import CLASSICAL, UNSPLIT, plain_limit, training_seconds, unsplit, unsplit_rows
from hycop.experiments.monolithic import baseline_part
from hycop.experiments.table import Part, Table
from hycop.grid import Array
from hycop.metrics import crmse_paper, invariants
from hycop.plots import Figure, Solution, solutions_figure
from hycop.problems import find_problem
from hycop.program import ProgramBatch
from hycop.query import Query
from hycop.schemes import splitting
from hycop.surrogate import HyCOP

FRAMES = (0, 1)
"""The initial state and T = 0.05."""

GRIDS: Mapping[str, Mapping[str, Any]] = {"ns2d-pdebench": {}, "ns2d": {"shape": (64, 64)}}
"""Options of our own queries: those with the converged solution have a grid of their own."""

JUDGES, COSTED = 64, 4
"""Held-out queries on which the classical opponents are chosen, and queries on which the work of each of these hundred
schemes is measured."""

GENERATOR = 12.0
"""Seconds per sample that PDEBench's own generator took on two cores."""

METRICS = (
    "nrmse",
    "rmse",
    "max_error",
    "brmse_pdebench",
    "frmse_pdebench_low",
    "frmse_pdebench_mid",
    "frmse_pdebench_high",
)
TOTALS = {"mass": ("density",), "momentum": ("momentum_x", "momentum_y"), "energy": ("energy",)}
CONSERVATIVE = "conservative"
STRANG = "Strang"
PAPER = {"HyCOP": 4.04e-2, STRANG: 7.56e-2}
"""nRMSE of the source paper on PDEBench's data."""


BASELINES = {"deeponet": 7.91e-2, "fno": 3.60e-1, "pino": 6.34e-1, "unet": 5.10}
"""The source paper's nRMSE of its baselines. Those of FNO and U-Net are PDEBench's: ten frames in, rolled out to
frame 20, on 64², so that they are not comparable."""


@dataclass(frozen=True)
class InParts:
    """Cuts the query time into equal parts, each with a program of the model. A part is a query of its own for the
    gate."""

    model: HyCOP
    parts: int

    def programs(self, query: Query, dictionary: Dictionary) -> ProgramBatch:
        part = self.model.programs(Query(query.u0, query.setting, query.time / self.parts), dictionary)
        return ProgramBatch(part.names, np.tile(part.ops, self.parts), np.tile(part.durations, self.parts))


LENGTHS = {Variant.of({"steps": "<=17"}): 1, Variant.of({"steps": "<=33"}): 2}
"""Variants: the number of parts of the time."""


def pdebench() -> Dataset | None:
    """PDEBench's file, if ``HYCOP_FIXTURES`` has it."""
    path = fixture(PDEBENCH)
    if path is None:
        return None
    chosen = find_problem("ns2d-pdebench")
    data = chosen.checked(PDEBenchFile(path, problem=chosen.name).read(frames=FRAMES))
    return replace(data, split="pdebench")


@lru_cache(maxsize=1)
def converged() -> Dataset | None:
    """The initial states of PDEBench's file with the converged solution."""
    data = pdebench()
    if data is None:
        return None
    chosen, query = find_problem("ns2d"), data.query
    reference = chosen.subflow(chosen.processes)
    later = reference.flow(query.u0, query.time, query.setting)
    states = np.stack([query.u0, later], axis=1)
    return replace(data, problem=chosen.name, split="converged", states=states, reference=str(reference))


def _opponents(bench: Bench, learned: Learned, seed: int) -> Mapping[Variant, Opponents]:
    """The classical opponents of programs of each length."""
    inner = learned.model.model
    chosen = find_problem(inner.equation.name)
    judges = bench.held_out(chosen.name, seed, inner.record.config).take(slice(0, JUDGES))
    asked = chosen.dictionary, judges.query, judges.truth
    return {
        variant: Opponents(*asked, error=inner.record.config.metric, substeps=parts)
        for variant, parts in LENGTHS.items()
    }


def _contenders(learned: Learned, opponents: Mapping[Variant, Opponents], data: Dataset) -> Iterator[Contender]:
    """The model and its opponents; the classical one takes no more work on the data."""
    model, static = learned.model, learned.model.model.static()
    known = find_problem(model.model.equation.name).dictionaries
    own = next(iter(known))
    yield Contender(STRANG, Composed(splitting("Strang(outer=viscosity)"), known[own]), own)
    yield unsplit(model.model.equation.name)
    for variant, parts in LENGTHS.items():
        ours = Composed(InParts(model, parts), known[own])
        yield Contender("HyCOP", ours, own, variant)
        yield Contender("HyCOP", replace(ours, dictionary=known[CONSERVATIVE]), CONSERVATIVE, variant)
        if static is not None:
            yield Contender("static", Composed(InParts(HyCOP.of(static), parts), known[own]), own, variant)
        few = data.query.take(slice(0, COSTED))
        rival = opponents[variant].best(few, ours.solve(few).work)
        yield Contender(CLASSICAL, Composed(rival, known[own]), own, variant)


def _judged(learned: Learned, opponents: Mapping[Variant, Opponents], data: Dataset) -> list[Row]:
    """All rows of a trained model and its opponents on one dataset."""
    chosen = find_problem(learned.model.model.equation.name)
    own = next(iter(chosen.dictionaries))
    everyone = list(_contenders(learned, opponents, data))
    found = evaluate(
        everyone,
        [data],
        limit_of=DictionaryLimit(chosen.dictionary, own),
        metrics=METRICS,
        reported_variables=chosen.reported_variables,
    )
    of = {(each.method, each.dictionary, each.variant): each for each in everyone}
    rows: list[Row] = []
    for row in plain_limit(found):
        quoted = row.dictionary == own and data.split == "pdebench" and row.metric == METRICS[0]
        rows.append(replace(row, paper=PAPER.get(row.method) if quoted else None))
        if row.metric == METRICS[0] and row.method in ("HyCOP", UNSPLIT):
            states = of[row.method, row.dictionary, row.variant].solve(data.query).states
            rows += totals(replace(row, limit=nan, paper=None), states, data)
    return rows


def totals(like: Row, states: Array, data: Dataset) -> Iterator[Row]:
    """Errors of a method in the totals of mass, momentum and energy."""
    query, setting = data.query, data.query.setting
    names = [channel.name for channel in setting.channels]
    drift = np.abs(invariants(states - query.u0, setting)) / invariants(np.abs(query.u0), setting)
    for total, channels in TOTALS.items():
        mine = [names.index(name) for name in channels]
        error = crmse_paper(states, data.truth, setting, channels)
        yield replace(like, metric=f"crmse {total}", value=float(error.mean()))
        yield replace(like, metric=f"drift {total}", value=float(drift[:, mine].max()), truth="start")


def _speedups(rows: Sequence[Row], data: Dataset) -> Iterator[Row]:
    """Seconds of PDEBench's scheme, measured here, and of its generator over those of HyCOP."""
    chosen, query = find_problem(data.problem), data.query
    reference = chosen.subflow(chosen.processes)
    few = slice(0, 1)
    reference.flow(query.u0[few], 1e-3 * query.time[few], query.setting.take(few))  # compiles
    start = perf_counter()
    reference.flow(query.u0, query.time, query.setting)
    seconds = (perf_counter() - start) / query.batch
    for row in rows:
        if row.method == "HyCOP" and row.metric == "nrmse" and row.dictionary != CONSERVATIVE:
            like = replace(row, limit=nan, paper=None, truth="")
            for name, theirs in (("scheme", seconds), ("generator", GENERATOR)):
                yield replace(like, metric=f"speedup over PDEBench's {name}", value=theirs / row.seconds_per_sample)


def _datasets(bench: Bench, name: str, seed: int) -> list[Dataset]:
    """The file that a problem is compared with, if it is there, and our own queries."""
    judge, options = pdebench() if name == "ns2d-pdebench" else converged(), GRIDS[name]
    own = [bench.data(name, split, seed, **options) for split in ("id", "ood")]
    return [*([] if judge is None else [judge]), *own]


def _pdebench(bench: Bench, seed: int) -> list[Row]:
    learned = bench.learned("ns2d-pdebench", seed)
    own, datasets = bench.data("ns2d-pdebench", "id", seed), _datasets(bench, "ns2d-pdebench", seed)
    opponents = _opponents(bench, learned, seed)
    rows = [row for data in datasets for row in _judged(learned, opponents, data)]
    speedups = _speedups([row for row in rows if row.split == "id"], own)
    return [*rows, *speedups, training_seconds(learned, rows[0])]


def _converged(bench: Bench, seed: int) -> list[Row]:
    learned, datasets = bench.learned("ns2d", seed), _datasets(bench, "ns2d", seed)
    opponents = _opponents(bench, learned, seed)
    rows = [row for data in datasets for row in _judged(learned, opponents, data)]
    return [*rows, training_seconds(learned, rows[0])]


def _unsplit(name: str) -> Part:
    def rows(bench: Bench, seed: int) -> list[Row]:
        return unsplit_rows(bench, bench.learned(name, seed), seed, _datasets(bench, name, seed), metrics=METRICS)

    return rows


def _baseline(name: str) -> Part:
    """Trained on data of PDEBench's scheme; the grid of its own queries is that of the file."""
    paper = {("pdebench", Variant()): {METRICS[0]: BASELINES[name]}}
    return baseline_part(
        "ns2d-pdebench", name, lambda bench, seed: _datasets(bench, "ns2d-pdebench", seed), METRICS, paper
    )


def figures(bench: Bench, rows: Sequence[Row]) -> Mapping[str, Figure]:
    """Density, velocity and pressure of a query of each kind: initial state, truth, HyCOP, error."""
    chosen = find_problem("ns2d-pdebench")
    model = Composed(bench.learned(chosen.name, 0).model, chosen.dictionary)
    judge = pdebench()
    datasets = [*([] if judge is None else [judge]), *(bench.data(chosen.name, split, 0) for split in ("id", "ood"))]
    return {f"ns_{data.split}": _figure(model, data.take(slice(0, 1))) for data in datasets}


def _figure(model: Solver, data: Dataset) -> Figure:
    chosen, query = find_problem(data.problem), data.query
    assert chosen.reported_variables is not None
    states = (query.u0, data.truth, model.solve(query).states)
    (start, setting), (truth, _), (found, _) = (chosen.reported_variables(u, query.setting) for u in states)
    names = [channel.name for channel in setting.channels]
    shown = [names.index(name) for name in ("density", "Vx", "pressure")]
    solutions = [Solution(start[0, c], truth[0, c], {"HyCOP": found[0, c]}) for c in shown]
    title = f"{chosen.name}, {data.split}: density, Vx and pressure at T={query.time[0]:g}, 17 steps"
    return solutions_figure(solutions, query.grid.lengths[0].tolist(), title)


TABLE = Table(
    "ns",
    "compressible Navier–Stokes as in PDEBench (ns2d, ns2d-pdebench)",
    {
        "ns2d-pdebench": _pdebench,
        "ns2d": _converged,
        **{f"{name} unsplit": _unsplit(name) for name in GRIDS},
        **{f"ns2d-pdebench {name}": _baseline(name) for name in BASELINES},
    },
    figures,
    (PDEBENCH,),
    samples=24,
)
