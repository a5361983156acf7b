"""Rates without derivatives: du/dt = f(u, coefficients) in each cell, f any formula or any function."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any, ClassVar

import numba
import numpy as np
from numba.core.errors import NumbaError
from numba.np.unsafe import ndarray as unsafe

from hycop.boundary import EVERY
from hycop.errors import HyCOPWarning, IncompatibleError, InvalidInputError
from hycop.expression import Tape, tape_of
from hycop.grid import Array, Grid, changed
from hycop.kernels.kinetics import REACH, STAGES, function_kinetics, tape_kinetics
from hycop.primitive import EXACT, checked_duration, update_work
from hycop.query import Channel, Setting

to_fixed_tuple: Any = unsafe.to_fixed_tuple  # its own type is that before compilation

LOOSEST, EXACT_BELOW = 1e-4, 1e-11
"""Largest tolerance, and the one below which errors are rounding for everybody else."""

Function = Callable[..., Any]


class NotCompiledWarning(HyCOPWarning):
    """A function runs in NumPy, because Numba cannot compile it."""


@dataclass(frozen=True)
class PointwiseRate:
    """u_c' = f_c(u, coefficients) in each cell, to a tolerance, by a Runge–Kutta pair of order 8 with step control.

    ``rates`` are formulas, one for each channel of ``state``: ``("r*u/(1+u)",)``. Every name that is not a channel is a
    coefficient of the setting, a number or a field. Such a primitive is data, which a model folder holds. Or it is one
    function of channels and then coefficients, all numbers, that returns the rates: ``PointwiseRate(("u", "v"), f)``
    with ``def f(u, v, F, k): return F * (1 - u) - u * v**2, …``. Numba compiles it if it can; if not, the function is
    called with arrays, and ``interpreted`` says why. A model with a function needs its file again (``--with``).

    ``tolerance`` bounds the error of a step relative to the largest value of its channel; good values are 1e-12
    (errors of rounding, the order is then ``EXACT``) to 1e-6. Steps are explicit: a rate of 10⁴ per unit of time takes
    thousands of them, and a solution that runs into a pole becomes NaN. Polynomials are faster as ``SymbolicTerms``,
    r u (1 − u) as ``ExactLogistic``.
    """

    state: tuple[str, ...] = ("u",)
    rates: tuple[str, ...] | Function = ("r*u/(1+u)",)
    process: str = "reaction"
    tolerance: float = 1e-12

    stages: ClassVar[int] = STAGES
    boundaries: ClassVar[frozenset[str]] = EVERY
    reversible: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if not self.state or len(set(self.state)) != len(self.state) or not all(map(str.isidentifier, self.state)):
            raise InvalidInputError(f"PointwiseRate: the channels {self.state} must be names, each once")
        if not isinstance(self.process, str) or not self.process:
            raise InvalidInputError("PointwiseRate: process is a text")
        if not 1e-14 <= self.tolerance <= LOOSEST:
            raise InvalidInputError(f"PointwiseRate: tolerance is {self.tolerance}: give 1e-14 to {LOOSEST:g}")
        if not callable(self.rates) and len(self.rates) != len(self.state):
            raise InvalidInputError(
                f"PointwiseRate: {len(self.rates)} rates for {len(self.state)} channels; give '0' for one that rests"
            )
        _ = self.coefficients

    @property
    def advances(self) -> frozenset[str]:
        return frozenset({self.process})

    @property
    def order(self) -> float | None:
        """A loose tolerance has none: refinement of a program does not lessen the error that it allows."""
        return EXACT if self.tolerance <= EXACT_BELOW else None

    @property
    def conserves(self) -> frozenset[str]:
        """Channels that rest."""
        if callable(self.rates):
            return frozenset()
        return frozenset(name for name, text in zip(self.state, self.rates, strict=True) if text.strip() == "0")

    @cached_property
    def _tape(self) -> Tape:
        assert not callable(self.rates)
        return tape_of(tuple(self.rates), self.state, what="rate")

    @cached_property
    def coefficients(self) -> tuple[str, ...]:
        """The names that a setting must have."""
        if not callable(self.rates):
            return self._tape.coefficients
        try:
            names = tuple(inspect.signature(self.rates).parameters)
        except (TypeError, ValueError):
            names = ()
        if names[: len(self.state)] != self.state:
            raise InvalidInputError(
                f"PointwiseRate: the function takes ({', '.join(names)}), but its first arguments must be the channels "
                f"{', '.join(self.state)}"
            )
        return names[len(self.state) :]

    @property
    def interpreted(self) -> str:
        """Why the function runs in NumPy; empty if it is compiled."""
        return _compiled(self.rates, len(self.state), len(self.coefficients))[1] if callable(self.rates) else ""

    def _places(self, setting: Setting) -> list[int]:
        names = [channel.name for channel in setting.channels]
        missing = [name for name in self.state if name not in names]
        if missing:
            raise IncompatibleError(f"{self.process}: the state has no channel '{missing[0]}' ({', '.join(names)})")
        return [names.index(name) for name in self.state]

    def _numbers(self, setting: Setting) -> Array:
        """The coefficients (batch, name)."""
        columns = [setting.param(name) for name in self.coefficients]
        return np.stack(columns, axis=1) if columns else np.zeros((setting.batch, 0))

    def _widened(self, u: Array, setting: Setting) -> tuple[PointwiseRate, Array, Setting] | None:
        """Coefficients that vary in space as channels that rest; None if there are none. Functions need numbers."""
        names = tuple(name for name in self.coefficients if name in setting.fields)
        if callable(self.rates) or not names:
            return None
        wider = replace(self, state=(*self.state, *names), rates=(*self.rates, *("0" for _ in names)))
        states = np.concatenate([u, *(setting.field(name)[:, None] for name in names)], axis=1)
        channels = (*setting.channels, *map(Channel, names))
        params = {name: value for name, value in setting.params.items() if name not in names}
        return wider, states, changed(setting, channels=channels, params=params)

    def _rate_of(self, numbers: Array) -> Callable[[Array], Array]:
        """The rate (channel, cell) → (channel, cell) of one sample, for a function."""
        assert callable(self.rates)
        compiled, why = _compiled(self.rates, len(self.state), len(self.coefficients))
        if compiled is not None:
            return lambda u: compiled(u, numbers)
        _say(self.process, why)
        return lambda u: _called(self.rates, u, numbers)

    def flow(self, u: Array, duration: Array, setting: Setting) -> Array:
        wide = self._widened(u, setting)
        if wide is not None:
            return wide[0].flow(wide[1], duration, wide[2])[:, : u.shape[1]].astype(u.dtype, copy=False)
        tau, places, numbers = checked_duration(duration, setting), self._places(setting), self._numbers(setting)
        mine = np.ascontiguousarray(u[:, places], dtype=np.float64)
        if callable(self.rates):
            flat = mine.reshape(*mine.shape[:2], -1)
            done = flat.copy()
            for i in np.flatnonzero(tau > 0):
                with np.errstate(all="ignore"):
                    done[i] = function_kinetics(flat[i], float(tau[i]), self._rate_of(numbers[i]), self.tolerance)
            mine = done.reshape(mine.shape)
        else:
            tape = self._tape
            mine = tape_kinetics(mine, tau, numbers, tape.code, tape.numbers, tape.outputs, self.tolerance)
        out = np.array(u)
        out[:, places] = mine
        return out

    def rate(self, u: Array, setting: Setting) -> Array:
        wide = self._widened(u, setting)
        if wide is not None:
            return wide[0].rate(wide[1], wide[2])[:, : u.shape[1]].astype(u.dtype, copy=False)
        places, numbers = self._places(setting), self._numbers(setting)
        flat = np.ascontiguousarray(u[:, places], dtype=np.float64).reshape(u.shape[0], len(places), -1)
        out = np.zeros_like(u)
        for i in range(setting.batch):
            with np.errstate(all="ignore"):
                found = (
                    self._rate_of(numbers[i])(flat[i])
                    if callable(self.rates)
                    else self._tape.values(flat[i], numbers[i])
                )
            out[i, places] = found.reshape(len(places), *u.shape[2:])
        return out

    def work(self, u: Array, duration: Array, setting: Setting) -> Array:
        """Twelve evaluations for each step, of which the first is as long as the fastest channel allows."""
        slope = np.abs(self.rate(u, setting)).reshape(*u.shape[:2], -1).max(axis=2)
        size = np.abs(u).reshape(*u.shape[:2], -1).max(axis=2)
        size = np.maximum(size, np.maximum(1e-3 * size.max(axis=1, keepdims=True), 1e-300))
        with np.errstate(all="ignore"):
            steps = np.ceil(np.nan_to_num(np.asarray(duration) * (slope / size).max(axis=1) / REACH, posinf=1e3))
        return update_work(setting, STAGES * np.maximum(steps, 1.0))

    def example(self, seed: int) -> tuple[Array, Setting]:
        """Smooth positive fields on a small grid; coefficients between ½ and 1."""
        rng, batch = np.random.default_rng(seed), 3
        grid = Grid((12, 15), rng.uniform(0.8, 1.2, (batch, 2)), ("periodic", "periodic"))
        x, y = (
            centre / length.reshape(-1, 1, 1) for centre, length in zip(grid.centres(), grid.lengths.T, strict=True)
        )
        u = np.empty((batch, len(self.state), *grid.shape))
        for channel in range(len(self.state)):
            phase = rng.uniform(0, 2 * np.pi, (2, batch, 1, 1))
            u[:, channel] = 0.6 + 0.15 * np.sin(2 * np.pi * x + phase[0]) + 0.15 * np.sin(2 * np.pi * y + phase[1])
        params = {name: rng.uniform(0.5, 1.0, batch) for name in self.coefficients}
        return u, Setting(grid, tuple(Channel(name) for name in self.state), params)


@lru_cache(maxsize=64)
def _compiled(function: Function, channels: int, coefficients: int) -> tuple[Function | None, str]:
    """The function over the cells of a sample, compiled; or None and why it cannot be."""
    count = channels + coefficients
    try:
        inner: Any = numba.njit(function)
    except TypeError as error:
        return None, " ".join(str(error).split())[:120]

    @numba.njit(error_model="numpy")
    def rate(u, k):  # type: ignore[no-untyped-def]
        out, values = np.empty_like(u), np.empty(count)
        values[channels:] = k
        for i in range(u.shape[1]):
            values[:channels] = u[:, i]
            found = inner(*to_fixed_tuple(values, count))
            for c in range(channels):
                out[c, i] = found[c]
        return out

    @numba.njit(error_model="numpy")
    def scalar_rate(u, k):  # type: ignore[no-untyped-def]
        out, values = np.empty_like(u), np.empty(count)
        values[1:] = k
        for i in range(u.shape[1]):
            values[0] = u[0, i]
            out[0, i] = inner(*to_fixed_tuple(values, count))
        return out

    trial = np.full((channels, 1), 0.5), np.full(coefficients, 0.5)
    reason = ""
    for candidate in (scalar_rate, rate) if channels == 1 else (rate,):
        try:
            candidate(*trial)
        except (NumbaError, TypeError) as error:
            reason = reason or " ".join(str(error).split())[:120]
        except Exception as error:  # of somebody's own function, for these values
            reason = reason or f"{type(error).__name__}: {error}"[:120]
        else:
            return candidate, ""
    return None, reason


def _called(function: Any, u: Array, numbers: Array) -> Array:
    """The function, called with the cells of a sample as arrays."""
    found = function(*u, *(float(each) for each in numbers))
    rates = [found] if len(u) == 1 and not isinstance(found, tuple | list) else list(found)
    if len(rates) != len(u):
        raise InvalidInputError(f"the function returned {len(rates)} rates for {len(u)} channels")
    try:
        return np.stack([np.broadcast_to(np.asarray(each, dtype=np.float64), u.shape[1:]) for each in rates])
    except (TypeError, ValueError) as error:
        raise InvalidInputError(f"the function returned no rates of shape {u.shape[1:]} ({error})") from None


@lru_cache(maxsize=64)
def _say(process: str, why: str) -> None:
    """Warns once."""
    warnings.warn(
        f"{process}: the function runs in NumPy, more slowly, because Numba cannot compile it ({why})",
        NotCompiledWarning,
        stacklevel=5,
    )
