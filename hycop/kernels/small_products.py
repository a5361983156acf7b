"""Products of small matrices with the sums in registers: for 16 × 16 four times as fast as BLAS, whose calls
cost more than such a product, in one thread, and in an order that depends on nothing else.

A tile of the product is a few rows of ``COLUMNS`` values. In each step of the sum a row of b is loaded once and
multiplied with one value of each row of a (Goto and van de Geijn, ACM Trans. Math. Softw. 34 (2008) 12).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import llvmlite.binding
import numba
import numpy as np
import numpy.typing as npt
from llvmlite import ir
from numba.core import cgutils, types

from hycop.kernels.lanes import compiled, spread

Array = npt.NDArray[Any]

WIDE = bool(llvmlite.binding.get_host_cpu_features().get("avx512f", False))
ROWS, COLUMNS = (8, 16) if WIDE else (4, 8)
"""Size of a tile: as many sums as the registers of the processor hold."""

NARROW = 4
"""Columns of a tile of matrices with fewer than ``COLUMNS``."""


def _tile_of(rows: int, columns: int) -> Any:
    """``tile(a, i, b, j, out, k, row, column)``: that tile of the product out[k] = a[i]·b[j]."""

    @compiled
    def tile(typing: Any, a: Any, i: Any, b: Any, j: Any, out: Any, k: Any, row: Any, column: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            matrices = [
                _Matrix.of(builder, context.make_array(kind)(context, builder, stack), index)
                for kind, stack, index in zip(signature.args[:6:2], values[:6:2], values[1:6:2], strict=True)
            ]
            sums = _summed(builder, matrices, context.get_data_type(a.dtype), values[6], values[7], rows, columns)
            for place, total in zip(matrices[2].rows(builder, values[6], rows), sums, strict=True):
                to = builder.bitcast(builder.gep(place, [values[7]]), total.type.as_pointer())
                builder.store(total, to, align=4)
            return context.get_dummy_value()

        return types.void(a, types.intp, b, types.intp, out, types.intp, types.intp, types.intp), generate

    return tile


class _Matrix(NamedTuple):
    """Where a matrix of a stack begins, the bytes from one of its rows to the next, and the number of its rows."""

    begin: Any
    stride: Any
    count: Any

    @classmethod
    def of(cls, builder: Any, stack: Any, index: Any) -> _Matrix:
        strides = cgutils.unpack_tuple(builder, stack.strides)
        begin = cgutils.pointer_add(builder, stack.data, builder.mul(index, strides[0]))
        return cls(begin, strides[1], cgutils.unpack_tuple(builder, stack.shape)[1])

    def row(self, builder: Any, number: Any) -> Any:
        return cgutils.pointer_add(builder, self.begin, builder.mul(number, self.stride))

    def rows(self, builder: Any, first: Any, count: int) -> list[Any]:
        return [self.row(builder, builder.add(first, first.type(index))) for index in range(count)]


def _summed(builder: Any, matrices: Any, value: Any, row: Any, column: Any, rows: int, columns: int) -> list[Any]:
    """Σ_k a[row + i, k]·b[k, column …], a vector for each i: a loop over k, after which the builder stands."""
    a, b, _ = matrices
    vector, index = ir.VectorType(value, columns), row.type
    along = a.rows(builder, row, rows)
    before = builder.block
    loop, after = builder.append_basic_block("sum"), builder.append_basic_block("summed")
    builder.branch(loop)
    builder.position_at_end(loop)
    k, sums = builder.phi(index), [builder.phi(vector) for _ in range(rows)]
    others = builder.load(builder.bitcast(builder.gep(b.row(builder, k), [column]), vector.as_pointer()), align=4)
    grown = []
    for place, total in zip(along, sums, strict=True):
        factor = spread(builder, vector, builder.load(builder.gep(place, [k])))
        # contracted to one instruction, which rounds once
        grown.append(builder.fadd(total, builder.fmul(factor, others, flags=("contract",)), flags=("contract",)))
    following = builder.add(k, index(1))
    k.add_incoming(index(0), before)
    k.add_incoming(following, loop)
    for total, more in zip(sums, grown, strict=True):
        total.add_incoming(ir.Constant(vector, [value(0.0)] * columns), before)
        total.add_incoming(more, loop)
    builder.cbranch(builder.icmp_signed("<", following, b.count), loop, after)
    builder.position_at_end(after)
    return grown


_wide, _wide_row = _tile_of(ROWS, COLUMNS), _tile_of(1, COLUMNS)
_wider, _wider_row = _tile_of(ROWS, 2 * COLUMNS), _tile_of(1, 2 * COLUMNS)
_narrow, _narrow_row = _tile_of(ROWS, NARROW), _tile_of(1, NARROW)


@numba.njit(cache=True, nogil=True, error_model="numpy")
def product(a: Array, i: int, b: Array, j: int, out: Array, k: int) -> None:
    """out[k] = a[i]·b[j] for stacks (matrix, row, column) of one type whose rows are contiguous and not empty; ``out``
    must be other memory.

    Whole stacks and numbers, because Numba counts the references to every part of an array, which takes as long as such
    a product. Tiles of the last columns overlap those before them, where the same sums are formed again.
    """
    n, m = out.shape[1], out.shape[2]
    if m < NARROW:
        for row in range(n):
            for column in range(m):
                total = a[i, row, 0] * b[j, 0, column]
                for inner in range(1, b.shape[1]):
                    total += a[i, row, inner] * b[j, inner, column]
                out[k, row, column] = total
        return
    tall, wide = n - n % ROWS, m >= COLUMNS
    wider = out.itemsize == 4 and m >= 2 * COLUMNS  # single precision has twice as many numbers in a register
    width = 2 * COLUMNS if wider else COLUMNS if wide else NARROW
    for start in range(0, m, width):
        column = min(start, m - width)
        for row in range(0, tall, ROWS):
            if wider:
                _wider(a, i, b, j, out, k, row, column)
            elif wide:
                _wide(a, i, b, j, out, k, row, column)
            else:
                _narrow(a, i, b, j, out, k, row, column)
        for row in range(tall, n):
            if wider:
                _wider_row(a, i, b, j, out, k, row, column)
            elif wide:
                _wide_row(a, i, b, j, out, k, row, column)
            else:
                _narrow_row(a, i, b, j, out, k, row, column)


@numba.njit(cache=True, nogil=True, error_model="numpy")
def times(stack: Array, matrix: Array, out: Array) -> None:
    """out[i] = stack[i]·matrix[0]."""
    for i in range(stack.shape[0]):
        product(stack, i, matrix, np.int64(0), out, i)


@numba.njit(cache=True, nogil=True, error_model="numpy")
def times_from_left(matrix: Array, stack: Array, out: Array) -> None:
    """out[i] = matrix[0]·stack[i]."""
    for i in range(stack.shape[0]):
        product(matrix, np.int64(0), stack, i, out, i)
