"""Formulas as lists of instructions, evaluated over many cells at once: data that runs, without any code in it."""

from __future__ import annotations

import math
from typing import Any

import numba
import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

NUMBER, CHANNEL, COEFFICIENT, ADD, SUBTRACT, MULTIPLY, DIVIDE, POWER = range(8)
SIN, COS, TAN, EXP, LOG, SQRT, TANH, SINH, COSH, ABS, SIGN = range(8, 19)
FUNCTIONS = {
    "sin": SIN,
    "cos": COS,
    "tan": TAN,
    "exp": EXP,
    "log": LOG,
    "sqrt": SQRT,
    "tanh": TANH,
    "sinh": SINH,
    "cosh": COSH,
    "abs": ABS,
}
"""What a formula may call, by name."""


@numba.njit(cache=True, nogil=True, error_model="numpy")
def evaluate(code, numbers, u, k, registers):  # type: ignore[no-untyped-def]
    """registers[n] = the value of instruction n (operation, a, b) in each cell.

    ``u`` is (channel, cell), ``k`` the coefficients. Outside its domain a function is NaN.
    """
    cells = u.shape[1]
    for n in range(code.shape[0]):
        kind, a, b = code[n, 0], code[n, 1], code[n, 2]
        out = registers[n]
        if kind == NUMBER:
            out[:cells] = numbers[a]
        elif kind == COEFFICIENT:
            out[:cells] = k[a]
        elif kind == CHANNEL:
            out[:cells] = u[a]
        elif kind <= POWER:
            _binary(kind, registers[a], registers[b], out, cells)
        else:
            _function(kind, registers[a], out, cells)


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _binary(kind, left, right, out, cells):  # type: ignore[no-untyped-def]
    if kind == ADD:
        for i in range(cells):
            out[i] = left[i] + right[i]
    elif kind == SUBTRACT:
        for i in range(cells):
            out[i] = left[i] - right[i]
    elif kind == MULTIPLY:
        for i in range(cells):
            out[i] = left[i] * right[i]
    elif kind == DIVIDE:
        for i in range(cells):
            out[i] = left[i] / right[i]
    else:
        for i in range(cells):
            out[i] = left[i] ** right[i]


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _function(kind, inner, out, cells):  # type: ignore[no-untyped-def]
    for i in range(cells):
        x = inner[i]
        if kind == SIN:
            out[i] = math.sin(x)
        elif kind == COS:
            out[i] = math.cos(x)
        elif kind == TAN:
            out[i] = math.tan(x)
        elif kind == EXP:
            out[i] = math.exp(x)
        elif kind == LOG:
            out[i] = np.log(x)
        elif kind == SQRT:
            out[i] = np.sqrt(x)
        elif kind == TANH:
            out[i] = math.tanh(x)
        elif kind == SINH:
            out[i] = math.sinh(x)
        elif kind == COSH:
            out[i] = math.cosh(x)
        elif kind == ABS:
            out[i] = abs(x)
        else:
            out[i] = np.sign(x)
