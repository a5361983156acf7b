"""The Kuramoto–Sivashinsky equation.

    u_t + u u_x + u_xx + u_xxxx = 0   on a periodic interval [0, 2πW]

Split into the linear part, u_t = −u_xx − u_xxxx, which lets modes of wavenumber below 1 grow and damps the others, and
the nonlinear part, u_t = −u u_x, which carries energy from the first to the second. Spatiotemporal chaos with the more
unstable modes the larger W is; two solutions part about as e^{0.1 t}. The mean is kept, and is zero.

W, query times and the two families are those of the paper's appendix: ``train`` and ``id`` have W in [24, 40] and T in
[5, 8], ``ood-w`` has W in [40, 50], ``ood-t`` has T in [8, 20], ``ood-wt`` (also ``ood``) has both. W differs from
sample to sample. Like the paper's, samples start from the initial condition, without spin-up. Amplitudes (order one, as
on the attractor) and wave numbers (up to 8, growing slowly) are this project's choice, and so are the times
of ``trajectory``, up to 240, for the statistics of the attractor.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil, pi

import numpy as np

from hycop.dictionary import Dictionary
from hycop.grid import Array
from hycop.pde import Equation
from hycop.primitives import KuramotoSivashinskyLinear, KuramotoSivashinskyNonlinear
from hycop.problems.definition import Problem, Split
from hycop.problems.draw import Draw, Intervals
from hycop.problems.initial_conditions import Box, Profile, scalar
from hycop.query import Channel
from hycop.references import KuramotoSivashinskyReference, Reference

WIDTHS: Mapping[str, Intervals] = {"id": [(24.0, 40.0)], "ood": [(40.0, 50.0)]}
TIMES = {"id": (5.0, 8.0), "ood": (8.0, 20.0)}
LONG = (0.5, 240.0)
HIGHEST = 8
FINEST = 768


class TwoModes:
    """a₁ sin(2π j₁ s + φ₁) + a₂ sin(2π j₂ s + φ₂) with wave numbers from 1 to 8 and amplitudes from ½ to 1½."""

    def __call__(self, draw: Draw, box: Box) -> Array:
        total: Array = np.zeros(1)
        for _ in range(2):
            number, phase, amplitude = draw.integer(1, HIGHEST), draw.uniform(0, 2 * pi), draw.uniform(0.5, 1.5)
            total = total + amplitude[:, None] * np.sin(2 * pi * number[:, None] * box[0] + phase[:, None])
        return total


class LowModes:
    """Σ_j a_j sin(2π j s + φ_j) over all wave numbers from 1 to 8, amplitudes from −¾ to ¾."""

    def __call__(self, draw: Draw, box: Box) -> Array:
        total: Array = np.zeros(1)
        for number in range(1, HIGHEST + 1):
            phase, amplitude = draw.uniform(0, 2 * pi), draw.uniform(-0.75, 0.75)
            total = total + amplitude[:, None] * np.sin(2 * pi * number * box[0] + phase[:, None])
        return total


INITIAL: Mapping[str, Profile] = {"two modes": TwoModes(), "fourier series": LowModes()}


def _reference(processes: frozenset[str], boundary: tuple[str, ...], shape: tuple[int, ...]) -> Reference:
    return KuramotoSivashinskyReference(processes, max(4, ceil(FINEST / shape[0])))


def _split(width: str, time: tuple[float, float]) -> Split:
    initial = {family: scalar(profile) for family, profile in INITIAL.items()}
    lengths = [(2 * pi * low, 2 * pi * high) for low, high in WIDTHS[width]]
    return Split({}, initial, time, lengths=(lengths,))


def _dictionaries() -> Mapping[str, Dictionary]:
    return {
        "spectral": Dictionary({"linear": KuramotoSivashinskyLinear(), "nonlinear": KuramotoSivashinskyNonlinear()})
    }


EQUATION = Equation(
    "ks1d",
    ("linear", "nonlinear"),
    (Channel("u"),),
    features=("unit_time", "unit_length", "unit_amplitude", "gradient_x"),
    unit_rate=1.0,
    formula="u_t + u u_x + u_xx + u_xxxx = 0",
)

PROBLEMS = (
    Problem(
        name="ks1d",
        equation=EQUATION,
        behaviour="chaos on [0, 2πW]; train and id: W in [24, 40], T in [5, 8]; ood: W in [40, 50], T in [8, 20]",
        shape=(128,),
        lengths=(64 * pi,),
        boundary=("periodic",),
        splits={
            "train": _split("id", TIMES["id"]),
            "id": _split("id", TIMES["id"]),
            "ood-w": _split("ood", TIMES["id"]),
            "ood-t": _split("id", TIMES["ood"]),
            "ood-wt": _split("ood", TIMES["ood"]),
            "ood": _split("ood", TIMES["ood"]),
            "trajectory": _split("id", LONG),
        },
        dictionaries=_dictionaries(),
        reference=_reference,
        # 128 cells do not resolve wide domains; on them composition is learned as well as on 256, and faster, but not
        # from the truth of a finer grid
        settings={"max_steps": 18, "refinement": 2, "learning_refinement": 1, "target": "limit"},
        presets={
            "quick": {"samples": 192, "tries": 2, "patterns": 1, "rounds": 1},
            "laptop": {"samples": 384, "tries": 2, "rounds": 2, "iterations": 10},
        },
    ),
)
