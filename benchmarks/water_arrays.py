"""Shallow water in a periodic plane with whole arrays, for PyTorch and JAX alike: the scheme of HyCOP's kernels,
without what keeps near-dry beds wet, which smooth queries never need and which would only slow the opponents down.

A state is its channels (h, hu, hv), each (program, row, cell). A step of gravity waves or of
momentum is one of MUSCL–Hancock, or three Runge–Kutta stages with WENO5.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

CFL = {"hancock": 0.9, "weno5": 0.5}
KEEPS = (0.0, 0.75, 1.0 / 3.0)
TINY, ROUNDING = 1e-40, 1e-12
Channels = tuple[Any, Any, Any]
Edges = Mapping[int, tuple[Any, Any]]


@dataclass(frozen=True, eq=False)
class Functions:
    """What differs between the packages."""

    cat: Callable[..., Any]
    where: Callable[..., Any]
    maximum: Callable[..., Any]
    minimum: Callable[..., Any]
    copysign: Callable[..., Any]
    sqrt: Callable[..., Any]
    ceil: Callable[..., Any]
    positive: Callable[..., Any]
    negative: Callable[..., Any]
    largest: Callable[..., Any]

    @classmethod
    def of_torch(cls, torch: Any) -> Functions:
        return cls(
            torch.cat,
            torch.where,
            torch.maximum,
            torch.minimum,
            torch.copysign,
            torch.sqrt,
            torch.ceil,
            lambda x: torch.clamp_min(x, 0.0),
            lambda x: torch.clamp_max(x, 0.0),
            lambda x: torch.amax(x, (1, 2)),
        )

    @classmethod
    def of_jax(cls, jax: Any) -> Functions:
        np = jax.numpy
        return cls(
            np.concatenate,
            np.where,
            np.maximum,
            np.minimum,
            np.copysign,
            np.sqrt,
            np.ceil,
            lambda x: np.maximum(x, 0.0),
            lambda x: np.minimum(x, 0.0),
            lambda x: np.max(x, (1, 2)),
        )


def _padded(f: Functions, u: Any, ghosts: int) -> Any:
    u = f.cat([u[:, -ghosts:], u, u[:, :ghosts]], 1)
    return f.cat([u[:, :, -ghosts:], u, u[:, :, :ghosts]], 2)


def _part(u: Any, axis: int, first: int, less: int) -> Any:
    """Cells along an axis from ``first`` on, ``less`` fewer than there are."""
    some = slice(first, u.shape[axis] - less + first)
    return u[:, some] if axis == 1 else u[:, :, some]


def _inside(u: Any, axis: int, ghosts: int) -> Any:
    """Without the ghosts of the other axis."""
    return u[:, :, ghosts:-ghosts] if axis == 1 else u[:, ghosts:-ghosts]


def _weno5(u: Any, axis: int) -> tuple[Any, Any]:
    """Both edges of all cells but two at each end (Borges et al. 2008)."""
    a, b, c, d, e = (_part(u, axis, first, 4) for first in range(5))
    p, q, r, s = b - a, c - b, d - c, e - d
    rough0 = 13.0 / 12.0 * (q - p) ** 2 + 0.25 * (3.0 * q - p) ** 2 + TINY
    rough1 = 13.0 / 12.0 * (r - q) ** 2 + 0.25 * (q + r) ** 2 + TINY
    rough2 = 13.0 / 12.0 * (s - r) ** 2 + 0.25 * (3.0 * r - s) ** 2 + TINY
    tau = abs(rough0 - rough2)
    outer = rough0 * rough2
    scaled = tau / (outer * rough1)
    weight0 = 1.0 + (scaled * (rough1 * rough2)) ** 2
    weight1 = 6.0 * (1.0 + (scaled * outer) ** 2)
    weight2 = 1.0 + (scaled * (rough1 * rough0)) ** 2
    fall = weight2 * (5.0 * r - 2.0 * s) + 3.0 * weight0 * (4.0 * q - p) + weight1 * (r + 2.0 * q)
    rise = weight0 * (5.0 * q - 2.0 * p) + 3.0 * weight2 * (4.0 * r - s) + weight1 * (q + 2.0 * r)
    down, up = weight2 + 3.0 * weight0 + weight1, weight0 + 3.0 * weight2 + weight1
    scale = 1.0 / (6.0 * (down * up))
    return c - fall * (up * scale), c + rise * (down * scale)


def _central(f: Functions, u: Any, axis: int) -> tuple[Any, Any]:
    """Both edges of all cells but one at each end, with the monotonised central slope."""
    b, c, d = (_part(u, axis, first, 2) for first in range(3))
    left, right = c - b, d - c
    size = f.minimum(f.minimum(abs(left), abs(right)), 0.25 * abs(left + right))
    half = f.where(left * right > 0.0, f.copysign(size, left), 0.0 * size)
    return c - half, c + half


def _fluxes(f: Functions, gravity: bool, edges: Edges, axis: int, g: Any) -> dict[int, Any]:
    """Fluxes of the channels through the faces between neighbours along an axis."""
    left = {c: _part(upper, axis, 0, 1) for c, (_, upper) in edges.items()}
    right = {c: _part(lower, axis, 1, 1) for c, (lower, _) in edges.items()}
    if gravity:
        h0, h1, m0, m1 = left[0], right[0], left[axis], right[axis]
        speed = f.sqrt(g * f.maximum(h0, h1))
        return {
            0: 0.5 * ((m0 + m1) - speed * (h1 - h0)),
            axis: 0.5 * (0.5 * g * (h0 * h0 + h1 * h1) - speed * (m1 - m0)),
        }
    other = 3 - axis
    ahead, back = f.positive(left[axis]), f.negative(right[axis])
    out, into = ahead / left[0], back / right[0]
    return {axis: f.maximum(ahead * out, back * into), other: out * left[other] + into * right[other]}


def _changed(channels: Channels, changes: list[dict[int, Any]]) -> list[Any]:
    out = list(channels)
    for change in changes:
        for c, each in change.items():
            out[c] = out[c] - each
    return out


def _difference(u: Any, axis: int) -> Any:
    return _part(u, axis, 1, 1) - _part(u, axis, 0, 1)


def euler(f: Functions, gravity: bool, channels: Channels, ratio: Channels, g: Any) -> list[Any]:
    """An Euler stage with WENO5; ``ratio`` holds τ/Δx of each axis at its place."""
    wide = [_padded(f, u, 3) for u in channels]
    changes = []
    for axis in (1, 2):
        used = (0, axis) if gravity else (0, 1, 2)
        edges = {c: _weno5(_inside(wide[c], axis, 3), axis) for c in used}
        fluxes = _fluxes(f, gravity, edges, axis, g)
        changes.append({c: ratio[axis] * _difference(flux, axis) for c, flux in fluxes.items()})
    return _changed(channels, changes)


def weno5_step(f: Functions, gravity: bool, channels: Channels, ratio: Channels, g: Any) -> list[Any]:
    now = list(channels)
    for keep in KEEPS:
        stage = euler(f, gravity, tuple(now), ratio, g)  # type: ignore[arg-type]
        now = [keep * u + (1.0 - keep) * v if keep else v for u, v in zip(channels, stage, strict=True)]
    return now


def _half_change(gravity: bool, edges: Edges, axis: int, half: Any, g: Any) -> dict[int, Any]:
    (h0, h1), (m0, m1) = edges[0], edges[axis]
    if gravity:
        return {0: half * (m1 - m0), axis: half * (0.5 * g * ((h1 - h0) * (h1 + h0)))}
    return {c: half * (edges[c][1] * (m1 / h1) - edges[c][0] * (m0 / h0)) for c in (1, 2)}


def hancock_step(f: Functions, gravity: bool, channels: Channels, ratio: Channels, g: Any) -> list[Any]:
    """MUSCL–Hancock: edges of the cells and of one ghost all around, at half the step."""
    wide = [_padded(f, u, 2) for u in channels]
    edges: dict[int, dict[int, tuple[Any, Any]]] = {}
    change: dict[int, Any] = {}
    for axis in (1, 2):
        used = (0, axis) if gravity else (0, 1, 2)
        edges[axis] = {c: _central(f, _inside(wide[c], axis, 1), axis) for c in used}
        for c, each in _half_change(gravity, edges[axis], axis, 0.5 * ratio[axis], g).items():
            change[c] = change[c] + each if c in change else each
    changes = []
    for axis in (1, 2):
        moved = {
            c: tuple(_inside(each - change[c] if c in change else each, axis, 1) for each in both)
            for c, both in edges[axis].items()
        }
        fluxes = _fluxes(f, gravity, moved, axis, g)  # type: ignore[arg-type]
        changes.append({c: ratio[axis] * _difference(flux, axis) for c, flux in fluxes.items()})
    return _changed(channels, changes)


STEPS = {"hancock": hancock_step, "weno5": weno5_step}


def fastest(f: Functions, gravity: bool, channels: Channels, dx: tuple[float, float], g: Any) -> Any:
    """The largest Σ_axis speed/Δx of each program, (program,)."""
    h, a, b = channels
    if gravity:
        return f.largest(f.sqrt(g * h)) * (1.0 / dx[0] + 1.0 / dx[1])
    return f.largest(2.0 / h * (abs(b) / dx[1] + abs(a) / dx[0]))


def sub_step(f: Functions, remaining: Any, rate: Any, cfl: float) -> Any:
    steps = f.ceil(remaining * rate / cfl * (1.0 - ROUNDING))
    return remaining / f.where(steps > 1.0, steps, 1.0 + 0.0 * steps)
