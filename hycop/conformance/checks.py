"""The single checks: each takes a case and returns whether a property holds, with the number measured and demanded."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from hycop.boundary import PLAIN, VALUED
from hycop.conformance.case import ORDER, Case, Observed, changes, observed_order
from hycop.conformance.learned import lipschitz
from hycop.dictionary import Dictionary
from hycop.errors import IncompatibleError
from hycop.execution import run
from hycop.grid import Array
from hycop.kernels.reaction import logistic
from hycop.primitive import EXACT, boundaries_of, conserved_channels, depends_on_batch, flow_of, is_reversible
from hycop.program import Program
from hycop.query import Query, Setting

IDENTITY = 1e-14
"""Largest relative change of a state in zero duration."""

CONSERVATION = 1e-12
"""Largest relative change of a total that is declared as kept."""

SYMBOL = 1e-12
"""Largest relative difference between a flow and that of its symbol."""

SEMIGROUP, RETURN, ROUNDING = 1e-10, 1e-8, 1e-10
"""Largest relative differences of an exact primitive: one step against two, forth and back, between refinements."""

RATE, RATE_OF_EXACT, RATE_OF_LEARNED = 1e-6, 1e-8, 1e-3
"""Largest relative difference between a rate and the differences of the flow: of limited schemes, of exact ones, and of
those without an order, which may compute in single precision."""

FRACTIONS = (1e-2, 1e-3, 1e-4)
"""Longest durations of the differences, as fractions: long ones avoid rounding, short ones the kinks of limiters."""

IN_BATCH = 1e-5
"""Largest relative difference between batches for a primitive that declares ``batch_dependent``."""

LONGER, GROWN = (10.0, 100.0), 1e3
"""Longer durations for an exact primitive, as multiples, unless its states grow by more than ``GROWN``."""

TOUCH = 1e-6
"""Fraction of a change in one cell above which other cells count as depending on it: step control links all cells."""

Verdict = tuple[bool, str]


def raised(error: Exception) -> str:
    """An exception on one line."""
    return " ".join(f"raised {type(error).__name__}: {error}".split())


def _at_most(measured: float, demanded: float, what: str) -> Verdict:
    return measured <= demanded, f"{what} {measured:.1e}, demanded ≤ {demanded:.0e}"


def _same_bits(a: Array, b: Array, what: str) -> Verdict:
    different = int(np.sum(a != b))
    return different == 0, f"{different} values differ between {what}, demanded 0 (to the bit)"


def _same_in_batch(case: Case, a: Array, b: Array, what: str) -> Verdict:
    if depends_on_batch(case.primitive):
        return _at_most(case.distance(a, b), IN_BATCH, f"declared batch-dependent: relative difference between {what}")
    return _same_bits(a, b, what)


def identity(case: Case) -> Verdict:
    still = case.flow(case.u, np.zeros_like(case.duration))
    return _at_most(case.distance(still, case.u), IDENTITY, "relative change in zero duration")


def shape_and_dtype(case: Case) -> Verdict:
    out = case.flow(case.u, case.duration)
    got = f"{type(out).__name__} of {getattr(out, 'dtype', '?')} {np.shape(out)}"
    good = isinstance(out, np.ndarray) and out.shape == case.u.shape and out.dtype == np.float64
    return good, f"got {got}, demanded ndarray of float64 {case.u.shape}"


def input_untouched(case: Case) -> Verdict:
    given = {"state": case.u, "duration": case.duration, **case.setting.params}
    before = {name: value.copy() for name, value in given.items()}
    with np.errstate(all="ignore"):
        case.primitive.flow(case.u, case.duration, case.setting)
    modified = [name for name, value in given.items() if not np.array_equal(value, before[name])]
    for name in modified:
        given[name][...] = before[name]
    return not modified, f"flow modified its {' and '.join(modified)}" if modified else "input arrays are as before"


def finite(case: Case) -> Verdict:
    lost = int(np.sum(~np.isfinite(case.flow(case.u, case.duration))))
    return lost == 0, f"{lost} values not finite, demanded 0"


def repeatable(case: Case) -> Verdict:
    first = case.flow(case.u, case.duration)
    kept = np.array(first)
    case.flow(case.u[::-1].copy(), 0.5 * case.duration)
    if not np.array_equal(first, kept):
        return False, "a later call changed an earlier result; return a new array from every call"
    return _same_bits(case.flow(case.u, case.duration), kept, "calls with the same input")


def work(case: Case) -> Verdict:
    out = np.asarray(case.primitive.work(case.u, case.duration, case.setting))
    batch = case.setting.batch
    if out.shape != (batch,):
        return False, f"shape {out.shape}, demanded ({batch},): one number per sample"
    return bool((np.isfinite(out) & (out > 0)).all()), f"smallest {out.min():.4g}, demanded > 0 and finite"


def batch_of_one(case: Case) -> Verdict:
    together = case.flow(case.u, case.duration)
    samples = [slice(i, i + 1) for i in range(case.setting.batch)]
    alone = [case.flow(case.u[one].copy(), case.duration[one], case.setting.take(one)) for one in samples]
    return _same_in_batch(case, np.concatenate(alone), together, "a batch and its samples one by one")


def batch_order(case: Case) -> Verdict:
    order = np.roll(np.arange(case.setting.batch), 1)
    permuted = case.flow(case.u[order], case.duration[order], case.setting.take(order))
    together = case.flow(case.u, case.duration)[order]
    return _same_in_batch(case, permuted, together, "a batch and the same in another order")


def _vanishes(
    case: Case, defect: Callable[[Case, Setting], tuple[Array, Array]], limit: float, what: str, longer: bool = False
) -> Verdict:
    """Two states that should be equal: to ``limit`` on every box if exact, and for longer durations if these are
    asked for, else closer with at least the order. Without an order the difference is only reported.

    Grid and duration are refined together, so that sub-steps bound by a Courant number keep theirs.
    """
    declared = case.primitive.order
    if declared is None:
        difference = case.distance(*defect(case, case.setting))
        return True, f"{what}: relative difference {difference:.1e} (for information: it declares no order)"
    if declared == EXACT:
        boxes = {name: case.distance(*defect(case, box)) for name, box in case.boxes(boundaries_of(case.primitive))}
        if longer:
            boxes |= {name: case.distance(*defect(long, long.setting)) for name, long in _longer(case)}
        worst = max(boxes, key=lambda name: math.inf if math.isnan(boxes[name]) else boxes[name])
        return _at_most(boxes[worst], limit, f"{what}: relative difference ({worst})")
    levels = [case.on_level(level) for level in case.levels()]
    measured = observed_order(np.array([one.mean_distance(*defect(one, one.setting)) for one in levels]), 3)
    return measured.reaches(declared), f"{what}: closes with order {measured}, demanded ≥ {declared:g}"


def _longer(case: Case) -> Iterator[tuple[str, Case]]:
    """The case with longer durations, as long as its states stay finite and bounded."""
    for factor in LONGER:
        long = replace(case, duration=factor * case.duration)
        try:
            out = long.flow(long.u, long.duration)
        except Exception:  # of a solution that blows up earlier
            return
        if not long.distance(out, np.zeros_like(out)) < GROWN:
            return
        yield f"{factor:g} times the duration", long


def semigroup(case: Case) -> Verdict:
    def defect(one: Case, setting: Setting) -> tuple[Array, Array]:
        between = one.flow(one.u, 0.375 * one.duration, setting)
        return one.flow(between, 0.625 * one.duration, setting), one.flow(one.u, one.duration, setting)

    return _vanishes(case, defect, SEMIGROUP, "one step against two", longer=True)


def reversible(case: Case) -> Verdict:
    if not is_reversible(case.primitive):
        return True, "not declared"

    def defect(one: Case, setting: Setting) -> tuple[Array, Array]:
        return one.flow(one.flow(one.u, one.duration, setting), -one.duration, setting), one.u

    return _vanishes(case, defect, RETURN, "forth and back")


def boundaries(case: Case) -> Verdict:
    boxes = case.boxes(boundaries_of(case.primitive))
    for name, box in boxes:
        try:
            lost = int(np.sum(~np.isfinite(case.flow(case.u, case.duration, box))))
        except Exception as error:
            return False, f"{name}: {raised(error)}"
        if lost:
            return False, f"{name}: {lost} values not finite, demanded 0"
    if not hasattr(case.primitive, "boundaries") and _blind_to_ends(case):
        return (
            False,
            "cells act on each other, but walls change nothing; declare boundaries, with wall if that is meant",
        )
    return True, f"finite on {', '.join(name for name, _ in boxes)}"


def _blind_to_ends(case: Case) -> bool:
    """Whether the primitive treats a box with walls as if it were periodic."""
    walled = case.setting.with_grid(case.setting.grid.with_boundary("wall"))
    out = case.flow(case.u, case.duration, walled)
    if not np.array_equal(out, case.flow(case.u, case.duration)):
        return False
    first: Any = (..., *(0,) * case.setting.grid.axes)
    touched = case.u.copy()
    touched[first] += 1e-2 * case.scale
    other = case.flow(touched, case.duration, walled)
    other[first] = out[first]
    return case.distance(other, out) > TOUCH * case.distance(touched, case.u)


def other_boundaries(case: Case) -> Verdict:
    undeclared = sorted((PLAIN | VALUED) - boundaries_of(case.primitive))
    for boundary in undeclared:
        setting = case.setting.with_grid(case.setting.grid.with_boundary(boundary))
        query = Query(case.u, setting, case.duration)
        try:
            run(Program.of(("tested", case.duration[0])), Dictionary({"tested": case.primitive}), query)
        except IncompatibleError:
            continue
        return False, f"{boundary} is not declared, but run did not refuse it"
    if not hasattr(case.primitive, "boundaries"):
        return True, "none are declared: all are assumed"
    return True, f"run refuses {', '.join(undeclared)}" if undeclared else "all are declared"


def conservation(case: Case) -> Verdict:
    channels = conserved_channels(case.primitive, case.setting)
    closed = boundaries_of(case.primitive) & {"periodic", "wall"}
    if not channels or not closed:
        return True, "not declared"
    over_cells = tuple(range(2, case.u.ndim))
    size = np.maximum(np.abs(case.u).sum(axis=over_cells), case.scale)
    worst, where = -1.0, ""
    for name, box in case.boxes(closed):
        drift = np.abs((case.flow(case.u, case.duration, box) - case.u).sum(axis=over_cells)) / size
        for channel in channels:
            change = float(drift[:, channel].max())
            if not change <= worst:  # also if it is NaN
                worst, where = change, f"total of '{case.setting.channels[channel].name}' ({name})"
    return _at_most(worst, CONSERVATION, f"relative change of the {where}")


def symbol(case: Case) -> Verdict:
    rates = getattr(case.primitive, "symbol", None)
    if rates is None:
        return True, "not offered"
    differences = [
        case.distance(flow_of(rates(box), case.u, case.duration), case.flow(case.u, case.duration, box))
        for _, box in case.boxes(boundaries_of(case.primitive))
    ]
    return _at_most(float(np.max(differences)), SYMBOL, "relative difference between flow and symbol")


def rate(case: Case) -> Verdict:
    """The rate must be the limit of (flow(u, τ) − u)/τ as τ → 0, on every box."""
    offered = getattr(case.primitive, "rate", None)
    if offered is None:
        return True, "not offered"
    worst, where = 0.0, ""
    still = 1e-3 * float(np.linalg.norm(case.u / case.columns(case.u)) / case.duration.max())
    for name, box in case.boxes(boundaries_of(case.primitive)):
        given = np.array(offered(np.array(case.u), box))
        if given.shape != case.u.shape or given.dtype != np.float64:
            return False, f"got {given.dtype} {given.shape}, demanded float64 {case.u.shape}"
        size = max(float(np.linalg.norm(given / case.columns(given))), still)
        misses = [
            float(np.linalg.norm((_difference(case, box, fraction) - given) / case.columns(given))) / size
            for fraction in FRACTIONS
        ]
        miss = float(np.nanmin([*misses, math.inf]))
        if miss >= worst:
            worst, where = miss, name
    order = case.primitive.order
    limit = RATE_OF_LEARNED if order is None else RATE_OF_EXACT if order == EXACT else RATE
    return _at_most(worst, limit, f"relative difference between rate and flow ({where})")


def _difference(case: Case, box: Setting, fraction: float) -> Array:
    """(flow(u, τ) − u)/τ for τ → 0, from four durations by Richardson's extrapolation in powers of τ."""
    durations = [fraction * case.duration / 2**halving for halving in range(4)]
    column = (-1,) + (1,) * (case.u.ndim - 1)
    table = [(case.flow(case.u, tau, box) - case.u) / tau.reshape(column) for tau in durations]
    for power in range(1, len(table)):
        table = [(2**power * b - a) / (2**power - 1) for a, b in pairwise(table)]
    return table[0]


def growth(case: Case) -> Verdict:
    rate = getattr(case.primitive, "growth", None)
    if rate is None:
        return True, "not offered"
    exact = logistic(case.u, rate(case.setting) * case.duration)
    difference = case.distance(exact, case.flow(case.u, case.duration, case.setting))
    return _at_most(float(np.max(difference)), SYMBOL, "relative difference between flow and logistic growth")


def order(case: Case) -> Verdict:
    """The declared order must appear, neither more nor less; if not in the duration of the other checks, then in a
    third of it, where it must be seen above rounding: an order is a statement about short durations."""
    declared = case.primitive.order
    if declared is None:
        return True, "not declared"
    if declared == EXACT:
        return _at_most(float(changes(case, 3, 3, case.levels()).max()), ROUNDING, "relative change under refinement")
    first = _refined(case, declared)
    # errors that drown in rounding cannot be judged; steps that had to be shortened are no fault of the primitive
    drowned = case.step < case.duration[0] and first.measured.order == math.inf
    if drowned or first.shows(declared):
        return True, first.text
    shorter = _refined(replace(case, step=case.step / 3), declared)
    if shorter.shows(declared) and not shorter.measured.at_least:
        return True, f"in a third of the duration {shorter.text}"
    return False, first.text


def learned(case: Case) -> Verdict:
    """What a primitive without an order is measured by instead; only a flow that is not finite fails."""
    if case.primitive.order is not None:
        return True, "not without an order"
    steepest = lipschitz(case.primitive, case.u, case.duration, case.setting)
    stored: Mapping[str, float] = getattr(case.primitive, "measured", {})
    shown = "".join(f", {name.replace('_', ' ')} {value:.1e}" for name, value in stored.items())
    told = f"; stored, in its training range:{shown[1:]}" if stored else ""
    return math.isfinite(steepest), f"Lipschitz constant {steepest:.3g} on the example{told}"


class _Refined(NamedTuple):
    """The order that refinement shows; ``hidden`` if errors in time hide a cleanly lower one in space."""

    measured: Observed
    hidden: bool
    text: str

    def shows(self, declared: float) -> bool:
        return self.measured.is_about(declared) and not self.hidden


def _refined(case: Case, declared: float) -> _Refined:
    """Refines space and time together, by 3.

    Together, because then a step bound by a Courant number keeps it, a scheme exact in time shows its order in space,
    and a pointwise one its order in time.
    """
    levels = case.levels()
    measured, averages = observed_order(changes(case, 3, 3, levels), 3), False
    text = f"measured {measured}"
    if not measured.reaches(declared):
        in_averages = observed_order(changes(case, 3, 3, levels, averages=True), 3)
        text += f" in points and {in_averages} in cell averages"
        averages = in_averages.order > measured.order
        measured = in_averages if averages else measured
    in_space = changes(case, 3, 1, levels, averages)
    space, before = observed_order(in_space, 3), observed_order(in_space[:-1], 3)
    time = observed_order(changes(case, 1, 2, range(5)), 2)
    clean = len(levels) > 3 and abs(space.order - before.order) < ORDER
    hidden = clean and not (space.reaches(declared) or before.reaches(declared))
    text += f" (space alone {space}, time alone {time}), demanded {declared:g} ± {ORDER:g}"
    return _Refined(measured, hidden, text)


CHECKS: tuple[tuple[str, Callable[[Case], Verdict]], ...] = tuple(
    (check.__name__.replace("_", " "), check)
    for check in (
        identity,
        shape_and_dtype,
        input_untouched,
        finite,
        repeatable,
        work,
        batch_of_one,
        batch_order,
        semigroup,
        boundaries,
        other_boundaries,
        conservation,
        reversible,
        symbol,
        rate,
        growth,
        order,
        learned,
    )
)
"""Every check of a primitive's behaviour, by name."""
