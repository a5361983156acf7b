"""Fourier neural operator at one query time, of PDEBench's size: width 20, 12 modes of each sign, 4 layers."""

from __future__ import annotations

from hycop.baselines.baseline import Baseline

BASELINE = Baseline(
    "fno",
    "FNO",
    "fno",
    "fixed",
    "Li et al.: Fourier neural operator for parametric partial differential equations, ICLR 2021",
)
