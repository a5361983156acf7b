"""U-Net that takes one step and is rolled out: teacher forcing, noise of 0.001 on its inputs."""

from __future__ import annotations

from hycop.baselines.baseline import Baseline

BASELINE = Baseline(
    "ar-unet",
    "AR-U-Net",
    "unet",
    "step",
    "Ronneberger, Fischer, Brox, MICCAI 2015, trained as in Tran et al.: Factorized Fourier neural operators, 2023",
    settings={"pairs": "next", "noise": 0.001},
)
