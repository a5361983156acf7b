"""Localized neural operator that takes one step and is rolled out, trained on single steps without noise."""

from __future__ import annotations

from hycop.baselines.baseline import Baseline

BASELINE = Baseline(
    "step-local-no",
    "LocalNO, rolled out",
    "local-no",
    "step",
    "Liu-Schiaffini et al.: Neural operators with localized integral and differential kernels, ICML 2024",
    settings={"pairs": "next"},
)
