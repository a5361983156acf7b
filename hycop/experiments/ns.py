"""Table ``ns``: compressible Navier–Stokes flow with PDEBench's viscosity, asked at 128² by models that were trained on
coarser grids.

- ``ns2d-pdebench`` has learned from PDEBench's scheme. It is judged by PDEBench's own file where that is at hand (split
  ``pdebench``; nothing is trained on it), and by the scheme on queries of our own (``id``, ``ood``).
- ``ns2d`` has learned from the converged solution. It is judged by that, from the initial states of PDEBench's file
  (``converged``) and of our own queries, these on 64² (the truth of a finer grid takes minutes).
- Programs of at most 17 steps, and of at most 33: the program for half the time, twice.
- Beside them: the static program, the best classical scheme at equal work, the source paper's Strang (a single step),
  the unsplit solver, the learned programs with the ``conservative`` dictionary, and the limit.
- nRMSE and PDEBench's other metrics are of density, velocity and pressure. ``crmse`` compares the totals of mass,
  momentum and energy with those of the truth; ``drift`` is how much they change over the query time, over ∫|u|.
- ``speedup`` is what PDEBench's scheme takes, as implemented here and measured in the same run, or PDEBench's own
  generator (12 s per sample on two cores), over what HyCOP takes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from math import nan
from time import perf_counter

import numpy as np

from hycop.data import Dataset
from hycop.data.pdebench import PDEBenchFile
from hycop.dictionary import Dictionary
from hycop.evaluation import LIMIT, Method, Row, answered, evaluate
from hycop.execution import Outcome, measure
from hycop.experiments.fixtures import FOLDER, fixture
from hycop.experiments.judging import CLASSICAL, UNSPLIT, Part, assembled, training_seconds
from hycop.experiments.table import Bench, Learned, Table
from hycop.metrics import crmse_paper, invariants
from hycop.plots import Figure, Solution, solutions_figure
from hycop.problems import problem
from hycop.program import ProgramBatch
from hycop.query import Query
from hycop.splitting import splitting
from hycop.surrogate import HyCOP
from hycop.training.gate import Opponents

PDEBENCH = "2D_CFD_Rand_M0.1_Eta0.1_Zeta0.1_periodic_128_sample.hdf5"
FRAMES = (0, 1)
"""The initial state and T = 0.05."""

CONVERGED = (64, 64)
"""Grid of our own queries with the converged solution."""

JUDGES, COSTED = 64, 4
"""Held-out queries on which the classical opponents are chosen, and queries on which their work is measured: there are
some hundred of them."""

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


@dataclass(frozen=True)
class Repeated:
    """A model's programs for a part of the time, one after the other."""

    model: HyCOP
    times: int

    def programs(self, query: Query, dictionary: Dictionary) -> ProgramBatch:
        part = self.model.programs(Query(query.u0, query.setting, query.time / self.times), dictionary)
        return ProgramBatch(part.names, np.tile(part.ops, self.times), np.tile(part.durations, self.times))

    def measure(self, query: Query, dictionary: Dictionary) -> Outcome:
        return measure(self.programs(query, dictionary), dictionary, query, strict=False)


LENGTHS = {"steps<=17": 1, "steps<=33": 2}
"""Variants: how often the program of a part of the time is repeated."""


def pdebench() -> Dataset | None:
    """PDEBench's file, if it is at hand."""
    path = fixture(PDEBENCH)
    if path is None:
        return None
    chosen = problem("ns2d-pdebench")
    data = chosen.checked(PDEBenchFile(path, problem=chosen.name).read(frames=FRAMES))
    return replace(data, split="pdebench")


@lru_cache(maxsize=1)
def converged() -> Dataset | None:
    """The initial states of PDEBench's file with the converged solution."""
    data = pdebench()
    if data is None:
        return None
    chosen, query = problem("ns2d"), data.query
    reference = chosen.subflow(chosen.processes)
    later = reference.flow(query.u0, query.time, query.setting)
    states = np.stack([query.u0, later], axis=1)
    return replace(data, problem=chosen.name, split="converged", states=states, reference=str(reference))


@dataclass(frozen=True)
class Entry:
    """A method with its variant and the dictionary that it runs; its text tells entries apart."""

    method: str
    variant: str
    dictionary: str
    programs_of: Method
    parts: Dictionary

    def __str__(self) -> str:
        return f"{self.method}|{self.variant}|{self.dictionary}"

    def programs(self, query: Query, dictionary: Dictionary) -> ProgramBatch:
        return self.programs_of.programs(query, self.parts)

    def measure(self, query: Query, dictionary: Dictionary) -> Outcome:
        return answered(self.programs_of, query, self.parts)


def _opponents(bench: Bench, learned: Learned, seed: int) -> Mapping[str, Opponents]:
    """The classical opponents of programs of each length."""
    inner = learned.model.model
    judges = bench.held_out(inner.problem, seed, inner.config).take(slice(0, JUDGES))
    asked = problem(inner.problem).dictionary, judges.query, judges.truth
    return {variant: Opponents(*asked, error=inner.config.metric, repeats=times) for variant, times in LENGTHS.items()}


def _entries(learned: Learned, opponents: Mapping[str, Opponents], data: Dataset) -> Iterator[Entry]:
    """The model and its opponents; the classical one takes no more work on the data."""
    inner = learned.model.model
    known = problem(inner.problem).dictionaries
    own = next(iter(known))
    static = inner.static()
    yield Entry(STRANG, "", own, splitting("Strang(outer=viscosity)"), known[own])
    yield Entry(UNSPLIT, "", UNSPLIT, splitting("Lie"), known[UNSPLIT])
    for variant, times in LENGTHS.items():
        model = Repeated(learned.model, times)
        yield Entry("HyCOP", variant, own, model, known[own])
        yield Entry("HyCOP", variant, CONSERVATIVE, model, known[CONSERVATIVE])
        if static is not None:
            yield Entry("static", variant, own, Repeated(HyCOP.of(static), times), known[own])
        few = data.query.take(slice(0, COSTED))
        rival = opponents[variant].best(few, model.measure(few, known[own]).work)
        yield Entry(CLASSICAL, variant, own, rival, known[own])


def _judged(learned: Learned, opponents: Mapping[str, Opponents], data: Dataset) -> list[Row]:
    """All rows of a trained model and its opponents on one dataset."""
    chosen = problem(learned.model.model.problem)
    own = next(iter(chosen.dictionaries))
    entries = {str(entry): entry for entry in _entries(learned, opponents, data)}
    found = evaluate(
        list(entries.values()), chosen.dictionary, [data], metrics=METRICS, label=own, border=chosen.border
    )
    rows: list[Row] = []
    for row in found:
        entry = entries.get(row.method)
        if entry is None:
            rows.append(replace(row, method=LIMIT))
            continue
        ours = entry.dictionary == own
        paper = PAPER.get(entry.method) if ours and data.split == "pdebench" and row.metric == "nrmse" else None
        row = replace(row, method=entry.method, variant=entry.variant, dictionary=entry.dictionary, paper=paper)
        rows.append(row if ours else replace(row, limit=nan))
        if row.metric == METRICS[0] and entry.method in ("HyCOP", UNSPLIT):
            rows += _totals(replace(row, limit=nan, paper=None), entry, data)
    return rows


def _totals(like: Row, entry: Entry, data: Dataset) -> Iterator[Row]:
    """What a method does to mass, momentum and energy."""
    query, setting = data.query, data.query.setting
    states = entry.measure(query, entry.parts).states
    names = [channel.name for channel in setting.channels]
    drift = np.abs(invariants(states - query.u0, setting)) / invariants(np.abs(query.u0), setting)
    for total, channels in TOTALS.items():
        mine = [names.index(name) for name in channels]
        error = crmse_paper(states, data.truth, setting, channels)
        yield replace(like, metric=f"crmse {total}", value=float(error.mean()))
        yield replace(like, metric=f"drift {total}", value=float(drift[:, mine].max()), truth="start")


def _speedups(rows: Sequence[Row], data: Dataset) -> Iterator[Row]:
    """Seconds of PDEBench's scheme, measured here, and of its generator over those of HyCOP."""
    chosen, query = problem(data.problem), data.query
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


def _pdebench(bench: Bench, seed: int) -> list[Row]:
    learned = bench.learned("ns2d-pdebench", seed)
    judge, own = pdebench(), bench.data("ns2d-pdebench", "id", seed)
    datasets = [*([] if judge is None else [judge]), own, bench.data("ns2d-pdebench", "ood", seed)]
    opponents = _opponents(bench, learned, seed)
    rows = [row for data in datasets for row in _judged(learned, opponents, data)]
    speedups = _speedups([row for row in rows if row.split == "id"], own)
    return [*rows, *speedups, training_seconds(learned, rows[0])]


def _converged(bench: Bench, seed: int) -> list[Row]:
    learned, judge = bench.learned("ns2d", seed), converged()
    datasets = [*([] if judge is None else [judge])]
    datasets += [bench.data("ns2d", split, seed, shape=CONVERGED) for split in ("id", "ood")]
    opponents = _opponents(bench, learned, seed)
    rows = [row for data in datasets for row in _judged(learned, opponents, data)]
    return [*rows, training_seconds(learned, rows[0])]


PARTS: tuple[Part, ...] = (("ns2d-pdebench", _pdebench), ("ns2d", _converged))


def build(bench: Bench) -> list[Row]:
    rows = assembled(bench, "ns", PARTS)
    if pdebench() is None:
        bench.progress(f"done, without PDEBench's file: {PDEBENCH} is not in the folder that {FOLDER} names", 1.0)
    return rows


def figures(bench: Bench, rows: Sequence[Row]) -> Mapping[str, Figure]:
    """Density, velocity and pressure of a query of each kind: initial state, truth, HyCOP, error."""
    chosen = problem("ns2d-pdebench")
    model = Repeated(bench.learned(chosen.name, 0).model, 1)
    judge = pdebench()
    datasets = [*([] if judge is None else [judge]), *(bench.data(chosen.name, split, 0) for split in ("id", "ood"))]
    return {f"ns_{data.split}": _figure(model, data.take(slice(0, 1))) for data in datasets}


def _figure(model: Method, data: Dataset) -> Figure:
    chosen, query = problem(data.problem), data.query
    assert chosen.border is not None
    ours = answered(model, query, chosen.dictionary).states
    states = (query.u0, data.truth, ours)
    (start, setting), (truth, _), (found, _) = (chosen.border(u, query.setting) for u in states)
    names = [channel.name for channel in setting.channels]
    shown = [names.index(name) for name in ("density", "Vx", "pressure")]
    solutions = [Solution(start[0, c], truth[0, c], {"HyCOP": found[0, c]}) for c in shown]
    title = f"{chosen.name}, {data.split}: density, Vx and pressure at T={query.time[0]:g}, 17 steps"
    return solutions_figure(solutions, query.grid.lengths[0].tolist(), title)


TABLE = Table("ns", "compressible Navier–Stokes as in PDEBench (ns2d, ns2d-pdebench)", 24, build, figures)
