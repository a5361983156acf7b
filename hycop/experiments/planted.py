"""Data with a planted term: a small spectral solver that shares no code with the primitives, references or naming.

    u_t = −c·∇u + Σ_i D_i ∂_ii u + r u (1 − u) + hidden(u)   on a periodic box

Point values on a fine grid, Fourier modes, Lawson's fourth-order Runge–Kutta method; the result is averaged over the
cells of the coarse grid. Coefficients and initial states are those of a problem's split.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

from hycop.data import Dataset
from hycop.grid import AXES, Array, Grid
from hycop.problems import find_problem
from hycop.problems.draw import Draw
from hycop.query import Setting
from hycop.version import __version__

FINER = 3
"""Fine cells per coarse cell and axis: odd, so that the centres of coarse cells are among those of fine ones."""

STEPS = 40
"""Runge–Kutta steps to the query time."""

Hidden = Callable[[Array, "World"], Array]
"""The rate of a hidden term from point values (batch, *fine grid)."""


@dataclass(frozen=True)
class Plant:
    """A hidden term: shifts of the coefficients that the model believes, and a rate that it does not know at all.

    ``terms`` is what naming should find, term → coefficient; None if no candidate can express it.
    """

    kind: str
    problem: str
    terms: Mapping[str, float] | None
    shifts: Mapping[str, float] = field(default_factory=dict)
    extra: Mapping[str, float] = field(default_factory=dict)
    rate: Hidden | None = None


class World:
    """The fine box of a plant's samples, and the solver on it."""

    def __init__(self, plant: Plant, setting: Setting) -> None:
        self.plant, self.setting = plant, setting
        self.shape = setting.grid.shape
        turns = [2 * np.pi * np.fft.fftfreq(n, 1.0 / n) for n in self.shape]
        turns[-1] = 2 * np.pi * np.arange(self.shape[-1] // 2 + 1)
        lengths = setting.grid.lengths
        self.k = [self._column(turn[None] / lengths[:, axis : axis + 1], axis) for axis, turn in enumerate(turns)]

    def _column(self, values: Array, axis: int) -> Array:
        shape = [values.shape[0]] + [1] * len(self.shape)
        shape[1 + axis] = -1
        return values.reshape(shape)

    def coefficient(self, name: str) -> Array:
        known = self.setting.params.get(name, np.zeros(self.setting.batch))
        total = known + self.plant.shifts.get(name, 0.0) + self.plant.extra.get(name, 0.0)
        return total.reshape((-1,) + (1,) * len(self.shape))

    def modes(self, u: Array) -> Array:
        return np.fft.rfftn(u, axes=tuple(range(1, u.ndim)))

    def values(self, modes: Array) -> Array:
        return np.fft.irfftn(modes, s=self.shape, axes=tuple(range(1, modes.ndim)))

    def slope(self, u: Array, axis: int) -> Array:
        return self.values(1j * self.k[axis] * self.modes(u))

    def linear(self) -> Array:
        total: Array = np.zeros(1)
        for axis, k in enumerate(self.k):
            letter = AXES[axis]
            total = total - 1j * k * self.coefficient("c" + letter) - self.coefficient("D" + letter) * k**2
        return total

    def nonlinear(self, modes: Array) -> Array:
        u, growth = self.values(modes), self.coefficient("r")
        rate = growth * u * (1 - u)
        if self.plant.rate is not None:
            rate = rate + self.plant.rate(u, self)
        return self.modes(rate)

    def solve(self, u: Array, time: float) -> Array:
        """Lawson's method from point values u to the time."""
        h = time / STEPS
        half = np.exp(0.5 * h * self.linear())
        v = self.modes(u)
        for _ in range(STEPS):
            k1 = h * self.nonlinear(v)
            start = half * v
            k2 = h * self.nonlinear(start + 0.5 * half * k1)
            k3 = h * self.nonlinear(start + 0.5 * k2)
            k4 = h * self.nonlinear(half * (start + k3))
            v = half * (start + half * k1 / 6 + (k2 + k3) / 3) + k4 / 6
        return self.values(v)

    def averages(self, u: Array) -> Array:
        """Averages over the coarse cells, from the modes: sin(kΔ/2)/(kΔ/2) each."""
        modes = self.modes(u)
        for axis, k in enumerate(self.k):
            width = FINER * self.setting.grid.spacing[:, axis].reshape((-1,) + (1,) * len(self.shape))
            modes = modes * np.sinc(k * width / (2 * np.pi))
        centres: tuple[slice, ...] = (slice(None), *(slice(FINER // 2, None, FINER) for _ in self.shape))
        return self.values(modes)[centres]


def planted(plant: Plant, samples: int, seed: int, time: float, split: str = "id", noise: float = 0.0) -> Dataset:
    """Pairs (u₀, u_T) of a world with the plant, on the grid and with the coefficients of the problem. ``noise`` is
    added to u_T, relative to its root mean square."""
    problem = find_problem(plant.problem)
    chosen = problem.split(split)
    draw = Draw.of(seed, f"planted/{plant.problem}/{split}", 0, samples)
    params = {name: draw.among(intervals) for name, intervals in chosen.params.items()}
    families = tuple(chosen.initial.values())
    family = draw.integer(0, len(families) - 1)
    fine = Setting(problem.grid(batch=samples).refined(FINER), problem.channels, params)
    u = np.empty((samples, 1, *fine.grid.shape))
    for index, condition in enumerate(families):
        members = np.flatnonzero(family == index)
        if members.size:
            u[members] = condition(draw.take(members), fine.take(members))
    world = World(plant, fine)
    pair = [world.averages(u[:, 0]), world.averages(world.solve(u[:, 0], time))]
    states = np.stack(pair, axis=1)[:, :, None]
    if noise:
        stream = np.random.default_rng([seed, 1])
        size = np.sqrt((states[:, 1] ** 2).mean(axis=(1, 2, 3), keepdims=True))
        states[:, 1] += noise * size * stream.standard_normal(states[:, 1].shape)
    grid = Grid(problem.shape, fine.grid.lengths, problem.boundary)
    return Dataset(
        plant.problem,
        split,
        states,
        np.array([0.0, time]),
        Setting(grid, problem.channels, params),
        seed,
        f"spectral, {'x'.join(map(str, fine.grid.shape))}, with {plant.kind}",
        version=__version__,
    )


def plants(kind: str, rng: np.random.Generator) -> Plant:
    """A plant of a kind with random constants."""
    return KINDS[kind](rng)


def _logistic(rng: np.random.Generator) -> Plant:
    r = rng.uniform(0.3, 2.0)
    return Plant("logistic", "ad2d", {"u": r, "u^2": -r}, rate=lambda u, world: r * u * (1 - u))


def _bistable(rng: np.random.Generator) -> Plant:
    k, a = rng.uniform(2.0, 6.0), rng.uniform(0.2, 0.4)
    terms = {"u": -k * a, "u^2": k * (1 + a), "u^3": -k}
    return Plant("bistable", "ad2d", terms, rate=lambda u, world: k * u * (1 - u) * (u - a))


def _decay(rng: np.random.Generator) -> Plant:
    k = rng.uniform(0.3, 2.0)
    return Plant("decay", _base(rng), {"u": -k}, rate=lambda u, world: -k * u)


def _source(rng: np.random.Generator) -> Plant:
    s = rng.uniform(0.1, 0.5)
    return Plant("source", _base(rng), {"1": s}, rate=lambda u, world: np.full_like(u, s))


def _wind(rng: np.random.Generator) -> Plant:
    letter, shift = AXES[rng.integers(2)], rng.uniform(0.1, 0.5) * rng.choice([-1, 1])
    return Plant("wind", _base(rng), {f"u_{letter}": -shift}, shifts={f"c{letter}": shift})


def _wrong_diffusion(rng: np.random.Generator) -> Plant:
    letter = AXES[rng.integers(2)]
    shift = rng.uniform(0.03, 0.1) if rng.random() < 0.5 else -rng.uniform(0.01, 0.04)
    return Plant("wrong diffusion", _base(rng), {f"u_{2 * letter}": shift}, shifts={f"D{letter}": shift})


def _missing_diffusion(rng: np.random.Generator) -> Plant:
    letter, value = AXES[rng.integers(2)], rng.uniform(0.05, 0.2)
    return Plant("missing diffusion", "advection2d", {f"u_{2 * letter}": value}, extra={f"D{letter}": value})


def _steepening(rng: np.random.Generator) -> Plant:
    b = rng.uniform(0.3, 1.0) * rng.choice([-1, 1])
    return Plant("steepening", _base(rng), {"u*u_x": -b}, rate=lambda u, world: -0.5 * b * world.slope(u * u, 0))


def _nothing(rng: np.random.Generator) -> Plant:
    return Plant("nothing", _base(rng), {})


def _nonlocal(rng: np.random.Generator) -> Plant:
    k = rng.uniform(0.5, 2.0)
    return Plant("nonlocal", "ad2d", None, rate=lambda u, world: -k * u * u.mean(axis=(1, 2), keepdims=True))


def _base(rng: np.random.Generator) -> str:
    return str(rng.choice(["ad2d", "adr2d"]))


KINDS: Mapping[str, Callable[[np.random.Generator], Plant]] = {
    "logistic": _logistic,
    "bistable": _bistable,
    "decay": _decay,
    "source": _source,
    "wind": _wind,
    "wrong diffusion": _wrong_diffusion,
    "missing diffusion": _missing_diffusion,
    "steepening": _steepening,
    "nothing": _nothing,
    "nonlocal": _nonlocal,
}
"""Kinds of plants by name: a generator of each."""
