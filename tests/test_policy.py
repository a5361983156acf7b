"""Policies: budgets, covers, classical at zero, sizes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hycop
from hycop.errors import IncompatibleError, InvalidInputError
from hycop.policy import (
    Allotment,
    Inputs,
    Pattern,
    PositionPolicy,
    SlotPolicy,
    affordable_tilts,
    exact_covers,
    redundant_primitives,
)
from hycop.program import EMPTY
from hycop.schemes import splitting

ADR = ("advection", "diffusion", "reaction")


@dataclass(frozen=True)
class Blank:
    """A primitive that does nothing, for the processes it is told."""

    advances: frozenset[str]
    order: float = hycop.EXACT

    def flow(self, u, duration, setting):  # type: ignore[no-untyped-def]
        return u

    def work(self, u, duration, setting):  # type: ignore[no-untyped-def]
        return np.ones(setting.batch)


def blanks(**processes: str) -> hycop.Dictionary:
    return hycop.Dictionary({name: Blank(frozenset(text.split())) for name, text in processes.items()})


PLAIN = blanks(advection="advection", diffusion="diffusion", reaction="reaction")
OVERLAPPING = blanks(
    advection="advection", learned="advection", diffusion="diffusion", both="advection diffusion", reaction="reaction"
)


def inputs(batch: int = 4, features: int = 3, gains: int = 1, seed: int = 0) -> Inputs:
    rng = np.random.default_rng(seed)
    return Inputs(rng.uniform(-1, 1, (batch, features)), rng.uniform(0, 5, (batch, gains)), rng.uniform(0.1, 1, batch))


def slot_policy(budget: str = "consistent", features: int = 3, patterns: int = 2) -> SlotPolicy:
    allotment = Allotment.of(PLAIN, ADR, budget, 1)  # type: ignore[arg-type]
    choices = (
        Pattern((0, 1, 2, 1, 2, 1), (1.0, 0.2, 0.5, 0.6, 0.5, 0.2), "a"),
        Pattern((2, 0, 1, 2), (0.5, 1.0, 1.0, 0.5), "b"),
    )
    return SlotPolicy(choices[:patterns], allotment, features)


def test_exact_covers() -> None:
    assert exact_covers(PLAIN, ADR) == (ADR,)
    covers = {frozenset(cover) for cover in exact_covers(OVERLAPPING, ADR)}
    assert covers == {
        frozenset({"advection", "diffusion", "reaction"}),
        frozenset({"learned", "diffusion", "reaction"}),
        frozenset({"both", "reaction"}),
    }
    with pytest.raises(IncompatibleError, match="reaction"):
        exact_covers(PLAIN.without("reaction"), ADR)


def test_redundant_primitives() -> None:
    extra = PLAIN.adding("drag", Blank(frozenset({"drag"})))
    assert redundant_primitives(extra, ADR) == ("drag",)
    allotment = Allotment.of(extra, ADR, "consistent")
    amounts = allotment.amounts(np.zeros((1, allotment.size)), inputs())
    assert np.allclose(amounts[0, :, :3], 1.0) and np.allclose(amounts[0, :, 3], 0.5)
    assert np.allclose(allotment.amounts(np.full((1, 1), -40.0), inputs())[..., 3], 0.0)


@given(seed=st.integers(0, 2**31), scale=st.floats(0, 5))
@settings(max_examples=40, deadline=None)
def test_consistent_budgets_give_every_process_its_time(seed: int, scale: float) -> None:
    rng = np.random.default_rng(seed)
    seen = inputs(seed=seed)
    allotment = Allotment.of(OVERLAPPING, ADR, "consistent")
    names = OVERLAPPING.names
    advances = np.array([[process in OVERLAPPING[name].advances for process in ADR] for name in names], dtype=float)
    position = PositionPolicy(allotment, 3, 12)
    slot = SlotPolicy((Pattern((0, 1, 2, 3, 4, 0, 2), (1.0,) * 7),), allotment, 3)
    for policy in (position, slot):
        programs = policy.programs(scale * rng.standard_normal((2, policy.size)), seen)
        per_process = programs.time_per_primitive() @ advances
        assert np.allclose(per_process, np.tile(seen.time, 2)[:, None], rtol=1e-10)
        assert (programs.durations >= 0).all()


@given(seed=st.integers(0, 2**31))
@settings(max_examples=25, deadline=None)
def test_literal_budgets_sum_to_the_time(seed: int) -> None:
    rng = np.random.default_rng(seed)
    seen = inputs(seed=seed)
    allotment = Allotment.of(PLAIN, ADR, "literal")
    for policy in (PositionPolicy(allotment, 3), slot_policy("literal")):
        programs = policy.programs(rng.standard_normal((2, policy.size)), seen)
        assert np.allclose(programs.durations.sum(axis=1), np.tile(seen.time, 2))


@given(seed=st.integers(0, 2**31), slope=st.floats(-2, 2))
@settings(deadline=None)
def test_gains_are_clipped(seed: int, slope: float) -> None:
    seen = inputs(seed=seed)
    policy = slot_policy("gain", patterns=1)
    theta = np.zeros(policy.size)
    theta[-2] = slope  # γ of diffusion
    totals = policy.programs(theta[None], seen).time_per_primitive() / seen.time[:, None]
    assert np.allclose(totals[:, [0, 2]], 1.0)
    assert np.allclose(totals[:, 1], np.clip(1 + slope * seen.gains[:, 0], 0, 1.35))


@pytest.mark.parametrize("name", ["strang", "ababa", "saba3"])
def test_zero_is_the_classical_scheme(name: str) -> None:
    chosen = hycop.problem("adr2d")
    data = chosen.sample(3, "id", seed=0)
    written = hycop.simplify(splitting(name).programs(data.query, chosen.dictionary), chosen.dictionary, data.setting)
    first = written[0]
    ops = tuple(chosen.dictionary.names.index(step.primitive) for step in first)
    pattern = Pattern(ops, tuple(step.duration for step in first))
    policy = SlotPolicy((pattern,), Allotment.of(chosen.dictionary, chosen.processes, "consistent"), 2)
    seen = Inputs(np.random.default_rng(0).uniform(-1, 1, (3, 2)), np.zeros((3, 0)), data.query.time)
    ours = policy.programs(np.zeros((1, policy.size)), seen)
    assert np.array_equal(ours.ops, written.ops) and np.allclose(ours.durations, written.durations)


@pytest.mark.parametrize("shape", [(4, 1), (4, 5), (1, 3), (7, 3)])
def test_features_of_another_shape_are_refused(shape: tuple[int, int]) -> None:
    chosen = hycop.problem("ad1d")
    allotment = Allotment.of(chosen.dictionary, chosen.processes, "consistent")
    policy = SlotPolicy((Pattern((0, 1, 0), (0.5, 1.0, 0.5)),), allotment, 3)
    thetas = np.ones((1, policy.size))
    with pytest.raises(InvalidInputError, match=r"\(4, 3\) is needed"):
        policy.programs(thetas, Inputs(np.zeros(shape), np.zeros((4, 0)), np.ones(4)))


@pytest.mark.parametrize("tilts", [1, 2, 4, 7])
def test_tilts_are_independent_polynomials_of_the_position(tilts: int) -> None:
    """What a feature of size one adds to the logarithms of the shares, for each of its parameters."""
    steps, seen = 6, Inputs(np.ones((1, 1)), np.zeros((1, 0)), np.ones(1))
    pattern = Pattern((0, 1) * steps + (2,), (1.0,) * (2 * steps + 1))
    policy = SlotPolicy((pattern,), Allotment.of(PLAIN, ADR, "consistent"), 1, tilts)
    used = min(tilts, steps - 1)
    assert policy.size == 2 * (steps + used)
    rows = np.zeros((used, policy.size))
    rows[:, steps : steps + used] = np.eye(used)
    logs = np.log(policy.programs(rows, seen).durations[:, 0 : 2 * steps : 2])
    logs -= logs.mean(axis=1, keepdims=True)
    position = np.linspace(-1, 1, steps)
    for degree, found in enumerate(logs, start=1):
        fitted = np.polynomial.Polynomial.fit(position, found, degree)
        assert np.allclose(fitted(position), found, atol=1e-12) and np.isclose(fitted.convert().coef[-1], 1.0)
    assert np.allclose(logs @ logs.T, np.diag(np.sum(logs**2, axis=1)), atol=1e-12)


@pytest.mark.parametrize(("features", "kept"), [(3, 4), (10, 2), (40, 1)])
def test_tilts_are_fewer_where_there_would_be_too_many_parameters(features: int, kept: int) -> None:
    """Of the overlapping primitives a pattern has three at most."""
    allotment = Allotment.of(OVERLAPPING, ADR, "consistent")
    assert affordable_tilts(4, allotment, features, 11) == kept


def test_features_choose_the_pattern_and_tilt_the_shares() -> None:
    policy, seen = slot_policy(), inputs(batch=50)
    theta = np.zeros(policy.size)
    theta[-3] = 5.0  # the second pattern where the first feature is positive
    programs = policy.programs(theta[None], seen)
    assert np.array_equal(programs.lengths() == 4, seen.features[:, 0] > 0)
    single = slot_policy(patterns=1)
    tilted = np.zeros(single.size)
    tilted[3] = 2.0  # linear tilt of diffusion by the first feature
    durations = single.programs(tilted[None], seen).durations
    later = durations[:, 5] > durations[:, 1]
    assert np.array_equal(later, seen.features[:, 0] > 0)


def test_members_are_written_side_by_side() -> None:
    policy, seen = slot_policy(), inputs()
    thetas = np.random.default_rng(1).standard_normal((3, policy.size))
    together = policy.programs(thetas, seen)
    for index, theta in enumerate(thetas):
        alone = policy.programs(theta[None], seen)
        part = slice(4 * index, 4 * index + 4)
        assert np.array_equal(together.ops[part], alone.ops) and np.array_equal(
            together.durations[part], alone.durations
        )


def test_what_is_kept_of_one_theta_is_not_taken_for_another() -> None:
    policy, seen = slot_policy(patterns=1), inputs()
    thetas = np.random.default_rng(4).normal(size=(2, policy.size))
    first, second = policy.programs(thetas, seen).durations.reshape(2, seen.batch, -1)
    assert not np.array_equal(first, second)
    theta = thetas[0].copy()
    for wanted, values in ((first, thetas[0]), (second, thetas[1]), (first, thetas[0])):
        theta[:] = values
        np.testing.assert_array_equal(policy.programs(theta, seen).durations, wanted)


def test_position_policy_is_the_paper_s() -> None:
    allotment = Allotment.of(PLAIN, ADR, "consistent")
    assert PositionPolicy(allotment, 0).size == 18 * (3 + 1) + 1  # 73
    two = blanks(a="a", b="b")
    assert PositionPolicy(Allotment.of(two, ("a", "b"), "consistent"), 0).size == 55
    policy = PositionPolicy(allotment, 3)
    programs = policy.programs(np.random.default_rng(0).standard_normal((20, policy.size)), inputs())
    lengths = programs.lengths()
    assert lengths.min() >= 2 and lengths.max() <= 18 + 3 and len(set(lengths.tolist())) > 1
    assert policy.size <= 100


def test_a_process_without_a_slot_gets_one_step() -> None:
    policy = PositionPolicy(Allotment.of(PLAIN, ADR, "consistent"), 0, longest=4)
    theta = np.zeros(policy.size)
    theta[0:12:3] = 1.0  # advection everywhere
    program = policy.programs(theta[None], inputs(batch=1, features=0))[0]
    assert [step.primitive for step in program][-2:] == ["diffusion", "reaction"]


@pytest.mark.parametrize("size", [800.0, -800.0])
def test_shares_that_underflow_take_no_time_from_a_process(size: float) -> None:
    """Equal shifts of all logits of a primitive change nothing, and a softplus of 0 is still a share."""
    slot = slot_policy(patterns=1, features=0)
    theta = np.zeros(slot.size)
    classical = slot.programs(theta[None], inputs(features=0)).durations
    theta[:3] = size  # the three steps of diffusion
    assert np.allclose(slot.programs(theta[None], inputs(features=0)).durations, classical)
    for budget, processes in (("consistent", [1.0, 1.0, 1.0]), ("literal", [0.5, 0.25, 0.25])):
        position = PositionPolicy(Allotment.of(PLAIN, ADR, budget), 0, longest=4)  # type: ignore[arg-type]
        theta = np.zeros(position.size)
        theta[:12] = np.array([[1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 0, 0]]).reshape(-1)
        theta[12:16] = -200.0 if budget == "literal" else [0.0, -200.0, 0.0, 0.0]
        theta[16] = 3.0  # four steps
        seen = inputs(features=0)
        spent = position.programs(theta[None], seen).time_per_primitive()
        assert np.allclose(spent, seen.time[:, None] * processes)


def test_bad_thetas_and_patterns() -> None:
    policy = slot_policy()
    with pytest.raises(InvalidInputError, match=f"needs {policy.size}"):
        policy.programs(np.zeros((1, 3)), inputs())
    with pytest.raises(InvalidInputError, match="NaN"):
        policy.programs(np.full((1, policy.size), np.nan), inputs())
    with pytest.raises(InvalidInputError, match="positive"):
        Pattern((0, 1), (1.0, 0.0))
    with pytest.raises(InvalidInputError, match="18"):
        Pattern((0, 1) * 10, (1.0,) * 20)
    with pytest.raises(InvalidInputError, match="budget"):
        Allotment.of(PLAIN, ADR, "lavish")  # type: ignore[arg-type]
    assert EMPTY == -1


@pytest.mark.parametrize("budget", ["consistent", "gain", "literal"])
@pytest.mark.parametrize(("features", "tilts"), [(0, 1), (3, 1), (3, 2)])
def test_durations_are_the_softmax_written_out(budget: str, features: int, tilts: int) -> None:
    """Step by step; and a member's and a query's durations are the same to the bit alone."""
    pattern = Pattern((0, 1, 2, 1, 0, 1), (0.3, 0.5, 1.0, 0.4, 0.7, 0.1))
    policy = SlotPolicy((pattern,), Allotment.of(PLAIN, ADR, budget, 1), features, tilts)  # type: ignore[arg-type]
    thetas, seen = np.random.default_rng(1).normal(size=(3, policy.size)), inputs(features=features)
    durations = policy.programs(thetas, seen).durations.reshape(3, seen.batch, -1)
    layout = policy.layout()
    for theta, member in zip(thetas, durations, strict=True):
        for query in range(seen.batch):
            x, time = seen.features[query], seen.time[query]
            logits = np.log(pattern.shares)
            for op in (0, 1):
                slots, name = pattern.slots(op), f"0.{ADR[op]}"
                logits[slots] += theta[layout[f"{name}.shares"]]
                place = np.linspace(-1.0, 1.0, len(slots))
                for degree in range(1, 1 + (min(tilts, len(slots) - 1) if features else 0)):
                    phi = place if degree == 1 else place**2 - np.mean(place**2)
                    logits[slots] += phi * (theta[layout[f"{name}.tilt{degree}"]] @ x)
            for op in range(3):
                mine = slice(None) if budget == "literal" else pattern.slots(op)
                gain = (
                    np.clip(1 + theta[layout[f"0.{ADR[op]}.gain"]] @ seen.gains[query], 0, 1.35)
                    if budget == "gain"
                    else 1.0
                )
                wanted = time * gain * np.exp(logits[mine]) / np.exp(logits[mine]).sum()
                np.testing.assert_allclose(member[query][mine], wanted, rtol=1e-12)
    alone = policy.programs(thetas[1:2], seen.take(slice(2, 3))).durations
    np.testing.assert_array_equal(alone, durations[1, 2:3])
