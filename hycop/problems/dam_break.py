"""Dam breaks in a basin with walls.

    h_t + ∇·m = 0,   m_t + ∇·(m⊗m/h) + ∇(g h²/2) = 0   on [0, 100] m × [0, 100] m with walls, g = 9.81 m/s²

Still water of two depths, in which a straight or a round dam vanishes: a shock runs into the shallow part and a
rarefaction into the deep one, and after some ten seconds both come back from the walls. Mass is kept. The equation,
its split and its dictionaries are those of ``swe2d``; a policy that was trained there answers here without retraining
(``hycop swap``).

``straight`` (2 m against 1 m at x = 50 m) and ``circular`` (2 m within 18 m of (35 m, 62 m), else 1 m) are single
cases, asked at 5 s. ``id`` draws dams about as high, ``ood`` higher ones; ``train`` and ``trajectory`` spread the query
times. The truth is that of ``swe2d``'s reference, which shares no code with the primitives; it replaces the finite
elements of the source paper. Before waves come back from a wall, a straight dam has an exact solution
(``hycop.references.dam_break``). A dry bed is not among the splits: where h = 0 gravity waves and the advection of
momentum cannot be told apart, and only the dictionary ``unsplit`` can go there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil

import numpy as np

from hycop.channels import water_channels
from hycop.grid import Array
from hycop.problems.definition import InitialCondition, Problem, Split
from hycop.problems.draw import Draw
from hycop.problems.initial_conditions import box_of
from hycop.problems.shallow_water import dictionaries, features
from hycop.query import Setting
from hycop.references import Reference, ShallowWaterReference

LENGTH, GRAVITY, HORIZON = 100.0, 9.81, 5.0
FINEST = 256
"""Cells that the truth has along an axis at least."""

Range = tuple[float, float]


@dataclass(frozen=True)
class StraightDam:
    """Depth ``behind`` on one side of a line across the basin and ``ahead`` on the other, at rest."""

    behind: Range
    ahead: Range
    position: Range
    either_way: bool = True

    def __call__(self, draw: Draw, setting: Setting) -> Array:
        along = draw.integer(0, 1) if self.either_way else np.zeros(len(draw), dtype=np.int64)
        x, y = box_of(setting.grid)
        place = np.where(along.reshape(-1, 1, 1) == 0, x, y)
        return _at_rest(draw, self.behind, self.ahead, place < draw.uniform(*self.position).reshape(-1, 1, 1))


@dataclass(frozen=True)
class RoundDam:
    """Depth ``behind`` within a circle and ``ahead`` outside, at rest; lengths as shares of the basin's."""

    behind: Range
    ahead: Range
    radius: Range
    centre: tuple[Range, Range]

    def __call__(self, draw: Draw, setting: Setting) -> Array:
        squares = [
            (s - draw.uniform(*where).reshape(-1, 1, 1)) ** 2
            for s, where in zip(box_of(setting.grid), self.centre, strict=True)
        ]
        radius = draw.uniform(*self.radius).reshape(-1, 1, 1)
        return _at_rest(draw, self.behind, self.ahead, squares[0] + squares[1] < radius**2)


def _at_rest(draw: Draw, behind: Range, ahead: Range, inside: Array) -> Array:
    deep, shallow = (draw.uniform(*depths).reshape(-1, 1, 1) for depths in (behind, ahead))
    depth = np.where(inside, deep, shallow)
    return np.stack([depth, np.zeros_like(depth), np.zeros_like(depth)], axis=1)


def _dams(behind: Range, ahead: Range) -> Mapping[str, InitialCondition]:
    anywhere = (0.3, 0.7)
    return {
        "straight": StraightDam(behind, ahead, (0.35, 0.65)),
        "circular": RoundDam(behind, ahead, (0.15, 0.25), (anywhere, anywhere)),
    }


ONE = ((2.0, 2.0), (1.0, 1.0))
CASES: Mapping[str, InitialCondition] = {
    "straight": StraightDam(*ONE, (0.5, 0.5), either_way=False),
    "circular": RoundDam(*ONE, (0.18, 0.18), ((0.35, 0.35), (0.62, 0.62))),
}
FAMILIES = {"id": _dams((1.5, 2.5), (0.8, 1.2)), "ood": _dams((3.0, 5.0), (0.5, 1.0))}


def _reference(processes: frozenset[str], boundary: tuple[str, ...], shape: tuple[int, ...]) -> Reference:
    return ShallowWaterReference(processes, max(2, ceil(FINEST / min(shape))))


def _split(initial: Mapping[str, InitialCondition], time: Range = (HORIZON, HORIZON)) -> Split:
    return Split({"g": [(GRAVITY, GRAVITY)]}, initial, time)


PROBLEMS = (
    Problem(
        name="dambreak2d",
        equation="h_t + ∇·m = 0, m_t + ∇·(m⊗m/h) + ∇(g h²/2) = 0",
        behaviour=f"dams in a walled basin; splits straight, circular, id and ood at T={HORIZON:g} s, train to 15 s",
        processes=("gravity", "momentum"),
        channels=water_channels(2),
        shape=(320, 320),
        lengths=(LENGTH, LENGTH),
        boundary=("wall", "wall"),
        splits={
            "train": _split(FAMILIES["id"], (1.0, 15.0)),
            "id": _split(FAMILIES["id"]),
            "ood": _split(FAMILIES["ood"]),
            **{name: _split({name: case}) for name, case in CASES.items()},
            "trajectory": _split(FAMILIES["id"], (1.0, 15.0)),
        },
        dictionaries=dictionaries(),
        features=features(2),
        gain_features=(),
        reference=_reference,
        settings={"shape": (40, 40), "max_steps": 17, "repeats": 2, "target": "limit"},
        presets={"quick": {"samples": 16, "tries": 1, "patterns": 1, "rounds": 1, "iterations": 4}},
        estimated=0,
    ),
)
