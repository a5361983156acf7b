"""Programs on small periodic boxes, which run from first move to last in cache: the same whatever runs beside them."""

from __future__ import annotations

import numpy as np
import pytest

import hycop
from hycop.execution import distances, measure, run, trace
from hycop.grid import Array, Grid
from hycop.primitives import ExactLogistic, SpectralAdvection, SpectralDiffusion
from hycop.program import EMPTY, ProgramBatch
from hycop.query import Channel, Query, Setting

FAST = 1e5
"""A velocity that turns the last modes by more than compiled exponentials know."""


def asked(shape: tuple[int, ...], batch: int, channels: int = 1, seed: int = 0, **params: object) -> Query:
    names = [Channel(f"u{index}") for index in range(channels)]
    state = np.random.default_rng(seed).uniform(0.2, 0.8, (batch, channels, *shape))
    return Query(state, Setting(Grid.box(shape, batch=batch), names, params), np.ones(batch))


@pytest.mark.parametrize("seed", range(5))
def test_a_fast_flow_changes_no_bit_of_its_neighbours(seed: int) -> None:
    dictionary = hycop.Dictionary(
        {"advection": SpectralAdvection(), "diffusion": SpectralDiffusion(), "reaction": ExactLogistic()}
    )
    query = asked((16,), 2, seed=seed, cx=np.array([FAST, 1.0]), r=0.5, Dx=0.01)
    ops = np.array([[0, 2, 0], [1, 2, EMPTY]])
    programs = ProgramBatch(dictionary.names, ops, np.array([[0.5, 1.0, 0.5], [0.3 + 0.1 * seed, 1.0, 0.0]]))
    both = run(programs, dictionary, query)
    for sample in (0, 1):
        one = slice(sample, sample + 1)
        np.testing.assert_array_equal(run(programs.take(one), dictionary, query.take(one))[0], both[sample])
    np.testing.assert_array_equal(trace(programs, dictionary, query, steps=[-1]).states[:, 0], both)


@pytest.mark.parametrize(("shape", "channels"), [((2, 2), 1), ((2,), 2), ((3, 2), 2), ((1, 2), 1)])
def test_losses_on_the_smallest_boxes(shape: tuple[int, ...], channels: int) -> None:
    dictionary = hycop.Dictionary({"diffusion": SpectralDiffusion()})
    query = asked(shape, 3, channels, Dx=0.1, **({"Dy": 0.1} if len(shape) == 2 else {}))
    programs = ProgramBatch(dictionary.names, np.zeros((3, 1), dtype=np.int64), np.full((3, 1), 0.3))
    truth = np.ones_like(query.u0)
    squares, _ = distances(programs, dictionary, query, truth, refinement=1, members=1)
    states = run(programs, dictionary, query)
    np.testing.assert_allclose(squares.ravel(), ((states - truth) ** 2).reshape(3, -1).sum(axis=1), rtol=1e-13)
    none = query.take(slice(0, 0))
    squares, work = distances(programs.take(slice(0, 0)), dictionary, none, none.u0, refinement=1, members=1)
    assert squares.size == work.size == 0


class Metered(SpectralDiffusion):
    """Says that long durations take more work."""

    def work(self, u: Array, duration: Array, setting: Setting) -> Array:
        return np.ceil(np.asarray(duration) / 0.1)


def test_every_member_of_a_population_has_its_own_work() -> None:
    dictionary, query = hycop.Dictionary({"diffusion": Metered()}), asked((16,), 2, Dx=0.01)
    durations = np.array([[0.1], [0.2], [0.5], [0.9]])
    programs = ProgramBatch(dictionary.names, np.zeros((4, 1), dtype=np.int64), durations)
    _, work = distances(programs, dictionary, query, query.u0, refinement=1, members=2)
    assert work.tolist() == [[1, 2], [5, 9]]
    assert measure(programs, dictionary, query, members=2).work.tolist() == [1, 2, 5, 9]
