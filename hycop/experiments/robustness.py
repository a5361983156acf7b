"""Table ``robustness``: dictionaries with a primitive too many, and with one too few.

*Redundant*: shallow water (``swe1d``, ``swe2d``) gets a dummy reaction, u_t = −u in every channel, which no process of
the equation needs and which does harm whenever it runs. Models with and without it learn from the same data
with the same seed; that with it may write one step more, so that the dummy takes none from the others. Rows: the errors
of both, as the gate lets them out (``HyCOP``) and as they were learned (``before the gate``), the ratio of the errors,
and the dummy's share of the time and of the work of the learned programs.

*Missing*: the policy of ``ad2d`` answers queries of ``adr2d`` without a reaction. Rows: its error against the truth,
with the full dictionary beside; its error against the truth with the reaction switched off, which shows that all else
is right; and the error in each quarter of the queries by r T and by the Damköhler number, with their mean there. The
paper's 0.181 stands beside both splits, as it does not say of which it is: with T = 0.2 it takes r between 1 and 2.5,
the upper half of the queries out of distribution, to come to that.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from hycop.data import Dataset
from hycop.evaluation import Contender, Row, Variant, evaluate
from hycop.execution import simplify
from hycop.experiments.bench import Bench, Learned
from hycop.experiments.judging import limit_of, plain_limit, training_seconds, ungated
from hycop.experiments.table import Part, Table
from hycop.features import FEATURES
from hycop.grid import Array
from hycop.metrics import rel_l2
from hycop.plots import Figure, scatter_figure
from hycop.primitive import EXACT, update_work
from hycop.problems import find_problem
from hycop.query import Query, Setting
from hycop.surrogate import HyCOP

SPLITS = ("id", "ood")
DUMMY = "reaction"
OWN, EXTENDED = (Variant.of({"dictionary": name}) for name in ("own", f"own + dummy {DUMMY}"))
BEFORE = "HyCOP before the gate"
RATIO = "rel_l2 over that of the own dictionary"
TIME_SHARE, WORK_SHARE = "time share of the dummy", "work share of the dummy"
PAPER_REDUNDANT: Mapping[tuple[Variant, str], float] = {
    (OWN, "rel_l2"): 2.40e-2,
    (EXTENDED, "rel_l2"): 2.30e-2,
    (EXTENDED, RATIO): 2.30 / 2.40,
    (EXTENDED, TIME_SHARE): 0.035,
}
"""For ``swe2d``, in distribution."""

WHOLE, PART = "adr2d", "ad2d"
FULL, WITHOUT = (Variant.of({"dictionary": name}) for name in ("full", "without reaction"))
SWITCHED_OFF = WITHOUT.adding({"truth": "without reaction"})
PAPER_MISSING = 1.81e-1
QUARTERS = 4
REGIMES: Mapping[str, str] = {"growth": "rT", "damkohler": "Damköhler number"}
"""Features (log₁₀) by which the queries are put in order, and what they are called."""


@dataclass(frozen=True)
class DummyReaction:
    """Decay u_t = −k u of every channel, exact: u ↦ u e^{−kτ}. It keeps nothing that shallow water keeps."""

    rate: float = 1.0

    advances: ClassVar[frozenset[str]] = frozenset({"dummy reaction"})
    order: ClassVar[float] = EXACT

    def flow(self, u: Array, duration: Array, setting: Setting) -> Array:
        return u * np.exp(-self.rate * np.asarray(duration)).reshape((-1,) + (1,) * (u.ndim - 1))

    def work(self, u: Array, duration: Array, setting: Setting) -> Array:
        return update_work(setting, 1.0)


def trained_with_dummy(bench: Bench, name: str, seed: int) -> Learned:
    own = bench.learned(name, seed).model.model.record.config.max_steps
    return bench.learned(name, seed, adding={DUMMY: DummyReaction()}, max_steps=own + 1)


def shares(model: HyCOP, query: Query, name: str) -> tuple[float, float]:
    """Shares of the time and of the work of all programs that go to a primitive whose work does not depend on the
    state."""
    inner = model.model
    programs = simplify(model.programs(query), inner.dictionary, query.setting)
    op = programs.names.index(name)
    time = programs.time_per_primitive().sum(axis=0)
    fine = query.setting.with_grid(query.grid.refined(inner.refinement))
    steps: Array = (programs.ops == op).sum(axis=1)
    work = steps * inner.dictionary[name].work(query.u0, query.time, fine)
    return float(time[op] / time.sum()), float(work.sum() / model.solve(query).work.sum())


def _redundant(name: str) -> Part:
    def rows(bench: Bench, seed: int) -> list[Row]:
        models = {OWN: bench.learned(name, seed), EXTENDED: trained_with_dummy(bench, name, seed)}
        found: list[Row] = []
        for split in SPLITS:
            data = bench.data(name, split, seed)
            errors = {variant: _errors(learned, data, variant) for variant, learned in models.items()}
            found += [row for part in errors.values() for row in part]
            own = {row.method: row.value for row in errors[OWN]}
            for row in errors[EXTENDED]:
                if not row.is_limit:
                    found.append(_remark(row, RATIO, row.value / own[row.method]))
            before = next(row for row in errors[EXTENDED] if row.method == BEFORE)
            told = shares(ungated(models[EXTENDED].model.model), data.query, DUMMY)
            found += [
                _remark(before, metric, value) for metric, value in zip((TIME_SHARE, WORK_SHARE), told, strict=True)
            ]
        for variant, learned in models.items():
            found.append(training_seconds(learned, next(row for row in found if row.variant == variant)))
        return [replace(row, paper=_published(row)) for row in found]

    return rows


def _published(row: Row) -> float | None:
    """The paper has a policy without a gate."""
    there = (row.problem, row.split, row.method) == ("swe2d", "id", BEFORE)
    return PAPER_REDUNDANT.get((row.variant, row.metric)) if there else None


def _errors(learned: Learned, data: Dataset, variant: Variant) -> list[Row]:
    """The model with its gate and without, and the limit of the primitives that the equation needs."""
    inner = learned.model.model
    label = ", ".join(inner.dictionary)
    # the bare model: a surrogate would refuse coefficients of processes that it lacks
    models = {"HyCOP": inner, BEFORE: inner.opened()}
    found = evaluate(
        [Contender(name, model, label) for name, model in models.items()],
        [data],
        limit_of=replace(limit_of(inner), label=label),
        metrics=("rel_l2",),
    )
    return [replace(row, variant=variant) for row in plain_limit(found)]


def _remark(like: Row, metric: str, value: float) -> Row:
    """A row with another metric and value."""
    return replace(like, metric=metric, value=value, truth="", limit=0.0, paper=None)


def without_reaction(bench: Bench, split: str, seed: int) -> Dataset:
    """The queries of the full equation, with the truth of the equation without its reaction."""
    whole = find_problem(WHOLE)
    part = replace(whole.equation, processes=find_problem(PART).processes)
    return replace(whole, equation=part).sample(bench.samples, split, seed)


def quarters(values: Array) -> list[Array]:
    """Indices of the samples in four parts of equal size, from the smallest values to the largest."""
    return np.array_split(np.argsort(values, kind="stable"), QUARTERS)


def _missing(bench: Bench, seed: int) -> list[Row]:
    part, full = bench.learned(PART, seed), bench.learned(WHOLE, seed)
    found: list[Row] = []
    for split in SPLITS:
        data = bench.data(WHOLE, split, seed)
        for learned, asked, variant in (
            (full, data, FULL),
            (part, data, WITHOUT),
            (part, without_reaction(bench, split, seed), SWITCHED_OFF),
        ):
            rows = [row for row in _errors(learned, asked, variant) if row.method != BEFORE]
            known = PAPER_MISSING if variant == WITHOUT else None
            found += [replace(row, paper=known if row.method == "HyCOP" else None) for row in rows]
            if asked is data:
                found += _by_regime(rows[0], query_errors(learned.model, data), data)
    return found


def query_errors(model: HyCOP, data: Dataset) -> Array:
    """Relative L2 error of every query."""
    return rel_l2(model.model.solve(data.query).states, data.truth, data.setting)


def _by_regime(like: Row, errors: Array, data: Dataset) -> list[Row]:
    """The mean error, and the mean of what the queries were put in order by, in each quarter of them."""
    found = []
    for feature, called in REGIMES.items():
        strength = 10 ** FEATURES[feature](data.query)
        for index, members in enumerate(quarters(strength), start=1):
            place = like.variant.adding({f"quarter {index} by {called}": ""})
            row = replace(like, variant=place, samples=members.size, limit=0.0)
            found += [replace(row, value=float(errors[members].mean()))]
            found += [_remark(row, f"mean {called}", float(strength[members].mean()))]
    return found


def figures(bench: Bench, rows: Sequence[Row]) -> Mapping[str, Figure]:
    """Error against r T, a point a query, with and without the reaction."""
    models = {"with reaction": bench.learned(WHOLE, 0).model, "without reaction": bench.learned(PART, 0).model}
    out = {}
    for split in SPLITS:
        data = bench.data(WHOLE, split, 0)
        strength = 10 ** FEATURES["growth"](data.query)
        errors = {label: query_errors(model, data) for label, model in models.items()}
        errors["without reaction, against the truth without it"] = query_errors(
            models["without reaction"], without_reaction(bench, split, 0)
        )
        title = f"{WHOLE}, {split}: what a missing reaction costs"
        out[f"robustness_missing_{split}"] = scatter_figure(strength, errors, "rT", title)
    return out


TABLE = Table(
    "robustness",
    "a primitive too many, or too few (swe1d, swe2d, adr2d)",
    {**{f"redundant {name}": _redundant(name) for name in ("swe1d", "swe2d")}, "missing": _missing},
    figures,
    samples=100,
)
