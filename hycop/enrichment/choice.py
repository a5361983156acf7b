"""Chooses a closure: the named terms, or a network, by their errors on held-out data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from hycop.diagnosis import Missing
from hycop.diagnosis.missing import equations
from hycop.enrichment.closure import symbolic_closure
from hycop.enrichment.learning import Lesson, NetworkPlan, learned_closure
from hycop.errors import HyCOPError, IncompatibleError, NonFiniteStateError
from hycop.networks import MissingTorchError
from hycop.primitive import Primitive
from hycop.query import Channel

Closure = Literal["auto", "symbolic", "network"]
"""Kinds of closures; ``auto`` chooses."""

TRANSFER = 1.1
"""Named terms hold on other grids, boundaries and states: they may err this many times more than a network."""

AT_FLOOR = 3.0
"""Named terms that leave less than this many times the error of grid, steps, truth and noise need no rival."""


@dataclass(frozen=True, eq=False)
class Chosen:
    """A closure with its error on the held-out pairs, a line that describes it, and why it was chosen."""

    closure: Primitive
    error: float
    line: str
    reasons: tuple[str, ...] = ()


def chosen(
    kind: Closure,
    missing: Missing,
    lesson: Lesson,
    channels: Sequence[Channel],
    networks: Sequence[NetworkPlan],
    verbose: bool,
) -> Chosen:
    """The closure of a kind. ``auto`` takes the named terms if they err at most 10 % more than the best network."""
    if kind == "symbolic":
        return _symbolic(missing, lesson, channels)
    if kind == "network":
        return _network(lesson, networks, verbose)
    try:
        named: Chosen | None = _symbolic(missing, lesson, channels)
        why = ""
    except HyCOPError as error:
        named, why = None, str(error)
    if named is not None and missing.after <= AT_FLOOR * max(missing.floor, missing.noise):
        reason = "named terms: they explain the data up to the errors of grid, steps, truth and noise"
        return Chosen(named.closure, named.error, named.line, (reason,))
    try:
        learned = _network(lesson, networks, verbose)
    except (MissingTorchError, IncompatibleError) as error:
        if named is None:
            raise IncompatibleError(f"{why}; a network does not help either: {error}") from None
        return Chosen(named.closure, named.error, named.line, (f"named terms, because there is no network: {error}",))
    if named is None:
        return Chosen(learned.closure, learned.error, learned.line, (*learned.reasons, f"a network, because {why}"))
    errors = f"held-out errors {named.error:.2e} of the named terms, {learned.error:.2e} of the network"
    if named.error <= TRANSFER * min(named.error, learned.error):
        return Chosen(named.closure, named.error, named.line, (f"named terms, which transfer: {errors}",))
    return Chosen(learned.closure, learned.error, learned.line, (*learned.reasons, f"a network: {errors}"))


def _symbolic(missing: Missing, lesson: Lesson, channels: Sequence[Channel]) -> Chosen:
    if missing.verdict != "named":
        raise IncompatibleError(f"{missing}; there is nothing to enrich the model with")
    closure = symbolic_closure(missing.unknown_terms, channels, lesson.process)
    line = f"enriched with {lesson.process}: {', '.join(equations(missing.unknown_terms, missing.channels))}"
    return Chosen(closure, _checked(lesson, closure), line)


def _network(lesson: Lesson, networks: Sequence[NetworkPlan], verbose: bool) -> Chosen:
    """The network with the lowest held-out error; it must lower the model's own."""
    found, failed = [], []
    for plan in networks:
        try:
            closure = learned_closure(lesson, plan, verbose)
            found.append((_checked(lesson, closure), closure))
        except (IncompatibleError, NonFiniteStateError) as error:
            failed.append(str(error))
    if not found:
        raise IncompatibleError(failed[0] if failed else "no network was given")
    lowest, best = min(found, key=lambda pair: pair[0])
    before = lesson.known.error(lesson.judge.at(-1), None)
    if not lowest < before:
        raise IncompatibleError(
            f"the network does not lower the held-out error ({before:.2e} → {lowest:.2e}): use more data, or other "
            "coefficients as --inputs"
        )
    told = [f"{closure.plan.family} {each:.2e}" for each, closure in found]
    reasons = (f"{best.plan.family} network: held-out errors {', '.join(told)}",) if len(found) > 1 else ()
    inputs = f" and {', '.join(best.inputs)}" if best.inputs else ""
    line = f"enriched with {lesson.process}: a {best.plan.family} network of {', '.join(best.states)}{inputs}"
    return Chosen(best, lowest, line, reasons)


def _checked(lesson: Lesson, closure: Primitive) -> float:
    """The held-out error of a closure, which must not blow up."""
    error = lesson.known.error(lesson.judge.at(-1), closure)
    if not np.isfinite(error):
        raise IncompatibleError("the closure becomes NaN or infinite on the held-out data: use more or other data")
    return error
