"""The report of the conformance suite."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from hycop.errors import HyCOPError, UnknownNameError


class ConformanceError(HyCOPError):
    """A primitive does not keep its contract."""


class Check(NamedTuple):
    """One property of a primitive: whether it holds, with the number measured and the one demanded."""

    name: str
    passed: bool
    detail: str

    def __str__(self) -> str:
        return f"{'ok  ' if self.passed else 'FAIL'}  {self.name:<17} {self.detail}"


@dataclass(frozen=True)
class Report:
    """The outcome of all checks of one primitive; prints as a table, one line a check."""

    primitive: str
    checks: tuple[Check, ...]

    @property
    def passed(self) -> bool:
        return not self.failures

    @property
    def failures(self) -> tuple[Check, ...]:
        return tuple(check for check in self.checks if not check.passed)

    def __iter__(self) -> Iterator[Check]:
        return iter(self.checks)

    def __len__(self) -> int:
        return len(self.checks)

    def __getitem__(self, name: str) -> Check:
        found = {check.name: check for check in self.checks}
        if name not in found:
            raise UnknownNameError("check", name, found)
        return found[name]

    def __str__(self) -> str:
        count = f"{len(self) - len(self.failures)} of {len(self)} checks passed"
        return "\n".join([f"{self.primitive}: {count}", *(str(check) for check in self)])

    def raise_if_failed(self) -> None:
        if not self.passed:
            reasons = "; ".join(f"{check.name}: {check.detail}" for check in self.failures)
            raise ConformanceError(f"{self.primitive} does not keep its contract: {reasons}")
