"""Viscous Burgers' equation.

    u_t + u u_x = ν u_xx   on a periodic interval [0, 2]

Split into nonlinear advection, u_t + u u_x = 0, and viscosity, u_t = ν u_xx. Velocities are of order one, so fronts
steepen within the query time; viscosity holds them at a width of about 4ν/[u], below a cell of the 64 for ν < 0.01.
The mean is kept.

Viscosities, families and the query time are those of the paper's appendix. Amplitudes, widths and wave numbers are
this project's choice, as is the time range of ``train`` (that of ``ad1d``) and of ``trajectory`` (T/10 to 2T). Out of
distribution, either interval of ν is drawn with equal chance. A step is a tanh an eighth of a cell wide: a step on any
grid that is asked, yet smooth on the truth's. The high-frequency waves ride on a mean velocity, for nothing else would
be left of them at the largest viscosities.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil

import numpy as np

from hycop.dictionary import Dictionary
from hycop.grid import Array
from hycop.pde import Coefficient, Equation
from hycop.primitives import BurgersAdvection, FiniteVolumeViscosity, SpectralBurgersAdvection, SpectralViscosity
from hycop.problems.definition import Problem, Split
from hycop.problems.draw import Draw, Intervals
from hycop.problems.initial_conditions import Box, Bump, FourierSeries, Profile, Step, Steps, Wave, scalar
from hycop.query import Channel
from hycop.references import ColeHopfReference, Reference

HORIZON = 0.5
TRAIN = (0.1, 1.0)
VISCOSITY: Mapping[str, Intervals] = {"id": [(0.005, 0.1)], "ood": [(0.002, 0.005), (0.1, 0.2)]}
STEP = (0.002, 0.002)
FINEST = 2048


class Between:
    """low + (high − low)·profile: a velocity from a profile in [0, 1]."""

    def __init__(self, profile: Profile, low: float, high: float) -> None:
        self.profile, self.low, self.high = profile, low, high

    def __call__(self, draw: Draw, box: Box) -> Array:
        return self.low + (self.high - self.low) * self.profile(draw, box)


class Sawtooth:
    """½ + a/π·Σ_j r^j sin(jθ)/j: teeth of either direction, one or two in the box, with edges about 0.01 wide."""

    def __call__(self, draw: Draw, box: Box) -> Array:
        (s,) = box
        teeth = draw.integer(1, 2)[:, None]
        angle = 2 * np.pi * teeth * (s - draw.uniform(0, 1)[:, None])
        slope = np.where(draw.integer(0, 1) == 0, -1.0, 1.0) * draw.uniform(0.5, 1.0)
        r = np.exp(-2 * np.pi * teeth * 0.01)
        return 0.5 + slope[:, None] * np.arctan2(r * np.sin(angle), 1 - r * np.cos(angle)) / np.pi


INITIAL: Mapping[str, Mapping[str, Profile]] = {
    "id": {
        "step": Step(STEP),
        "sine": Between(Wave(1, 3), -1.0, 1.0),
        "gaussian": Bump((0.05, 0.1)),
        "sawtooth": Between(Sawtooth(), -1.0, 1.0),
        "tanh": Step((0.03, 0.06)),
        "fourier series": Between(FourierSeries(), -1.5, 1.5),
    },
    "ood": {
        "sharp transition": Step((0.008, 0.015)),
        "smooth transition": Step((0.08, 0.12)),
        "large amplitude": Between(Wave(1, 2), -2.0, 2.0),
        "multi-step": Between(Steps(STEP), 0.0, 2.0),
        "high-frequency": Wave(4, 6),
    },
}


def _reference(processes: frozenset[str], boundary: tuple[str, ...], shape: tuple[int, ...]) -> Reference:
    return ColeHopfReference(processes, max(4, ceil(FINEST / shape[0])))


def _split(kind: str, time: tuple[float, float]) -> Split:
    initial = {family: scalar(profile) for family, profile in INITIAL[kind].items()}
    return Split({"nu": VISCOSITY[kind]}, initial, time)


def _dictionaries() -> Mapping[str, Dictionary]:
    return {
        "weno5": Dictionary({"advection": BurgersAdvection(), "viscosity": SpectralViscosity()}),
        "spectral": Dictionary({"advection": SpectralBurgersAdvection(), "viscosity": SpectralViscosity()}),
        "muscl": Dictionary({"advection": BurgersAdvection("muscl"), "viscosity": FiniteVolumeViscosity()}),
        "upwind": Dictionary({"advection": BurgersAdvection("upwind"), "viscosity": FiniteVolumeViscosity()}),
    }


EQUATION = Equation(
    "burgers1d",
    ("advection", "viscosity"),
    (Channel("u"),),
    {"nu": Coefficient("diffusivity", at_least=0.0)},
    features=("reynolds", "steepening", "viscous", "gradient_x"),
    speeds=("first_channel",),
    formula="u_t + u u_x = ν u_xx",
)

PROBLEMS = (
    Problem(
        name="burgers1d",
        equation=EQUATION,
        behaviour=f"velocity u, fronts; splits id and ood at T={HORIZON:g}, train at T in [{TRAIN[0]:g}, {TRAIN[1]:g}]",
        shape=(64,),
        lengths=(2.0,),
        boundary=("periodic",),
        splits={
            "train": _split("id", TRAIN),
            "id": _split("id", (HORIZON, HORIZON)),
            "ood": _split("ood", (HORIZON, HORIZON)),
            "trajectory": _split("id", (HORIZON / 10, 2 * HORIZON)),
        },
        dictionaries=_dictionaries(),
        reference=_reference,
        settings={"refinement": 2, "max_steps": 17},
        presets={
            "quick": {"samples": 96, "tries": 2, "iterations": 6},
            "laptop": {"samples": 192, "validation": 400, "tries": 3, "iterations": 8},
        },
    ),
)
