"""Shallow water over a flat bed, in one and two dimensions.

    h_t + ∇·m = 0,   m_t + ∇·(m⊗m/h) + ∇(g h²/2) = 0   on a periodic box [0, 10] or [0, 10]²

with the depth h and the momentum m = (hu, hv). Split into gravity waves, {h_t + ∇·m = 0, m_t + ∇(g h²/2) = 0}, and
momentum advection, {h_t = 0, m_t + ∇·(m⊗m/h) = 0}: both are hyperbolic, while transport without pressure is not.
The water is about one deep, so waves travel at some 3; steep ones break. Mass is kept, and momentum but for walls.

Gravity, families and query times are those of the paper's appendix (2D: ``swe2d``, 1D: ``swe1d``); depths, speeds and
widths are this project's choice. In distribution the flow is subcritical (Froude number below 0.3) and smooth within
the query time; out of distribution it is near- or supercritical, or steep, and shocks form. Where the box must be
periodic, a dam, jump or rarefaction comes with its counterpart at the other end of a plateau. ``trajectory``
spans the snapshots of long-horizon tests (0.05 to 1; the paper gives them for 2D).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from math import ceil, prod

import numpy as np

from hycop.channels import water_channels
from hycop.dictionary import Dictionary
from hycop.grid import AXES, Array
from hycop.pde import Coefficient, Equation
from hycop.primitives import GravityWave, MomentumAdvection, ShallowWater
from hycop.primitives.shallow_water import Reconstruction
from hycop.problems.definition import InitialCondition, Problem, Settings, Split
from hycop.problems.draw import Draw, Intervals
from hycop.problems.initial_conditions import Box, Bump, Profile, Sigmoid, Step, Wave, box_of
from hycop.query import Setting
from hycop.references import Reference, ShallowWaterReference

LENGTH = 10.0
HORIZON = 0.3
TRAIN = (0.15, 0.4)
SNAPSHOTS = (0.05, 1.0)
GRAVITY: Mapping[str, Intervals] = {"id": [(9.0, 11.0)], "ood": [(7.0, 9.0), (11.0, 13.0)]}
FINEST = {1: 1024, 2: 128}
# waves bound the steps inside a primitive, so twice the steps of a program cost a quarter more work, not twice
SETTINGS: Settings = {"refinement": 2, "max_steps": 17, "substeps": 2}
# a program in the plane costs tens of milliseconds, so its composition is learned where that is cheap
PLANE: Settings = {**SETTINGS, "learning_refinement": 1, "target": "limit"}
FEW: Settings = {"tries": 1, "patterns": 1, "rounds": 2}
PRESETS: Mapping[int, Mapping[str, Settings]] = {
    1: {
        "quick": {**FEW, "samples": 64, "iterations": 5},
        "laptop": {"samples": 128, "validation": 400, "tries": 1, "iterations": 8},
    },
    2: {
        "quick": {**FEW, "samples": 32, "rounds": 1, "iterations": 4},
        "laptop": {**FEW, "samples": 64, "validation": 200, "iterations": 6, "refinement": 3},
    },
}
FINE_CELLS = 2**20
SINGLE_STAGE_CFL = 0.9


def _over(values: Array, box: Box) -> Array:
    """One number per sample, ready to broadcast over the box."""
    return values.reshape((-1,) + (1,) * len(box))


def _state(depth: Array, velocity: Sequence[Array | float]) -> Array:
    """(batch, channel, *grid) from a depth and the velocity along each axis."""
    return np.stack([depth, *(np.broadcast_to(depth * along, depth.shape) for along in velocity)], axis=1)


def _family(build: Callable[[Draw, Box, Array], Array]) -> InitialCondition:
    """A family from a function of the draw, the box coordinates and √g, the speed of waves on water one deep."""

    def condition(draw: Draw, setting: Setting) -> Array:
        box = box_of(setting.grid)
        return build(draw, box, _over(np.sqrt(setting.param("g")), box))

    return condition


def _still(profile: Profile, height: float) -> InitialCondition:
    """h = 1 + height·profile, at rest."""
    return _family(lambda draw, box, wave: _state(1 + height * profile(draw, box), [0.0] * len(box)))


def _pulse(draw: Draw, box: Box, wave: Array, widths: tuple[float, float], height: float) -> Array:
    """A Gaussian pulse of the depth, which moves along with a velocity up to 0.3."""
    pulse = Bump(widths)(draw, box)
    return _state(1 + height * pulse, [_over(draw.uniform(-0.3, 0.3), box) * pulse for _ in box])


def _ripples(draw: Draw, box: Box) -> Array:
    """The mean of three waves, in [−1, 1]."""
    total: Array = np.zeros(1)
    for _ in range(3):
        total = total + (2 * Wave(1, 3)(draw, box) - 1)
    return total / 3


def _fourier(draw: Draw, box: Box, wave: Array) -> Array:
    """A superposition of waves in the depth and in each velocity."""
    return _state(1 + 0.2 * _ripples(draw, box), [0.4 * _ripples(draw, box) for _ in box])


def _moving_step(draw: Draw, box: Box, wave: Array) -> Array:
    """A smooth step of the depth whose plateau moves, at up to 0.5."""
    step = Step((0.05, 0.08))(draw, box)
    return _state(1 + 0.4 * step, [_over(draw.uniform(-0.5, 0.5), box) * step for _ in box])


def _rarefaction(draw: Draw, box: Box, wave: Array) -> Array:
    """A simple wave, u = 2(√(g h) − √g): one side of its plateau spreads, the other steepens."""
    depth = 1 + 0.3 * Step((0.04, 0.06))(draw, box)
    return _state(depth, [2 * wave * (np.sqrt(depth) - 1)])


def _distance(draw: Draw, box: Box) -> tuple[Array, list[Array]]:
    """Squared distance to a random centre, with sin(πd)/π for d, and half its derivatives."""
    total, parts = np.zeros(1), []
    for s in box:
        away = np.pi * (s - _over(draw.uniform(0, 1), box))
        total = total + (np.sin(away) / np.pi) ** 2
        parts.append(np.sin(away) * np.cos(away) / np.pi)
    return total, parts


def _vortex(draw: Draw, box: Box, wave: Array, speeds: tuple[float, float]) -> Array:
    """A vortex of either sense with its fastest speed at the radius w, its depth in balance with the rotation.

    The stream function is a Gaussian, v = V (r/w) e^{½ − r²/2w²}, and g h_r = v²/r.
    """
    distance, (x, y) = _distance(draw, box)
    width = _over(draw.uniform(0.08, 0.12), box)
    speed = _over(draw.uniform(*speeds) * np.where(draw.integer(0, 1) == 0, -1.0, 1.0), box)
    swirl = speed / width * np.exp(0.5 - distance / (2 * width**2))
    depth = 1 - 0.5 * (speed / wave) ** 2 * np.exp(1 - distance / width**2)
    return _state(depth, [-swirl * y, swirl * x])


def _radial_dam(draw: Draw, box: Box, wave: Array, heights: tuple[float, float], speed: float) -> Array:
    """A round plateau behind a tanh front 0.025 to 0.04 thick; its water moves at up to ``speed`` along each axis."""
    distance, _ = _distance(draw, box)
    radius, width = _over(draw.uniform(0.15, 0.25), box), _over(draw.uniform(0.025, 0.04), box)
    inside = 0.5 * (1 - np.tanh((distance - radius**2) / (2 * radius * width)))
    depth = 1 + _over(draw.uniform(*heights), box) * inside
    return _state(depth, [_over(draw.uniform(-speed, speed), box) * inside if speed else 0.0 for _ in box])


def _extreme_froude(draw: Draw, box: Box, wave: Array) -> Array:
    """A Gaussian pulse in a uniform stream of Froude number 0.8 to 1.5, whichever way."""
    froude, angle = _over(draw.uniform(0.8, 1.5), box), _over(draw.uniform(0, 2 * np.pi), box)
    depth = 1 + 0.4 * Bump((0.05, 0.1))(draw, box)
    if len(box) == 1:
        return _state(depth, [wave * froude * np.sign(np.cos(angle))])
    return _state(depth, [wave * froude * np.cos(angle), wave * froude * np.sin(angle)])


def _transcritical(draw: Draw, box: Box, wave: Array) -> Array:
    """A stream along the first axis whose Froude number passes through 1: 1 ± ½, in one or two waves."""
    stream = 0.5 + Wave(1, 2)(draw, box)
    depth = 1 + 0.2 * (2 * Wave(1, 2)(draw, box) - 1)
    return _state(depth, [wave * stream, *([0.0] * (len(box) - 1))])


def _hydraulic_jump(draw: Draw, box: Box, wave: Array) -> Array:
    """Water of Froude number F = 1.3 to 2 that jumps to the conjugate depth (√(1 + 8F²) − 1)/2 at equal discharge."""
    froude = _over(draw.uniform(1.3, 2.0), box)
    plateau = Step((0.01, 0.015))(draw, box)
    depth = 1 + (0.5 * (np.sqrt(1 + 8 * froude**2) - 1) - 1) * plateau / np.max(plateau, axis=1, keepdims=True)
    return _state(depth, [froude * wave / depth])


INITIAL_1D: Mapping[str, Mapping[str, InitialCondition]] = {
    "id": {
        "gaussian": _family(partial(_pulse, widths=(0.04, 0.08), height=0.4)),
        "smoothed dam": _still(Step((0.025, 0.04)), 0.5),
        "fourier": _family(_fourier),
        "smoothed step": _family(_moving_step),
        "rarefaction": _family(_rarefaction),
    },
    "ood": {
        "extreme froude": _family(_extreme_froude),
        "transcritical": _family(_transcritical),
        "hydraulic jump": _family(_hydraulic_jump),
        "high-frequency standing": _still(Wave(5, 8), 0.3),
    },
}
INITIAL_2D: Mapping[str, Mapping[str, InitialCondition]] = {
    "id": {
        "gaussian": _family(partial(_pulse, widths=(0.06, 0.1), height=0.4)),
        "smoothed dam": _still(Step((0.03, 0.05)), 0.5),
        "fourier": _family(_fourier),
        "oblique": _still(Sigmoid(), 0.4),
        "vortex": _family(partial(_vortex, speeds=(0.3, 0.6))),
        "radial dam": _family(partial(_radial_dam, heights=(0.3, 0.5), speed=0.0)),
    },
    "ood": {
        "extreme froude": _family(_extreme_froude),
        "transcritical": _family(_transcritical),
        "high-frequency standing": _still(Wave(4, 6), 0.3),
        "strong vortex": _family(partial(_vortex, speeds=(1.0, 1.5))),
        "extreme radial dam": _family(partial(_radial_dam, heights=(0.9, 1.3), speed=1.5)),
    },
}


def _reference(processes: frozenset[str], boundary: tuple[str, ...], shape: tuple[int, ...]) -> Reference:
    """At least four times finer than asked, and fine enough for the initial states."""
    room = int((FINE_CELLS / prod(shape)) ** (1 / len(shape)))
    return ShallowWaterReference(processes, max(4, min(ceil(FINEST[len(shape)] / min(shape)), room)))


def dictionaries() -> Mapping[str, Dictionary]:
    """Runge–Kutta with WENO; MUSCL and WENO in steps of one stage; and both processes at once, with either WENO."""
    kinds: Mapping[str, tuple[Reconstruction, float]] = {
        "weno5": ("weno5", 0.5),
        "muscl": ("hancock", SINGLE_STAGE_CFL),
        "weno5-hancock": ("weno5-hancock", SINGLE_STAGE_CFL),
    }
    return {
        **{
            name: Dictionary({"gravity": GravityWave(*options), "momentum": MomentumAdvection(*options)})
            for name, options in kinds.items()
        },
        "unsplit": Dictionary({"shallow water": ShallowWater()}),
        "unsplit-hancock": Dictionary({"shallow water": ShallowWater("weno5-hancock", SINGLE_STAGE_CFL)}),
    }


def equation(name: str, axes: int) -> Equation:
    """The shallow-water equations, and what a policy sees of them."""
    froude, gradients = ([f"{name}_{letter}" for letter in AXES[:axes]] for name in ("froude", "gradient"))
    return Equation(
        name,
        ("gravity", "momentum"),
        water_channels(axes),
        {"g": Coefficient(above=0.0)},
        features=(*froude, "wave_crossings", "variation", *gradients),
        speeds=("shallow_water",),
        positive=("h",),
        formula="h_t + ∇·m = 0, m_t + ∇·(m⊗m/h) + ∇(g h²/2) = 0",
    )


def _problem(name: str, axes: int, cells: int) -> Problem:
    families = INITIAL_1D if axes == 1 else INITIAL_2D

    def split(kind: str, time: tuple[float, float]) -> Split:
        return Split({"g": GRAVITY[kind]}, families[kind], time)

    return Problem(
        name=name,
        equation=equation(name, axes),
        behaviour=f"depth h, momentum m; id and ood at T={HORIZON:g}, train at T in [{TRAIN[0]:g}, {TRAIN[1]:g}]",
        shape=(cells,) * axes,
        lengths=(LENGTH,) * axes,
        boundary=("periodic",) * axes,
        splits={
            "train": split("id", TRAIN),
            "id": split("id", (HORIZON, HORIZON)),
            "ood": split("ood", (HORIZON, HORIZON)),
            "trajectory": split("id", SNAPSHOTS),
        },
        dictionaries=dictionaries(),
        reference=_reference,
        settings=PLANE if axes == 2 else SETTINGS,
        presets=PRESETS[axes],
    )


PROBLEMS = (_problem("swe1d", 1, 64), _problem("swe2d", 2, 32))
