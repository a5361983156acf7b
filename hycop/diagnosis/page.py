"""A diagnosis as lines of text."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from hycop.diagnosis.budget import TERMS, Budget
from hycop.diagnosis.commutators import Commutator
from hycop.diagnosis.floor import ROUNDING
from hycop.diagnosis.oracle import Oracle
from hycop.diagnosis.rates import Rates
from hycop.diagnosis.regimes import Regime
from hycop.diagnosis.shift import Shift
from hycop.grid import Array

MOST_LINES = 3
"""Trends and pairs that are shown; the rest is in the data."""

MOST_STEPS_SHOWN = 12


def section(title: str, lines: Iterable[str]) -> list[str]:
    """A titled block of indented lines; nothing if there are none."""
    body = [f"  {line}" for line in lines]
    return ["", title, *body] if body else []


def budget_lines(budget: Budget) -> list[str]:
    means, floor = budget.means(), budget.floor
    lines = [f"total      {budget.total:.2e}"]
    for term in TERMS:
        size = means[term]
        if size is None:
            lines.append(f"{term:10} not separable")
            continue
        blamed = floor.exceeded(term, size)
        why = "" if blamed else f"   not blamed: the trusted part is known to {floor.of(term):.1e}"
        lines.append(f"{term:10} {size:.2e}{why}")
    if "rest" in budget.sizes:
        lines.append(f"splitting and primitive together {budget.sizes['rest'].mean():.2e}")
    if budget.reason:
        lines.append(f"why not: {budget.reason}")
    lines.append(
        f"known to: truth {floor.reference:.1e}, noise {floor.noise:.1e}, initial averages {floor.reconstruction:.1e}, "
        f"trusted flows {max(floor.limit, floor.programs):.1e}"
    )
    return lines


def share_lines(budget: Budget) -> list[str]:
    """The primitive error by primitive and by step."""
    if budget.shares is None:
        return []
    parts = ", ".join(f"{name} {fraction:.0%}" for name, fraction in budget.shares.fractions().items())
    lines, steps = [f"primitive error: {parts} (on {len(budget.shares.programs)} queries)"], budget.shares.steps()
    if len(steps) <= MOST_STEPS_SHOWN:
        lines.append("by step: " + " → ".join(f"{name} {size:.1e}" for _, name, size in steps))
    else:
        worst = sorted(steps, key=lambda step: -step[2])[:MOST_LINES]
        shown = (f"{name} (step {place + 1}) {size:.1e}" for place, name, size in worst)
        lines.append(f"worst of {len(steps)} steps: " + ", ".join(shown))
    return lines


def regime_lines(regimes: Sequence[Regime]) -> list[str]:
    clear = [each for each in regimes if each.clear][:MOST_LINES]
    return [
        f"the error {'grows' if each.correlation > 0 else 'falls'} with {each.name} (rank correlation "
        f"{each.correlation:+.2f}): {each.low:.1e} in its lowest third, {each.high:.1e} in its highest"
        for each in clear
    ] or (["no clear trend with any feature"] if regimes else [])


def commutator_lines(found: Sequence[Commutator]) -> list[str]:
    shown = [f"{each.pair[0]}–{each.pair[1]} {each.strength:.1e}" for each in found[:MOST_LINES]]
    return [f"commutators T²‖[F, G]u‖/‖u‖: {', '.join(shown)}"] if shown else []


def rate_lines(rates: Rates | None, lipschitz: Mapping[str, float], oracle: Oracle | None) -> list[str]:
    lines = []
    if rates is not None:
        doubled = rates.next_doubling()
        if {"splitting", "primitive"} <= set(rates.terms):
            first, second = rates.terms["splitting"], rates.terms["primitive"]
            fitted = f"{first.constant:.1e} h^{first.order:.1f} + {second.constant:.1e} h^{second.order:.1f}"
            if min(first.sizes[0], second.sizes[0]) > ROUNDING:
                lines.append(f"error ≲ {fitted} (splitting + primitive, programs cut 1/h times finer)")
        changes = (f"{name} {before:.1e} → {after:.1e}" for name, (before, after) in doubled.items())
        if doubled:
            lines.append("programs cut twice as finely: " + ", ".join(changes))
    if oracle is not None:
        lines.append(
            f"best shares for each query: {oracle.error:.1e} → {oracle.best:.1e}, which a policy could still win"
        )
    if lipschitz:
        lines.append("Lipschitz constants: " + ", ".join(f"{name} {value:.2f}" for name, value in lipschitz.items()))
    return lines


def shift_lines(shift: Shift | None, outside: Mapping[str, Array], changes: Sequence[str]) -> list[str]:
    flagged = ", ".join(f"{name} {int(flags.sum())}" for name, flags in outside.items())
    lines = [f"queries outside training, by reason: {flagged or 'none'}"]
    if shift is None:
        why = "the model keeps no training queries (it was swapped or is of an older version, or sees no features)"
        return [*lines, f"distance not measured: {why}"]
    means = [f"training {shift.trained:.1e}"]
    if shift.held_out is not None:
        means.append(f"held-out {shift.held_out:.1e}")
    far = sorted(shift.features.items(), key=lambda entry: -entry[1])[:MOST_LINES]
    return [
        *lines,
        f"mean error: {' → '.join(means)} → file {shift.file:.1e}"
        + (" (training before the model was changed)" if changes else ""),
        "Wasserstein distance in trained ranges: " + ", ".join(f"{name} {value:.2f}" for name, value in far),
        f"gap {shift.gap:+.1e}, bound {shift.bound:.1e} = {shift.lipschitz:.1e} (Lipschitz constant of the error) × "
        f"{shift.distance:.2f} (distance of all features)",
    ]


def gap_lines(gaps: Mapping[str, float]) -> list[str]:
    return ["gaps: " + ", ".join(f"{name} {gap:+.1e}" for name, gap in gaps.items())] if gaps else []
