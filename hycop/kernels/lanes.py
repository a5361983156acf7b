"""Vectors of eight numbers as values of compiled code, one number of each of eight samples.

LLVM's vectoriser gives up on loops with many arrays, which may overlap for all it knows. A vector that the code itself
loads, computes with and stores needs no such proof: butterflies of a Fourier transform take a quarter of the time.

    x = load(array, index)             # array[index … index + 7], counted from the first number of the array
    store(array, index, 0.5 * (x + y))
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numba
import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.core.datamodel import models
from numba.core.imputils import impl_ret_borrowed
from numba.core.typing.templates import ConcreteTemplate, infer_global, signature
from numba.extending import intrinsic, lower_builtin, register_model

LANES = 8
"""Numbers in a vector: one register with AVX-512, two with AVX2."""

LINE = 16
"""Numbers that are at least a line of the cache, in single precision too."""

VECTOR = ir.VectorType(ir.DoubleType(), LANES)


compiled: Any = intrinsic
"""Numba's decorator of functions that write their own instructions; its types are those of plain functions."""


class Lanes(types.Type):
    """The type of such a vector."""

    def __init__(self) -> None:
        super().__init__(name=f"{LANES} lanes")


lanes = Lanes()


@register_model(Lanes)
class _LanesModel(models.PrimitiveModel):
    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, VECTOR)


def spread(builder: Any, vector: Any, number: Any) -> Any:
    """A vector, of type ``vector``, of equal numbers."""
    undefined, lane = ir.Constant(vector, ir.Undefined), ir.IntType(32)
    first = builder.insert_element(undefined, number, lane(0))
    return builder.shuffle_vector(first, undefined, ir.Constant(ir.VectorType(lane, vector.count), [0] * vector.count))


def _vectors(builder: Any, signature: Any, values: Any) -> list[Any]:
    """The arguments of a call, numbers among them as vectors of equal numbers."""
    pairs = zip(signature.args, values, strict=True)
    return [value if isinstance(kind, Lanes) else spread(builder, VECTOR, value) for kind, value in pairs]


def _operation(symbol: Any, instruction: str) -> None:
    """Lets the operator take two vectors, or a vector and a number."""

    class _Typing(ConcreteTemplate):
        cases = tuple(signature(lanes, a, b) for a, b in _PAIRS)

    infer_global(symbol)(_Typing)

    def lower(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        # a product and a sum are not contracted to one rounding: a·b − c·d would not be minus its mirror image
        return getattr(builder, instruction)(*_vectors(builder, signature, values))

    for a, b in _PAIRS:
        lower_builtin(symbol, a, b)(lower)


_PAIRS = ((lanes, lanes), (lanes, types.float64), (types.float64, lanes))
_operation(operator.add, "fadd")
_operation(operator.sub, "fsub")
_operation(operator.mul, "fmul")
_operation(operator.truediv, "fdiv")


def _function(make: Callable[..., Any], count: int) -> Callable[..., Any]:
    """A function of ``count`` vectors or numbers whose instructions ``make(builder, *vectors)`` writes."""

    def typed(kinds: Sequence[Any]) -> Any:
        def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            pairs = zip(signature.args, values, strict=True)
            return make(
                builder, *(each if isinstance(kind, Lanes) else spread(builder, VECTOR, each) for kind, each in pairs)
            )

        return lanes(*(lanes if isinstance(kind, Lanes) else types.float64 for kind in kinds)), generate

    if count == 1:
        return compiled(lambda typing, a: typed((a,)))
    if count == 2:
        return compiled(lambda typing, a, b: typed((a, b)))
    return compiled(lambda typing, a, b, c: typed((a, b, c)))


def _larger(builder: Any, a: Any, b: Any) -> Any:
    return builder.select(builder.fcmp_ordered(">", b, a), b, a)


def _smaller(builder: Any, a: Any, b: Any) -> Any:
    return builder.select(builder.fcmp_ordered("<", b, a), b, a)


def _chosen(builder: Any, x: Any, a: Any, b: Any) -> Any:
    return builder.select(builder.fcmp_ordered(">", x, ir.Constant(VECTOR, [0.0] * LANES)), a, b)


def _called(name: str) -> Callable[..., Any]:
    kind = ir.FunctionType(VECTOR, [VECTOR])
    whole = f"llvm.{name}.v{LANES}f64"
    return lambda builder, x: builder.call(cgutils.get_or_insert_function(builder.module, kind, whole), [x])


def _multiplied_and_added(builder: Any, a: Any, b: Any, c: Any) -> Any:
    kind = ir.FunctionType(VECTOR, [VECTOR] * 3)
    whole = f"llvm.fmuladd.v{LANES}f64"
    return builder.call(cgutils.get_or_insert_function(builder.module, kind, whole), [a, b, c])


maximum, minimum = _function(_larger, 2), _function(_smaller, 2)
where_positive = _function(_chosen, 3)
"""``where_positive(x, a, b)``: a where x > 0, else b, also where x is NaN."""

fused = _function(_multiplied_and_added, 3)
"""``fused(a, b, c)``: a·b + c with one rounding, where the processor has such an instruction."""

square_root, absolute = _function(_called("sqrt"), 1), _function(_called("fabs"), 1)


@compiled
def any_positive(typing: Any, x: Any) -> Any:
    """Whether one of the numbers is positive."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        found = builder.fcmp_ordered(">", values[0], ir.Constant(VECTOR, [0.0] * LANES))
        bits = builder.bitcast(found, ir.IntType(LANES))
        return builder.icmp_unsigned("!=", bits, ir.Constant(bits.type, 0))

    return types.boolean(lanes), generate


@compiled
def filled(typing: Any, number: Any) -> Any:
    """A vector of equal numbers."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        return spread(builder, VECTOR, values[0])

    return lanes(types.float64), generate


def _place(context: Any, builder: Any, kind: Any, array: Any, index: Any) -> Any:
    first = context.make_array(kind)(context, builder, array).data
    return builder.bitcast(builder.gep(first, [index]), VECTOR.as_pointer())


@compiled
def load(typing: Any, array: Any, index: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        return builder.load(_place(context, builder, signature.args[0], *values), align=8)

    return lanes(array, types.intp), generate


@compiled
def store(typing: Any, array: Any, index: Any, vector: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        builder.store(values[2], _place(context, builder, signature.args[0], *values[:2]), align=8)
        return context.get_dummy_value()

    return types.void(array, types.intp, lanes), generate


@compiled
def of_any_layout(typing: Any, array: Any) -> Any:
    """The array by a type that does not tell how it lies in memory: functions of it are compiled once for all of them.
    To be called outside loops, because references to it are counted."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        return impl_ret_borrowed(context, builder, signature.return_type, values[0])

    return array.copy(layout="A", readonly=False)(array), generate


@numba.njit(cache=True, nogil=True, inline="always")
def room(count: int) -> int:
    """Length of rows for so many numbers whose last vector, also one number further on, may reach beyond them."""
    return (count // LANES + 2) * LANES


@numba.njit(cache=True, nogil=True)
def aligned(count: int, dtype: Any) -> Any:
    """Memory for so many numbers that begins where a line of the cache does: a vector that crosses lines takes twice as
    long to load or store."""
    memory = np.empty(count + LINE, dtype)
    first = -(memory.ctypes.data // memory.itemsize) % LINE
    return memory[first : first + count]


@numba.njit(cache=True, nogil=True)
def aligned_rows(rows, count, first):  # type: ignore[no-untyped-def]
    """Rows of ``count`` numbers, a multiple of ``LANES``; number ``first`` of each begins a line of the cache."""
    begin = -first % LANES
    return aligned(begin + rows * count, np.float64)[begin:].reshape(rows, count)
