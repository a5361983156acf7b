"""The moves of programs: groups of neighbouring steps that run as one."""

from __future__ import annotations

from typing import Any

import numba
import numpy.typing as npt

Array = npt.NDArray[Any]


@numba.njit(cache=True, nogil=True, error_model="numpy")
def group(
    ops: Array, times: Array, kind_of: Array, alone: Array, empty: int, kind: Array, durations: Array, step: Array
) -> int:
    """Groups the steps of each program whose time is not zero: a step joins the move before it if both are of one kind,
    unless its operator stands ``alone``. Fills kind (program, move), durations and the first step of each operator
    (program, move, operator); returns the number of moves of the longest program."""
    longest = 0
    for program in range(ops.shape[0]):
        count, last = 0, empty
        for k in range(ops.shape[1]):
            if times[program, k] == 0.0:
                continue
            op = ops[program, k]
            if kind_of[op] != last or alone[op]:
                last = kind_of[op]
                kind[program, count] = last
                count += 1
            durations[program, count - 1, op] += times[program, k]
            step[program, count - 1, op] = min(step[program, count - 1, op], k)
        longest = max(longest, count)
    return longest
