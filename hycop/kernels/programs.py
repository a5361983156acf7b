"""Whole programs in one loop: where every step is a convolution or a growth in place, a sample stays in the cache of
its thread from the first step to the last."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numba
import numpy as np
import numpy.typing as npt

from hycop.kernels.complex_exponentials import complex_exponentials
from hycop.kernels.convolution import (
    as_matrices,
    exponents,
    fill,
    from_blocks,
    in_blocks,
    into_blocks,
    multiply,
    of_axes,
    parts_of,
    reversed_waves,
    rings,
    waves,
    workspace,
)
from hycop.kernels.distance import squared_distance
from hycop.kernels.lanes import LANES, room
from hycop.kernels.reaction import grow
from hycop.kernels.threads import in_parts

Array = npt.NDArray[Any]

END, CONVOLUTION = -1, -2
"""Moves that are not the growth of an operator: the program is over; all operators with a duration in Fourier space."""


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _run(
    start: int,
    stop: int,
    u0: Array,
    truth: Array,
    out: Array,
    squares: Array,
    moves: Array,
    durations: Array,
    growth: Array,
    rates: Array,
    columns: Array,
    first_rates: Array,
    rows: Array,
) -> None:
    """Program i of start … stop takes state i mod batch of u0 (batch, channel, row, column) to out[i], or if there is a
    truth, (batch, value), to the squared distance from it. Then the values of both are ``in_blocks``."""
    batch, channels, n, m = u0.shape
    both = first_rates.shape[1] > 0
    p, q = parts_of(n) if both else 1, parts_of(m)
    (down, left), (across, right) = rings(n if both else 0, u0.dtype), rings(m, u0.dtype)
    row_modes, column_modes = n // 2 + 1 if both else 0, m // 2 + 1
    # whole vectors, the last of which may reach beyond the modes that are asked for
    lines = np.zeros((4, room(moves.shape[1] * (row_modes + column_modes))))
    ring_values = np.empty(room(max(n, m)))
    blocks, values, parts, stack, tall, other, tall_other = workspace(channels, p, q, n // p, m // q, u0.dtype)
    known = u0.reshape(batch, channels * n * m)
    for program in range(start, stop):
        sample = program % batch
        if truth.shape[0]:
            for i in range(values.size):
                values[i] = known[sample, i]
        else:
            into_blocks(u0, sample, blocks)
        at = np.int64(0)  # 0 alone is a type of its own, for which functions would be compiled once more
        for k in range(moves.shape[1]):
            if moves[program, k] == CONVOLUTION:
                at = exponents(rates, sample, durations, program, k, lines, at, column_modes)
                at = exponents(first_rates, sample, durations, program, k, lines, at, row_modes)
        complex_exponentials(lines, -(-at // LANES) * LANES)
        at = np.int64(0)
        for k in range(moves.shape[1]):
            move = moves[program, k]
            if move == END:
                break
            if move == CONVOLUTION:
                at = fill(lines, at, columns, across, ring_values)
                if both:
                    at = fill(lines, at, rows, down, ring_values)
                for channel in range(channels):
                    multiply(parts, stack, tall, other, tall_other, channel, left, right)
            else:
                grow(values, growth[move, sample] * durations[program, k, move])
        if truth.shape[0]:
            squares[program] = squared_distance(values, truth[sample])
        else:
            from_blocks(blocks, out, program)


@dataclass(frozen=True)
class Moves:
    """Programs for the states of a batch, several for each: program i is for state i mod batch.

    ``ops`` (program, move) are operators that grow, ``CONVOLUTION`` or ``END``; durations are (program, move, op).
    growth[op, sample] are rates of growth and ``rates`` those in Fourier space ``of_axes``, whatever they are for an
    operator that does the other.
    """

    ops: Array
    durations: Array
    growth: Array
    rates: tuple[Array, Array]

    @property
    def axes(self) -> int:
        return 2 if self.rates[1].shape[3] else 1

    def run(self, u0: Array) -> Array:
        """The states (program, channel, *grid) at the end."""
        states = as_matrices(u0, self.axes)
        out = np.empty((self.ops.shape[0], *states.shape[1:]), dtype=u0.dtype)
        self._run(states, np.empty((0, 1)), out, np.empty(0))
        return out.reshape(-1, *u0.shape[1:])

    def squared_distances(self, u0: Array, truth: Array) -> Array:
        """Σ (u − truth)² over channels and cells, of the states at the end, (program,)."""
        squares = np.zeros(self.ops.shape[0])
        states, against = (in_blocks(as_matrices(u, self.axes), self.axes) for u in (u0, truth))
        values = against.astype(np.float64, copy=False).reshape(len(truth), u0[:1].size)
        self._run(states, values, np.empty((0, 1, 1, 1), dtype=u0.dtype), squares)
        return squares

    def _run(self, states: Array, truth: Array, out: Array, squares: Array) -> None:
        last, first = self.rates
        arrays = (
            states,
            truth,
            out,
            squares,
            np.ascontiguousarray(self.ops),
            np.ascontiguousarray(self.durations, dtype=np.float64),
            self.growth,
            last,
            waves(states.shape[3]),
            first,
            reversed_waves(states.shape[2]),
        )
        in_parts(lambda start, stop: _run(start, stop, *arrays), len(self.ops), 16.0 * self.ops.size * states[:1].size)


def convolve(u: Array, rates: tuple[Array, ...], durations: Array) -> Array:
    """exp(Σ_op durations[sample, op]·rates[axis][sample, op, mode]) along every axis of u (batch, channel, *grid): a
    program of one move."""
    ops, growth = np.full((u.shape[0], 1), CONVOLUTION), np.zeros((durations.shape[1], u.shape[0]))
    return Moves(ops, durations[:, None, :], growth, of_axes(rates)).run(u)
