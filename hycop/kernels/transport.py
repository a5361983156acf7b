"""Conservative transport u_t + ∇·(c u) = 0 with a velocity for each face: upwind or MUSCL, any ends of the axes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numba
import numpy as np
import numpy.typing as npt

from hycop.kernels.sides import DIRICHLET, NEUMANN, PERIODIC, WALL, Ends, add, in_three_axes, lines_of, neighbours
from hycop.kernels.threads import in_parts

Array = npt.NDArray[Any]


def face_velocities(velocity: Array, axis: int, periodic: bool) -> Array:
    """Velocities (batch, …, n + 1, …) at the faces along an axis, from those of the cells (batch, *grid)."""
    low, high = neighbours(velocity, axis, periodic)
    return 0.5 * (low + high)


@numba.njit(cache=True, nogil=True, inline="always", error_model="numpy")
def _limited(before: float, here: float, after: float, reach: float) -> float:
    """Value of the middle cell ``reach`` half widths from its centre, with van Leer's slope: zero at an extremum."""
    left, right = here - before, after - here
    product = left * right
    return here + reach * (product / (left + right) if product > 0.0 else 0.0)


@numba.njit(cache=True, nogil=True, inline="always")
def _ghost(end: float, inside: float, code: int, value: float, width: float, enters: bool) -> float:
    """The cell beyond the end of an axis that is not periodic. A value is held only where something enters; where it
    leaves, a straight line is continued."""
    if code == DIRICHLET:
        return 2.0 * value - end if enters else 2.0 * end - inside
    return end + value * width if code == NEUMANN else end


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _subtract_fluxes(v, nu, change, codes, values, width, slopes):  # type: ignore[no-untyped-def]
    """change −= what leaves − what enters, along the middle axis of v (before, n, after); nu (before, n + 1, after)
    are Courant numbers of the faces."""
    n = v.shape[1]
    low, high = codes
    for o in range(v.shape[0]):
        for i in range(n + 1):
            end = i == 0 or i == n
            if end and (low if i == 0 else high) == WALL:
                continue
            for k in range(v.shape[2]):
                courant = nu[o, i, k]
                up, step = (i - 1, 1) if courant > 0.0 else (i, -1)
                if low == PERIODIC:
                    here, back, ahead = v[o, up % n, k], v[o, (up - step) % n, k], v[o, (up + step) % n, k]
                    face = _limited(back, here, ahead, slopes)
                elif up < 0 or up >= n:  # something enters: the value at the end, whatever lies beyond it
                    here = v[o, 0 if up < 0 else n - 1, k]
                    code, value = (low, values[0]) if up < 0 else (high, values[1])
                    face = value if code == DIRICHLET else here + 0.5 * value * width if code == NEUMANN else here
                else:
                    here = v[o, up, k]
                    if up > 0:
                        before = v[o, up - 1, k]
                    else:
                        before = _ghost(here, v[o, min(1, n - 1), k], low, values[0], width, nu[o, 0, k] > 0.0)
                    if up < n - 1:
                        after = v[o, up + 1, k]
                    else:
                        after = _ghost(here, v[o, max(n - 2, 0), k], high, values[1], width, nu[o, n, k] < 0.0)
                    face = _limited(before, here, after, step * slopes)
                flux = courant * face
                if i > 0:
                    change[o, i - 1, k] -= flux
                if i < n:
                    change[o, i, k] += flux


@numba.njit(cache=True, nogil=True)
def _change(v, nu1, nu2, nu3, out, codes, values, widths, slopes):  # type: ignore[no-untyped-def]
    """out = −Σ_axis (what leaves − what enters a cell of v)."""
    n1, n2, n3 = v.shape
    out[:] = 0.0
    shape = (1, n1, n2 * n3)
    if nu1.shape[1]:
        _subtract_fluxes(v.reshape(shape), nu1, out.reshape(shape), codes[0], values[0], widths[0], slopes)
    if nu2.shape[1]:
        _subtract_fluxes(v, nu2, out, codes[1], values[1], widths[1], slopes)
    shape = (n1 * n2, n3, 1)
    _subtract_fluxes(v.reshape(shape), nu3, out.reshape(shape), codes[2], values[2], widths[2], slopes)


@numba.njit(cache=True, nogil=True)
def _advance(first, last, u, out, nu1, nu2, nu3, steps, codes, values, widths, muscl):  # type: ignore[no-untyped-def]
    """Samples first … last − 1 through all their sub-steps: Euler's for upwind, Heun's for MUSCL."""
    slopes = 1.0 if muscl else 0.0
    shape = u.shape[2:]
    cells = shape[0] * shape[1] * shape[2]
    middle, change = np.empty(shape), np.empty(shape)
    for sample in range(first, last):
        faces, width = (nu1[sample], nu2[sample], nu3[sample]), widths[sample]
        for channel in range(u.shape[1]):
            held, v = values[:, :, channel].copy(), u[sample, channel].copy()
            for _ in range(steps[sample]):
                _change(v, faces[0], faces[1], faces[2], change, codes, held, width, slopes)
                if muscl:
                    middle[:] = v
                    add(middle.reshape(cells), 1.0, change.reshape(cells))
                    add(v.reshape(cells), 0.5, change.reshape(cells))
                    _change(middle, faces[0], faces[1], faces[2], change, codes, held, width, slopes)
                    add(v.reshape(cells), 0.5, change.reshape(cells))
                else:
                    add(v.reshape(cells), 1.0, change.reshape(cells))
            out[sample, channel] = v


@numba.njit(cache=True, nogil=True)
def _rates(first, last, u, out, nu1, nu2, nu3, codes, values, widths, slopes):  # type: ignore[no-untyped-def]
    for sample in range(first, last):
        for channel in range(u.shape[1]):
            held = values[:, :, channel].copy()
            faces = nu1[sample], nu2[sample], nu3[sample]
            v, change = u[sample, channel], out[sample, channel]
            _change(v, faces[0], faces[1], faces[2], change, codes, held, widths[sample], slopes)


def transport(u: Array, courant: Sequence[Array], steps: Array, ends: Ends, widths: Array, muscl: bool) -> Array:
    """``steps`` sub-steps per sample; ``courant`` has the Courant numbers at the faces of each axis, ``widths``
    (batch, 3) the widths of the cells."""
    state, out = in_three_axes(u), np.empty(in_three_axes(u).shape)
    nu1, nu2, nu3 = lines_of(courant)
    in_parts(
        lambda first, last: _advance(first, last, state, out, nu1, nu2, nu3, steps, *ends, widths, muscl),
        u.shape[0],
        2.0 * state[:1].size * steps.sum(),
    )
    return out.reshape(u.shape).astype(u.dtype, copy=False)


def transport_rates(u: Array, speeds: Sequence[Array], ends: Ends, widths: Array, muscl: bool) -> Array:
    """du/dt of the semi-discrete scheme; ``speeds`` are c/Δx at the faces."""
    state, out = in_three_axes(u), np.empty(in_three_axes(u).shape)
    nu1, nu2, nu3 = lines_of(speeds)
    slopes = 1.0 if muscl else 0.0
    in_parts(
        lambda first, last: _rates(first, last, state, out, nu1, nu2, nu3, *ends, widths, slopes),
        u.shape[0],
        state.size,
    )
    return out.reshape(u.shape).astype(u.dtype, copy=False)
