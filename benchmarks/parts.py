"""What the parts of an answer take, for rows whose goal is out of reach: the steps of a program on a small periodic box
in either precision, and what ``predict`` does before and after it runs its programs."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from functools import partial
from statistics import median
from typing import Any

import numba
import numpy as np

from hycop.features import Observed
from hycop.grid import Array
from hycop.kernels.complex_exponentials import complex_exponentials
from hycop.kernels.convolution import fill, from_blocks, into_blocks, multiply, parts_of, rings, waves, workspace
from hycop.kernels.lanes import room
from hycop.kernels.reaction import grow
from hycop.query import Query
from hycop.surrogate import HyCOP

EXPONENTIALS, RINGS, PRODUCTS, GROWTH, COPIES = range(5)
TIMES, ROUNDS = 2000, 15


@numba.njit(error_model="numpy")
def _repeated(part: int, times: int, u: Array, out: Array, along: Array, decay: float) -> None:
    n = u.shape[2]
    p = parts_of(n)
    (down, left), (across, right) = rings(n, u.dtype), rings(n, u.dtype)
    modes = n // 2 + 1
    lines, values = np.zeros((4, room(2 * modes))), np.empty(room(n))
    blocks, flat, parts, stack, tall, other, tall_other = workspace(1, p, p, n // p, n // p, u.dtype)
    into_blocks(u, 0, blocks)
    for k in range(2 * modes):
        lines[0, k] = decay * (k % modes)
    complex_exponentials(lines, lines.shape[1])
    fill(lines, 0, along, across, values)
    fill(lines, modes, along, down, values)
    for i in range(times):
        if part == EXPONENTIALS:
            complex_exponentials(lines, lines.shape[1])
        elif part == RINGS:
            fill(lines, 0, along, across, values)
            fill(lines, modes, along, down, values)
        elif part == PRODUCTS:
            multiply(parts, stack, tall, other, tall_other, 0, left, right)
        elif part == GROWTH:
            grow(flat, decay)
        else:
            into_blocks(u, i % u.shape[0], blocks)
            from_blocks(blocks, out, i % u.shape[0])


def of_program(cells: int, convolutions: int, growths: int) -> str:
    """Microseconds of the parts of one program, in double and in single precision."""
    told = []
    counts = {"products": (PRODUCTS, convolutions), "growth": (GROWTH, growths), "state in and out": (COPIES, 1)}
    for name, (part, count) in counts.items():
        double, single = (count * _seconds_of(part, cells, kind) for kind in (np.float64, np.float32))
        told.append(f"{name} {1e6 * double:.2g} and {1e6 * single:.2g}")
    always = convolutions * sum(_seconds_of(part, cells, np.float64) for part in (EXPONENTIALS, RINGS))
    return f"µs of a program in double and single: {', '.join(told)}; amplitudes, always in double, {1e6 * always:.2g}"


def _seconds_of(part: int, cells: int, kind: Any) -> float:
    u = np.random.default_rng(0).random((8, 1, cells, cells)).astype(kind)
    call = partial(_repeated, part, TIMES, u, np.empty_like(u), waves(cells), -1e-3)
    return _median(call) / TIMES


def of_answer(model: HyCOP, u0: Array, params: Mapping[str, object], times: list[float]) -> str:
    """Microseconds of what ``predict`` does beside the run of its programs."""
    inner = model.model
    asked: Query = model.query(u0, params, times)
    calls: dict[str, Callable[[], object]] = {
        "query and checks": lambda: model.query(u0, params, times),
        "features": lambda: inner.scope.view.values(Observed(asked, inner.equation)),
        "features, policy and scope": lambda: inner.compose(asked),
    }
    told = ", ".join(f"{name} {1e6 * _median(call):.0f}" for name, call in calls.items())
    return f"µs: {told}"


def _median(call: Callable[[], object]) -> float:
    call()
    took = []
    for _ in range(ROUNDS):
        start = time.process_time()
        call()
        took.append(time.process_time() - start)
    return median(took)
