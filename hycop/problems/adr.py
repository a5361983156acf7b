"""Advection–diffusion–reaction with Fisher–KPP kinetics, and its parts.

    u_t + c·∇u = Σ_i D_i ∂_ii u + r u (1 − u)   on a periodic box

Split into advection, diffusion and reaction. Advection and diffusion commute; reaction commutes with advection alone.
Péclet number c L/D and Damköhler number r L/c vary through the parameters; solutions in [0, 1] stay there, fronts
travel at c + 2√(r D).

Ranges, families and times are those of the paper's appendix (2D: ``adr2d``, and its source task ``ad2d``; 1D:
``ad1d``). ``adr3d`` is ours: ``adr2d`` with a third axis, and twice the widths of what is narrow, so that 48 cells
along an axis resolve the truth. Where the paper names a family without numbers, the widths below are this project's
choice; out of distribution, either interval of a parameter is drawn with equal chance. Query times: fixed for the
splits ``id`` and ``ood``, a range for ``train``; ``trajectory`` spans the snapshots of long-horizon tests (T/10 to 2T;
0.02 to 0.4 for ``adr2d``). The single-process problems (``advection2d``, …) use the same ranges.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil, prod

from hycop.boundary import PLAIN
from hycop.dictionary import Dictionary
from hycop.grid import AXES
from hycop.pde import Coefficient, Equation, Kind, per_axis
from hycop.primitive import Primitive
from hycop.primitives import (
    ExactLogistic,
    FiniteVolumeDiffusion,
    MusclAdvection,
    Rk4Logistic,
    SpectralAdvection,
    SpectralDiffusion,
    UpwindAdvection,
)
from hycop.problems.definition import ESTIMATED, Problem, Settings, Split
from hycop.problems.draw import Intervals
from hycop.problems.initial_conditions import (
    Bump,
    Bumps,
    FourierSeries,
    Near,
    Profile,
    Ring,
    Sigmoid,
    Step,
    Steps,
    Wave,
    scalar,
)
from hycop.query import Channel
from hycop.references import FiniteVolumeReference, FourierReference, Reference, VariableReference

KINDS: Mapping[str, Kind] = {"advection": "velocity", "diffusion": "diffusivity"}
LETTERS = {"advection": "c", "diffusion": "D", "reaction": "r"}
TERMS = {"advection": "c·∇u", "diffusion": "Σ D_i ∂_ii u", "reaction": "r u (1 − u)"}

SOLVERS: Mapping[str, Mapping[str, Primitive]] = {
    "spectral": {
        "advection": SpectralAdvection(),
        "diffusion": SpectralDiffusion(),
        "reaction": ExactLogistic(),
    },
    "muscl": {
        "advection": MusclAdvection(),
        "diffusion": FiniteVolumeDiffusion(),
        "reaction": ExactLogistic(),
    },
    "upwind": {
        "advection": UpwindAdvection(cfl=0.5),
        "diffusion": FiniteVolumeDiffusion(),
        "reaction": Rk4Logistic(),
    },
}

PARAMETERS: Mapping[str, Mapping[str, Intervals]] = {
    "id": {"c": [(0.2, 1.5)], "D": [(0.05, 0.2)], "r": [(0.1, 1.0)]},
    "ood": {
        "c": [(0.1, 0.2), (1.5, 2.5)],
        "D": [(0.01, 0.05), (0.2, 0.4)],
        "r": [(0.05, 0.1), (1.0, 2.5)],
    },
}


def _families(finest: float) -> Mapping[str, Mapping[str, Profile]]:
    """The initial states of more than one dimension; ``finest`` scales the widths of what is narrow."""

    def scaled(low: float, high: float) -> tuple[float, float]:
        return finest * low, finest * high

    return {
        "id": {
            "gaussian": Bump(scaled(0.05, 0.1)),
            "smoothed step": Step(scaled(0.02, 0.05)),
            "ring": Ring(scaled(0.03, 0.06)),
            "diagonal stripes": Wave(1, 3),
            "multi-gaussian": Bumps(scaled(0.05, 0.1)),
            "sigmoid": Sigmoid(),
        },
        "ood": {
            "narrow gaussian": Bump(scaled(0.02, 0.04)),
            "wide gaussian": Bump((0.25, 0.4)),
            "near saturation": Near(0.9, 0.1),
            "near extinction": Near(0.0, 0.05),
            "high-frequency": Wave(4, 6),
            "sharp front": Step(scaled(0.012, 0.02)),
        },
    }


PARAMETERS_1D: Mapping[str, Mapping[str, Intervals]] = {
    "id": {"c": [(0.5, 3.0)], "D": [(0.01, 0.5)]},
    "ood": {"c": [(0.1, 0.5), (3.0, 5.0)], "D": [(0.001, 0.01), (0.5, 1.0)]},
}
INITIAL_2D, INITIAL_3D = _families(1.0), _families(2.0)
STEP_1D = (0.002, 0.002)  # an eighth of a cell of the 64: a step on any grid that is asked, yet smooth on the truth's
INITIAL_1D: Mapping[str, Mapping[str, Profile]] = {
    "id": {
        "gaussian": Bump((0.03, 0.1)),
        "step": Step(STEP_1D),
        "sine": Wave(1, 4),
        "multi-gaussian": Bumps((0.03, 0.1)),
        "fourier series": FourierSeries(),
    },
    "ood": {
        "narrow gaussian": Bump((0.01, 0.02)),
        "wide gaussian": Bump((0.15, 0.3)),
        "high-frequency": Wave(5, 10),
        "multi-step": Steps(STEP_1D),
    },
}
FINEST = {1: 2048, 2: 128, 3: 48}
FINE_CELLS = 2**20
FINEST_WITH_ENDS = {1: 512, 2: 128, 3: 32}  # the finite-volume truth costs the cube of the cells along an axis
LEAST_REFINEMENT = {1: 4, 2: 4, 3: 2}  # in 3D each doubling costs eight times the memory
ESTIMATED_3D = 1
SETTINGS_3D: Settings = {"shape": (16, 16, 16), "target": "limit"}
"""Training on 16³, where a sample costs an eighth: features do not depend on the grid, and programs that are fitted to
the limit of the dictionary do not make up for an error of the coarse grid."""

PRESETS_3D: Mapping[str, Settings] = {
    "quick": {"samples": 64, "tries": 2, "rounds": 2},
    "laptop": {"samples": 128, "validation": 200, "tries": 3},
}


def _reference(processes: frozenset[str], boundary: tuple[str, ...], shape: tuple[int, ...]) -> Reference:
    """At least four times finer than asked (twice in 3D), and fine enough for the initial states."""
    closed = set(boundary) == {"periodic"}
    cells = (FINEST if closed else FINEST_WITH_ENDS)[len(shape)]
    # a thin grid is not refined beyond what a sample may hold
    room = int((FINE_CELLS / prod(shape)) ** (1 / len(shape)))
    refinement = max(LEAST_REFINEMENT[len(shape)], min(ceil(cells / min(shape)), room))
    if not set(boundary) <= PLAIN:
        return VariableReference(processes, refinement)
    return FourierReference(processes, refinement) if closed else FiniteVolumeReference(processes, refinement)


def _features(axes: int, processes: tuple[str, ...]) -> tuple[str, ...]:
    """The paper's (Péclet numbers, Damköhler number, variance, gradient variances, time), made dimensionless."""
    letters, have = AXES[:axes], set(processes)
    names: list[str] = []
    if {"advection", "diffusion"} <= have:
        names += [f"peclet_{letter}" for letter in letters]
    if {"advection", "reaction"} <= have:
        names += ["damkohler"]
    if "diffusion" in have:
        names += [f"fourier_{letter}" for letter in letters]
    elif "advection" in have:
        names += [f"courant_{letter}" for letter in letters]
    if "reaction" in have:
        names += ["growth", "level"]
    return (*names, "variation", *(f"gradient_{letter}" for letter in letters))


def _equation(name: str, axes: int, processes: tuple[str, ...]) -> Equation:
    coefficients: dict[str, Coefficient] = {}
    for process in processes:
        if process == "reaction":
            coefficients["r"] = Coefficient("rate")
        else:
            least = 0.0 if process == "diffusion" else None
            coefficients |= per_axis(LETTERS[process], KINDS[process], axes, least)
    left = ["u_t"] + [TERMS[process] for process in processes if process == "advection"]
    right = [TERMS[process] for process in processes if process != "advection"]
    return Equation(
        name,
        processes,
        (Channel("u"),),
        coefficients,
        features=_features(axes, processes),
        gain_features=("cell_peclet",) if {"advection", "diffusion"} <= set(processes) else (),
        formula=f"{' + '.join(left)} = {' + '.join(right) or '0'}",
    )


def _problem(name: str, axes: int, processes: tuple[str, ...], train: tuple[float, float], horizon: float) -> Problem:
    equation = _equation(name, axes, processes)
    parameters = PARAMETERS_1D if axes == 1 else PARAMETERS
    initial = {1: INITIAL_1D, 2: INITIAL_2D, 3: INITIAL_3D}[axes]

    def split(kind: str, time: tuple[float, float]) -> Split:
        ranges = {name: parameters[kind][name[0]] for name in equation.coefficients}
        return Split(ranges, {family: scalar(profile) for family, profile in initial[kind].items()}, time)

    return Problem(
        name=name,
        equation=equation,
        behaviour=f"scalar u in [0, 1]; splits id and ood at T={horizon:g}, train at T in [{train[0]:g}, {train[1]:g}]",
        shape=(64,) if axes == 1 else (32,) * axes,
        lengths=(10.0,) if axes == 1 else (1.0,) * axes,
        boundary=("periodic",) * axes,
        splits={
            "train": split("id", train),
            "id": split("id", (horizon, horizon)),
            "ood": split("ood", (horizon, horizon)),
            "trajectory": split("id", (horizon / 10, 2 * horizon)),
        },
        dictionaries={
            kind: Dictionary({process: solvers[process] for process in processes}) for kind, solvers in SOLVERS.items()
        },
        reference=_reference,
        settings=SETTINGS_3D if axes == 3 else {},
        presets=PRESETS_3D if axes == 3 else {},
        estimated=ESTIMATED_3D if axes == 3 else ESTIMATED,
    )


PROBLEMS = (
    _problem("adr2d", 2, ("advection", "diffusion", "reaction"), (0.1, 0.35), 0.2),
    _problem("adr3d", 3, ("advection", "diffusion", "reaction"), (0.1, 0.35), 0.2),
    _problem("ad2d", 2, ("advection", "diffusion"), (0.02, 0.2), 0.2),
    _problem("ad1d", 1, ("advection", "diffusion"), (0.1, 1.0), 0.5),
    _problem("advection2d", 2, ("advection",), (0.02, 0.2), 0.2),
    _problem("diffusion2d", 2, ("diffusion",), (0.02, 0.2), 0.2),
    _problem("reaction2d", 2, ("reaction",), (0.02, 0.2), 0.2),
    _problem("advection1d", 1, ("advection",), (0.1, 1.0), 0.5),
    _problem("diffusion1d", 1, ("diffusion",), (0.1, 1.0), 0.5),
)
