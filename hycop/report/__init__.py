"""One self-contained HTML page for a run: what was learned, how well, and where not to trust it."""

from __future__ import annotations

from hycop.report.writing import write_report

__all__ = ["write_report"]
