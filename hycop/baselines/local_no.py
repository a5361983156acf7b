"""Localized neural operator (Loc. Int. Diff. FNO) at one query time: Fourier, local integral and differential kernels
in every layer. In 1D there is no local integral kernel, only the differential one."""

from __future__ import annotations

from hycop.baselines.baseline import Baseline

BASELINE = Baseline(
    "local-no",
    "LocalNO",
    "local-no",
    "fixed",
    "Liu-Schiaffini et al.: Neural operators with localized integral and differential kernels, ICML 2024",
    remark="in 1D only the differential kernel exists",
)
