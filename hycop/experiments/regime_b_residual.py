"""Table ``regime-b-residual``: a model of advection and diffusion meets data with a reaction, and is enriched.

- *Pretrained*: the model of ``ad2d`` answers queries of ``adr2d``, r in [0.1, 1] or [1, 2.5] (variant ``r``); models of
  the first range also answer its split ``ood``. The source paper does not state its range; its 0.181 belongs to the
  second. All learn from 120 trajectories; a third of them stops and chooses, unless said otherwise.
- *Ours*: ``symbolic`` from the end states at T alone; ``network`` from short-time pairs, or from the end states
  (``pairs``). It ``knows`` the state alone, or r too. With ``one r`` all samples have the same r, which nobody knows.
  In the second range both kinds of networks are tried for the state alone, the U-NO for 20 rounds; elsewhere the
  pointwise one only.
- *Paper*: a U-NO of the state alone learns (u(t + Δt) − known(Δt))/Δt at u(t), Δt = 0.01, and an evolution strategy
  (population 50, σ 0.03, 20 generations) a ``position`` policy, which no gate judges. 40 further trajectories stop the
  network.
- *Perfect closure of the state*: E[r] u (1 − u), exact, with the mean r of the 120 trajectories: as good as a closure
  can be that does not know r.
- ``correlation with the reaction``: of the closure's rate with r u (1 − u) at the true states, over all cells and
  samples. ``…, each sample in per cent``: of both in per cent of their largest value in the sample, as the source
  paper draws them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np

from hycop.data import Dataset
from hycop.enrichment import NETWORKS, Closure, NetworkPlan, enrich
from hycop.enrichment.known import KnownFlow
from hycop.errors import IncompatibleError
from hycop.evaluation import Contender, Row, Variant, evaluate
from hycop.execution import Outcome
from hycop.experiments.bench import Bench
from hycop.experiments.code import solver_version
from hycop.experiments.regime_b import EVOLUTION
from hycop.experiments.table import Part, Table
from hycop.grid import Array
from hycop.metrics import rel_l2
from hycop.plots import Figure, residual_figure
from hycop.primitives.symbolic import SymbolicTerms
from hycop.problems import Problem, find_problem
from hycop.query import Query
from hycop.surrogate import HyCOP

KNOWN, TARGET = "ad2d", "adr2d"
RANGES: Mapping[str, tuple[float, float]] = {"[0.1, 1]": (0.1, 1.0), "[1, 2.5]": (1.0, 2.5)}
PAPER_RANGE, TRAJECTORIES, STOPPING = "[1, 2.5]", 120, 40
SHORT_TIMES = (0.01, 0.1, 0.11, 0.2)
"""Two short-time pairs a trajectory, at its start and in its middle."""

PAPER_BEFORE, PAPER_AFTER = 1.81e-1, 4.42e-2
PRETRAINED, ENRICHED, PERFECT = "HyCOP, pretrained", "HyCOP, enriched", "perfect closure of the state"
POOLED, PER_CENT = "correlation with the reaction", "correlation with the reaction, each sample in per cent"
NAMED, ONE = "missing terms were named", "one r"
TRAINING_STREAM, STOPPING_STREAM = 2**33, 2**34
PAPER_NETWORK = NetworkPlan("uno", {"width": 32, "modes": 4, "layers": 4}, 40, 1e-3, 16, halfway=False)
POINTWISE = NETWORKS[:1]
BOTH = (*POINTWISE, replace(NETWORKS[1], rounds=20))


@lru_cache(maxsize=32)
def drawn(range_of: str, split: str, seed: int, samples: int, times: tuple[float, ...], one: bool = False) -> Dataset:
    """Trajectories of ``adr2d`` with r from a range, or with ``one`` r, its middle, in all samples, which is not told.
    The split ``ood`` has its own r."""
    whole, (low, high) = find_problem(TARGET), RANGES[range_of]
    middle = 0.5 * (low + high)
    ends = (middle, middle) if one else (low, high)
    chosen = whole.split(split)
    if one or split != "ood":
        chosen = replace(chosen, params={**chosen.params, "r": [ends]})
    data = _sampled(replace(whole, splits={**whole.splits, split: chosen}), samples, split, seed, times)
    return without_r(data) if one else data


def _sampled(problem: Problem, samples: int, split: str, seed: int, times: tuple[float, ...]) -> Dataset:
    return problem.sample(samples, split, seed, times=times, estimated=8)


def without_r(data: Dataset) -> Dataset:
    params = {name: values for name, values in data.setting.params.items() if name != "r"}
    return replace(data, setting=replace(data.setting, params=params))


@dataclass(frozen=True)
class Way:
    """A way to enrich the pretrained model: kind of closure, coefficients that a network is told, the networks to try,
    and the data: short-time pairs or end states, and one r for all samples."""

    closure: Closure
    inputs: tuple[str, ...] = ()
    networks: tuple[NetworkPlan, ...] = ()
    short: bool = False
    one: bool = False
    hidden: bool = False

    @property
    def variant(self) -> dict[str, str]:
        knows = ONE if self.one else "state" if self.hidden or not self.inputs else "state and r"
        return {"closure": self.closure, "knows": knows, "pairs": "short" if self.short else "T"}


WAYS: Mapping[str, Way] = {
    "symbolic, r in the file": Way("symbolic", ("r",)),
    "symbolic, one r": Way("symbolic", one=True),
    "symbolic, r unknown": Way("symbolic", hidden=True),
    "network, state": Way("network", networks=BOTH, short=True),
    "network, state and r": Way("network", ("r",), POINTWISE, short=True),
    "network, state, end states": Way("network", networks=POINTWISE),
}


@dataclass(frozen=True, eq=False)
class Closed:
    """The known flow with an exact closure, as a solver."""

    known: KnownFlow
    closure: SymbolicTerms

    def solve(self, query: Query) -> Outcome:
        return Outcome(self.known.along(query, self.closure)[1], np.zeros(query.batch))


def _pretrained(bench: Bench, seed: int) -> HyCOP:
    return bench.learned(KNOWN, seed).model


def _tests(bench: Bench, range_of: str, seed: int, one: bool = False) -> list[Dataset]:
    splits = ("id", "ood") if range_of == next(iter(RANGES)) or one else ("id",)
    return [drawn(range_of, split, seed, bench.samples, (0.2,), one) for split in splits]


def _kept(bench: Bench, name: str, make: Callable[[], HyCOP]) -> HyCOP:
    """A model that is made once and kept with the table."""
    folder = None if bench.folder is None else bench.folder / f"regime-b-residual {name} {solver_version()[:12]}"
    if folder is not None and (folder / "model.json").exists():
        return HyCOP.load(folder)
    made = make()
    if folder is not None:
        made.save(folder)
    return made


def enriched(bench: Bench, range_of: str, name: str, seed: int) -> HyCOP:
    """The pretrained model after one of the ways."""
    way = WAYS[name]
    times = SHORT_TIMES if way.short else SHORT_TIMES[-1:]
    data = drawn(range_of, "id", seed + TRAINING_STREAM, TRAJECTORIES, times, way.one)
    data = without_r(data) if way.hidden else data
    inputs = way.inputs if way.closure == "network" else ()

    def make() -> HyCOP:
        options: dict[str, Any] = {}
        if way.closure == "network":
            options = {"networks": way.networks if range_of == PAPER_RANGE else POINTWISE}
        pretrained = _pretrained(bench, seed)
        return enrich(pretrained, data, closure=way.closure, inputs=inputs, seed=seed, verbose=False, **options).model

    return _kept(bench, f"{range_of} {name} {seed}", make)


def _baselines(range_of: str) -> Part:
    def rows(bench: Bench, seed: int) -> list[Row]:
        pretrained, found = _pretrained(bench, seed), []
        train = drawn(range_of, "id", seed + TRAINING_STREAM, TRAJECTORIES, SHORT_TIMES)
        mean = float(train.setting.param("r").mean())
        perfect = Closed(KnownFlow.of(pretrained.model), SymbolicTerms(amounts=(mean, -mean)))
        for data in _tests(bench, range_of, seed):
            contenders = [
                Contender(PRETRAINED, pretrained.model, KNOWN),
                Contender(PERFECT, perfect, f"{KNOWN} + closure"),
            ]
            paper = {PRETRAINED: PAPER_BEFORE} if range_of == PAPER_RANGE else {}
            variant = Variant.of({"r": _shown(range_of, data)})
            for row in evaluate(contenders, [data], metrics=("rel_l2",)):
                found.append(replace(row, variant=variant, paper=paper.get(row.method)))
            found += _correlations(perfect.closure.rate(data.truth, data.query.setting), data, found[-1])
        return found

    return rows


def _shown(range_of: str, data: Dataset, knows: str = "") -> str:
    """The r of the samples."""
    if knows == ONE:
        return f"{sum(RANGES[range_of]) / 2:g}"
    return range_of if data.split != "ood" else "ood"


def _way(range_of: str, name: str) -> Part:
    way = WAYS[name]

    def rows(bench: Bench, seed: int) -> list[Row]:
        variant = {"r": range_of, "protocol": "ours", **way.variant}
        tests = [without_r(data) if way.hidden else data for data in _tests(bench, range_of, seed, way.one)]
        like = Row.of(tests[0], method=ENRICHED, metric=NAMED, value=1.0, variant=Variant.of(variant), truth="")
        try:
            model = enriched(bench, range_of, name, seed)
        except IncompatibleError as error:
            if not way.hidden:
                raise
            bench.remark(f"regime-b-residual, {range_of}, {name}, seed {seed}: {error}")
            return [replace(like, value=0.0)]
        found = [row for data in tests for row in _judged(model, data, range_of, variant)]
        return [*found, like] if way.hidden else found

    return rows


def _paper(range_of: str) -> Part:
    def rows(bench: Bench, seed: int) -> list[Row]:
        def make() -> HyCOP:
            train = drawn(range_of, "id", seed + TRAINING_STREAM, TRAJECTORIES, SHORT_TIMES)
            stop = drawn(range_of, "id", seed + STOPPING_STREAM, STOPPING, SHORT_TIMES)
            pretrained = bench.learned(KNOWN, seed, **EVOLUTION).model
            made = enrich(
                pretrained,
                train,
                held_out=stop,
                closure="network",
                networks=[PAPER_NETWORK],
                seed=seed,
                verbose=False,
            )
            return HyCOP.of(made.model.model.opened())

        model = _kept(bench, f"{range_of} paper {seed}", make)
        variant = {"r": range_of, "protocol": "paper", "closure": "network", "knows": "state", "pairs": "short"}
        found = [row for data in _tests(bench, range_of, seed) for row in _judged(model, data, range_of, variant)]
        return [replace(row, paper=PAPER_AFTER) if row.metric == "rel_l2" else row for row in found]

    return rows


def _judged(model: HyCOP, data: Dataset, range_of: str, variant: Mapping[str, str]) -> list[Row]:
    """The error of an enriched model, and how its closure maps the reaction."""
    about = Variant.of({**variant, "r": _shown(range_of, data, variant["knows"])})
    closure = model.model.dictionary["closure"]
    first = evaluate([Contender(ENRICHED, model.model, type(closure).__name__)], [data], metrics=("rel_l2",))
    found = [replace(row, variant=about) for row in first]
    if "r" not in data.setting.params:
        return found
    return [*found, *_correlations(closure.rate(data.truth, data.query.setting), data, found[0])]  # type: ignore[attr-defined]


def _correlations(rate: Array, data: Dataset, like: Row) -> list[Row]:
    """How the rate of a closure at the true states maps the reaction."""
    reaction, rows = reaction_of(data), []
    for metric, one, other in ((POOLED, rate, reaction), (PER_CENT, in_per_cent(rate), in_per_cent(reaction))):
        value = float(np.corrcoef(one.reshape(-1), other.reshape(-1))[0, 1])
        rows.append(replace(like, metric=metric, value=value, work=0.0, seconds_per_sample=0.0, paper=None))
    return rows


def reaction_of(data: Dataset) -> Array:
    """r u (1 − u) at the true end states."""
    u = data.truth
    out: Array = data.query.setting.param("r").reshape((-1,) + (1,) * (u.ndim - 1)) * u * (1 - u)
    return out


def in_per_cent(field: Array) -> Array:
    """Fields in per cent of their largest absolute value, sample by sample."""
    largest = np.abs(field).max(axis=tuple(range(1, field.ndim)), keepdims=True)
    return 100.0 * field / np.where(largest > 0, largest, 1.0)


def figures(bench: Bench, rows: Sequence[Row]) -> Mapping[str, Figure]:
    """The sample of seed 0 whose reaction varies most over space: states, reaction intensity, reduced error."""
    data = drawn(PAPER_RANGE, "id", 0, bench.samples, (0.2,))
    before = _pretrained(bench, 0).model.solve(data.query).states
    after = enriched(bench, PAPER_RANGE, "network, state", 0).model.solve(data.query).states
    errors = [rel_l2(states, data.truth, data.query.setting) for states in (before, after)]
    intensity = in_per_cent(reaction_of(data))[:, 0]
    sample = int(np.argmax(intensity.std(axis=(1, 2))))
    truth = data.truth[sample, 0]
    states = {
        "reference": truth,
        f"pretrained, rel. L2 {errors[0][sample]:.3f}": before[sample, 0],
        f"enriched, rel. L2 {errors[1][sample]:.3f}": after[sample, 0],
    }
    reduced = np.abs(before[sample, 0] - truth) - np.abs(after[sample, 0] - truth)
    maps = {
        "reaction intensity (%)": intensity[sample],
        "error reduction (%)": 100.0 * reduced / np.abs(before[sample, 0] - truth).max(),
    }
    return {"regime_b_residual": residual_figure(states, maps, data.setting.grid.lengths[sample].tolist())}


def _parts() -> dict[str, Part]:
    parts: dict[str, Part] = {f"{range_of}, before": _baselines(range_of) for range_of in RANGES}
    first, second = RANGES
    once = {name for name, way in WAYS.items() if way.one or (way.closure == "network" and not way.short)}
    parts |= {f"{range_of}, {name}": _way(range_of, name) for range_of in RANGES for name in WAYS if name not in once}
    parts[f"{second}, paper"] = _paper(second)
    # one range tells of the ways that take long
    for name in WAYS:
        if name in once:
            range_of = second if WAYS[name].one else first
            parts[f"{range_of}, {name}"] = _way(range_of, name)
    return parts


TABLE = Table(
    "regime-b-residual",
    "a model of ad2d on adr2d: zero-shot, and enriched with named terms or networks (path (a))",
    _parts(),
    figures,
    samples=120,
    preset="quick",
)
