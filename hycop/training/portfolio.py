"""Start patterns of a slot policy: every classical scheme and its leaner variants."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from hycop.dictionary import Dictionary
from hycop.execution import simplify
from hycop.policy import Pattern, exact_covers, redundant_primitives
from hycop.program import Program
from hycop.query import Query
from hycop.schemes import SCHEMES, portfolio

SUBSTEPS = (1, 2, 3, 4, 6, 8)


def patterns(dictionary: Dictionary, processes: Sequence[str], query: Query, max_steps: int) -> tuple[Pattern, ...]:
    """Distinct patterns of at most ``max_steps`` steps: for each exact cover every positive scheme with every outer
    operator and number of substeps, as it stands and with all but one of each commuting group applied only once.

    Advection and diffusion share a transform and so commute. If advection also commutes with the rest, one step of it
    is as good as several and leaves steps for the others; the data decide.
    """
    one = query.take(slice(0, 1))
    one = Query(one.u0, one.setting, np.ones(1))
    index = {name: op for op, name in enumerate(dictionary.names)}
    extra = tuple((name, 1.0) for name in redundant_primitives(dictionary, processes))
    found: dict[tuple[tuple[str, ...], tuple[float, ...]], Pattern] = {}
    for cover in exact_covers(dictionary, processes):
        part = Dictionary({name: dictionary[name] for name in cover})
        positive = {scheme.name for scheme in SCHEMES.values() if not scheme.backwards}
        for scheme in portfolio(part, one.setting, SUBSTEPS):
            if scheme.name not in positive:
                continue
            written = simplify(scheme.programs(one, part), part, one.setting)[0]
            for label, program in _variants(written):
                steps = (*((step.primitive, step.duration) for step in program), *extra)
                if len(steps) <= max_steps:
                    names, shares = zip(*steps, strict=True)
                    key = (names, tuple(np.round(shares, 12)))
                    ops = tuple(index[name] for name in names)
                    found.setdefault(key, Pattern(ops, shares, f"{scheme}{label}"))
    return tuple(found.values())


def _variants(program: Program) -> Iterator[tuple[str, Program]]:
    """The program, and for each primitive a variant in which it has one step, at its first place, for all its time."""
    yield "", program
    for name in dict.fromkeys(step.primitive for step in program):
        durations = [step.duration for step in program if step.primitive == name]
        if len(durations) > 1:
            steps: list[tuple[str, float]] = []
            for step in program:
                if step.primitive != name:
                    # neighbours that the removal brings together are one step
                    if steps and steps[-1][0] == step.primitive:
                        steps[-1] = (step.primitive, steps[-1][1] + step.duration)
                    else:
                        steps.append((step.primitive, step.duration))
                elif all(done != name for done, _ in steps):
                    steps.append((name, sum(durations)))
            yield f", {name} once", Program.of(*steps)
