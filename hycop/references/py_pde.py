"""Truth by py-pde (Zwicker, J. Open Source Softw. 5 (2020) 2158; MIT licence; extra ``dev``): central differences of
second order and Runge–Kutta steps, on two grids, extrapolated to fourth order (Richardson)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from math import ceil
from typing import Any

import numpy as np

from hycop.errors import InvalidInputError
from hycop.grid import Array
from hycop.query import Setting

REACH, FEWEST = 2.0, 64
"""Largest product of a step and the fastest rate (stability allows 2.7), and the fewest steps."""

Rates = Callable[[Mapping[str, Array], Mapping[str, Array], "Differences"], Mapping[str, Array]]
"""(channels by name, coefficients by name, differences) → du/dt by name."""


class Differences:
    """The operators of py-pde, made once for a grid and applied sample by sample; samples stand along the last axis.
    They are those of its SciPy backend: the compiled ones take some ten seconds to make, for every grid."""

    def __init__(self, module: Any, shape: tuple[int, ...], spacing: float) -> None:
        grid = module.CartesianGrid([(0.0, n * spacing) for n in shape], shape, periodic=True)
        made = {name: grid.make_operator(name, bc="periodic", backend="scipy") for name in ("laplace", "gradient")}
        self._operators: Mapping[str, Callable[[Array], Array]] = made

    def _applied(self, values: Array, operator: str) -> Array:
        apply = self._operators[operator]
        samples = (np.ascontiguousarray(values[..., index]) for index in range(values.shape[-1]))
        return np.stack([np.asarray(apply(sample)) for sample in samples], axis=-1)

    def laplace(self, values: Array) -> Array:
        return self._applied(values, "laplace")

    def slope(self, values: Array, axis: int) -> Array:
        return self._applied(values, "gradient")[axis]


def py_pde_truth(rates: Rates, diffusivities: tuple[str, ...]) -> Callable[[Array, Setting, Array], Array]:
    """A truth for ``hycop.own_problem`` on periodic boxes: ``rates`` written with the operators of py-pde.
    ``diffusivities`` name the coefficients that limit its steps."""

    def py_pde(u0: Array, setting: Setting, duration: Array) -> Array:
        fine = _solved(rates, u0, setting, duration, diffusivities)
        half = tuple(n // 2 for n in u0.shape[2:])
        coarse = _solved(rates, _resampled(u0, half), setting, duration, diffusivities)
        return (4.0 * fine - _resampled(coarse, u0.shape[2:])) / 3.0

    return py_pde


def _solved(rates: Rates, u0: Array, setting: Setting, duration: Array, diffusivities: tuple[str, ...]) -> Array:
    """The states after their durations; time is counted in durations, so that samples share their steps."""
    try:
        pde: Any = import_module("pde")
    except ImportError:
        raise InvalidInputError("py-pde is not installed: pip install py-pde (extra 'dev')") from None
    names = [channel.name for channel in setting.channels]
    shape, lengths = u0.shape[2:], setting.grid.lengths[0]
    spacings = {round(float(length) / n, 12) for length, n in zip(lengths, shape, strict=True)}
    if len(spacings) > 1 or (setting.grid.lengths != lengths).any() or set(setting.grid.boundary) != {"periodic"}:
        raise InvalidInputError("py-pde judges periodic boxes of equal lengths with square cells only")
    operators = Differences(pde, shape, spacings.pop())
    grid = pde.UnitGrid([*shape, len(u0)], periodic=True)

    class Scaled(pde.PDEBase):  # type: ignore[misc]
        def evolution_rate(self, state: Any, t: float = 0) -> Any:
            values = {name: part.data for name, part in zip(names, state, strict=True)}
            found = rates(values, setting.params, operators)
            return pde.FieldCollection([pde.ScalarField(grid, duration * found[name]) for name in names])

    spread = max(float((setting.param(name) * duration).max()) for name in diffusivities)
    fastest = 4.0 * spread * sum((n / length) ** 2 for n, length in zip(shape, lengths, strict=True))
    steps = max(FEWEST, ceil(fastest / REACH))
    columns = np.moveaxis(u0, 0, -1)
    start = pde.FieldCollection([pde.ScalarField(grid, values) for values in columns])
    done = Scaled().solve(start, t_range=1.0, dt=1.0 / steps, solver="runge-kutta", tracker=None, backend="numpy")
    return np.ascontiguousarray(np.moveaxis(done.data, -1, 0))


def _resampled(u: Array, shape: tuple[int, ...]) -> Array:
    """Point values at the centres of another grid over the same periodic box, by Fourier series."""
    for axis, n in enumerate(shape, start=2):
        old = u.shape[axis]
        modes = np.moveaxis(np.fft.rfft(u, axis=axis), axis, -1)
        kept = min(n, old) // 2 + 1
        turned = modes[..., :kept] * np.exp(1j * np.pi * np.arange(kept) * (1.0 / n - 1.0 / old))
        if min(n, old) % 2 == 0:  # the Nyquist mode of one grid is two modes of the other
            turned[..., -1] = 0.0
        padded = np.zeros((*turned.shape[:-1], n // 2 + 1), dtype=np.complex128)
        padded[..., :kept] = turned
        u = np.moveaxis(np.fft.irfft(padded, n, axis=-1) * (n / old), -1, axis)
    return u
