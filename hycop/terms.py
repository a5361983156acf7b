"""Terms of an equation as data: products of channels and their derivatives, as text, and their values on a grid."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy import fft

from hycop.errors import InvalidInputError
from hycop.grid import AXES, Array
from hycop.query import Setting

HIGHEST_POWER, HIGHEST_DERIVATIVE, MOST_FACTORS = 8, 4, 4
"""Largest power of a factor, most derivatives of a factor, most factors of a term."""

STENCILS: Mapping[int, tuple[float, ...]] = {
    1: (1 / 12, -8 / 12, 0.0, 8 / 12, -1 / 12),
    2: (-1 / 12, 16 / 12, -30 / 12, 16 / 12, -1 / 12),
    3: (1 / 8, -8 / 8, 13 / 8, 0.0, -13 / 8, 8 / 8, -1 / 8),
    4: (-1 / 6, 12 / 6, -39 / 6, 56 / 6, -39 / 6, 12 / 6, -1 / 6),
}
"""Central differences of fourth order by the order of the derivative; each is a difference of fluxes through faces."""

_POWER = re.compile(r"(?P<base>.+?)\^(?P<power>\d{1,3})")


@dataclass(frozen=True, order=True)
class Factor:
    """A channel or one of its derivatives, to a power: ``u^2``, ``u_xx``, ``u_x^2``."""

    channel: str
    derivative: str = ""
    power: int = 1

    def __str__(self) -> str:
        base = f"{self.channel}_{self.derivative}" if self.derivative else self.channel
        return base if self.power == 1 else f"{base}^{self.power}"

    def orders(self, axes: int) -> tuple[int, ...]:
        """How often it is differentiated along each axis."""
        return tuple(self.derivative.count(letter) for letter in AXES[:axes])


@dataclass(frozen=True, order=True)
class Term:
    """A product of coefficients, which a setting has by name, and of factors. Without any it is ``1``.

    >>> print(Term.parse("u_yx*r*u*u", ("u",)), Term.parse("1", ("u",)), Term.parse("u_x", ("u",)).degree)
    r*u^2*u_xy 1 1
    """

    coefficients: tuple[str, ...] = ()
    factors: tuple[Factor, ...] = ()

    def __str__(self) -> str:
        return "*".join([*self.coefficients, *map(str, self.factors)]) or "1"

    @classmethod
    def parse(cls, text: str, channels: Sequence[str], axes: int = len(AXES)) -> Term:
        """The term of a text. A name that is neither a channel nor a channel with its derivatives is a coefficient."""
        coefficients: list[str] = []
        powers: Counter[tuple[str, str]] = Counter()
        for word in text.replace(" ", "").split("*"):
            match = _POWER.fullmatch(word)
            name, power = (match["base"], int(match["power"])) if match else (word, 1)
            known = _field(name, channels, axes)
            if known is not None:
                powers[known] += power
            elif name.isidentifier():
                coefficients += [name] * power
            elif name != "1":
                raise InvalidInputError(
                    f"term '{text:.60}': '{word:.30}' is neither a channel, a derivative as u_xx, nor a coefficient"
                )
        factors = tuple(Factor(channel, derivative, power) for (channel, derivative), power in sorted(powers.items()))
        if len(factors) > MOST_FACTORS or any(not 1 <= factor.power <= HIGHEST_POWER for factor in factors):
            raise InvalidInputError(
                f"term '{text:.60}': at most {MOST_FACTORS} factors, each to a power from 1 to {HIGHEST_POWER}, are "
                "possible"
            )
        return cls(tuple(sorted(coefficients)), factors)

    @property
    def degree(self) -> int:
        """Its degree in the state: 0 for a source, 1 for a linear term."""
        return sum(factor.power for factor in self.factors)

    @property
    def pointwise(self) -> bool:
        """Whether it has no derivatives."""
        return not any(factor.derivative for factor in self.factors)

    @property
    def bare(self) -> Term:
        """The term without its coefficients."""
        return Term((), self.factors)

    def scaled(self, *names: str) -> Term:
        """The term with further coefficients in front."""
        return Term(tuple(sorted((*self.coefficients, *names))), self.factors)

    def amplitude(self, setting: Setting) -> Array:
        """The product of its coefficients, (batch,)."""
        out = np.ones(setting.batch)
        for name in self.coefficients:
            out = out * setting.param(name)
        return out

    def scales_diagonally(self, channel: str) -> bool:
        """Whether it is a multiple of a channel or of an even derivative of it: the modes of any box scale by it."""
        if len(self.factors) != 1 or self.factors[0].channel != channel or self.factors[0].power != 1:
            return False
        return all(count % 2 == 0 for count in Counter(self.factors[0].derivative).values())


def _field(name: str, channels: Sequence[str], axes: int) -> tuple[str, str] | None:
    """A channel and its derivative in the order of the axes, if the name means one."""
    if name in channels:
        return name, ""
    channel, _, letters = name.rpartition("_")
    if channel not in channels or not letters or set(letters) - set(AXES[:axes]):
        return None
    if len(letters) > HIGHEST_DERIVATIVE:
        raise InvalidInputError(f"term '{name:.60}': at most {HIGHEST_DERIVATIVE} derivatives are possible")
    return channel, "".join(sorted(letters))


@dataclass(frozen=True)
class Field:
    """What a term multiplies: a derivative of a power of a channel. ``u*u_x`` is half the field (u²)_x, so that its
    total is kept."""

    channel: str
    power: int = 1
    derivative: str = ""


def fields_of(term: Term) -> tuple[float, tuple[tuple[Field, int], ...]]:
    """A term as a number times a product of fields, each to a power; uⁿ u_x is written as (uⁿ⁺¹)_x/(n + 1).

    >>> fields_of(Term.parse("u*u_x", ("u",)))
    (0.5, ((Field(channel='u', power=2, derivative='x'), 1),))
    """
    factors = term.factors
    if len(factors) == 2 and factors[0].channel == factors[1].channel:
        plain, slope = factors
        if not plain.derivative and len(slope.derivative) == 1 and slope.power == 1:
            whole = plain.power + 1
            return 1.0 / whole, ((Field(plain.channel, whole, slope.derivative), 1),)
    return 1.0, tuple((Field(factor.channel, 1, factor.derivative), factor.power) for factor in factors)


class Evaluator:
    """Values of terms on the grid of a setting.

    Derivatives are those of the Fourier series on periodic axes. On the others they are central differences of fourth
    order, with the state continued beyond walls and outflow by its mirror image: odd for the component of a vector
    normal to a wall, even for all else. The Nyquist mode has no odd derivative.
    """

    def __init__(self, terms: Sequence[Term], setting: Setting) -> None:
        self.terms = tuple(terms)
        self.setting = setting
        self._index = {channel.name: place for place, channel in enumerate(setting.channels)}
        self._parts = [fields_of(term) for term in self.terms]
        self._wanted = sorted(
            {field for _, product in self._parts for field, _ in product},
            key=lambda field: (field.channel, field.power, field.derivative),
        )
        unknown = [field.channel for field in self._wanted if field.channel not in self._index]
        if unknown:
            raise InvalidInputError(f"channel '{unknown[0]}' of a term is not one of {', '.join(self._index)}")
        self.amplitudes = [self._over_cells(term.amplitude(setting)) for term in self.terms]

    def _over_cells(self, values: Array) -> Array:
        return values.reshape((-1,) + (1,) * self.setting.grid.axes)

    def fields(self, u: Array) -> dict[Field, Array]:
        """Every field that the terms need, (batch, *grid)."""
        found: dict[Field, Array] = {}
        for channel, power in dict.fromkeys((field.channel, field.power) for field in self._wanted):
            base = powered(u[:, self._index[channel]], power)
            same = [field for field in self._wanted if (field.channel, field.power) == (channel, power)]
            odd = self._odd_axes(channel, power)
            modes = _Modes(base, self.setting, odd) if any(field.derivative for field in same) else None
            for field in same:
                found[field] = base if modes is None or not field.derivative else modes.derivative(field.derivative)
        return found

    def _odd_axes(self, channel: str, power: int) -> tuple[bool, ...]:
        """Along which axes the mirror image of a field has the other sign."""
        normal = self.setting.channels[self._index[channel]].normal
        walls = enumerate(self.setting.grid.boundary)
        return tuple(boundary == "wall" and normal == axis and power % 2 == 1 for axis, boundary in walls)

    def values(self, u: Array) -> Iterable[Array]:
        """The value of each term with its coefficients, (batch, *grid), one after the other."""
        fields = self.fields(u)
        for (number, product), amplitude in zip(self._parts, self.amplitudes, strict=True):
            out: Array | None = None
            for field, power in product:
                factor = powered(fields[field], power)
                out = factor if out is None else out * factor
            scale = number * amplitude
            yield np.broadcast_to(scale, (u.shape[0], *u.shape[2:])) if out is None else scale * out

    def sum(self, u: Array, channels: Sequence[int], weights: Sequence[float]) -> Array:
        """Σ_k weight_k term_k(u), each term in its channel, (batch, channel, *grid)."""
        out = np.zeros(u.shape)
        for value, channel, weight in zip(self.values(u), channels, weights, strict=True):
            out[:, channel] += weight * value
        return out

    def stiffness(self, u: Array) -> Array:
        """The rate (batch, term) at which each term can change the state: its derivative by each of its fields, at the
        largest values of the others, for the highest mode of the grid."""
        largest = {field: np.abs(value).reshape(u.shape[0], -1).max(axis=1) for field, value in self.fields(u).items()}
        inner = {
            channel: np.abs(u[:, place]).reshape(u.shape[0], -1).max(axis=1) for channel, place in self._index.items()
        }
        highest = highest_derivatives(self.setting)
        out = np.zeros((u.shape[0], len(self.terms)))
        for column, ((number, product), amplitude) in enumerate(zip(self._parts, self.amplitudes, strict=True)):
            size = np.abs(number * amplitude).reshape(-1)
            for field, power in product:
                rate = power * largest[field] ** (power - 1) * field.power * inner[field.channel] ** (field.power - 1)
                for letter, order in Counter(field.derivative).items():
                    rate = rate * highest[:, AXES.index(letter), order - 1]
                for other, exponent in product:
                    if other != field:
                        rate = rate * largest[other] ** exponent
                out[:, column] += size * rate
        return out


def powered(u: Array, power: int) -> Array:
    """u to a whole power by multiplication, whose last digits do not depend on the array's size."""
    out = u
    for _ in range(power - 1):
        out = out * u
    return out


def highest_derivatives(setting: Setting) -> Array:
    """Largest factor by which a derivative of each order changes a mode of the grid, (batch, axis, order − 1)."""
    grid = setting.grid
    out = np.empty((grid.batch, grid.axes, HIGHEST_DERIVATIVE))
    for axis in range(grid.axes):
        for order in range(1, HIGHEST_DERIVATIVE + 1):
            unit = np.abs(_unit_symbol(grid.shape[axis], grid.boundary[axis] == "periodic", order)).max()
            out[:, axis, order - 1] = unit / grid.spacing[:, axis] ** order
    return out


def derivative_symbol(setting: Setting, axis: int, order: int) -> Array:
    """Factors (batch, mode) of a derivative along an axis for the modes of the box, mirrored if it is not periodic."""
    grid = setting.grid
    unit = _unit_symbol(grid.shape[axis], grid.boundary[axis] == "periodic", order)
    return unit / grid.spacing[:, axis : axis + 1] ** order


@lru_cache(maxsize=256)
def _unit_symbol(cells: int, periodic: bool, order: int) -> Array:
    """The factors of a derivative on cells of width one: (iθ)ᵐ, or Σ_j w_j e^{ijθ} on the box and its mirror image."""
    n = cells if periodic else 2 * cells
    theta = 2 * np.pi * fft.fftfreq(n)
    if periodic:
        symbol = (1j * theta) ** order
        if order % 2 == 1 and n % 2 == 0:
            symbol[n // 2] = 0.0
    else:
        weights = STENCILS[order]
        reach = len(weights) // 2
        shifts = enumerate(weights, start=-reach)
        symbol = np.sum([weight * np.exp(1j * shift * theta) for shift, weight in shifts], axis=0)
    symbol.setflags(write=False)
    return symbol


def mirrored(field: Array, setting: Setting, odd: Collection[bool]) -> Array:
    """A field (batch, *grid) with its mirror image behind it along every axis that is not periodic."""
    for axis, (boundary, flips) in enumerate(zip(setting.grid.boundary, odd, strict=True)):
        if boundary != "periodic":
            image = np.flip(field, 1 + axis)
            field = np.concatenate([field, -image if flips else image], axis=1 + axis)
    return field


def cropped(field: Array, setting: Setting) -> Array:
    """The field without its mirror images."""
    inside: tuple[slice, ...] = (slice(None), *(slice(0, n) for n in setting.grid.shape))
    return field[inside]


class _Modes:
    """The Fourier modes of a field, continued by mirror images, and the derivatives that follow from them."""

    def __init__(self, field: Array, setting: Setting, odd: Collection[bool]) -> None:
        whole = mirrored(field, setting, odd)
        self.setting = setting
        self.shape = whole.shape[1:]
        self.modes = fft.rfftn(whole.astype(np.float64, copy=False), axes=tuple(range(1, whole.ndim)))

    def derivative(self, letters: str) -> Array:
        grid, modes = self.setting.grid, self.modes
        for axis in range(grid.axes):
            order = letters.count(AXES[axis])
            if order:
                symbol = derivative_symbol(self.setting, axis, order)[:, : modes.shape[1 + axis]]
                modes = modes * over_axis(symbol, axis, grid.axes)
        return cropped(fft.irfftn(modes, s=self.shape, axes=tuple(range(1, modes.ndim))), self.setting)


def over_axis(values: Array, axis: int, axes: int) -> Array:
    """Values (batch, mode) of one axis, ready to broadcast over (batch, *modes)."""
    shape = [values.shape[0]] + [1] * axes
    shape[1 + axis] = values.shape[1]
    return values.reshape(shape)


def diagonal_symbol(terms: Sequence[tuple[Term, float]], setting: Setting) -> Array:
    """Σ_k a_k × the factor of each term, (batch, *modes) as ``rfftn`` orders those of the mirrored box; for terms that
    scale modes."""
    grid = setting.grid
    walls = zip(grid.shape, grid.boundary, strict=True)
    n = [cells if boundary == "periodic" else 2 * cells for cells, boundary in walls]
    n[-1] = n[-1] // 2 + 1
    total = np.zeros((grid.batch, *n))
    for term, weight in terms:
        part = (weight * term.amplitude(setting)).reshape((-1,) + (1,) * grid.axes)
        for axis, order in enumerate(term.factors[0].orders(grid.axes)):
            if order:
                part = part * over_axis(derivative_symbol(setting, axis, order).real[:, : n[axis]], axis, grid.axes)
        total = total + part
    return total
