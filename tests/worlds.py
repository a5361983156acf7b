"""Small worlds with a hidden term, solved by code of their own, and models that do not know it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from hycop.data import Dataset
from hycop.dictionary import Dictionary
from hycop.features import FeatureMap
from hycop.grid import Array, Grid
from hycop.model import Box, Model, Record
from hycop.pde import Coefficient, Equation
from hycop.policy import Allotment, Pattern, SlotPolicy
from hycop.primitive import Primitive
from hycop.primitives import SpectralAdvection, SpectralDiffusion
from hycop.query import Channel, Query, Setting
from hycop.scope import Scope, View
from hycop.surrogate import HyCOP
from hycop.training import Gate, configured

CELLS, FINER, TIME = 32, 3, 0.2
LINEAR = {"advection": SpectralAdvection(), "diffusion": SpectralDiffusion()}
COEFFICIENTS = {
    "cx": Coefficient("velocity", 0),
    "Dx": Coefficient("diffusivity", 0, at_least=0.0),
    "r": Coefficient("rate"),
}

Rate = Callable[[Array, Callable[[Array, int], Array]], Array]
"""The rate of point values (batch, channel, cell), with a function that differentiates."""

Initial = Callable[[np.random.Generator, int, int, int], Array]
"""Initial states (sample, channel, cell) from a generator, samples, channels and cells."""


def composing(parts: dict[str, Primitive], channels: tuple[Channel, ...], *coefficients: str) -> HyCOP:
    """A model that composes the parts by Lie's splitting: naming does not ask its policy."""
    dictionary = Dictionary(parts)
    processes = tuple(sorted(dictionary.processes))
    known = {name: COEFFICIENTS.get(name, Coefficient()) for name in coefficients}
    equation = Equation("own", processes, channels, known, features=())
    params = dict.fromkeys(coefficients, 0.1)
    setting = Setting(Grid.box((CELLS,), 1.0), channels, params)
    query = Query(np.ones((1, len(channels), CELLS)), setting, np.ones(1))
    view = View.of(FeatureMap(()), FeatureMap(()), query)
    ops = tuple(range(len(dictionary)))
    policy = SlotPolicy((Pattern(ops, (1.0,) * len(ops), "Lie"),), Allotment.of(dictionary, processes, "consistent"), 0)
    gate = Gate(False, "Lie", 1.0, 1.0, 1.0, 1.0, False, 1.0, 1.0, 200)
    record = Record(configured("quick"), 0, "", {})
    scope = Scope.of(equation, view, [query])
    return HyCOP.of(
        Model(equation, dictionary, policy, np.zeros(policy.size), scope, gate, Box((1.0,), ("periodic",)), record)
    )


def smooth(rng: np.random.Generator, samples: int, channels: int, cells: int) -> Array:
    """A few Fourier modes around a level near ½, (sample, channel, cell)."""
    x = (np.arange(cells) + 0.5) / cells
    u = np.tile(rng.uniform(0.3, 0.7, (samples, channels, 1)), cells)
    for k in range(1, 5):
        phase, size = rng.uniform(0, 2 * np.pi, (2, samples, channels, 1))
        u = u + 0.2 * np.sin(size) / k * np.sin(2 * np.pi * k * x + phase)
    return u


def steps(rng: np.random.Generator, samples: int, channels: int, cells: int) -> Array:
    """Plateaus with jumps that no coarse cell resolves, (sample, channel, cell)."""
    x = (np.arange(cells) + 0.5) / cells
    left, width = rng.uniform(0, 1, (2, samples, channels, 1))
    return 0.2 + 0.6 * ((x - left) % 1 < 0.2 + 0.3 * width)


def world(
    rate: Rate,
    params: dict[str, Array],
    samples: int = 24,
    channels: int = 1,
    seed: int = 0,
    time: float = TIME,
    initial: Initial = smooth,
) -> Dataset:
    """Pairs of u_t = rate(u) at a time: Fourier derivatives on a finer grid, classical Runge–Kutta steps."""
    fine = FINER * CELLS
    k = 2 * np.pi * np.fft.rfftfreq(fine, 1.0 / fine)

    def derivative(u: Array, order: int) -> Array:
        return np.fft.irfft((1j * k) ** order * np.fft.rfft(u), n=fine)

    def averages(u: Array) -> Array:
        return np.fft.irfft(np.sinc(k / (2 * np.pi * CELLS)) * np.fft.rfft(u), n=fine)[..., FINER // 2 :: FINER]

    start = initial(np.random.default_rng(seed), samples, channels, fine)
    u, count = start, 400
    h = time / count
    for _ in range(count):
        k1 = rate(u, derivative)
        k2 = rate(u + 0.5 * h * k1, derivative)
        k3 = rate(u + 0.5 * h * k2, derivative)
        u = u + h / 6 * (k1 + 2 * k2 + 2 * k3 + rate(u + h * k3, derivative))
    names = ("u",) if channels == 1 else ("a", "b", "c")[:channels]
    setting = Setting(Grid.box((CELLS,), 1.0, batch=samples), tuple(map(Channel, names)), params)
    states = np.stack([averages(start), averages(u)], axis=1)
    return Dataset("own", "planted", states, np.array([0.0, time]), setting)


def column(values: Array) -> Array:
    return values[:, None, None]


def known(params: dict[str, Array]) -> Rate:
    c, d = column(params["cx"]), column(params["Dx"])
    return lambda u, derivative: -c * derivative(u, 1) + d * derivative(u, 2)
