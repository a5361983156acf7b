"""Training learned primitives, and judging them."""

from __future__ import annotations

from hycop.pretraining.config import PRESETS, PretrainingConfig, configured
from hycop.pretraining.judging import NetworkRow, judged
from hycop.pretraining.pretrain import Lesson, pretrain, trained
from hycop.pretraining.task import Steps, Task

__all__ = [
    "PRESETS",
    "Lesson",
    "NetworkRow",
    "PretrainingConfig",
    "Steps",
    "Task",
    "configured",
    "judged",
    "pretrain",
    "trained",
]
