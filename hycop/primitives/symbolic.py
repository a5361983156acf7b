"""Named terms as a primitive: u_t = Σ_k a_k g_k(u), all of it data."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from math import isfinite, log2
from typing import ClassVar

import numpy as np
from scipy import fft

from hycop.errors import InvalidInputError
from hycop.grid import AXES, BOUNDARIES, Array, Grid
from hycop.kernels.polynomial import polynomial_kinetics
from hycop.primitive import EXACT, MOST_SUB_STEPS, checked_duration, sub_steps, update_work
from hycop.query import Channel, Setting
from hycop.terms import Evaluator, Term, cropped, diagonal_symbol, mirrored

REACH = 1.0
"""Largest product of a Runge–Kutta step and the fastest rate of the terms; stability allows 2.7."""

TAYLOR_WORK = 12.0
"""Work of a Taylor series per channel-cell, in updates of Runge–Kutta kinetics that take the same time."""


TAYLOR_STAGES = 6
"""Evaluations of the rate that take as long as a Taylor series."""


@dataclass(frozen=True)
class SymbolicTerms:
    """u_t = Σ_k a_k g_k(u), with terms g_k that are products of channels, their derivatives and coefficients.

    ``terms[k]`` is a text such as ``u^2``, ``u_xx``, ``u*u_x`` or ``r*u``; it acts on the channel ``targets[k]`` with
    the number ``amounts[k]``. ``state`` names all channels, and ``normals`` the axes along which they point if they
    are components of a vector. Nothing of it is code: a model folder holds these texts and numbers.

    - Terms without derivatives are integrated cell by cell with Taylor series, to rounding.
    - Multiples of a channel and of its even derivatives scale the modes of the box, which is exact. Negative diffusion
      is ill-posed: it overflows on fine grids.
    - All other sets take Runge–Kutta steps of fourth order within their stability limit, with the diagonal part above
      exact (Lawson's method).

    Derivatives are spectral on periodic axes and central differences of fourth order on others (``hycop.terms``).
    """

    state: tuple[str, ...] = ("u",)
    targets: tuple[str, ...] = ("u", "u")
    terms: tuple[str, ...] = ("u", "u^2")
    amounts: tuple[float, ...] = (1.0, -1.0)
    process: str = "named terms"
    normals: tuple[int | None, ...] = ()

    boundaries: ClassVar[frozenset[str]] = BOUNDARIES
    reversible: ClassVar[bool] = False
    mixes_channels: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if not len(self.targets) == len(self.terms) == len(self.amounts) or not self.terms:
            raise InvalidInputError("SymbolicTerms: as many targets as terms and amounts are needed, at least one")
        if not all(
            isinstance(each, int | float) and type(each) is not bool and isfinite(each) for each in self.amounts
        ):
            raise InvalidInputError(f"SymbolicTerms: amounts are {self.amounts}: finite numbers are needed")
        if not self.process or not all(isinstance(text, str) for text in (self.process, *self.state, *self.terms)):
            raise InvalidInputError("SymbolicTerms: process, channels and terms are texts")
        if self.normals and len(self.normals) != len(self.state):
            raise InvalidInputError(f"SymbolicTerms: {len(self.normals)} normals for {len(self.state)} channels")
        if not all(each is None or (type(each) is int and 0 <= each < len(AXES)) for each in self.normals):
            raise InvalidInputError(f"SymbolicTerms: normals are {self.normals}: numbers of axes, or nothing")
        if len(set(self.state)) != len(self.state):
            raise InvalidInputError(f"SymbolicTerms: the channels {', '.join(self.state)} are not different")
        alien = [name for name in self.targets if name not in self.state]
        if alien:
            raise InvalidInputError(f"SymbolicTerms: target '{alien[0]}' is not one of {', '.join(self.state)}")
        if not self.parsed:
            raise InvalidInputError("SymbolicTerms: at least one term is needed")

    @cached_property
    def parsed(self) -> tuple[Term, ...]:
        return tuple(Term.parse(text, self.state) for text in self.terms)

    @property
    def advances(self) -> frozenset[str]:
        return frozenset({self.process})

    @property
    def order(self) -> float:
        return EXACT if self._pointwise or not self._others else 4.0

    @property
    def conserves(self) -> frozenset[str]:
        """Channels without terms, and scalars with diffusive terms only."""
        lost = {
            target
            for target, term in zip(self.targets, self.parsed, strict=True)
            if not (term.scales_diagonally(target) and term.factors[0].derivative and self._normal(target) is None)
        }
        return frozenset(self.state) - lost

    @property
    def stages(self) -> int:
        return TAYLOR_STAGES if self._pointwise else 4 if self._others else 1

    @property
    def fewest_cells(self) -> int:
        return 1 if self._pointwise else 4

    def _normal(self, channel: str) -> int | None:
        return self.normals[self.state.index(channel)] if self.normals else None

    @cached_property
    def _pointwise(self) -> bool:
        return all(term.pointwise for term in self.parsed)

    @cached_property
    def _others(self) -> tuple[int, ...]:
        """Indices of the terms that do not scale the modes of their channel."""
        pairs = enumerate(zip(self.targets, self.parsed, strict=True))
        return tuple(k for k, (target, term) in pairs if not term.scales_diagonally(target))

    def _places(self, setting: Setting) -> list[int]:
        """The channel of the setting on which each term acts."""
        names = [channel.name for channel in setting.channels]
        missing = [name for name in self.state if name not in names]
        if missing:
            raise InvalidInputError(f"{self.process}: the state has no channel '{missing[0]}' ({', '.join(names)})")
        letters = {letter for term in self.parsed for factor in term.factors for letter in factor.derivative}
        if not letters <= set(AXES[: setting.grid.axes]):
            raise InvalidInputError(
                f"{self.process}: a derivative along {max(letters)} needs more than {setting.grid.axes} axes"
            )
        return [names.index(name) for name in self.targets]

    @property
    def mode_matrices(self) -> Callable[[Setting], Array]:
        """Diagonal ones, if all its terms scale modes and some have derivatives; else there is no such attribute."""
        if self._others or self._pointwise:
            raise AttributeError("mode_matrices: the terms do not scale the modes of their channels")
        return self._mode_matrices

    def _mode_matrices(self, setting: Setting) -> Array:
        symbols = _Diagonal(self, setting).symbols
        one = next(iter(symbols.values()))
        out = np.zeros((*one.shape, len(setting.channels), len(setting.channels)))
        for place, symbol in symbols.items():
            out[..., place, place] = symbol
        return out

    def rate(self, u: Array, setting: Setting) -> Array:
        out = Evaluator(self.parsed, setting).sum(u, self._places(setting), self.amounts)
        return out.astype(u.dtype, copy=False)

    def flow(self, u: Array, duration: Array, setting: Setting) -> Array:
        tau = checked_duration(duration, setting)
        if self._pointwise:
            return self._kinetics(u, tau, setting)
        diagonal = _Diagonal(self, setting)
        if not self._others:
            return diagonal(u, tau)
        return self._runge_kutta(u, tau, setting, diagonal)

    def work(self, u: Array, duration: Array, setting: Setting) -> Array:
        if self._pointwise:
            return update_work(setting, TAYLOR_WORK)
        transform = max(1.0, log2(setting.grid.cells))
        if not self._others:
            return update_work(setting, transform)
        steps = self._steps(u, np.broadcast_to(np.asarray(duration, dtype=np.float64), (setting.batch,)), setting)
        return update_work(setting, np.maximum(steps, 1) * 4.0 * (transform + len(self.terms)))

    def _kinetics(self, u: Array, tau: Array, setting: Setting) -> Array:
        names, places = [channel.name for channel in setting.channels], self._places(setting)
        listed = [
            [names.index(factor.channel) for factor in term.factors for _ in range(factor.power)]
            for term in self.parsed
        ]
        factors = np.zeros((len(listed), max(1, *map(len, listed))), dtype=np.int64)
        for row, found in zip(factors, listed, strict=True):
            row[: len(found)] = found
        weights = np.stack(
            [amount * term.amplitude(setting) for amount, term in zip(self.amounts, self.parsed, strict=True)], axis=1
        )
        degree = np.array([len(found) for found in listed], dtype=np.int64)
        return polynomial_kinetics(u, tau, weights, np.array(places), factors, degree)

    def _steps(self, u: Array, tau: Array, setting: Setting) -> Array:
        """Runge–Kutta steps of each sample; none for a state that has grown without bound, which is lost anyway."""
        others = [self.parsed[k] for k in self._others]
        weights = np.abs([self.amounts[k] for k in self._others])
        with np.errstate(all="ignore"):
            fastest = (Evaluator(others, setting).stiffness(u.astype(np.float64, copy=False)) * weights).sum(axis=1)
            wanted = tau * fastest / REACH
        return sub_steps(np.where(wanted <= MOST_SUB_STEPS, wanted, 0.0))

    def _runge_kutta(self, u: Array, tau: Array, setting: Setting, diagonal: _Diagonal) -> Array:
        """Lawson's method: the classical Runge–Kutta method for e^{−tL} u, L the diagonal part."""
        evaluator = Evaluator([self.parsed[k] for k in self._others], setting)
        places = [self._places(setting)[k] for k in self._others]
        amounts = [self.amounts[k] for k in self._others]
        steps = np.maximum(self._steps(u, tau, setting), 1)
        out, step = u.astype(np.float64), tau / steps
        column = (-1,) + (1,) * (u.ndim - 1)
        for index in range(int(steps.max(initial=0))):
            h = np.where(index < steps, step, 0.0)
            half = diagonal.propagator(0.5 * h)
            wide = h.reshape(column)

            def rate(state: Array, wide: Array = wide) -> Array:
                return wide * evaluator.sum(state, places, amounts)

            k1 = rate(out)
            start, k1 = half(out), half(k1)
            k2 = rate(start + 0.5 * k1)
            k3 = rate(start + 0.5 * k2)
            k4 = rate(half(start + k3))
            after = half(start + k1 / 6 + (k2 + k3) / 3) + k4 / 6
            out = np.where(wide > 0, after, out)
        return out.astype(u.dtype, copy=False)

    def example(self, seed: int) -> tuple[Array, Setting]:
        """A few Fourier modes in each channel, on a small grid with uneven lengths; coefficients between ½ and 1."""
        rng = np.random.default_rng(seed)
        batch, axes = 3, self._axes
        grid = Grid((12, 15, 9)[:axes], rng.uniform(0.8, 1.2, (batch, axes)), ("periodic",) * axes)
        channels = tuple(Channel(name, self._normal(name)) for name in self.state)
        u = np.full((batch, len(channels), *grid.shape), 0.5)
        for mode in ([1, 0, 1], [0, 1, 1], [1, 1, 0], [2, -1, 1]):
            angle = rng.uniform(0, 2 * np.pi, (batch, len(channels)) + (1,) * axes)
            for k, x, length in zip(mode, grid.centres(), grid.lengths.T, strict=False):
                angle = angle + 2 * np.pi * k * (x / length.reshape((-1,) + (1,) * axes))[:, None]
            u = u + 0.1 * np.sin(angle)
        names = {name for term in self.parsed for name in term.coefficients}
        return u, Setting(grid, channels, {name: rng.uniform(0.5, 1.0, batch) for name in sorted(names)})

    @property
    def _axes(self) -> int:
        """Axes of the example: two, or as many as the terms and vectors need."""
        letters = {letter for term in self.parsed for factor in term.factors for letter in factor.derivative}
        normals = [normal for normal in self.normals if normal is not None]
        return max(2, *(1 + AXES.index(letter) for letter in letters), *(1 + each for each in normals), 1)


class _Diagonal:
    """The part of the terms that scales the modes of their channel, tied to a setting."""

    def __init__(self, primitive: SymbolicTerms, setting: Setting) -> None:
        self.setting = setting
        self.symbols: dict[int, Array] = {}
        places = primitive._places(setting)
        for place in dict.fromkeys(places):
            part = [
                (term, amount)
                for k, (term, amount) in enumerate(zip(primitive.parsed, primitive.amounts, strict=True))
                if places[k] == place and k not in primitive._others
            ]
            if part:
                self.symbols[place] = diagonal_symbol(part, setting)

    def __call__(self, u: Array, tau: Array) -> Array:
        return self.propagator(tau)(u).astype(u.dtype, copy=False)

    def propagator(self, tau: Array) -> _Propagator:
        column = tau.reshape((-1,) + (1,) * self.setting.grid.axes)
        with np.errstate(over="ignore"):
            return _Propagator(self.setting, {place: np.exp(column * each) for place, each in self.symbols.items()})


class _Propagator:
    """Multiplies the modes of some channels, of the box with its mirror images, by given factors."""

    def __init__(self, setting: Setting, factors: dict[int, Array]) -> None:
        self.setting = setting
        self.factors = factors

    def __call__(self, u: Array) -> Array:
        if not self.factors:
            return u
        out, grid = u.astype(np.float64), self.setting.grid
        axes = tuple(range(1, 1 + grid.axes))
        for place, factor in self.factors.items():
            normal = self.setting.channels[place].normal
            odd = [boundary == "wall" and normal == axis for axis, boundary in enumerate(grid.boundary)]
            whole = mirrored(out[:, place], self.setting, odd)
            modes = fft.rfftn(whole, axes=axes) * factor
            out[:, place] = cropped(fft.irfftn(modes, s=whole.shape[1:], axes=axes), self.setting)
        return out
