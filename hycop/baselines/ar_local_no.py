"""Localized neural operator that takes one step and is rolled out: teacher forcing, noise of 0.001 on its inputs."""

from __future__ import annotations

from hycop.baselines.baseline import Baseline

BASELINE = Baseline(
    "ar-local-no",
    "AR-LocalNO",
    "local-no",
    "step",
    "Liu-Schiaffini et al., ICML 2024, trained as in Tran et al.: Factorized Fourier neural operators, ICLR 2023",
    settings={"pairs": "next", "noise": 0.001},
)
