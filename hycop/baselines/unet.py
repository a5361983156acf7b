"""U-Net at one query time: 4 levels, first width 16."""

from __future__ import annotations

from hycop.baselines.baseline import Baseline

BASELINE = Baseline(
    "unet",
    "U-Net",
    "unet",
    "fixed",
    "Ronneberger, Fischer, Brox: U-Net: convolutional networks for biomedical image segmentation, MICCAI 2015",
)
