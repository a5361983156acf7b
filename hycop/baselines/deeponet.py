"""DeepONet at one query time: a convolutional branch, a trunk over coordinates, 128 basis functions, width 256."""

from __future__ import annotations

from hycop.baselines.baseline import Baseline

BASELINE = Baseline(
    "deeponet",
    "DeepONet",
    "deeponet",
    "fixed",
    "Lu et al.: Learning nonlinear operators via DeepONet, Nature Machine Intelligence 3, 2021",
)
