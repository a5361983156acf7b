"""Running all checks of a primitive."""

from __future__ import annotations

import math
from collections.abc import Callable
from numbers import Real
from typing import Any

import numpy as np

from hycop.boundary import EVERY
from hycop.conformance.case import Case
from hycop.conformance.checks import CHECKS, Verdict, raised
from hycop.conformance.loading import lacks
from hycop.conformance.report import Check, Report
from hycop.errors import InvalidInputError
from hycop.grid import Array
from hycop.primitive import ALL_CHANNELS, EXACT, Primitive, boundaries_of, fingerprint
from hycop.query import Setting, checked_state

_WORK = 1e8  # the search for a duration stops before a step costs more than this

_ADD_EXAMPLE = (
    "it has no example(seed); add one that returns (u, setting): a small smooth state, periodic if it can be, about 12 "
    "cells per axis, and what flow needs, as hycop.primitives.examples.scalar_example does"
)


def _guarded(name: str, check: Callable[..., Verdict], *given: object) -> Check:
    """The outcome of a check; an exception in foreign code is a failed check, not a crash."""
    try:
        passed, detail = check(*given)
    except Exception as error:
        return Check(name, False, raised(error))
    return Check(name, bool(passed), detail)


def _is_names(value: object) -> bool:
    return isinstance(value, set | frozenset) and all(isinstance(name, str) and name for name in value)


def _declarations(primitive: Any) -> Verdict:
    missing = lacks(primitive)
    if missing:
        return False, f"it lacks {', '.join(missing)}"
    wrong: list[str] = []
    advances, order = primitive.advances, primitive.order
    if not isinstance(advances, frozenset) or not _is_names(advances) or not advances:
        wrong.append(f"advances is {advances!r}, demanded a non-empty frozenset of process names")
    if order is not None and (isinstance(order, bool) or not isinstance(order, Real) or not float(order) > 0):
        wrong.append(f"order is {order!r}, demanded a positive number, EXACT or None")
    boundaries = boundaries_of(primitive)
    if not _is_names(boundaries) or not boundaries or not boundaries <= EVERY:
        wrong.append(f"boundaries is {boundaries!r}, demanded some of {', '.join(sorted(EVERY))} as a frozenset")
    conserves: object = getattr(primitive, "conserves", frozenset())
    if not _is_names(conserves):
        wrong.append(f"conserves is {conserves!r}, demanded a frozenset of channel names or ALL_CHANNELS")
    wrong += _state_faults(primitive)
    if wrong:
        return False, "; ".join(wrong)
    shown = "none" if order is None else "EXACT" if order == EXACT else f"{order:g}"
    return True, f"advances {', '.join(sorted(advances))}, order {shown}"


def _state_faults(primitive: Any) -> list[str]:
    """What is wrong with the optional declarations of version and arrays."""
    wrong, version = [], getattr(primitive, "scheme_version", 1)
    if isinstance(version, bool) or not isinstance(version, int) or version < 1:
        wrong.append(f"scheme_version is {version!r}, demanded a whole number of at least 1")
    if not isinstance(getattr(primitive, "batch_dependent", False), bool):
        wrong.append(f"batch_dependent is {primitive.batch_dependent!r}, demanded True or False")
    if hasattr(primitive, "arrays") != hasattr(primitive, "with_arrays"):
        wrong.append("arrays and with_arrays belong together, but it has only one of them")
    elif hasattr(primitive, "arrays"):
        held = dict(primitive.arrays())
        again = primitive.with_arrays({name: np.array(array) for name, array in held.items()})
        if fingerprint(again) != fingerprint(primitive):
            wrong.append("with_arrays(arrays()) has another fingerprint than the primitive itself")
        other = {name: _other(np.asarray(array)) for name, array in held.items()}
        if held and fingerprint(primitive.with_arrays(other)) == fingerprint(primitive):
            wrong.append("with_arrays ignores the arrays it is given")
    return wrong


def _other(array: Array) -> Array:
    """An array of the same shape and type with other values."""
    return ~array if array.dtype == np.bool_ else array + np.ones((), array.dtype)


def _example(primitive: Primitive, seed: int) -> tuple[Array, Setting]:
    """The primitive's own example, checked; a single sample is repeated, to have a batch."""
    offer = getattr(primitive, "example", None)
    if offer is None:
        raise InvalidInputError(_ADD_EXAMPLE)
    u, setting = offer(seed)
    if not isinstance(setting, Setting):
        raise InvalidInputError(f"example returned a {type(setting).__name__}, not a Setting, after the state")
    u = checked_state(u, setting, "example state").astype(np.float64)
    strange = setting.grid.boundary_kinds - boundaries_of(primitive)
    if strange:
        raise InvalidInputError(f"example has the boundary {', '.join(strange)}, which the primitive does not declare")
    names = {channel.name for channel in setting.channels}
    kept: frozenset[str] = getattr(primitive, "conserves", frozenset())
    if kept != ALL_CHANNELS and not kept <= names:
        raise InvalidInputError(
            f"conserves names {', '.join(sorted(kept - names))}, but the example has {', '.join(sorted(names))}"
        )
    if setting.batch == 1:
        copies = np.zeros(3, dtype=np.int64)
        u, setting = u[copies], setting.take(copies)
    return u, setting


def _change(primitive: Primitive, u: Array, tau: float, setting: Setting) -> float:
    """How much the state changes in a duration, relative to its variation in space."""
    fluctuation = float(np.linalg.norm(u - u.mean(axis=tuple(range(2, u.ndim)), keepdims=True)))
    variation = max(fluctuation, 1e-3 * float(np.linalg.norm(u))) or 1.0
    with np.errstate(all="ignore"):
        out = primitive.flow(u.copy(), np.full(setting.batch, tau), setting)
    if np.shape(out) != u.shape:
        raise InvalidInputError(f"flow returned shape {np.shape(out)} for a state of shape {u.shape}")
    return float(np.linalg.norm(out - u)) / variation


def _duration(primitive: Primitive, u: Array, setting: Setting) -> float:
    """A duration in which the state changes by about a third of its variation: extrapolates from a tiny one."""
    tau, growth, before = 1e-6, 1.0, 0.0
    for _ in range(60):
        if Case(primitive, u, setting, np.full(setting.batch, tau), np.ones(1), tau).work() > _WORK:
            if growth > 1.0:
                break
            growth = 0.01
            tau *= growth
            continue
        change = _change(primitive, u, tau, setting)
        saturated = growth > 1.0 and 1e-3 < change < 1.01 * before
        if 0.2 < change < 0.5 or saturated:
            return tau
        growth = 0.1 if not math.isfinite(change) else min(100.0, 0.3 / change) if change > 0 else 100.0
        tau, before = growth * tau, change
    if not math.isfinite(before):
        raise InvalidInputError(f"the result is not finite, even after a duration of {tau:.1e}")
    raise InvalidInputError(
        f"the example changes by {before:.1e} of its variation in the last duration tried, {tau / growth:.1e}: too "
        "little or too much to judge the flow; offer an example on which it acts"
    )


def _case(primitive: Primitive, u: Array, setting: Setting, seed: int) -> Case:
    duration = _duration(primitive, u, setting) * np.random.default_rng(seed).uniform(0.7, 1.0, setting.batch)
    with np.errstate(all="ignore"):
        later = primitive.flow(u.copy(), duration.copy(), setting)
    size = np.fmax(np.abs(u), np.abs(later)).max(axis=(0, *range(2, u.ndim)))
    return Case(primitive, u, setting, duration, np.where(size > 0, size, 1.0), float(duration[0])).settled()


def check_primitive(primitive: Primitive, seed: int = 0) -> Report:
    """Tries a primitive on its own ``example(seed)`` and reports, check by check, whether it keeps its contract.

    >>> from hycop.primitives import UpwindAdvection
    >>> report = check_primitive(UpwindAdvection())
    >>> report.passed, report["order"].detail[:12]
    (True, 'measured 0.9')
    """
    if isinstance(primitive, type):
        raise InvalidInputError(f"{primitive.__name__} is a class: give an instance of it, {primitive.__name__}()")
    states: list[tuple[Array, Setting]] = []
    cases: list[Case] = []

    def example() -> Verdict:
        u, setting = _example(primitive, seed)
        states.append((u, setting))
        return True, f"a state of shape {u.shape}: (batch, channel, *grid)"

    def flow() -> Verdict:
        cases.append(_case(primitive, *states[0], seed))
        return True, f"changes the example; checked with durations up to {cases[0].duration.max():.3g}"

    checks = [_guarded("declarations", _declarations, primitive), _guarded("example", example)]
    if states:
        checks.append(_guarded("flow", flow))
    if cases:
        checks += [_guarded(name, check, cases[0]) for name, check in CHECKS]
    return Report(type(primitive).__name__, tuple(checks))
