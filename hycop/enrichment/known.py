"""The known flow of a model, alone or with a closure in between, and how it carries small changes to the end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate

import numpy as np
from scipy import fft

from hycop.data import Dataset
from hycop.diagnosis.naming import base_dictionary
from hycop.dictionary import Dictionary
from hycop.evaluation import errors_of
from hycop.execution import measure, trace
from hycop.grid import Array, changed
from hycop.model import Model
from hycop.primitive import Primitive
from hycop.program import ProgramBatch
from hycop.query import Query, Setting
from hycop.schemes import splitting
from hycop.terms import mirrored

NODES = splitting("saba3").coefficients
"""Gaps (even places) and weights (odd places) of Gauss and Legendre: at the nodes a closure acts."""

WITHIN_GAP = splitting("strang x2")
"""The splitting of the known processes in a gap."""

CLOSURE = "closure to learn"
"""Name under which a closure joins the known dictionary."""

PROBES = 4
"""Random disturbances whose growth is followed, for each channel."""

NUDGE = 1e-5
"""Size of a disturbance, relative to the state."""

Piece = tuple[bool, float]
"""A part of a program: whether the closure acts (else the known processes), and the fraction of the query time."""


@dataclass(frozen=True, eq=False)
class KnownFlow:
    """What a model knows, as one classical flow: a primitive for each process, Strang's splitting in fine steps."""

    dictionary: Dictionary
    refinement: int

    @classmethod
    def of(cls, model: Model) -> KnownFlow:
        return cls(base_dictionary(model), model.refinement)

    @cached_property
    def times(self) -> Array:
        """The nodes as fractions of the query time."""
        return np.array(list(accumulate(NODES[0:-1:2])))

    def after(self, query: Query, pieces: Sequence[Piece], closure: Primitive | None = None) -> Array:
        """The states after each piece of a program, (batch, piece, channel, *grid)."""
        parts = self.dictionary if closure is None else self.dictionary.adding(CLOSURE, closure)
        programs = [self._piece(query, acts, fraction, parts) for acts, fraction in pieces]
        whole = ProgramBatch(
            parts.names,
            np.concatenate([part.ops for part in programs], axis=1),
            np.concatenate([part.durations for part in programs], axis=1),
        )
        ends = list(accumulate(part.ops.shape[1] for part in programs))
        return trace(whole, parts, query, refinement=self.refinement, steps=ends).states

    def _piece(self, query: Query, acts: bool, fraction: float, parts: Dictionary) -> ProgramBatch:
        if acts:
            ops = np.full((query.batch, 1), parts.names.index(CLOSURE))
            return ProgramBatch(parts.names, ops, fraction * query.time[:, None])
        programs = WITHIN_GAP.programs(changed(query, time=fraction * query.time), self.dictionary)
        place = np.array([parts.names.index(name) for name in programs.names])
        return ProgramBatch(parts.names, place[programs.ops], programs.durations)

    def along(self, query: Query, closure: Primitive | None) -> tuple[Array, Array]:
        """The states at the nodes (batch, node, channel, *grid) and at the end (batch, channel, *grid)."""
        pieces: list[Piece] = []
        middle: list[int] = []
        for place, fraction in enumerate(NODES):
            if place % 2 == 0:
                pieces.append((False, fraction))
            elif closure is not None:
                pieces += [(True, 0.5 * fraction), (True, 0.5 * fraction)]
            if place % 2 == 1:
                middle.append(len(pieces) - (1 if closure is None else 2))
        states = self.after(query, pieces, closure)
        return states[:, middle], states[:, -1]

    def error(self, data: Dataset, closure: Primitive | None) -> float:
        """Mean relative L2 error of the end states; infinite if one of them is NaN or infinite."""
        end = self.along(data.query, closure)[1]
        if not np.isfinite(end).all():
            return float("inf")
        return float(errors_of("rel_l2", end, data.truth, data.query).mean())

    def multipliers(self, query: Query, seed: int) -> Array:
        """w_j T K_j (batch, node, channel, channel, *mode): how a change at a node arrives at the end, mode by mode of
        the box with its mirror images."""
        states = self.along(query, None)[0]
        rng = np.random.default_rng(seed)
        weights, found = NODES[1::2], []
        for node, time in enumerate(self.times):
            rest = changed(query, u0=states[:, node], time=(1.0 - time) * query.time)
            column = (weights[node] * query.time).reshape((-1,) + (1,) * (query.grid.axes + 2))
            found.append(column * self.carried(rest, rng))
        return np.stack(found, axis=1)

    def carried(self, query: Query, rng: np.random.Generator) -> Array:
        """K (batch, channel, channel, *mode) over the time of a query: the first channel answers to the second.

        It is the mean over random disturbances, which is exact for flows that are linear and the same everywhere."""
        programs = WITHIN_GAP.programs(query, self.dictionary)
        still = measure(programs, self.dictionary, query, strict=False).states
        axes = tuple(range(2, query.u0.ndim))
        size = NUDGE * np.sqrt((query.u0**2).mean(axis=(1, *axes), keepdims=True))
        size = np.where(size > 0, size, NUDGE)
        columns = []
        for channel in range(query.u0.shape[1]):
            total: Array = np.zeros(1)
            for _ in range(PROBES):
                noise = np.zeros_like(query.u0)
                noise[:, channel] = rng.standard_normal(noise[:, channel].shape)
                moved = measure(programs, self.dictionary, changed(query, u0=query.u0 + size * noise), strict=False)
                cause = modes_of(noise, query)[:, channel : channel + 1]
                power = np.abs(cause) ** 2
                floor = 1e-6 * power.mean(axis=axes, keepdims=True)
                total = total + modes_of((moved.states - still) / size, query) * cause.conj() / np.maximum(power, floor)
            columns.append(total / PROBES)
        return np.stack(columns, axis=2)


def modes_of(u: Array, query: Query) -> Array:
    """The Fourier modes (batch, channel, *mode) of states, continued by mirror images where a box is not periodic."""
    signs = mirrors_of(query.setting)
    whole = np.stack(
        [mirrored(u[:, channel], query.setting, [sign < 0 for sign in row]) for channel, row in enumerate(signs)],
        axis=1,
    )
    modes: Array = fft.rfftn(whole, axes=tuple(range(2, whole.ndim)))
    return modes


def mirrors_of(setting: Setting) -> Array:
    """(channel, axis): 0 along periodic axes, elsewhere the sign of the mirror image of a channel; only walls flip."""
    signs = setting.wall_signs()
    for axis, boundary in enumerate(setting.grid.boundary):
        if boundary != "wall":
            signs[:, axis] = 0.0 if boundary == "periodic" else 1.0
    return signs
