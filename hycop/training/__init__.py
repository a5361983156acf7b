"""Training: from a problem or a dataset to a policy that is never worse than the textbook."""

from __future__ import annotations

from hycop.training.config import PRESETS, TrainingConfig, configured
from hycop.training.gate import Gate
from hycop.training.loop import Task, Trained, train
from hycop.training.progress import Progress, Report
from hycop.training.recipe import Start

__all__ = [
    "PRESETS",
    "Gate",
    "Progress",
    "Report",
    "Start",
    "Task",
    "Trained",
    "TrainingConfig",
    "configured",
    "train",
]
