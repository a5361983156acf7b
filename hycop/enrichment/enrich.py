"""Enriches a model with what it lacks: a closure of named terms, or corrected coefficients."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal, get_args

import numpy as np

from hycop.corrections import Correction, corrected
from hycop.data import Dataset
from hycop.diagnosis import Missing, name_missing
from hycop.diagnosis.missing import equations
from hycop.enrichment.closure import closure_name, combined, enriched_equation, symbolic_closure, with_closure
from hycop.errors import IncompatibleError, UnknownNameError
from hycop.evaluation import Opponents, errors_of
from hycop.execution import measure
from hycop.features import Observed
from hycop.grid import Array
from hycop.model import Model
from hycop.policy import SlotPolicy, exact_covers
from hycop.primitive import Primitive
from hycop.query import Setting
from hycop.scope import Scope, barred_primitives
from hycop.surrogate import HyCOP
from hycop.training.gate import gate
from hycop.training.source import FEWEST_HELD_OUT

Closure = Literal["symbolic"]
"""Kinds of closures."""


@dataclass(frozen=True, eq=False)
class Enriched:
    """A model with what it lacked, and what that brought.

    ``before`` and ``after`` are mean relative L2 errors on the held-out pairs; ``closure`` is the new primitive, if
    there is one. ``contribution`` is what the enrichment changes in the answers to these pairs, ``residual`` what was
    wrong with them before, both (batch, channel, *grid); ``correlation`` tells how well the one maps the other.
    """

    model: HyCOP
    missing: Missing
    before: float
    after: float
    closure: Primitive | None
    corrections: Mapping[str, Correction]
    contribution: Array
    residual: Array
    changes: tuple[str, ...]

    @property
    def correlation(self) -> float:
        a, b = self.contribution.reshape(-1), self.residual.reshape(-1)
        size = float(np.linalg.norm(a) * np.linalg.norm(b))
        return float(a @ b) / size if size > 0 else 0.0

    def __str__(self) -> str:
        return (
            f"{'; '.join(self.changes)}: held-out error {self.before:.2e} → {self.after:.2e}; "
            f"correlation of its map with that of the residual {self.correlation:.3f}"
        )

    def as_json(self) -> dict[str, object]:
        return {
            **self.missing.as_json(),
            "before": self.before,
            "after": self.after,
            "correlation": self.correlation,
            "changes": list(self.changes),
            "corrections": {name: str(each) for name, each in self.corrections.items()},
        }


def enrich(
    model: HyCOP,
    data: Dataset,
    *,
    closure: Closure = "symbolic",
    coefficients: bool = False,
    held_out: Dataset | None = None,
    seed: int = 0,
    verbose: bool = True,
    **settings: object,
) -> Enriched:
    """A model that explains the data: with a primitive for the terms that its equation lacks, and with
    ``coefficients`` also with corrections of those that are off.

    The primitive joins the dictionary and its process the equation. Only the policy is learned again: once from what it
    was, with the closure as in a classical scheme, and once from a new search; the better one on the held-out pairs (a
    third of the data unless given) passes the gate. ``settings`` change those of the model's own training.
    """
    if closure not in get_args(Closure):
        raise UnknownNameError("closure", str(closure), get_args(Closure))
    missing = name_missing(model, data, seed=seed, verbose=verbose)
    before = model.model
    _check_named(missing, coefficients)
    corrections = combined(before, missing) if coefficients else dict(before.corrections)
    known = replace(before, corrections=corrections)
    pairs = data.arranged(before.equation.channels)
    learn, judge = (pairs, held_out.arranged(before.equation.channels)) if held_out is not None else _parted(pairs)
    lines = [f"corrected {each}" for each in missing.corrections] if coefficients else []
    part: Primitive | None = None
    if missing.unknown_terms:
        name = closure_name(before)
        part = symbolic_closure(missing.unknown_terms, before.equation.channels, name)
        after = _relearned(known, name, part, learn, judge, seed, verbose, settings)
        lines.append(f"enriched with {name}: {', '.join(equations(missing.unknown_terms, missing.channels))}")
    else:
        after = known
    return _compared(before, after, missing, part, judge, lines)


def _check_named(missing: Missing, coefficients: bool) -> None:
    """Refuses to enrich a model with nothing, with a guess, or with terms that are coefficients in disguise."""
    if missing.verdict != "named":
        raise IncompatibleError(f"{missing}; there is nothing to enrich the model with")
    if missing.corrections and not coefficients:
        found = ", ".join(map(str, missing.corrections))
        raise IncompatibleError(f"a coefficient of the model is off ({found}): correct it with --coefficients")
    if coefficients and not missing.corrections:
        raise IncompatibleError(f"no coefficient of the model is off, terms are missing: {missing}")


def _parted(data: Dataset) -> tuple[Dataset, Dataset]:
    """Two thirds to learn from, the rest to judge."""
    kept = max(1, data.samples * 2 // 3)
    return data.take(slice(0, kept)), data.take(slice(kept, None))


def _relearned(
    known: Model,
    name: str,
    part: Primitive,
    learn: Dataset,
    judge: Dataset,
    seed: int,
    verbose: bool,
    settings: Mapping[str, object],
) -> Model:
    """The model with a closure and a policy for it."""
    learn, judge = (replace(each, setting=_corrected(each, known)) for each in (learn, judge))
    equation = enriched_equation(known.equation, part, learn, known)
    start = with_closure(known, name, part, equation)
    if judge.query.batch < FEWEST_HELD_OUT:
        return replace(_judged(start, learn, judge), corrections=known.corrections)
    own = known.record.config.model_dump(exclude={"dictionary", "samples", "validation"})
    patterns = start.policy.patterns if isinstance(start.policy, SlotPolicy) else ()
    longest = max((len(pattern.ops) for pattern in patterns), default=0)
    chosen = {**own, "max_steps": max(own["max_steps"], longest), **settings}
    found = []
    for begin in (HyCOP.of(start), None):
        fresh = HyCOP(start.dictionary, equation)
        found.append(fresh.fit(learn, judge, seed=seed, verbose=verbose, warm_start=begin, **chosen).model)
    best = min(found, key=lambda each: each.gate.error)
    return replace(best, corrections=known.corrections)


def _corrected(data: Dataset, model: Model) -> Setting:
    return replace(data.setting, params=corrected(data.setting.params, model.corrections))


def _judged(start: Model, learn: Dataset, judge: Dataset) -> Model:
    """The model without training, because there are too few pairs: its policy as it was, with the closure as in a
    classical scheme, and a gate that compares it with the best classical scheme on the pairs there are."""
    scope = Scope.of(start.equation, start.scope.view, [each.query for each in (learn, judge)])
    start = replace(start, scope=scope, corrections={})
    query, config = judge.query, start.record.config
    view, barred = start.scope.view, barred_primitives(start.dictionary, query)
    inputs = view.inputs(view.values(Observed(query, start.equation)), query.time, barred)
    programs = start.policy.programs(start.theta[None], inputs).with_substeps(config.substeps)
    learned = measure(programs, start.dictionary, query, refinement=start.refinement, strict=False)
    covers = exact_covers(start.dictionary, start.equation.processes)
    rival = Opponents(
        start.dictionary, learn.query, learn.truth, start.refinement, config.metric, config.substeps, covers
    ).best(query, learned.work)
    decided = gate(learned, rival, start.dictionary, judge, inputs.features, start.refinement, config.metric)
    return replace(start, gate=decided)


def _compared(
    before: Model, after: Model, missing: Missing, part: Primitive | None, judge: Dataset, lines: list[str]
) -> Enriched:
    """The result with errors before and after on the held-out pairs, which the old model answers without the
    coefficients that it does not know."""
    query, truth = judge.query, judge.truth
    old, new = before.solve(query).states, after.solve(query).states
    record = replace(after.record, changes=(*before.record.changes, *lines))
    errors = [float(errors_of("rel_l2", states, truth, query).mean()) for states in (old, new)]
    return Enriched(
        HyCOP.of(replace(after, record=record)),
        missing,
        errors[0],
        errors[1],
        part,
        after.corrections,
        new - old,
        truth - old,
        tuple(lines),
    )
