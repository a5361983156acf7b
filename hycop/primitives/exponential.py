"""All processes at once by an exponential Runge–Kutta method: the unsplit opponent of splittings."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from hycop.errors import IncompatibleError, InvalidInputError
from hycop.grid import Array
from hycop.kernels.exponential import TABLEAUS, Tableau
from hycop.kernels.exponential_line import Lines
from hycop.kernels.mode_matrices import ModeMatrices, matrix_functions
from hycop.kernels.spectral import from_modes, to_modes
from hycop.primitive import (
    ALL_CHANNELS,
    EXACT,
    Content,
    Primitive,
    Symbol,
    boundaries_of,
    checked_duration,
    depends_on_batch,
    fewest_cells,
    flow_of,
    is_linear,
    is_reversible,
    is_value,
    order_of_rate,
    rate_of,
    sub_steps,
    transform_work,
    transforms_of,
    update_work,
    work_of_rate,
)
from hycop.primitives.advection import SpectralAdvection
from hycop.primitives.diffusion import SpectralDiffusion
from hycop.primitives.logistic import ExactLogistic
from hycop.query import Setting

BLOCK = 2**15
"""Values of a state that go through all their steps at a time: they and their weights stay in the cache."""

KEPT = 8
"""Blocks whose tableaus are kept from call to call."""

NUDGE, ITERATIONS = 1e-6, 3
"""Size of the disturbance, relative to the state, and power iterations that estimate the fastest rate."""


@dataclass(frozen=True)
class ExponentialRungeKutta:
    """u_t = L u + N(u), unsplit: all processes of its ``parts`` at once, which may be any primitives.

    L is the sum of the parts with a ``symbol``, or with ``mode_matrices``, which couple channels (on periodic boxes),
    and is exact; N is the sum of the rates of the others. In modes, with
    z = hL, stages are V_i = e^{c_i z}·v + h Σ_j a_ij(z)·N(V_j): ETDRK2, 3 or 4 by the number of ``stages``, with the
    φ functions of complex z to rounding. Without a part of either kind it is exact, or a classical Runge–Kutta method.
    If N is one part with ``quadratic``, on a periodic line, all stages stay in modes.

    Any duration takes ``steps`` equal steps, or as many more as keep the product of a step and the fastest rate of N
    below ``reach`` (estimated from the state given; ETDRK4 is stable up to about 2.5). ``dealias`` drops modes of N
    above two thirds of the highest along each axis; parts may dealias by themselves.
    Cox and Matthews, J. Comput. Phys. 176 (2002) 430; Kassam and Trefethen, SIAM J. Sci. Comput. 26 (2005) 1214.
    """

    parts: tuple[Primitive, ...] = (SpectralAdvection(), SpectralDiffusion(), ExactLogistic())
    stages: int = 4
    steps: int = 1
    reach: float | None = None
    dealias: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.parts, tuple) or not self.parts:
            raise InvalidInputError("ExponentialRungeKutta: parts is empty or no tuple: give at least one primitive")
        for part in self.parts:
            if not is_linear(part) and not hasattr(part, "rate"):
                raise IncompatibleError(
                    f"ExponentialRungeKutta: part {type(part).__name__} has neither a symbol nor a rate; add one"
                )
        if sum(len(part.advances) for part in self.parts) > len(self.advances):
            raise IncompatibleError("ExponentialRungeKutta: two parts advance the same process; give one for each")
        if self.stages not in TABLEAUS:
            raise InvalidInputError(f"stages is {self.stages}: it must be one of {', '.join(map(str, TABLEAUS))}")
        if isinstance(self.steps, bool) or not isinstance(self.steps, int) or self.steps < 1:
            raise InvalidInputError(f"steps is {self.steps}: a whole number, at least 1, is needed")
        if self.reach is not None and not self.reach > 0:
            raise InvalidInputError(f"reach is {self.reach}: it must be positive")

    @property
    def scheme_version(self) -> int:
        """Until 2, parts with ``mode_matrices`` belonged to N."""
        return 3 if self._coupled else 2

    @property
    def advances(self) -> frozenset[str]:
        return frozenset().union(*(part.advances for part in self.parts))

    @property
    def order(self) -> float | None:
        """The order of the method, or of the least accurate part in space."""
        in_space = [part.order if is_linear(part) else order_of_rate(part) for part in self.parts]
        if None in in_space:
            return None
        in_time = EXACT if not self._others else float(self.stages)
        return min(in_time, *(order for order in in_space if order is not None))

    @property
    def conserves(self) -> frozenset[str]:
        kept: frozenset[str] = ALL_CHANNELS
        for part in self.parts:
            own: frozenset[str] = getattr(part, "conserves", frozenset())
            kept = own if kept == ALL_CHANNELS else kept if own == ALL_CHANNELS else kept & own
        return kept

    @property
    def boundaries(self) -> frozenset[str]:
        known = frozenset.intersection(*map(boundaries_of, self.parts))
        return known & {"periodic"} if self._coupled else known

    @property
    def reversible(self) -> bool:
        return all(map(is_reversible, self.parts))

    @property
    def fewest_cells(self) -> int:
        return max(map(fewest_cells, self.parts))

    @property
    def batch_dependent(self) -> bool:
        return any(map(depends_on_batch, self.parts))

    @property
    def fixed_steps(self) -> bool:
        return self.reach is None and bool(self._others)

    @cached_property
    def _others(self) -> tuple[Any, ...]:
        """The parts that are not linear."""
        return tuple(part for part in self.parts if not is_linear(part))

    @cached_property
    def _coupled(self) -> tuple[Any, ...]:
        """The parts with a matrix for every mode."""
        return tuple(part for part in self.parts if is_linear(part) and not hasattr(part, "symbol"))

    @cached_property
    def _mixes(self) -> bool:
        return any(getattr(part, "mixes_channels", True) for part in self._coupled)

    def _in_modes(self, setting: Setting) -> bool:
        """Whether N is a part with ``quadratic`` on a periodic line, which needs no point values outside it."""
        return (
            len(self._others) == 1
            and len(self.parts) > 1
            and hasattr(self._others[0], "quadratic")
            and not self.dealias
            and not self._coupled
            and setting.grid.boundary == ("periodic",)
        )

    def _linear(self, setting: Setting) -> Symbol | None:
        """L, if any part has a symbol."""
        found = [part.symbol(setting) for part in self.parts if hasattr(part, "symbol")]
        for symbol in found[1:]:
            if symbol.transforms != found[0].transforms:
                raise IncompatibleError(
                    f"ExponentialRungeKutta: its parts have symbols of different transforms, "
                    f"{'×'.join(found[0].transforms)} and {'×'.join(symbol.transforms)}"
                )
        return None if not found else sum(found[1:], start=found[0])

    def _nonlinear(self, u: Array, setting: Setting) -> Array:
        if not self._others:
            return np.zeros(u.shape)
        total: Array = self._others[0].rate(u, setting)
        for part in self._others[1:]:
            total = total + part.rate(u, setting)
        return total

    def rate(self, u: Array, setting: Setting) -> Array:
        linear = self._linear(setting)
        rates = [] if linear is None else [rate_of(linear, u)]
        rates += [part.rate(u, setting) for part in self._coupled]
        rates += [self._nonlinear(u, setting)] if self._others else []
        return sum(rates[1:], start=rates[0])

    def flow(self, u: Array, duration: Array, setting: Setting) -> Array:
        tau = checked_duration(duration, setting, self.reversible)
        if not self._others and not self._coupled:
            linear = self._linear(setting)
            assert linear is not None
            return flow_of(linear, u, tau)
        steps = self._steps(u, tau, setting)
        out, step = np.empty_like(u), tau / steps
        order, samples = np.argsort(-steps, kind="stable"), max(1, BLOCK // max(1, u[:1].size))
        for start in range(0, u.shape[0], samples):
            block = order[start : start + samples]
            march = _prepared(_Case(self, setting.take(block), step[block]))
            with np.errstate(all="ignore"):  # a state that overflows is for the caller to report
                out[block] = march.advanced(u[block].astype(np.float64, copy=False), steps[block])
        return out

    def work(self, u: Array, duration: Array, setting: Setting) -> Array:
        """Each stage takes the rates of N and, with an L, a transform pair unless N stays in modes; the state at the
        end takes half of one, and the estimate of the fastest rate a few rates more."""
        pair = transform_work(setting) if len(self._others) < len(self.parts) else np.zeros(setting.batch)
        if self._mixes:
            pair = pair + update_work(setting, len(setting.channels))
        if not self._others:
            return pair
        tau = np.broadcast_to(np.asarray(duration, dtype=np.float64), (setting.batch,))
        rates: Array = sum((work_of_rate(part, u, setting) for part in self._others), start=np.zeros(setting.batch))
        estimate = 0.0 if self.reach is None else (1 + ITERATIONS) * rates
        stage = rates if self._in_modes(setting) else pair + rates
        return self.stages * self._steps(u, tau, setting) * stage + 0.5 * pair + estimate

    def _steps(self, u: Array, duration: Array, setting: Setting) -> Array:
        """Steps of each sample: one for a state that is NaN."""
        steps = np.full(setting.batch, self.steps)
        if self.reach is None or not self._others:
            return steps
        with np.errstate(all="ignore"):
            wanted = np.abs(duration) * self.fastest(u.astype(np.float64, copy=False), setting) / self.reach
        return np.maximum(steps, sub_steps(np.where(np.isfinite(wanted), wanted, 0.0)))

    def fastest(self, u: Array, setting: Setting) -> Array:
        """The fastest rate (batch,) of N at u: power iterations with differences, from the same noise in every box."""
        column = (-1,) + (1,) * (u.ndim - 1)

        def size(values: Array) -> Array:
            return np.sqrt(np.mean(values.reshape(setting.batch, -1) ** 2, axis=1)).reshape(column)

        noise = np.random.Generator(np.random.Philox(key=0)).standard_normal(u.shape[1:])
        direction, still = np.broadcast_to(noise, u.shape), self._nonlinear(u, setting)
        nudge, grown = NUDGE * np.fmax(size(u), NUDGE), np.zeros(1)
        for _ in range(ITERATIONS):
            direction = direction / np.fmax(size(direction), 1e-300)
            direction = (self._nonlinear(u + nudge * direction, setting) - still) / nudge
            grown = np.fmax(grown, size(direction))
        return np.broadcast_to(grown.reshape(-1), (setting.batch,))

    def example(self, seed: int) -> tuple[Array, Setting]:
        """The state of a part without a symbol, if there is one, with the coefficients of all."""
        wanting = [type(part).__name__ for part in self.parts if not hasattr(part, "example")]
        if wanting:
            raise InvalidInputError(f"ExponentialRungeKutta: part {wanting[0]} has no example(seed)")
        examples = [part.example(seed) for part in (*self._others, *self.parts)]
        u, setting = examples[0]
        params = {name: value for _, other in reversed(examples) for name, value in other.params.items()}
        return u, Setting(setting.grid, setting.channels, params)


class _Case:
    """A method with the setting and the steps (batch,) of a block. Two are equal if their tableaus are: same
    parts, box, coefficients and steps. Where a part is no value, no two are."""

    def __init__(self, method: ExponentialRungeKutta, setting: Setting, step: Array) -> None:
        self.method, self.setting, self.step = method, setting, step
        grid, options = setting.grid, (method.parts, method.stages, method.dealias)
        numbers = tuple((name, value.tobytes()) for name, value in setting.params.items())
        box = grid.shape, grid.boundary, grid.lengths.tobytes(), len(setting.channels)
        self.key = (options, box, numbers, step.tobytes()) if is_value(method.parts) else None

    def __hash__(self) -> int:
        return hash(self.key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Case) and self.key is not None and self.key == other.key


@lru_cache(maxsize=KEPT)
def _prepared(case: _Case) -> _March:
    """The march of a case, kept from call to call: a tableau costs as much as several steps."""
    return _March(case.method, Content(case.setting).copied(), case.step.copy())


class _March:
    """A block of samples with its modes and the tableau of its steps (batch,), which is made once."""

    def __init__(self, method: ExponentialRungeKutta, setting: Setting, step: Array) -> None:
        self.method, self.setting = method, setting
        self.shape = (setting.batch, len(setting.channels), *setting.grid.shape)
        linear = method._linear(setting)
        self.transforms = () if linear is None else linear.transforms
        h = step.reshape((-1,) + (1,) * (len(self.shape) - 1))
        z: Any = np.zeros_like(h)
        half: Any = np.ones_like(h)
        for axis, rate in enumerate(() if linear is None else linear.rates):
            along = self._along(rate, axis)
            half = half * np.exp(0.5 * h * along)  # the exponential of a sum is cheapest as a product over the axes
            z = z + h * along
        if method._coupled:
            self.transforms = transforms_of(setting.grid)
            z, half = self._mixed(z, h)
        self.tableau = TABLEAUS[method.stages](h, z, half)
        self.kept = self._kept() if method.dealias else None
        self.lines = None
        if method._in_modes(setting):
            self.lines = Lines.of(self.tableau, method._others[0].quadratic(setting))

    def _mixed(self, z: Array, h: Array) -> tuple[Any, Any]:
        """z with the parts that have a matrix for every mode, and e^{z/2}: arrays if no part mixes channels."""
        found: Array = sum(part.mode_matrices(self.setting) for part in self.method._coupled)
        diagonal = z + h * np.moveaxis(np.diagonal(found, axis1=-2, axis2=-1), -1, 1)
        if not self.method._mixes:
            return diagonal, np.exp(0.5 * diagonal)
        entries = np.moveaxis(found, (-2, -1), (0, 1)) * h[:, 0]
        for place in range(self.shape[1]):
            entries[place, place] = diagonal[:, place]
        whole = ModeMatrices(np.ascontiguousarray(entries, dtype=np.complex128))
        return whole, matrix_functions(0.5 * whole)[0]

    def _along(self, rate: Array, axis: int) -> Array:
        """Rates (batch, modes) of an axis, to be multiplied with modes; the last Fourier axis has half of them."""
        periodic = [place for place, name in enumerate(self.transforms) if name == "fourier"]
        modes = self.shape[2 + axis] // 2 + 1 if periodic and axis == periodic[-1] else self.shape[2 + axis]
        view = [1] * len(self.shape)
        view[0], view[2 + axis] = rate.shape[0], modes
        return rate[:, :modes].reshape(view)

    def _kept(self) -> Array:
        """1 for the modes up to two thirds of the highest along each axis, 0 for the others."""
        out: Array = np.ones(1)
        for axis, name in enumerate(self.transforms):
            n = self.shape[2 + axis]
            number, highest = (np.abs(np.fft.fftfreq(n, 1 / n)), n / 2) if name == "fourier" else (np.arange(n), n)
            out = out * self._along(np.where(number <= 2 / 3 * highest, 1.0, 0.0)[None], axis)
        return out

    def advanced(self, u: Array, steps: Array) -> Array:
        """The state after the steps (batch,) of each sample; those with the most come first."""
        if self.lines is not None:
            return self.lines.advanced(u[:, 0], steps)[:, None]
        modes = to_modes(u, self.transforms)
        modes = modes.copy() if modes is u else modes
        setting, tableau, count = self.setting, self.tableau, self.shape[0]
        for step in range(int(steps.max(initial=0))):
            moving = int((steps > step).sum())
            if moving < count:
                count, some = moving, slice(0, moving)
                setting, tableau = self.setting.take(some), self.tableau.take(some)
            modes[:count] = self._step(modes[:count], setting, tableau)
        return from_modes(modes, self.transforms, self.shape)

    def _step(self, v: Array, setting: Setting, tableau: Tableau) -> Array:
        stage, rates = v, []
        scratch = np.empty_like(v)
        for factor, weights in zip(tableau.factors, tableau.weights, strict=True):
            rates.append(self._rate(stage.copy() if stage is v else stage, setting))
            stage = factor * v
            for j, weight in weights.items():
                mixes = isinstance(weight, ModeMatrices)
                stage += weight * rates[j] if mixes else np.multiply(weight, rates[j], out=scratch)
        return stage

    def _rate(self, modes: Array, setting: Setting) -> Array:
        """Modes of N; overwrites those of the state."""
        u = from_modes(modes, self.transforms, (setting.batch, *self.shape[1:]))
        out = to_modes(self.method._nonlinear(u, setting), self.transforms)
        return out if self.kept is None else out * self.kept
