"""Monolithic neural operators to compare with, one file each, trained by the loop of the learned primitives."""

from __future__ import annotations

from hycop.baselines.baseline import Baseline, BaselineError
from hycop.baselines.monolith import Monolith, UntrustedBaselineWarning, is_baseline, load_baseline
from hycop.baselines.registry import BASELINES, NOT_AVAILABLE, find_baseline
from hycop.baselines.training import train_baseline

__all__ = [
    "BASELINES",
    "NOT_AVAILABLE",
    "Baseline",
    "BaselineError",
    "Monolith",
    "UntrustedBaselineWarning",
    "find_baseline",
    "is_baseline",
    "load_baseline",
    "train_baseline",
]
