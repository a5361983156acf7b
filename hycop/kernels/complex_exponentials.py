"""exp(growth + i·turn) of many numbers: a loop that is vectorised, four times as fast as one number after the other.

Growth and turn are brought near zero by multiples of log 2 and π/2 in parts that are exact (Cody and Waite, Software
Manual for the Elementary Functions, 1980); what remains goes through polynomials. Errors stay below 4·10⁻¹⁶ of
exp(growth).
"""

from __future__ import annotations

import math
from typing import Any

import numba
import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

LEAST, MOST = -700.0, 709.0
"""Growth below which the result is zero, and above which it is infinite."""

LARGEST_TURN = 1e6
"""Turns up to which multiples of π/2 are exact; beyond it the C library is asked."""

TO_WHOLE = 1.5 * 2.0**52
"""Added and subtracted, it rounds to a whole number."""

PER_LOG_2, LOG_2, LOG_2_REST = 1.0 / math.log(2.0), 6.93147180369123816490e-01, 1.90821492927058770002e-10
PER_QUARTER, QUARTER = 2.0 / math.pi, (1.5707963267341256, 6.077100506303966e-11, 2.0222662487959506e-21)
FACTORIALS = tuple(1.0 / math.factorial(k) for k in range(19))


@numba.njit(cache=True, nogil=True, error_model="numpy")
def complex_exponentials(lines: Array, count: int) -> None:
    """Real and imaginary parts, lines 2 and 3, of exp(growth + i·turn) for the first numbers of lines 0 and 1; NaN
    stays NaN, but what has faded is zero whatever its turn."""
    f, far = FACTORIALS, 0
    for k in range(count):
        growth = lines[0, k]
        far += abs(lines[1, k]) > LARGEST_TURN
        x = LEAST if growth < LEAST else MOST if growth > MOST else growth
        whole = (x * PER_LOG_2 + TO_WHOLE) - TO_WHOLE
        r = (x - whole * LOG_2) - whole * LOG_2_REST
        high = f[8] + r * (f[9] + r * (f[10] + r * (f[11] + r * (f[12] + r * f[13]))))
        low = 1.0 + r * (1.0 + r * (f[2] + r * (f[3] + r * (f[4] + r * (f[5] + r * (f[6] + r * f[7]))))))
        square = r * r
        fourth = square * square
        size = (low + fourth * fourth * high) * np.int64((np.int64(whole) + 1023) << 52).view(np.float64)
        size = 0.0 if growth < LEAST else math.inf if growth > MOST else size
        angle = 0.0 if growth < LEAST else lines[1, k]
        quarters = (angle * PER_QUARTER + TO_WHOLE) - TO_WHOLE
        y = ((angle - quarters * QUARTER[0]) - quarters * QUARTER[1]) - quarters * QUARTER[2]
        z = y * y
        sine = f[7] - z * (f[9] - z * (f[11] - z * (f[13] - z * f[15])))
        sine = y - y * z * (f[3] - z * (f[5] - z * sine))
        cosine = f[8] - z * (f[10] - z * (f[12] - z * (f[14] - z * f[16])))
        cosine = 1.0 - z * (0.5 - z * (f[4] - z * (f[6] - z * cosine)))
        corner = np.int64(quarters) & 3
        odd = (corner & 1) == 1
        a, b = sine if odd else cosine, cosine if odd else sine
        lines[2, k] = size * (-a if corner == 1 or corner == 2 else a)
        lines[3, k] = size * (-b if corner >= 2 else b)
    for k in range(count if far else 0):  # each by itself: the others must not tell
        if abs(lines[1, k]) > LARGEST_TURN:
            size = 0.0 if lines[0, k] < LEAST else math.exp(lines[0, k])
            if size == 0.0:
                lines[2, k] = lines[3, k] = 0.0
            else:
                lines[2, k], lines[3, k] = size * math.cos(lines[1, k]), size * math.sin(lines[1, k])
