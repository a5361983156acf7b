"""The contract of a primitive: a solver that advances one or more processes for any duration."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import lru_cache
from math import inf, isfinite, log2
from numbers import Real
from typing import Any, Protocol, runtime_checkable

import numpy as np

from hycop.boundary import kinds_of
from hycop.errors import IncompatibleError, InvalidInputError
from hycop.grid import AXES, BOUNDARIES, FEW, Array, Grid, changed
from hycop.identity import described
from hycop.kernels.spectral import evolve, weigh_modes
from hycop.query import Setting

EXACT = inf
"""The order of a primitive without a discretisation error of its own."""

ALL_CHANNELS: frozenset[str] = frozenset({"*"})
"""Value of ``conserves`` that stands for every channel of the state."""

VERY_SHORT = 1e-100
"""A duration that takes one sub-step, whatever the units."""


@runtime_checkable
class Primitive(Protocol):
    """Advances the processes it names: u(t) → u(t + duration), one duration per sample.

    A primitive may also declare the following; the default follows the semicolon:

    - ``conserves``: channels whose total it keeps on closed (periodic, wall) boxes, or ``ALL_CHANNELS``; none
    - ``boundaries``: the boundaries it can handle; periodic, wall and outflow. ``hycop.boundary.EVERY`` adds dirichlet
      and neumann values, and ends that differ
    - ``reversible``: whether it takes negative durations; False
    - ``fewest_cells``: how many cells its stencil needs along each axis; 1
    - ``symbol(setting)``: its rate in a transform space; ``run`` then fuses neighbours with the same transforms
    - ``mode_matrices(setting)``: its rate on a periodic box as a matrix for every mode, (batch, *modes, channel,
      channel) in the order of ``rfftn``; exponential methods then integrate it exactly. ``mixes_channels``: False if
      the matrices are diagonal for all coefficients; True
    - ``growth(setting)``: its rate r (batch,), if it solves u' = r u (1 − u) exactly; ``run`` then keeps small periodic
      boxes in cache through whole programs of such primitives and those with a symbol
    - ``rate(u, setting)``: du/dt of its process at u, in its own discretisation of space: flow(u, τ) ≈ u + τ·rate(u)
    - ``quadratic(setting)``: its rate on a periodic line as −i·slope·F[½(F⁻¹ to·û)²] of modes û without aliases, by
      ``to`` and ``slope``; exponential methods then stay in modes
    - ``rate_order``: the order of that discretisation; ``order``
    - ``fixed_steps``: whether its flow takes equally many steps for every duration, so that two flows in a row are not
      one of twice the duration; ``run`` then does not merge them. False
    - ``stages``: how many evaluations of ``rate`` the work of a very short flow stands for; 1
    - ``arrays()``: its weights, name → NumPy array, and ``with_arrays(arrays)``, which returns the same primitive with
      other weights; a model folder stores them beside the options; no weights
    - ``batch_dependent``: whether the last digits of a sample may depend on the rest of the batch, as those of a
      network on a GPU do; False
    - ``outside(u, setting)``: which samples (batch,) lie outside what it was trained on, whatever the duration. A
      policy composes other primitives there if it can; where it cannot, the answer is flagged. None
    - ``scheme_version``: raised by one whenever the numbers that the scheme gives change; 1
    - ``foreign``: whether its flow is code from outside, whose failures raise ``ForeignError``; False
    - ``runs_code``: whether its options start code; a model folder then names it, and ``load`` must be given it. False
    - ``example(seed)``: a state and a setting on which ``hycop check`` may try it

    ``order`` is the order of convergence, ``EXACT``, or None for what has none (a network, a learned closure).
    ``fingerprint`` tells primitives apart by their class, options, arrays and version.
    """

    @property
    def advances(self) -> frozenset[str]: ...

    @property
    def order(self) -> float | None: ...

    def flow(self, u: Array, duration: Array, setting: Setting) -> Array: ...

    def work(self, u: Array, duration: Array, setting: Setting) -> Array: ...


def fingerprint(primitive: object) -> str:
    """The identity of a primitive as 64 hexadecimal digits: SHA-256 of its class, options, arrays and version.

    Options are the constructor fields of a dataclass, or the attributes without a leading underscore of any other
    object. Arrays are those of ``arrays()``, the version is ``scheme_version``. The fingerprint is equal in every
    process and on every machine, and changes if any of these changes. Options may be numbers, text, arrays,
    collections, functions, other primitives, or objects made of these. List and tuple count as the same, as do 1 and
    1.0, and the order of a mapping does not matter. A function counts by its name and module; a lambda or local
    function by its bytecode and closure, which may change with the version of Python. An object without readable parts
    (an open file, a lock) counts by its class alone, so hold weights in ``arrays()``.
    """
    return described(primitive).hex()


def boundaries_of(primitive: Primitive) -> frozenset[str]:
    return getattr(primitive, "boundaries", BOUNDARIES)


def is_reversible(primitive: Primitive) -> bool:
    return bool(getattr(primitive, "reversible", False))


def conserved_channels(primitive: Primitive, setting: Setting) -> tuple[int, ...]:
    """Indices of the channels whose total the primitive keeps."""
    kept: frozenset[str] = getattr(primitive, "conserves", frozenset())
    return tuple(i for i, channel in enumerate(setting.channels) if kept == ALL_CHANNELS or channel.name in kept)


def depends_on_batch(primitive: Primitive) -> bool:
    """Whether the last digits of a sample may depend on the other samples of its batch."""
    return bool(getattr(primitive, "batch_dependent", False))


def order_of(primitive: Primitive) -> float:
    """The order as a number to compare with others: 0 for a primitive that has none."""
    return 0.0 if primitive.order is None else float(primitive.order)


def order_of_rate(primitive: Primitive) -> float | None:
    """The order in space of the rate, which may be higher than that of the flow."""
    order: float | None = getattr(primitive, "rate_order", primitive.order)
    return order


def work_of_rate(primitive: Primitive, u: Array, setting: Setting) -> Array:
    """Work (batch,) of one evaluation of the rate: its share of a very short flow."""
    return primitive.work(u, np.full(setting.batch, VERY_SHORT), setting) / int(getattr(primitive, "stages", 1))


def is_linear(primitive: object) -> bool:
    """Whether exponential methods integrate it exactly: it has a symbol or a matrix for every mode."""
    return hasattr(primitive, "symbol") or hasattr(primitive, "mode_matrices")


def has_fixed_steps(primitive: Primitive) -> bool:
    """Whether a flow takes equally many steps for every duration, so that flows in a row are not to be merged."""
    return bool(getattr(primitive, "fixed_steps", False))


def outside_of(primitive: Primitive, u: Array, setting: Setting) -> Array | None:
    """Which samples (batch,) lie outside what a primitive was trained on; None for one that was not trained."""
    ask = getattr(primitive, "outside", None)
    return None if ask is None else np.asarray(ask(u, setting), dtype=bool)


def bears_vacuum(primitive: Primitive) -> bool:
    """Whether the primitive can handle a state that is empty somewhere (zero depth or density)."""
    return bool(getattr(primitive, "vacuum", False))


def checked_boundaries(name: str, primitive: Primitive, grid: Grid, others: Sequence[str] = ()) -> None:
    """Refuses a grid with a boundary that the primitive cannot handle; ``others`` are names of primitives that can."""
    known = boundaries_of(primitive)
    for axis, boundary in zip(AXES, grid.boundary, strict=False):
        if not kinds_of(boundary) <= known:
            instead = f"; use one that can: {', '.join(others)}" if others else ""
            raise IncompatibleError(
                f"primitive '{name}' cannot handle the {boundary} boundary along {axis} "
                f"(it knows {', '.join(sorted(known))}){instead}"
            )


def checked_duration(duration: object, setting: Setting, reversible: bool = False) -> Array:
    """The durations as (batch,): finite, and not negative unless the primitive is reversible."""
    out = np.asarray(duration, dtype=np.float64)
    if out.ndim == 0:
        out = np.full(setting.batch, float(out))
    if out.shape != (setting.batch,):
        raise InvalidInputError(f"duration has shape {out.shape}: a number or ({setting.batch},) is needed")
    if out.size <= FEW and all(isfinite(tau) and (reversible or tau >= 0) for tau in out.tolist()):
        return out
    fine = np.isfinite(out) if reversible else np.isfinite(out) & (out >= 0)
    if not fine.all():
        sample = int(np.flatnonzero(~fine)[0])
        need = "finite" if reversible else "finite and not negative"
        raise InvalidInputError(f"duration is {out[sample]} for sample {sample}: it must be {need}")
    return out


@dataclass(frozen=True, eq=False)
class Symbol:
    """A process that is diagonal after a transform: û(t + τ) = exp(τ·Σ_axis rate_axis(k_axis))·û(t).

    ``transforms`` names the transform of each axis, ``fourier`` or ``cosine``; ``rates`` holds for each axis the
    rates (batch, modes), Fourier modes in the order of ``scipy.fft.fftfreq``; as the process is real, the rate of −k is
    the conjugate of that of k. Symbols of equal transforms commute.
    """

    transforms: tuple[str, ...]
    rates: tuple[Array, ...]

    def __add__(self, other: Symbol) -> Symbol:
        return Symbol(self.transforms, tuple(a + b for a, b in zip(self.rates, other.rates, strict=True)))


SYMBOLS, MOST_KEPT = 64, 2**13
"""How many symbols are kept for settings that come again, each of at most so many modes, summed over samples and axes:
10 MB in all."""


class Content:
    """A setting that equals every other one of the same content."""

    def __init__(self, setting: Setting) -> None:
        self.setting, grid = setting, setting.grid
        values = [grid.lengths.tobytes(), *(value.tobytes() for value in setting.params.values())]
        self.key = grid.shape, grid.boundary, setting.channels, *setting.params, *values

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Content) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)

    def copied(self) -> Setting:
        """The setting with arrays of its own, into which no caller writes."""
        setting = self.setting
        grid = changed(setting.grid, lengths=setting.grid.lengths.copy())
        return changed(setting, grid=grid, params={name: value.copy() for name, value in setting.params.items()})


def may_be_kept(primitive: object, setting: Setting) -> bool:
    """Whether what follows from a primitive in a setting may be kept for later: the setting is small and has no fields,
    and the primitive is a value, so that what equals it is the same, now and later."""
    return is_small(setting) and is_value(primitive)


def is_small(setting: Setting) -> bool:
    """Whether a setting is small and has no fields, so that what follows from it may be kept."""
    return setting.batch * sum(setting.grid.shape) <= MOST_KEPT and not setting.fields


def is_value(thing: object) -> bool:
    """Whether a thing is a number, a text, a tuple of values, or a frozen dataclass of values. A class that only
    inherits from such a dataclass may hold more than its fields, which do not count when it is compared."""
    made = vars(type(thing)).get("__dataclass_params__")
    if made is None:
        if isinstance(thing, tuple | frozenset):
            return all(map(is_value, thing))
        return thing is None or isinstance(thing, str | Real)
    if not (made.frozen and made.eq):
        return False
    try:
        return _has_values(thing)
    except TypeError:  # what has no hash is no value
        return False


@lru_cache(maxsize=256)
def _has_values(thing: Any) -> bool:
    return all(field.compare and is_value(getattr(thing, field.name)) for field in fields(thing))


def symbol_of(primitive: Any, setting: Setting) -> Symbol:
    """The symbol of a primitive that has one, made before if possible. Do not write into its arrays."""
    if may_be_kept(primitive, setting):
        return _kept(primitive, Content(setting))
    made: Symbol = primitive.symbol(setting)
    return made


@lru_cache(maxsize=SYMBOLS)
def _kept(primitive: Any, content: Content) -> Symbol:
    made: Symbol = primitive.symbol(content.copied())
    return made


def transforms_of(grid: Grid) -> tuple[str, ...]:
    """The transform whose basis fits each axis: Fourier if periodic, else cosines (zero gradient at both ends)."""
    return tuple("fourier" if boundary == "periodic" else "cosine" for boundary in grid.boundary)


def mode_numbers(grid: Grid, axis: int) -> Array:
    """Mode numbers j along an axis, 0, 1, …, −1 for Fourier and 0, 1, … for cosines; read-only."""
    return _mode_numbers(grid.shape[axis], grid.boundary[axis] == "periodic")


@lru_cache(maxsize=64)
def _mode_numbers(n: int, periodic: bool) -> Array:
    numbers = np.fft.fftfreq(n, 1.0 / n) if periodic else np.arange(n, dtype=np.float64)
    numbers.setflags(write=False)
    return numbers


def wavenumbers(grid: Grid, axis: int) -> Array:
    """Wavenumbers k (batch, modes) along an axis: 2πj/L for Fourier modes, πj/L for cosines."""
    turn = 2.0 * np.pi if grid.boundary[axis] == "periodic" else np.pi
    return turn * mode_numbers(grid, axis)[None, :] / grid.lengths[:, axis : axis + 1]


def flow_of(symbol: Symbol, u: Array, duration: Array) -> Array:
    """The flow that follows from a symbol."""
    return evolve(u, symbol.transforms, tuple(rate[:, None] for rate in symbol.rates), duration[:, None])


def rate_of(symbol: Symbol, u: Array) -> Array:
    """The rate du/dt that follows from a symbol: each mode times Σ_axis rate_axis."""
    return weigh_modes(u, symbol.transforms, symbol.rates)


def checked_cfl(cfl: object, largest: float) -> None:
    """Refuses a Courant number beyond the limit of stability of a scheme."""
    if isinstance(cfl, bool) or not isinstance(cfl, Real) or not 0.0 < float(cfl) <= largest:
        raise InvalidInputError(f"cfl is {cfl}: it must be positive and at most {largest:g} for stability")


def fewest_cells(primitive: object) -> int:
    """Cells that the primitive needs along each axis."""
    return int(getattr(primitive, "fewest_cells", 1))


def checked_cells(primitive: object, setting: Setting) -> None:
    """Refuses a grid with fewer cells along an axis than the stencil of the primitive has."""
    least = fewest_cells(primitive)
    for axis, cells in zip(AXES, setting.grid.shape, strict=False):
        if cells < least:
            raise InvalidInputError(
                f"{type(primitive).__name__} needs at least {least} cells along each axis: the grid has {cells} "
                f"along {axis}; use a finer grid"
            )


def transform_work(setting: Setting) -> Array:
    """Work of one transform pair per sample: log2(cells) for each channel-cell."""
    cells = setting.grid.cells
    return np.full(setting.batch, len(setting.channels) * cells * max(1.0, log2(cells)))


MOST_SUB_STEPS = 100_000_000
"""Most sub-steps for one duration: more means wrong units or a wrong duration."""


def sub_steps(wanted: Array) -> Array:
    """The numbers of sub-steps that stability needs, rounded up."""
    most = float(np.max(wanted, initial=0.0))
    if not most <= MOST_SUB_STEPS:
        raise InvalidInputError(
            f"a duration needs {most:.3g} sub-steps, at most {MOST_SUB_STEPS} are taken; make it shorter"
        )
    return np.ceil(wanted).astype(np.int64)


def update_work(setting: Setting, updates: float | Array) -> Array:
    """Work of a number of sweeps over all channel-cells, per sample."""
    per_sweep = float(len(setting.channels) * setting.grid.cells)
    return np.full(setting.batch, np.asarray(updates, dtype=np.float64) * per_sweep)
