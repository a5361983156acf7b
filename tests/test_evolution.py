"""Optimisers find what they should, and do so to the bit after any interruption and however the work is shared."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hycop.errors import InvalidInputError
from hycop.evolution import (
    CMA,
    CMAState,
    LevenbergMarquardt,
    LMState,
    NoFitnessError,
    NormalEquations,
    OpenES,
    Optimizer,
    State,
    centred_ranks,
    noise,
    normal_equations,
)
from hycop.grid import Array

Residuals = Callable[[Array], Array]
BLACK_BOX: list[Optimizer[Any]] = [OpenES(population=12, sigma=0.1, learning_rate=0.05), CMA(population=12, sigma=0.5)]
THETA0 = np.array([0.7, -1.1, 0.2])


def bowl(candidates: Array) -> Array:
    return np.asarray(np.add.reduce((candidates - 1.0) ** 2 * np.array([1.0, 10.0, 3.0]), axis=1))


def same(a: State, b: State) -> bool:
    ours, theirs = a.to_arrays(), b.to_arrays()
    return ours.keys() == theirs.keys() and all(
        ours[name].dtype == theirs[name].dtype and ours[name].tobytes() == theirs[name].tobytes() for name in ours
    )


def stored(state: State, folder: Path) -> State:
    """The state after a way through a file that holds plain numbers only."""
    arrays: dict[str, Any] = state.to_arrays()
    np.savez(folder / "state.npz", **arrays)
    with np.load(folder / "state.npz", allow_pickle=False) as file:
        return type(state).from_arrays(dict(file))


@given(
    seed=st.integers(0, 2**64 - 1),
    cuts=st.lists(st.integers(0, 12), max_size=4).map(lambda cuts: [0, *sorted(cuts), 12]),
    which=st.sampled_from(BLACK_BOX),
)
@settings(max_examples=60, deadline=None)
def test_members_are_the_same_however_they_are_shared_out(seed: int, cuts: list[int], which: Optimizer[Any]) -> None:
    state = which.start(THETA0, seed)
    state = which.tell(state, bowl(which.ask(state)))
    parts = [which.ask_some(state, a, b - a) for a, b in pairwise(cuts)]
    assert np.concatenate(parts).tobytes() == which.ask(state).tobytes()


def test_noise_is_normal_and_differs_between_seeds_generations_and_members() -> None:
    vectors = np.concatenate([noise(seed, generation, 0, 50, 40) for seed in (0, 1) for generation in (0, 1)])
    assert len(np.unique(vectors)) == vectors.size
    assert abs(vectors.mean()) < 0.05 and abs(vectors.std() - 1) < 0.05
    correlations = np.corrcoef(vectors) - np.eye(len(vectors))
    assert np.abs(correlations).max() < 0.75


@pytest.mark.parametrize("which", BLACK_BOX, ids=lambda which: type(which).__name__)
def test_a_restored_run_goes_on_to_the_bit(which: Optimizer[Any], tmp_path: Path) -> None:
    straight = resumed = which.start(THETA0, 2**63 + 5)
    for _ in range(15):
        straight = which.tell(straight, bowl(which.ask(straight)))
        resumed = stored(which.tell(resumed, bowl(which.ask(resumed))), tmp_path)
        assert same(straight, resumed)
    assert straight.generation == 15


def test_ranks() -> None:
    assert centred_ranks(np.array([3.0, 1.0, np.inf, 1.0, 2.0])).tolist() == [0.25, -0.375, 0.5, -0.375, 0.0]
    assert centred_ranks(np.full(4, 7.0)).tolist() == [0.0] * 4
    assert centred_ranks(np.array([5.0, 4.0])).tolist() == [0.5, -0.5]


def test_open_es_is_algorithm_1() -> None:
    sigma, eta, decay, pairs = 0.3, 0.05, 0.01, 6
    which = OpenES(2 * pairs, sigma, eta, decay)
    state = which.start(THETA0, 3)
    epsilon = noise(3, 0, 0, pairs, 3)
    candidates = which.ask(state)
    assert np.array_equal(candidates[0::2], THETA0 + sigma * epsilon)
    assert np.array_equal(candidates[1::2], THETA0 - sigma * epsilon)
    losses = bowl(candidates)
    w = np.argsort(np.argsort(losses)) / (2 * pairs - 1) - 0.5
    g = sum((w[2 * i] - w[2 * i + 1]) * epsilon[i] for i in range(pairs)) / (2 * pairs * sigma)
    np.testing.assert_allclose(which.tell(state, losses).theta, (1 - decay) * (THETA0 - eta * g), rtol=1e-14)


def test_defaults_are_the_papers() -> None:
    assert OpenES() == OpenES(population=500, sigma=0.02, learning_rate=5e-3, weight_decay=1e-3)


@pytest.mark.parametrize(
    ("which", "generations", "tolerance"),
    [(OpenES(60, 0.1, 0.03, 0.0), 250, 0.05), (CMA(12, 0.5), 120, 1e-6)],
    ids=["OpenES", "CMA"],
)
def test_black_box_optimisers_descend(which: Optimizer[Any], generations: int, tolerance: float) -> None:
    state = which.start(THETA0, 0)
    for _ in range(generations):
        state = which.tell(state, bowl(which.ask(state)))
    assert np.abs(state.theta - 1).max() < tolerance


def test_cma_follows_a_curved_valley_and_says_when_it_is_done() -> None:
    which = CMA(population=10, sigma=0.5)
    state = which.start(np.array([-1.2, 1.0]), 0)
    while not state.converged and state.generation < 500:
        x = which.ask(state)
        state = which.tell(state, 100 * (x[:, 1] - x[:, 0] ** 2) ** 2 + (1 - x[:, 0]) ** 2)
    assert state.converged
    np.testing.assert_allclose(state.theta, 1, atol=1e-4)


def test_cma_is_the_library_with_our_noise() -> None:
    """The first generation is isotropic; the update of the mean is the weighted mean of the better half."""
    which = CMA(population=8, sigma=0.3)
    state = which.start(THETA0, 4)
    x = which.ask(state)
    np.testing.assert_allclose(x, THETA0 + 0.3 * noise(4, 0, 0, 8, 3) @ np.abs(state.basis), rtol=1e-14)
    weights = np.log(4.5) - np.log(np.arange(1, 5))
    best = x[np.argsort(bowl(x))[:4]]
    np.testing.assert_allclose(which.tell(state, bowl(x)).theta, weights @ best / weights.sum(), rtol=1e-12)


@pytest.mark.parametrize("which", BLACK_BOX, ids=lambda which: type(which).__name__)
def test_losses_that_are_not_finite_are_the_worst(which: Optimizer[Any]) -> None:
    state = which.start(THETA0, 0)
    losses = bowl(which.ask(state))
    bad = np.argsort(losses)[-3:]
    outcomes = []
    for values in ([np.inf] * 3, [np.nan] * 3, [np.nan, -np.inf, np.inf]):
        spoiled = losses.copy()
        spoiled[bad] = values
        outcomes.append(which.tell(state, spoiled))
    assert np.isfinite(outcomes[0].theta).all()
    assert same(outcomes[0], outcomes[1]) and same(outcomes[0], outcomes[2])
    before = state.to_arrays()
    with pytest.raises(NoFitnessError, match=r"^generation 0: no candidate has a finite loss; .*$"):
        which.tell(state, np.full(12, np.nan))
    assert all(before[name].tobytes() == array.tobytes() for name, array in state.to_arrays().items())


def test_states_are_frozen() -> None:
    theta = THETA0.copy()
    state = OpenES().start(theta, 0)
    theta[0] = 9.0
    assert state.theta[0] == THETA0[0]
    with pytest.raises(ValueError, match="read-only"):
        state.theta[0] = 1.0


def test_bad_input_is_refused() -> None:
    odd: list[tuple[Callable[..., Any], dict[str, float], str]] = [
        (OpenES, {"population": 5}, "population 5: must be even"),
        (OpenES, {"population": 0}, "population 0"),
        (CMA, {"population": 3, "sigma": 1.0}, "at least 4 members"),
        (OpenES, {"sigma": 0.0}, "sigma 0.0: a positive number is needed"),
        (CMA, {"population": 8, "sigma": np.inf}, "a positive number is needed"),
        (LevenbergMarquardt, {"damping": -1.0}, "a positive number is needed"),
    ]
    for kind, options, message in odd:
        with pytest.raises(InvalidInputError, match=message):
            kind(**options)
    which = OpenES(population=4)
    for theta in (np.zeros((2, 2)), np.zeros(0), np.array([np.nan])):
        with pytest.raises(InvalidInputError, match="one flat vector"):
            which.start(theta, 0)
    with pytest.raises(InvalidInputError, match="seed -1"):
        which.start(THETA0, -1)
    with pytest.raises(InvalidInputError, match="each of 4 members"):
        which.tell(which.start(THETA0, 0), np.zeros(3))
    with pytest.raises(InvalidInputError, match="missing or unknown"):
        CMAState.from_arrays(which.start(THETA0, 0).to_arrays())


# Levenberg–Marquardt

T = np.linspace(0.0, 4.0, 60)


def exponentials(theta: Array) -> Array:
    with np.errstate(over="ignore", invalid="ignore"):
        return sum(a * np.exp(-rate * T) for a, rate in theta.reshape(-1, 2))  # type: ignore[no-any-return]


TRUTH = np.array([2.0, 1.0, 0.5, 1.3, 1.5, 3.0])
PROBLEMS: dict[str, tuple[Residuals, list[float], float]] = {
    "rosenbrock": (lambda x: np.array([10 * (x[1] - x[0] ** 2), 1 - x[0]]), [-1.2, 1.0], 1e-20),
    "exponentials": (lambda x: exponentials(x) - exponentials(TRUTH), [1.0, 0.5, 1.0, 1.5, 1.0, 5.0], 1e-20),
    "freudenstein-roth": (
        lambda x: np.array([-13 + x[0] + ((5 - x[1]) * x[1] - 2) * x[1], -29 + x[0] + ((x[1] + 1) * x[1] - 14) * x[1]]),
        [0.5, -2.0],
        48.98426,
    ),
}


def advance(which: LevenbergMarquardt, state: LMState, residuals: Residuals) -> LMState:
    r = np.array([residuals(theta) for theta in which.ask(state)])
    if state.phase == "linearise":
        return which.tell(state, normal_equations(r, np.ones(r.shape[1]), which.steps(state)))
    return which.tell(state, np.sum(r**2, axis=1))


@pytest.mark.parametrize("name", PROBLEMS)
def test_levenberg_marquardt_converges(name: str) -> None:
    residuals, theta0, loss = PROBLEMS[name]
    which = LevenbergMarquardt()
    state = which.start(np.array(theta0))
    while not state.converged and state.generation < 60:
        state = advance(which, state, residuals)
    assert state.converged and state.loss <= loss * (1 + 1e-6)
    assert np.isclose(state.loss, np.sum(residuals(state.theta) ** 2))
    if name == "exponentials":
        np.testing.assert_allclose(np.sort(state.theta), np.sort(TRUTH), rtol=1e-6)


@pytest.mark.parametrize("name", PROBLEMS)
def test_levenberg_marquardt_goes_on_from_every_state(name: str, tmp_path: Path) -> None:
    residuals, theta0, _ = PROBLEMS[name]
    which = LevenbergMarquardt()
    straight = resumed = which.start(np.array(theta0))
    phases = set()
    while not straight.converged and straight.generation < 30:
        phases.add(straight.phase)
        straight = advance(which, straight, residuals)
        resumed = advance(which, stored(resumed, tmp_path), residuals)  # type: ignore[arg-type]
        assert same(straight, resumed)
    assert phases == {"linearise", "try"}


def test_a_linear_problem_takes_one_step() -> None:
    rng = np.random.default_rng(0)
    a, b, w = rng.standard_normal((40, 5)), rng.standard_normal(40), rng.uniform(0.1, 2.0, 40)
    which = LevenbergMarquardt(damping=1e-9)
    state = which.start(np.zeros(5))
    r = np.array([a @ theta - b for theta in which.ask(state)])
    state = which.tell(state, normal_equations(r, w, which.steps(state)))
    state = which.tell(state, np.array([np.sum(w * (a @ theta - b) ** 2) for theta in which.ask(state)]))
    root = np.sqrt(w)
    np.testing.assert_allclose(state.theta, np.linalg.lstsq(a * root[:, None], b * root, rcond=None)[0], atol=1e-6)


def test_normal_equations_are_those_of_the_jacobian_and_add_up() -> None:
    rng = np.random.default_rng(1)
    jacobian, r, w = rng.standard_normal((3000, 4)), rng.standard_normal(3000), rng.random(3000)
    steps = np.full(4, 1e-3)
    residuals = np.vstack((r, r + jacobian.T * steps[:, None]))
    whole = normal_equations(residuals, w, steps)
    assert np.isclose(whole.loss, np.sum(w * r**2))
    np.testing.assert_allclose(whole.gradient, jacobian.T @ (w * r), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(whole.curvature, jacobian.T @ (w[:, None] * jacobian), rtol=1e-9, atol=1e-8)
    assert np.array_equal(whole.curvature, whole.curvature.T)
    shares = [normal_equations(residuals[:, a : a + 700], w[a : a + 700], steps) for a in range(0, 3000, 700)]
    total = sum(shares[1:], start=shares[0])
    assert np.array_equal(total.gram, NormalEquations.total(np.stack([share.gram for share in shares])).gram)
    np.testing.assert_allclose(total.gram, whole.gram, rtol=1e-12, atol=1e-12)


def test_trials_that_are_not_finite_are_refused() -> None:
    def cliff(theta: Array) -> Array:
        return np.array([np.nan if theta[0] > 0.4 else theta[0] - 0.3, 0.1 * (theta[0] - 0.3)])

    which = LevenbergMarquardt(reach=(1000.0, 1.0))
    state = which.start(np.array([-5.0]))
    while not state.converged and state.generation < 80:
        state = advance(which, state, cliff)
    assert state.converged and np.isclose(state.theta[0], 0.3, atol=1e-6)

    state = which.start(np.zeros(1))
    state = which.tell(state, NormalEquations(np.array([[1.0, 1.0], [1.0, 1.0]])))
    refused = [which.tell(state, np.full(len(state.trials), loss)) for loss in (np.nan, -np.inf, np.inf)]
    assert same(refused[0], refused[1]) and same(refused[0], refused[2])
    assert np.array_equal(refused[0].theta, [0.0]) and refused[0].radius < state.radius


def test_a_parameter_without_a_finite_derivative_rests() -> None:
    which = LevenbergMarquardt()
    state = which.start(np.array([2.0, 2.0]))
    r = np.array([[2.0], [2.0 + which.steps(state)[0]], [np.nan]])
    tried = which.tell(state, normal_equations(r, np.ones(1), which.steps(state)))
    assert np.array_equal(tried.trials[:, 1], np.full(len(tried.trials), 2.0))
    assert (tried.trials[:, 0] < 2.0).all()
    for bad in (np.array([[np.nan], [1.0], [1.0]]), np.array([[1.0], [np.nan], [np.inf]])):
        with pytest.raises(NoFitnessError, match=r"^generation 0: the present loss or all its derivatives"):
            which.tell(state, normal_equations(bad, np.ones(1), which.steps(state)))


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("gradient", [0.0, 1e-200])
def test_a_loss_that_no_parameter_changes_is_converged_without_a_warning(gradient: float) -> None:
    which = LevenbergMarquardt()
    gram = np.diag([1.0, 0.0, 0.0])
    gram[0, 1] = gram[1, 0] = gradient
    state = which.tell(which.start(np.zeros(2)), NormalEquations(gram))
    assert state.converged and not state.theta.any()


def test_phases_are_not_confused() -> None:
    which = LevenbergMarquardt()
    state = which.start(np.zeros(2))
    with pytest.raises(InvalidInputError, match="phase 'linearise'"):
        which.tell(state, np.zeros(3))
    state = which.tell(state, NormalEquations(np.array([[2.0, 1.0, 1.0], [1.0, 1.0, 0.0], [1.0, 0.0, 1.0]])))
    with pytest.raises(InvalidInputError, match="phase 'try'"):
        which.tell(state, NormalEquations(np.eye(3)))
    assert which.members(state) == len(which.ask(state))
    assert np.array_equal(which.ask_some(state, 1, 1), which.ask(state)[1:2])


def digest() -> str:
    """Everything that is computed here, on 60 parameters: enough for BLAS to use its threads."""
    found = hashlib.sha256()
    theta0 = np.linspace(-1.0, 1.0, 60)
    black_box: list[Optimizer[Any]] = [OpenES(40, 0.1), CMA(40, 0.3)]
    for which in black_box:
        state = which.start(theta0, 7)
        for _ in range(5):
            x = which.ask(state)
            found.update(x.tobytes())
            state = which.tell(state, np.add.reduce(x**2 * np.arange(1.0, 61.0), axis=1))
        found.update(state.theta.tobytes())
    least_squares = LevenbergMarquardt()
    state = least_squares.start(theta0)
    mixing = np.random.default_rng(0).standard_normal((2500, 60))
    for _ in range(6):
        state = advance(least_squares, state, lambda theta: np.add.reduce(mixing * np.sin(theta), axis=1) - 1.0)
        found.update(state.theta.tobytes() + state.gram.tobytes() + state.trials.tobytes())
    return found.hexdigest()


def test_bits_do_not_depend_on_the_threads_of_blas() -> None:
    script = "from tests.test_evolution import digest; print(digest())"
    found = []
    for threads in ("1", "2"):
        names = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
        done = subprocess.run(
            [sys.executable, "-c", script],
            env={**os.environ, **dict.fromkeys(names, threads)},
            cwd=Path(__file__).parents[1],
            capture_output=True,
            text=True,
            check=True,
        )
        found.append(done.stdout.strip())
    assert found[0] == found[1] and len(found[0]) == 64
