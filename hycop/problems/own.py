"""Problems of one's own: ranges, initial states and a truth, for an equation and a dictionary.

The truth is a function of yours, or the program of your own primitives, refined until it hardly changes. The second is
no independent judge, and says so wherever the reference is named.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np

from hycop.boundary import EVERY
from hycop.dictionary import Dictionary
from hycop.errors import HyCOPError, InvalidInputError, LostSampleError, UnknownNameError
from hycop.execution import measure
from hycop.grid import Array, Grid
from hycop.pde import Equation
from hycop.primitive import boundaries_of
from hycop.problems.definition import InitialCondition, Problem, Settings, Split
from hycop.problems.draw import Draw, Intervals
from hycop.problems.initial_conditions import Profile, box_of
from hycop.query import Query, Setting
from hycop.references import Reference
from hycop.references.fourier import cell_averages, interpolate
from hycop.references.reference import RefinedReference
from hycop.schemes import Unsplit, splitting

Truth = Callable[[Array, Setting, Array], Array]
"""(initial point values (batch, channel, *fine_grid), the fine setting, durations (batch,)) → the states after them."""

Range = tuple[float, float] | Sequence[tuple[float, float]] | Profile
"""One interval, or several of which one is drawn; a profile for a coefficient that varies in space."""

SUBSTEPS = 8
"""Steps of a refined program, at first."""

MOST_SUBSTEPS = 2048
"""Steps at most: what has not converged then is taken as it is, if it is finite."""

UNSPLIT_TOLERANCE, SPLIT_TOLERANCE = 1e-6, 3e-3
"""Relative difference between the answers of n and of 2n steps, ETDRK4's or Strang's, with which 2n are enough. The
answer of the first has a fifteenth of that error; that of the second, extrapolated, some square of it."""

TOO_STIFF = "the truth is a refined program of your primitives: give a shorter time, or a solver of yours as truth="


@dataclass(frozen=True)
class OwnReference(RefinedReference):
    """What references of one's own have in common: point values on a fine grid. On a periodic box they are averaged
    over cells by their Fourier modes, else each stands for its cell."""

    @property
    def conserves(self) -> frozenset[str]:
        return frozenset()

    @property
    def order(self) -> float | None:
        return None

    def checked_setting(self, setting: Setting) -> Setting:
        return setting

    def fine_averages(self, solution: Array, setting_fine: Setting) -> Array:
        return cell_averages(solution, setting_fine) if _periodic(setting_fine.grid) else solution

    def fine_state(self, averages: Array, setting: Setting) -> Array:
        if _periodic(setting.grid):
            return interpolate(averages, setting, self.refinement)
        out = averages
        for axis in range(setting.grid.axes):
            out = np.repeat(out, self.refinement, axis=2 + axis)
        return out

    def work(self, u: Array, duration: Array, setting: Setting) -> Array:
        return np.full(setting.batch, float(u[:1].size) * self.refinement**setting.grid.axes)


@dataclass(frozen=True)
class RefinedProgram(OwnReference):
    """One's own primitives on a finer grid: unsplit (ETDRK4) if they allow it, else Strang's splitting, extrapolated to
    fourth order (Richardson): (4 u_{2n} − u_n)/3. Each sample takes ``substeps``, twice as many, and so on, until that
    hardly changes it. Not independent of what it judges."""

    dictionary: Dictionary = field(default_factory=lambda: Dictionary({}), repr=False)
    substeps: int = SUBSTEPS
    tolerance: float = 1.0  # in units of the one for splittings above; that of ETDRK4 goes with its square

    @property
    def known(self) -> frozenset[str]:  # type: ignore[override]
        return self.dictionary.processes

    @property
    def boundaries(self) -> frozenset[str]:
        return frozenset.intersection(*map(boundaries_of, self.dictionary.values()))

    def __str__(self) -> str:
        return f"RefinedProgram(own primitives, refinement={self.refinement})"

    def finer(self) -> RefinedProgram:
        substeps, tolerance = 2 * self.substeps, self.tolerance / 4.0  # so that it takes more steps in the end too
        return replace(self, refinement=2 * self.refinement, substeps=substeps, tolerance=tolerance)

    def advance(self, state: Array, duration: Array, setting_fine: Setting, out: Array) -> None:
        parts = Dictionary({k: v for k, v in self.dictionary.items() if v.advances <= self.processes})
        query = Query(state, setting_fine, duration)
        unsplit = Unsplit(4).runs(parts, setting_fine)
        most = UNSPLIT_TOLERANCE * self.tolerance**2 if unsplit else SPLIT_TOLERANCE * self.tolerance
        moving, count = np.arange(len(state)), self.substeps
        coarse = _solved(query, parts, unsplit, count)
        while moving.size:
            count *= 2
            fine = _solved(query.take(moving), parts, unsplit, count)
            with np.errstate(all="ignore"):
                axes = tuple(range(1, state.ndim))
                change = np.sqrt(((fine - coarse) ** 2).sum(axis=axes) / np.maximum((fine**2).sum(axis=axes), 1e-300))
                out[moving] = fine if unsplit else (4.0 * fine - coarse) / 3.0
            lost = ~np.isfinite(out[moving]).all(axis=axes)
            if count >= MOST_SUBSTEPS:
                if lost.any():
                    where = int(moving[lost][0])
                    raise LostSampleError(where, f": the state became NaN or infinite with {count} steps; {TOO_STIFF}")
                break
            more = lost | ~(change <= most)
            moving, coarse = moving[more], fine[more]
        out[...] = _still_kept(state, duration, out)


@dataclass(frozen=True)
class FunctionReference(OwnReference):
    """A truth that is a function: ``truth(u0, setting, duration)`` on a grid ``refinement`` times finer."""

    truth: Truth = field(default=lambda u, setting, duration: u, repr=False)
    all_processes: frozenset[str] = field(default=frozenset(), repr=False)
    boundaries: ClassVar[frozenset[str]] = EVERY  # it is yours to refuse some

    @property
    def known(self) -> frozenset[str]:  # type: ignore[override]
        return self.all_processes

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.processes != self.all_processes:
            part = "+".join(sorted(self.processes))
            raise InvalidInputError(f"the truth is a function for the whole equation: it cannot solve {part} alone")

    def __str__(self) -> str:
        return f"{getattr(self.truth, '__name__', 'function')}(refinement={self.refinement})"

    def finer(self) -> FunctionReference:
        return replace(self, refinement=2 * self.refinement)

    def advance(self, state: Array, duration: Array, setting_fine: Setting, out: Array) -> None:
        try:
            found = np.asarray(self.truth(state, setting_fine, duration), dtype=np.float64)
        except HyCOPError:
            raise
        except Exception as error:  # somebody else's code
            raise InvalidInputError(f"truth: the function (u0, setting, duration) raised {_reason(error)}") from error
        if found.shape != state.shape:
            raise InvalidInputError(f"truth: the function returned shape {found.shape}, not {state.shape}")
        out[...] = _still_kept(state, duration, found)


def own_problem(
    equation: Equation,
    dictionary: Dictionary | Mapping[str, Dictionary],
    *,
    initial: Mapping[str, object] | object,
    time: tuple[float, float],
    at: float | None = None,
    ranges: Mapping[str, Range] | None = None,
    ood: Mapping[str, Range] | None = None,
    shape: int | Sequence[int] = (32, 32),
    lengths: float | Sequence[float] = 1.0,
    boundary: str | Sequence[str] = "periodic",
    truth: Truth | None = None,
    refinement: int = 2,
    behaviour: str = "",
    settings: Settings | None = None,
) -> Problem:
    """A problem of one's own.

    ``ranges`` are intervals of the coefficients, ``ood`` those of a split out of distribution (by default there is
    none). A coefficient that varies in space has a profile (draw, box) → field instead; its primitive must know fields.
    ``initial`` is a family of initial states, or several by name. A family is a function (draw, setting) → point
    values (batch, channel, *grid), or a profile (``hycop.problems.initial_conditions``) for each channel by its name.
    Models learn times in ``time``; splits ``id`` and ``ood`` ask ``at`` one of them, by default half-way.
    ``truth(u0, setting, duration)`` is a solver of yours on a grid ``refinement`` times finer; without it a refined
    program of the dictionary is taken.
    """
    grid = Grid.box((shape,) if isinstance(shape, int) else tuple(shape), lengths, boundary)
    _check_truth(truth, refinement)
    named = dictionary if not isinstance(dictionary, Dictionary) else {"own": dictionary}
    low, high = _checked_time(time)
    when = 0.5 * (low + high) if at is None else _checked_time((at, at), "at")[0]
    families = _families(initial, equation)
    inside = _intervals(ranges or {}, equation)
    outside = {**inside, **_intervals(ood or {}, equation, complete=False)}
    times = {"train": (low, high), "id": (when, when), "trajectory": (low, 2 * high)}
    splits = {name: _split(inside, families, each) for name, each in times.items()}
    if ood is not None:
        splits["ood"] = _split(outside, families, (when, when))

    def reference(processes: frozenset[str], walls: tuple[str, ...], cells: tuple[int, ...]) -> Reference:
        if truth is not None and processes == frozenset(equation.processes):
            return FunctionReference(processes, refinement, truth=truth, all_processes=processes)
        return RefinedProgram(processes, refinement, dictionary=next(iter(named.values())))

    return Problem(
        name=equation.name,
        equation=equation,
        behaviour=behaviour or equation.formula,
        shape=grid.shape,
        lengths=tuple(grid.lengths[0].tolist()),
        boundary=grid.boundary,
        splits=splits,
        dictionaries=dict(named),
        reference=reference,
        settings=settings or Settings(),
        estimated=8,
    )


def _solved(query: Query, parts: Dictionary, unsplit: bool, steps: int) -> Array:
    """The states after so many steps, NaN or not."""
    scheme = Unsplit(4, steps) if unsplit else splitting("strang").with_substeps(steps)
    return measure(scheme.programs(query, parts), parts, query, strict=False).states


def _still_kept(state: Array, duration: Array, later: Array) -> Array:
    """The later states; samples of duration 0 as they were, to the last bit."""
    return np.where((duration == 0).reshape((-1,) + (1,) * (state.ndim - 1)), state, later)


def _periodic(grid: Grid) -> bool:
    return set(grid.boundary) == {"periodic"}


def _check_truth(truth: object, refinement: object) -> None:
    if truth is not None and not callable(truth):
        raise InvalidInputError(f"truth is {truth!r:.40}: give a function (u0, setting, duration) → states, or none")
    if isinstance(refinement, bool) or not isinstance(refinement, int) or refinement < 1:
        raise InvalidInputError(f"refinement is {refinement!r:.40}: a whole number, at least 1, is needed")


def _split(
    ranges: Mapping[str, Intervals | Profile], families: Mapping[str, InitialCondition], time: tuple[float, float]
) -> Split:
    fields = {name: each for name, each in ranges.items() if callable(each)}
    numbers = {name: each for name, each in ranges.items() if not callable(each)}
    return Split(numbers, families, time, fields=fields)


def _checked_time(time: tuple[float, float], name: str = "time") -> tuple[float, float]:
    try:
        low, high = (float(each) for each in time)
    except (TypeError, ValueError):
        low = high = 0.0
    if not (np.isfinite([low, high]).all() and 0 < low <= high):
        raise InvalidInputError(
            f"time is {time!r:.40}: give the shortest and the longest that models learn, as (0.1, 1.0)"
            if name == "time"
            else f"{name} is {time[0]!r:.40}: a positive time is needed"
        )
    return low, high


def _intervals(
    ranges: Mapping[str, Range], equation: Equation, complete: bool = True
) -> dict[str, Intervals | Profile]:
    """The intervals or the profile of each coefficient, in the order of the equation."""
    for name in ranges:
        if name not in equation.coefficients:
            raise UnknownNameError("coefficient", name, equation.coefficients, f"(of {equation.name})")
    out: dict[str, Intervals | Profile] = {}
    for name in equation.coefficients:
        if name not in ranges:
            if complete:
                raise InvalidInputError(
                    f"ranges: coefficient '{name}' of {equation.name} has none; add {name}=(low, high)"
                )
            continue
        if callable(given := ranges[name]):
            out[name] = given
            continue
        try:
            bounds = np.asarray(ranges[name], dtype=np.float64).reshape(-1, 2)
        except (TypeError, ValueError):
            bounds = np.full((1, 2), np.nan)
        if not np.isfinite(bounds).all() or (bounds[:, 0] > bounds[:, 1]).any():
            raise InvalidInputError(f"ranges: {name} is {ranges[name]!r:.60}: give (low, high), or a list of them")
        equation.coefficients[name].check(name, bounds.reshape(-1))
        out[name] = [(float(low), float(high)) for low, high in bounds]
    return out


def _families(initial: object, equation: Equation) -> dict[str, InitialCondition]:
    """Families by name; a single one, or profiles of the channels, are one family."""
    names = [channel.name for channel in equation.channels]
    if isinstance(initial, Mapping) and initial and not set(initial) <= set(names):
        return {str(name): _family(str(name), each, names) for name, each in initial.items()}
    return {"own": _family("own", initial, names)}


def _family(family: str, given: object, names: Sequence[str]) -> InitialCondition:
    if callable(given):
        return _checked_family(family, given)
    if not isinstance(given, Mapping) or set(given) != set(names) or not all(map(callable, given.values())):
        raise InvalidInputError(
            f"initial: give a function (draw, setting) → states, or a profile for each of {', '.join(names)}"
        )
    profiles: list[Profile] = [given[name] for name in names]

    def states(draw: Draw, setting: Setting) -> Array:
        box = box_of(setting.grid)
        shape = (setting.batch, *setting.grid.shape)
        return np.stack([np.broadcast_to(profile(draw, box), shape) for profile in profiles], axis=1)

    return states


def _reason(error: Exception) -> str:
    return " ".join(f"{type(error).__name__}: {error}".split())[:100]


def _checked_family(family: str, given: Callable[[Draw, Setting], Array]) -> InitialCondition:
    """A function of somebody's, whose mistakes are one line."""

    def states(draw: Draw, setting: Setting) -> Array:
        try:
            found = np.asarray(given(draw, setting), dtype=np.float64)
        except Exception as error:  # somebody else's code
            raise InvalidInputError(
                f"initial '{family}': the function (draw, setting) raised {_reason(error)}; a profile is given by its "
                "channel, as {'u': profile}"
            ) from error
        wanted = (setting.batch, len(setting.channels), *setting.grid.shape)
        if found.shape != wanted:
            raise InvalidInputError(f"initial '{family}': the function returned shape {found.shape}, not {wanted}")
        return found

    return states
