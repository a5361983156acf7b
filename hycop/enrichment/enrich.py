"""Enriches a model with what it lacks: a closure of named terms or a network, or corrected coefficients."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import get_args

import numpy as np

from hycop.corrections import Correction
from hycop.data import Dataset
from hycop.diagnosis import Missing, name_missing
from hycop.enrichment.choice import Closure, chosen
from hycop.enrichment.closure import closure_name, combined, enriched_equation, with_closure
from hycop.enrichment.known import KnownFlow
from hycop.enrichment.learning import NETWORKS, Lesson, NetworkPlan
from hycop.enrichment.rates import has_short_pairs
from hycop.errors import IncompatibleError, InvalidInputError, UnknownNameError
from hycop.evaluation import Opponents, errors_of
from hycop.execution import measure
from hycop.features import Observed
from hycop.grid import Array
from hycop.model import Model
from hycop.networks import imported
from hycop.policy import SlotPolicy, exact_covers
from hycop.primitive import Primitive
from hycop.primitives.learned import NeuralClosure
from hycop.scope import Scope, barred_primitives
from hycop.surrogate import HyCOP
from hycop.training import configured
from hycop.training.gate import gate
from hycop.training.source import FEWEST_HELD_OUT

SEARCH_WITH_NETWORK: Mapping[str, object] = {"tilts": 1, "tries": 1, "patterns": 1, "rounds": 1, "iterations": 1}
QUERIES_WITH_NETWORK = 24
"""Settings of the policy beside a network, which costs a hundred times a textbook primitive, and most samples that it
learns from. Its programs have little to win: the error is that of the network."""


FEWEST_LEARNED = 12
"""Samples that a policy learns from at least; their fields have thousands of values."""

MORE_WORK = 3.0
"""Work of the classical scheme over that of the old programs, where there are too few pairs to learn new ones."""


@dataclass(frozen=True, eq=False)
class Enriched:
    """A model with what it lacked, and what that brought.

    ``before`` and ``after`` are mean relative L2 errors on the held-out pairs; ``closure`` is the new primitive, if
    there is one, and ``reasons`` say why it is of its kind. ``contribution`` is what the enrichment changes in the
    answers to these pairs, ``residual`` what was wrong with them before, both (batch, channel, *grid); ``correlation``
    tells how well the one maps the other.
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
    reasons: tuple[str, ...] = ()

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

    def to_json(self) -> dict[str, object]:
        return {
            **self.missing.to_json(),
            "before": self.before,
            "after": self.after,
            "correlation": self.correlation,
            "closure": None if self.closure is None else type(self.closure).__name__,
            "changes": list(self.changes),
            "reasons": list(self.reasons),
            "corrections": {name: str(each) for name, each in self.corrections.items()},
        }


def enrich(
    model: HyCOP,
    data: Dataset,
    *,
    closure: Closure = "auto",
    inputs: Sequence[str] = (),
    coefficients: bool = False,
    held_out: Dataset | None = None,
    networks: Sequence[NetworkPlan] = NETWORKS,
    seed: int = 0,
    verbose: bool = True,
    **settings: object,
) -> Enriched:
    """A model that explains the data: with a primitive for the process that its equation lacks, and with
    ``coefficients`` also with corrections of those that are off.

    - ``symbolic``: the primitive is made of the terms that ``name_missing`` finds.
    - ``network``: it is the best of some ``networks`` of the state, and of the coefficients in the data that ``inputs``
      names. They learn from short-time pairs if the data have them, else from the last states.
    - ``auto``: the named terms, unless a network errs less by more than 10 %.

    The primitive joins the dictionary and its process the equation. Only the policy is learned again: from what it was,
    with the closure as in a classical scheme, and beside named terms also from a new search; the better one on the
    held-out pairs (a third of the data unless given) passes the gate. ``settings`` change those of the model's own
    training.
    """
    if closure not in get_args(Closure):
        raise UnknownNameError("closure", str(closure), get_args(Closure))
    _check_inputs(inputs, closure, data, held_out)
    config = model.model.record.config.model_dump(exclude={"dictionary", "samples", "validation"})
    configured("quick", {**config, **settings})  # refuses unknown settings before anything is computed
    if closure == "network":
        for plan in networks:
            imported(plan.family)  # says so if torch is missing
    missing = name_missing(model, data, seed=seed, verbose=verbose)
    before = model.model.composition()
    _check_named(missing, closure, coefficients)
    corrections = combined(before, missing) if coefficients else dict(before.corrections)
    known = replace(before, corrections=corrections)
    pairs = data.arranged(before.equation.channels)
    learn, judge = (pairs, held_out.arranged(before.equation.channels)) if held_out is not None else _parted(pairs)
    if coefficients and not missing.unknown_terms:
        return _compared(before, known, missing, None, _lasting(judge), _corrected(missing))
    name = closure_name(before)
    taught, judged = (replace(each, setting=known.corrected_setting(each.setting)) for each in (learn, judge))
    lesson = Lesson(KnownFlow.of(known), taught, judged, name, tuple(inputs), seed)
    kind: Closure = "symbolic" if coefficients else closure
    found = chosen(kind, missing, lesson, before.equation.channels, networks, verbose)
    after = _relearned(known, name, found.closure, _lasting(learn), _lasting(judge), seed, verbose, settings)
    lines = [*(_corrected(missing) if coefficients else []), found.line]
    reasons, judging = found.reasons, _lasting(judge)
    if judging.query.batch < FEWEST_HELD_OUT:
        few = f"{judging.query.batch} held-out pairs are too few to learn a policy ({FEWEST_HELD_OUT} are needed)"
        reasons = (*reasons, f"{few}: the old one stays, or a classical scheme if that is better")
    return _compared(before, after, missing, found.closure, judging, lines, reasons)


def _corrected(missing: Missing) -> list[str]:
    return [f"corrected {each}" for each in missing.corrections]


def _lasting(data: Dataset) -> Dataset:
    """The data that a policy answers: without short-time pairs, which tell of the closure only."""
    return data.at(-1) if has_short_pairs(data) else data


def _check_named(missing: Missing, closure: Closure, coefficients: bool) -> None:
    """Refuses to enrich a model with nothing, with a guess, or with terms that are coefficients in disguise."""
    if missing.verdict == "nothing" or (missing.verdict == "unknown" and (closure == "symbolic" or coefficients)):
        raise IncompatibleError(f"{missing}; there is nothing to enrich the model with")
    if missing.corrections and not coefficients and closure != "network":
        found = ", ".join(map(str, missing.corrections))
        raise IncompatibleError(f"a coefficient of the model is off ({found}): correct it with --coefficients")
    if coefficients and not missing.corrections:
        raise IncompatibleError(f"no coefficient of the model is off, terms are missing: {missing}")


def _check_inputs(inputs: Sequence[str], closure: Closure, data: Dataset, held_out: Dataset | None) -> None:
    if inputs and closure == "symbolic":
        raise InvalidInputError("inputs are those of a network: choose --closure network or auto, or leave them out")
    for each in (data, held_out):
        for name in inputs:
            if isinstance(each, Dataset) and name not in each.setting.params:
                raise UnknownNameError("input", name, each.setting.params, "(coefficients of the data)")


def _parted(data: Dataset) -> tuple[Dataset, Dataset]:
    """Two thirds to learn from, the rest to judge; of few samples as many to judge as a gate needs."""
    kept = max(1, data.samples * 2 // 3)
    if data.samples >= FEWEST_HELD_OUT + FEWEST_LEARNED:
        kept = min(kept, data.samples - FEWEST_HELD_OUT)
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
    learn, judge = (replace(each, setting=known.corrected_setting(each.setting)) for each in (learn, judge))
    equation = enriched_equation(known.equation, part, learn, known)
    start = with_closure(known, name, part, equation)
    if judge.query.batch < FEWEST_HELD_OUT:
        return replace(_judged(start, learn, judge), corrections=known.corrections)
    own = known.record.config.model_dump(exclude={"dictionary", "samples", "validation"})
    patterns = start.policy.patterns if isinstance(start.policy, SlotPolicy) else ()
    longest = max((len(pattern.ops) for pattern in patterns), default=0)
    network = isinstance(part, NeuralClosure)
    cheaper = SEARCH_WITH_NETWORK if network else {}
    some = learn.take(slice(0, QUERIES_WITH_NETWORK)) if network else learn
    given = {**own, "max_steps": max(own["max_steps"], longest), **cheaper, **settings}
    found = []
    for begin in (HyCOP.of(start),) if network else (HyCOP.of(start), None):
        fresh = HyCOP(start.dictionary, equation)
        found.append(fresh.fit(some, judge, seed=seed, verbose=verbose, warm_start=begin, **given).model)
    best = min(found, key=lambda each: each.gate.error)
    return replace(best, corrections=known.corrections)


def _judged(start: Model, learn: Dataset, judge: Dataset) -> Model:
    """The model without training, because there are too few pairs: its policy as it was, with the closure as in a
    classical scheme, and a gate that compares it with the best classical scheme on the pairs there are. That may take
    more work: the old programs were not written for the closure."""
    scope = Scope.of(start.equation, start.scope.view, [each.query for each in (learn, judge)])
    start = replace(start, scope=scope, corrections={})
    query, config = judge.query, start.record.config
    view, barred = start.scope.view, barred_primitives(start.dictionary, query)
    inputs = view.inputs(view.values(Observed(query, start.equation)), query.time, barred)
    programs = start.policy.programs(start.theta[None], inputs).with_substeps(config.substeps)
    learned = measure(programs, start.dictionary, query, refinement=start.refinement, strict=False)
    covers = exact_covers(start.dictionary, start.equation.processes)
    rivals = Opponents(
        start.dictionary, learn.query, learn.truth, start.refinement, config.metric, config.substeps, covers
    ).rivals(query, MORE_WORK * learned.work)
    decided = gate(learned, rivals, start.dictionary, judge, inputs.features, start.refinement, config.metric, covers)
    made = replace(start, gate=decided, calibration=None)  # what the old model kept is not true of this one
    made = replace(made, trained=made.answered(learn), held_out=made.answered(judge))
    return made.calibrated(judge)


def _compared(
    before: Model,
    after: Model,
    missing: Missing,
    part: Primitive | None,
    judge: Dataset,
    lines: Sequence[str],
    reasons: tuple[str, ...] = (),
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
        reasons,
    )
