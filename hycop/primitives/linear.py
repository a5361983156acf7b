"""Linear terms with constant coefficients, as text: exact in Fourier space for one channel or for several."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
import scipy.fft

from hycop.errors import IncompatibleError, InvalidInputError
from hycop.grid import AXES, BOUNDARIES, Array, Grid
from hycop.primitive import (
    ALL_CHANNELS,
    EXACT,
    Symbol,
    checked_duration,
    flow_of,
    rate_of,
    transform_work,
    transforms_of,
    update_work,
    wavenumbers,
)
from hycop.query import Channel, Setting
from hycop.terms import Term

SMALL = 1e-4
"""Argument below which sinh(q)/q is a series."""

TAYLOR = 14
"""Degree of the Taylor polynomial of a matrix of norm ½ at most: its error is below rounding."""


def _parsed(primitive: LinearTerms | CoupledLinearTerms) -> tuple[Term, ...]:
    """The terms, each one derivative of one channel; among coupled ones also multiples of a channel."""
    name = type(primitive).__name__
    if not primitive.terms or len(primitive.terms) != len(primitive.amounts):
        raise InvalidInputError(f"{name}: as many amounts as terms are needed, at least one")
    if not all(isinstance(each, int | float) and np.isfinite(each) for each in primitive.amounts):
        raise InvalidInputError(f"{name}: amounts are {primitive.amounts}: finite numbers are needed")
    found = tuple(Term.parse(text, primitive.state) for text in primitive.terms)
    for text, term in zip(primitive.terms, found, strict=True):
        plain = isinstance(primitive, LinearTerms) and not term.factors[0].derivative if term.factors else True
        if term.degree != 1 or plain:
            raise InvalidInputError(f"{name}: term '{text:.60}' is not a derivative of one channel, as D*u_xx")
    return found


def _axes(terms: tuple[Term, ...]) -> int:
    """As many axes as the derivatives need."""
    return max((1 + AXES.index(letter) for term in terms for letter in term.factors[0].derivative), default=1)


def _along(grid: Grid, axis: int, order: int) -> Array:
    """Factors (batch, modes) of a derivative along an axis; the Nyquist mode has no odd one."""
    k = wavenumbers(grid, axis)
    if order % 2 == 0:
        return np.asarray((-1.0) ** (order // 2) * k**order)
    factor = 1j * (-1.0) ** (order // 2) * k**order
    if grid.shape[axis] % 2 == 0:
        factor[:, grid.shape[axis] // 2] = 0.0
    return np.asarray(factor)


def _example(seed: int, primitive: LinearTerms | CoupledLinearTerms) -> tuple[Array, Setting]:
    """A few Fourier modes in each channel on a small grid with uneven lengths; coefficients between ½ and 1."""
    rng, axes, batch = np.random.default_rng(seed), _axes(primitive.parsed), 3
    grid = Grid((16, 15, 9)[:axes], rng.uniform(0.8, 1.2, (batch, axes)), ("periodic",) * axes)
    channels = tuple(Channel(name) for name in primitive.state)
    u = np.full((batch, len(channels), *grid.shape), 0.5)
    for mode in ([1, 0, 1], [2, 1, 0], [1, -1, 1]):
        angle = rng.uniform(0, 2 * np.pi, (batch, len(channels)) + (1,) * axes)
        for k, x, length in zip(mode, grid.centres(), grid.lengths.T, strict=False):
            angle = angle + 2 * np.pi * k * (x / length.reshape((-1,) + (1,) * axes))[:, None]
        u = u + 0.1 * np.sin(angle)
    names = sorted({name for term in primitive.parsed for name in term.coefficients})
    return u, Setting(grid, channels, {name: rng.uniform(0.5, 1.0, batch) for name in names})


@dataclass(frozen=True)
class LinearTerms:
    """u_t = Σ_k a_k ∂^{m_k} u / ∂x_{i_k}^{m_k}: every mode times e^{τ Σ_k a_k (i k)^{m_k}}.

    ``terms[k]`` is a text such as ``D*u_xx`` or ``c*u_x``: coefficients, which a setting has by name, and one
    derivative along one axis; ``amounts[k]`` is a number before it. Exact, and fused with neighbours that share its
    transform. Odd derivatives need periodic axes; even ones alone also take walls and outflow (cosines). It is
    well-posed if the highest even derivatives damp: +u_xx, −u_xxxx.
    """

    state: tuple[str, ...] = ("u",)
    terms: tuple[str, ...] = ("c*u_x", "D*u_xx")
    amounts: tuple[float, ...] = (-1.0, 1.0)
    process: str = "linear terms"

    order: ClassVar[float] = EXACT
    conserves: ClassVar[frozenset[str]] = ALL_CHANNELS

    def __post_init__(self) -> None:
        if len(self.state) != 1:
            raise InvalidInputError("LinearTerms has one channel; CoupledLinearTerms takes several")
        mixed = [str(term) for term in self.parsed if len(set(term.factors[0].derivative)) > 1]
        if mixed:
            raise InvalidInputError(
                f"LinearTerms: '{mixed[0]}' is a derivative along two axes; CoupledLinearTerms can treat it"
            )

    @cached_property
    def parsed(self) -> tuple[Term, ...]:
        return _parsed(self)

    @property
    def advances(self) -> frozenset[str]:
        return frozenset({self.process})

    @property
    def boundaries(self) -> frozenset[str]:
        even = all(len(term.factors[0].derivative) % 2 == 0 for term in self.parsed)
        return BOUNDARIES if even else frozenset({"periodic"})

    @property
    def reversible(self) -> bool:
        """Without even derivatives modes only turn."""
        return all(len(term.factors[0].derivative) % 2 for term in self.parsed)

    def symbol(self, setting: Setting) -> Symbol:
        grid = setting.grid
        if grid.axes < _axes(self.parsed):
            raise IncompatibleError(f"{self.process}: its derivatives need {_axes(self.parsed)} axes, not {grid.axes}")
        rates: list[Array] = [np.zeros((setting.batch, n)) for n in grid.shape]
        for term, amount in zip(self.parsed, self.amounts, strict=True):
            letters = term.factors[0].derivative
            axis = AXES.index(letters[0])
            scale = (amount * term.amplitude(setting))[:, None]
            rates[axis] = rates[axis] + scale * _along(grid, axis, len(letters))
        return Symbol(transforms_of(grid), tuple(rates))

    def flow(self, u: Array, duration: Array, setting: Setting) -> Array:
        return flow_of(self.symbol(setting), u, checked_duration(duration, setting, self.reversible))

    def rate(self, u: Array, setting: Setting) -> Array:
        return rate_of(self.symbol(setting), u)

    def work(self, u: Array, duration: Array, setting: Setting) -> Array:
        return transform_work(setting)

    def example(self, seed: int) -> tuple[Array, Setting]:
        return _example(seed, self)


@dataclass(frozen=True)
class CoupledLinearTerms:
    """u_c' = Σ_k a_k ∂^{α_k} u_{j_k}: the modes of all channels together, û(τ) = exp(τ A(k)) û(0), A a small matrix.

    ``terms[k]`` is a text such as ``Du*u_xx`` or ``v_xx``, which acts on the channel ``targets[k]`` with the number
    ``amounts[k]``. Diffusion of several species is one pass; Schrödinger's equation i ψ_t = −½ ∇²ψ, written as
    u_t = −½ ∇²v, v_t = ½ ∇²u, is a rotation of each pair of modes, which keeps Σ u² + v². Terms without a derivative
    are possible too: u_t = v, v_t = c u_xx is a wave. Exact, on periodic boxes.
    """

    state: tuple[str, ...] = ("u", "v")
    targets: tuple[str, ...] = ("u", "v")
    terms: tuple[str, ...] = ("v_xx", "u_xx")
    amounts: tuple[float, ...] = (-0.5, 0.5)
    process: str = "linear terms"

    order: ClassVar[float] = EXACT
    boundaries: ClassVar[frozenset[str]] = frozenset({"periodic"})
    reversible: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if len(self.targets) != len(self.terms) or any(name not in self.state for name in self.targets):
            raise InvalidInputError(f"CoupledLinearTerms: a target for each term is needed, of {', '.join(self.state)}")
        _ = self.parsed

    @cached_property
    def parsed(self) -> tuple[Term, ...]:
        return _parsed(self)

    @property
    def advances(self) -> frozenset[str]:
        return frozenset({self.process})

    @property
    def conserves(self) -> frozenset[str]:
        """Channels of which all terms are derivatives."""
        pairs = zip(self.targets, self.parsed, strict=True)
        lost = {target for target, term in pairs if not term.factors[0].derivative}
        return frozenset(self.state) - lost if lost else ALL_CHANNELS

    @property
    def mixes_channels(self) -> bool:
        pairs = zip(self.targets, self.parsed, strict=True)
        return any(term.factors[0].channel != target for target, term in pairs)

    def mode_matrices(self, setting: Setting) -> Array:
        """A (batch, *modes, channel, channel), modes as ``rfftn`` orders them."""
        names, grid = [channel.name for channel in setting.channels], setting.grid
        missing = [name for name in self.state if name not in names]
        if missing or grid.axes < _axes(self.parsed):
            what = f"no channel '{missing[0]}'" if missing else f"{grid.axes} axes only"
            raise IncompatibleError(f"{self.process}: the state has {what}")
        half = (*grid.shape[:-1], grid.shape[-1] // 2 + 1)
        out = np.zeros((setting.batch, *half, len(names), len(names)), dtype=np.complex128)
        for target, term, amount in zip(self.targets, self.parsed, self.amounts, strict=True):
            factor = term.factors[0]
            value: Array = (amount * term.amplitude(setting)).reshape((-1,) + (1,) * grid.axes)
            for axis, order in enumerate(factor.orders(grid.axes)):
                if order:
                    view = [setting.batch] + [1] * grid.axes
                    view[1 + axis] = half[axis]
                    value = value * _along(grid, axis, order)[:, : half[axis]].reshape(view)
            out[..., names.index(target), names.index(factor.channel)] += value
        return out

    def _applied(self, u: Array, matrices: Array) -> Array:
        axes = tuple(range(2, u.ndim))
        modes = scipy.fft.rfftn(u.astype(np.float64, copy=False), axes=axes)
        out = np.zeros_like(modes)
        # channel by channel: the order of a sum in a matrix product may depend on the batch
        for target in range(u.shape[1]):
            for source in range(u.shape[1]):
                out[:, target] += matrices[..., target, source] * modes[:, source]
        return scipy.fft.irfftn(out, s=u.shape[2:], axes=axes).astype(u.dtype, copy=False)

    def flow(self, u: Array, duration: Array, setting: Setting) -> Array:
        tau = checked_duration(duration, setting).reshape((-1,) + (1,) * (setting.grid.axes + 2))
        return self._applied(u, exponential(tau * self.mode_matrices(setting), self.mixes_channels))

    def rate(self, u: Array, setting: Setting) -> Array:
        return self._applied(u, self.mode_matrices(setting))

    def work(self, u: Array, duration: Array, setting: Setting) -> Array:
        return transform_work(setting) + update_work(setting, len(setting.channels))

    def example(self, seed: int) -> tuple[Array, Setting]:
        return _example(seed, self)


def exponential(matrices: Array, mixed: bool = True) -> Array:
    """exp of (…, n, n) matrices, which are diagonal unless ``mixed``.

    For n = 2, m half the trace and q² = m² − det: e^m (cosh q + (A − m) sinh(q)/q)."""
    n = matrices.shape[-1]
    if n == 1:
        return np.exp(matrices)
    if not mixed:
        return np.exp(np.einsum("...ii->...i", matrices))[..., None] * np.eye(n)
    if n > 2:
        return _squared(matrices)
    mean = 0.5 * (matrices[..., 0, 0] + matrices[..., 1, 1])
    difference = 0.5 * (matrices[..., 0, 0] - matrices[..., 1, 1])
    square = difference**2 + matrices[..., 0, 1] * matrices[..., 1, 0]
    root = np.sqrt(square)
    small = np.abs(root) < SMALL
    # e^m is taken into both, so that damped modes do not overflow on their way
    grown, faded = np.exp(mean + root), np.exp(mean - root)
    cosh = 0.5 * (grown + faded)
    sinhc = np.where(
        small,
        np.exp(mean) * (1.0 + square / 6.0 + square**2 / 120.0),
        0.5 * (grown - faded) / np.where(small, 1.0, root),
    )
    out = sinhc[..., None, None] * matrices
    out[..., 0, 0] = cosh + sinhc * difference
    out[..., 1, 1] = cosh - sinhc * difference
    return np.asarray(out)


def _squared(matrices: Array) -> Array:
    """exp(A) = exp(A/2^s)^(2^s), with s of each matrix from its own norm, so that no matrix depends on the others."""
    norm = np.abs(matrices).sum(axis=-1).max(axis=-1)
    halvings = np.maximum(0, np.ceil(np.log2(np.maximum(norm, 1e-300))) + 1).astype(np.int64)[..., None, None]
    small = matrices / 2.0**halvings
    out = identity = np.broadcast_to(np.eye(matrices.shape[-1]), matrices.shape)
    for degree in range(TAYLOR, 0, -1):
        out = identity + small @ out / degree
    for count in range(int(halvings.max(initial=0))):
        out = np.where(count < halvings, out @ out, out)
    return np.asarray(out)
