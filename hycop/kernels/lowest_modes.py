"""Statistics of states from their lowest modes; the bits of a sample depend on nothing else."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import numpy.typing as npt

from hycop.kernels.lanes import of_any_layout
from hycop.kernels.small_products import product

Array = npt.NDArray[Any]


@numba.njit(cache=True, nogil=True, error_model="numpy")
def moments(
    stack: Array, left: Array, right: Array, planes: Array, rows: Array, columns: Array, cells: int, out: Array
) -> None:
    """For each sample: the mean, the sum of the squares of all other modes, and the same weighted with ``planes``,
    ``rows`` and ``columns``, (sample, 5).

    A sample has one matrix of ``stack`` for each number of ``planes``; its modes are left[0]·matrix·right[0] / cells.
    """
    across, modes = np.empty((1, rows.size, stack.shape[2])), np.empty((1, rows.size, columns.size))
    sums, weighted = np.empty(columns.size), np.empty(columns.size)
    from_left, states, half_done = of_any_layout(left), of_any_layout(stack), of_any_layout(across)
    from_right, done = of_any_layout(right), of_any_layout(modes)
    first = np.int64(0)  # 0 alone is a type of its own, for which functions would be compiled once more
    for sample in range(out.shape[0]):
        out[sample] = 0.0
        for plane in range(planes.size):
            product(from_left, first, states, sample * planes.size + plane, half_done, first)
            product(half_done, first, from_right, first, done, first)
            if plane == 0:
                out[sample, 0] = modes[0, 0, 0] / cells
                modes[0, 0, 0] = 0.0
            sums[:], weighted[:] = 0.0, 0.0
            for row in range(rows.size):
                for column in range(columns.size):
                    energy = modes[0, row, column] * modes[0, row, column]
                    sums[column] += energy
                    weighted[column] += rows[row] * energy
            total, along_rows, along_columns = 0.0, 0.0, 0.0
            for column in range(columns.size):
                total += sums[column]
                along_rows += weighted[column]
                along_columns += columns[column] * sums[column]
            out[sample, 1] += total
            out[sample, 2] += planes[plane] * total
            out[sample, 3] += along_rows
            out[sample, 4] += along_columns
        for number in range(1, 5):
            out[sample, number] /= np.float64(cells) * cells
