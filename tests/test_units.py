"""Units of the sample itself: a network that sees a state in them has the symmetries of its equation, to the bit."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("torch")

from hycop.channels import gas_channels, water_channels
from hycop.errors import UnknownNameError
from hycop.grid import Array, Grid
from hycop.networks import Architecture
from hycop.networks.module import arrays_of
from hycop.pretraining import Task, configured
from hycop.primitives.learned import NeuralOperator, Numbers, units_for
from hycop.primitives.learned.units import UNITS, find_units
from hycop.problems import find_problem
from hycop.query import Channel, Setting

CHANNELS = {
    "fixed": (Channel("u"),),
    "size": (Channel("u"),),
    "velocity": (Channel("u"),),
    "water": water_channels(2),
    "gas": gas_channels(2),
}
PARAMS = {"water": {"g": 9.0}, "gas": {"gamma": 1.4}}


def state(units: str, batch: int = 3) -> tuple[Array, Setting]:
    rng = np.random.default_rng(5)
    setting = Setting(Grid.box((8, 6), 1.0, "periodic", batch), CHANNELS[units], PARAMS.get(units, {}))
    u = rng.uniform(0.5, 1.5, (batch, len(setting.channels), 8, 6))
    for index, channel in enumerate(setting.channels):
        if channel.normal is not None:
            u[:, index] -= 1.0
    return u, setting


def network(units: str, conserved: tuple[str, ...] = ()) -> NeuralOperator:
    """Random weights; it is told how far a wave of its own speed travels."""
    names = [channel.name for channel in CHANNELS[units]]
    numbers = {"1/Lx": ("transit", 0), "1/Ly": ("transit", 1)}
    sizes = {"axes": 2, "channels": len(names), "numbers": 2, "timed": 2, "width": 4, "modes": 4, "layers": 2}
    plan = Architecture.of({"family": "fno-film", **sizes})
    blank = NeuralOperator(
        plan.to_json(),
        ("all",),
        dict.fromkeys(names, (-9.0, 9.0)),
        numbers,
        dict.fromkeys(numbers, (0.0, 8.0)),
        0.5,
        ("periodic", "periodic"),
        units,
        dict.fromkeys(names, (0.25, 0.5)),
        conserved,
    )
    return blank.with_arrays(arrays_of(plan.build(3)))


SCALED = {  # the same flow with other units: factors of the channels, of the speed, and of g
    "size": ((4.0,), 1.0, 1.0),
    "velocity": ((4.0,), 4.0, 1.0),
    "water": ((4.0, 8.0, 8.0), 2.0, 1.0),
    "gas": ((4.0, 8.0, 8.0, 16.0), 2.0, 1.0),
}


@pytest.mark.parametrize("units", SCALED)
def test_a_flow_in_other_units_is_the_same_flow(units: str) -> None:
    u, setting = state(units)
    solver, (factors, speed, _) = network(units), SCALED[units]
    scale = np.array(factors).reshape(1, -1, 1, 1)
    once = solver.flow(u, np.full(3, 0.25), setting)
    again = solver.flow(scale * u, np.full(3, 0.25 / speed), setting)
    assert np.abs(once - u).max() > 1e-3
    assert np.array_equal(again, scale * once)


def test_more_gravity_is_faster_water() -> None:
    u, setting = state("water")
    solver = network("water")
    strong = Setting(setting.grid, setting.channels, {"g": 36.0})
    fast = u * np.array([1.0, 2.0, 2.0]).reshape(1, -1, 1, 1)
    once, again = solver.flow(u, np.full(3, 0.25), setting), solver.flow(fast, np.full(3, 0.125), strong)
    assert np.array_equal(again[:, 0], once[:, 0]) and np.array_equal(again[:, 1:], 2 * once[:, 1:])


def test_conserved_channels_keep_their_totals() -> None:
    u, setting = state("gas")
    kept = ("density", "energy")
    total = (network("gas", kept).flow(u, np.full(3, 0.3), setting) - u).mean(axis=(2, 3))
    assert np.abs(total[:, [0, 3]]).max() < 1e-14 and np.abs(total[:, 1]).max() > 1e-4
    assert network("gas", kept).conserves == frozenset(kept)


def test_a_state_without_size_stays() -> None:
    _, setting = state("size")
    still = network("size").flow(np.zeros((3, 1, 8, 6)), np.full(3, 0.3), setting)
    assert np.abs(still).max() < 1e-300


@pytest.mark.parametrize("units", CHANNELS)
def test_no_duration_and_no_samples_are_allowed(units: str) -> None:
    u, setting = state(units)
    solver = network(units)
    assert np.array_equal(solver.flow(u, np.zeros(3), setting), u)
    none = np.arange(0)
    assert solver.flow(u[none], none.astype(float), setting.take(none)).shape == (0, *u.shape[1:])


@pytest.mark.parametrize(
    ("problem", "process", "units", "told"),
    [
        ("adr2d", "diffusion", "size", {"Dx", "Dy", "|u|"}),
        ("burgers1d", "advection", "velocity", {"1/Lx"}),
        ("swe1d", "gravity", "water", {"1/Lx"}),
    ],
)
def test_the_equation_knows_its_units_and_the_data_what_is_kept(
    problem: str, process: str, units: str, told: set[str]
) -> None:
    chosen = find_problem(problem)
    config = configured("quick", "fno-film", {"held_out": 4, "width": 4, "modes": 4})
    blank = Task(chosen, (process,), config, "fno-film", 0).blank()
    assert blank.units == units == units_for(chosen.equation)
    assert set(blank.numbers) == told
    assert blank.conserved[0] == chosen.channels[0].name


def test_units_that_do_not_exist_are_refused() -> None:
    assert set(CHANNELS) == set(UNITS)
    with pytest.raises(UnknownNameError, match="did you mean water"):
        find_units("watr")
    with pytest.raises(UnknownNameError):
        Numbers({"1": ("time", None)}, {"1": (1.0, 1.0)}, 1.0, "feet")
