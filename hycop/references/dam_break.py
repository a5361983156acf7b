"""Exact dam breaks over a flat bed: Stoker (Water Waves, 1957) onto water at rest, Ritter (1892) onto a dry bed.

Water of depth h_l at rest is held at x = 0, with h_r < h_l beyond. With c_l = √(g h_l), ξ = x/t and the dam gone,

    h = (2c_l − ξ)²/9g,   u = ⅔(c_l + ξ)     for −c_l ≤ ξ ≤ u_m − c_m      (rarefaction)
    h = h_m,              u = u_m            for u_m − c_m ≤ ξ ≤ S          (plateau behind a shock)

where u_m = 2(c_l − c_m) = (h_m − h_r)√(g(h_m + h_r)/2h_m h_r) and S = h_m u_m/(h_m − h_r). On a dry bed the rarefaction
goes on to its end at ξ = 2c_l. Valid until a wave comes back from a wall.
"""

from __future__ import annotations

from math import sqrt

import numpy as np

from hycop.errors import InvalidInputError
from hycop.grid import Array


def straight_dam(faces: Array, time: float, deep: float, shallow: float, g: float) -> Array:
    """Averages of h and hu, (2, cells), over the cells between increasing ``faces`` measured from the dam."""
    if not (deep > shallow >= 0 and g > 0 and time >= 0):
        raise InvalidInputError(
            f"depths {deep} and {shallow}, g {g}, time {time}: deep > shallow >= 0, g > 0 and time >= 0 are needed"
        )
    totals = _totals(np.asarray(faces, dtype=np.float64), time, deep, shallow, g)
    out: Array = np.diff(totals, axis=1) / np.diff(faces)
    return out


def middle_depth(deep: float, shallow: float, g: float) -> float:
    """Depth h_m of the plateau between the rarefaction and the shock."""
    from scipy.optimize import brentq  # takes a second to import

    def mismatch(h: float) -> float:
        return 2 * (sqrt(g * deep) - sqrt(g * h)) - (h - shallow) * sqrt(g * (h + shallow) / (2 * h * shallow))

    return float(brentq(mismatch, shallow, deep, xtol=1e-15 * deep, rtol=8.9e-16))


def _totals(x: Array, t: float, deep: float, shallow: float, g: float) -> Array:
    """∫ h and ∫ hu from the head of the rarefaction to each x, (2, x)."""
    c = sqrt(g * deep)
    if shallow > 0:
        plateau = middle_depth(deep, shallow, g)
        speed = 2 * (c - sqrt(g * plateau))
        tail, front = speed - sqrt(g * plateau), plateau * speed / (plateau - shallow)
    else:
        plateau, speed, tail, front = 0.0, 0.0, 2 * c, 2 * c
    before = np.minimum(x + c * t, 0.0)
    along = np.clip(x, -c * t, tail * t)
    within, beyond = np.clip(x - tail * t, 0.0, (front - tail) * t), np.maximum(x - front * t, 0.0)
    s = 2 * c - along / t if t > 0 else np.full_like(x, 3 * c)
    depth = t * ((3 * c) ** 3 - s**3) / (27 * g)
    momentum = t * 2 / (27 * g) * (c * ((3 * c) ** 3 - s**3) - ((3 * c) ** 4 - s**4) / 4)
    return np.stack([deep * before + depth + plateau * within + shallow * beyond, momentum + plateau * speed * within])
