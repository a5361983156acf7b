"""Counts what a training run does and reports its progress after every step."""

from __future__ import annotations

from hycop.progress import Progress, Report

__all__ = ["Meter", "Progress", "Report"]


class Meter:
    """Counts the programs that a run evaluates and reports its progress."""

    def __init__(self, report: Report) -> None:
        self._report = report
        self._classical, self._classical_loss = "", float("inf")
        self._best = float("inf")
        self._evaluations = 0
        self._planned, self._finished = 1, 0

    def plan(self, rounds: int, classical: str, classical_loss: float) -> None:
        """Sets the number of rounds and the classical scheme to beat."""
        self._planned = max(1, rounds)
        self._classical, self._classical_loss = classical, classical_loss
        self._best = min(self._best, classical_loss)

    def evaluated(self, programs: int) -> None:
        self._evaluations += programs

    def round_done(self) -> None:
        self._finished += 1

    def tell(self, stage: str, step: int, of: int, loss: float, within: float = 0.0) -> None:
        """Reports a step; ``within`` is the finished fraction of the current round."""
        self._best = min(self._best, loss)
        share = min(1.0, (self._finished + within) / self._planned)
        entry = Progress(
            stage, step, of, loss, self._best, self._classical, self._classical_loss, self._evaluations, share
        )
        self._report(entry)
