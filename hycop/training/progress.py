"""How a run tells where it stands: one record after every step, to anyone who asked for it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Progress:
    """Where a run stands.

    ``loss`` is that of the last step, ``best`` the least so far, ``classical`` the best classical scheme within the
    allowed steps and work with ``classical_loss`` on the same queries; ``evaluations`` counts programs run for one
    query each since the run was started or resumed; ``share`` is the finished part of the work that was planned.
    """

    stage: str
    step: int
    of: int
    loss: float
    best: float
    classical: str
    classical_loss: float
    evaluations: int
    share: float


Report = Callable[[Progress], None]
"""A callback: a live view, or two lines that hand the numbers to TensorBoard, W&B or MLflow."""


class Meter:
    """Counts what a run does and reports it."""

    def __init__(self, report: Report) -> None:
        self._report = report
        self._classical, self._classical_loss = "", float("inf")
        self._best = float("inf")
        self._evaluations = 0
        self._planned, self._finished = 1, 0

    def plan(self, rounds: int, classical: str, classical_loss: float) -> None:
        """How many rounds there will be, and what there is to beat."""
        self._planned = max(1, rounds)
        self._classical, self._classical_loss = classical, classical_loss
        self._best = min(self._best, classical_loss)

    def evaluated(self, programs: int) -> None:
        self._evaluations += programs

    def round_done(self) -> None:
        self._finished += 1

    def tell(self, stage: str, step: int, of: int, loss: float, within: float = 0.0) -> None:
        """``within`` is the finished part of the round under way."""
        self._best = min(self._best, loss)
        share = min(1.0, (self._finished + within) / self._planned)
        entry = Progress(
            stage, step, of, loss, self._best, self._classical, self._classical_loss, self._evaluations, share
        )
        self._report(entry)
