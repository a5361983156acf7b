"""Theta has a layout: every parameter has a name, and what was learned moves with it to a larger or smaller policy."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hycop
from hycop.dictionary import Dictionary
from hycop.errors import IncompatibleError
from hycop.grid import Array
from hycop.policy import Allotment, Budget, Inputs, Pattern, Policy, PositionPolicy, SlotPolicy
from hycop.query import Setting

PROCESSES = ("advection", "diffusion", "reaction")
FEATURES = 2

properties = settings(max_examples=40, deadline=None, derandomize=True, database=None)


@dataclass(frozen=True)
class Blank:
    """A primitive that does nothing, for the processes it is told."""

    advances: frozenset[str]
    order: float = hycop.EXACT

    def flow(self, u: Array, duration: Array, setting: Setting) -> Array:
        return u

    def work(self, u: Array, duration: Array, setting: Setting) -> Array:
        return np.ones(setting.batch)


PLAIN = Dictionary({name: Blank(frozenset({name})) for name in PROCESSES})
ADDED: dict[str, tuple[Blank, tuple[str, ...]]] = {
    "a new process": (Blank(frozenset({"drag"})), (*PROCESSES, "drag")),
    "redundant": (Blank(frozenset({"drag"})), PROCESSES),
    "overlapping": (Blank(frozenset({"advection", "diffusion"})), PROCESSES),
}
KINDS = ("slot", "position")
BUDGETS: tuple[Budget, ...] = ("consistent", "gain")


def policy_of(kind: str, dictionary: Dictionary, budget: Budget, processes: tuple[str, ...] = PROCESSES) -> Policy:
    allotment = Allotment.of(dictionary, processes, budget, 1)
    if kind == "position":
        return PositionPolicy(allotment, FEATURES, 6, 2)
    patterns = (
        Pattern((0, 1, 2, 1, 2, 1), (1.0, 0.2, 0.5, 0.6, 0.5, 0.2), "a"),
        Pattern((2, 0, 1, 2), (0.5, 1.0, 1.0, 0.5), "b"),
    )
    return SlotPolicy(patterns, allotment, FEATURES)


def extended(what: str, policy: Policy) -> tuple[Dictionary, Allotment]:
    """The dictionary with the primitive ``new``, and its allotment."""
    primitive, processes = ADDED[what]
    dictionary = PLAIN.adding("new", primitive)
    return dictionary, Allotment.of(dictionary, processes, policy.allotment.budget, 1)


def learned(policy: Policy, seed: int, size: float) -> Array:
    return size * np.random.default_rng(seed).standard_normal(policy.size)


def inputs(seed: int = 0, batch: int = 5) -> Inputs:
    rng = np.random.default_rng(seed)
    return Inputs(rng.uniform(-1, 1, (batch, FEATURES)), rng.uniform(0, 5, (batch, 1)), rng.uniform(0.1, 1, batch))


def steps_of_the_old(policy: Policy, theta: Array, seen: Inputs) -> tuple[list[list[str]], Array]:
    """Names and durations of the steps of each program but for those of ``new`` and those of no duration."""
    programs = policy.programs(theta[None], seen)
    kept = [[step for step in program if step.primitive != "new" and step.duration] for program in programs]
    return [[step.primitive for step in own] for own in kept], np.array([step.duration for own in kept for step in own])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("budget", [*BUDGETS, "literal"])
@pytest.mark.parametrize("what", ADDED)
def test_names_cover_theta_exactly(kind: str, budget: Budget, what: str) -> None:
    small = policy_of(kind, PLAIN, budget)
    large, _ = small.adding(np.zeros(small.size), "new", extended(what, small)[1])
    for policy in (small, large):
        found = [index for part in policy.layout().values() for index in range(part.start, part.stop)]
        assert found == list(range(policy.size))
        assert all(part.stop > part.start for part in policy.layout().values())


def test_names_say_what_the_numbers_do() -> None:
    """A change of the numbers under a name changes what the name says, and nothing else."""
    policy, seen = policy_of("slot", PLAIN, "gain"), inputs()
    layout = policy.layout()
    before = policy.programs(np.zeros((1, policy.size)), seen)
    assert {"0.diffusion.shares", "0.diffusion.tilt1", "0.reaction.gain", "1.selector"} <= set(layout)
    for name, changed in (("0.diffusion.shares", "diffusion"), ("0.reaction.gain", "reaction")):
        theta = np.zeros(policy.size)
        theta[layout[name]] = -0.1 * np.arange(1, 1 + theta[layout[name]].size)
        after = policy.programs(theta[None], seen)
        moved = np.flatnonzero((after.durations != before.durations).any(axis=0))
        assert {before.names[op] for op in before.ops[0, moved]} == {changed}
    theta = np.zeros(policy.size)
    theta[layout["1.selector"]] = [1.0, 0.0, 0.0]
    assert [step.primitive for step in policy.programs(theta[None], seen)[0]][:2] == ["reaction", "advection"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("what", ADDED)
@properties
@given(st.integers(0, 2**32 - 1), st.sampled_from([0.0, 0.1, 0.5, 3.0]), st.sampled_from(BUDGETS))
def test_adding_keeps_programs_and_without_undoes_it(
    kind: str, what: str, seed: int, size: float, budget: Budget
) -> None:
    policy, seen = policy_of(kind, PLAIN, budget), inputs(seed)
    theta = learned(policy, seed, size)
    dictionary, allotment = extended(what, policy)
    large, start = policy.adding(theta, "new", allotment)
    assert start.size == large.size and large.allotment == allotment
    order, durations = steps_of_the_old(policy, theta, seen)
    same_order, after = steps_of_the_old(large, start, seen)
    assert same_order == order
    if (kind, what) != ("position", "overlapping"):  # there the two covers start with half of the time each
        np.testing.assert_allclose(after, durations, rtol=1e-15)  # sums over more slots may round otherwise
    time = large.programs(start[None], seen).time_per_primitive() if budget == "consistent" else None
    for process in ADDED[what][1] if time is not None else ():  # each process of the equation gets the whole time
        advancing = [op for op, name in enumerate(dictionary) if process in dictionary[name].advances]
        np.testing.assert_allclose(time[:, advancing].sum(axis=1), seen.time, rtol=1e-12)
    small, back = large.without(start, "new", policy.allotment)
    assert small == policy and back.tobytes() == theta.tobytes()


@pytest.mark.parametrize("kind", KINDS)
@given(st.integers(0, 2**32 - 1))
@properties
def test_a_redundant_primitive_goes_though_the_dictionary_still_has_it(kind: str, seed: int) -> None:
    dictionary = PLAIN.adding("new", ADDED["redundant"][0])
    policy = policy_of(kind, dictionary, "consistent")
    if isinstance(policy, SlotPolicy):
        ends = (Pattern((*each.ops, 3), (*each.shares, 1.0), each.origin) for each in policy.patterns)
        policy = SlotPolicy(tuple(ends), policy.allotment, FEATURES)
    theta, seen = learned(policy, seed, 0.3), inputs(seed)
    lean, rest = policy.without(theta, "new")
    assert lean.allotment == policy.allotment
    programs = lean.programs(rest[None], seen)
    assert not (programs.ops == 3).any()
    if kind == "slot":
        order, durations = steps_of_the_old(policy, theta, seen)
        same_order, after = steps_of_the_old(lean, rest, seen)
        assert same_order == order
        np.testing.assert_allclose(after, durations, rtol=1e-15)
    np.testing.assert_allclose(programs.time_per_primitive()[:, :3], np.tile(seen.time[:, None], 3), rtol=1e-12)


def test_what_no_program_can_do_without_is_refused() -> None:
    policy = policy_of("slot", PLAIN, "consistent")
    with pytest.raises(IncompatibleError, match="without 'reaction' no program of this policy covers every process"):
        policy.without(np.zeros(policy.size), "reaction")
