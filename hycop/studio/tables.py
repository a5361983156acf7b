"""The texts of the page: what is known about the answer, and the comparison."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from math import isfinite, log10

from hycop.studio.question import Estimated, Judged, Question

LEAST_SHOWN, MOST_SHOWN = 1e-8, 1.0
"""Errors between which the bars of the comparison grow."""


def status_line(question: Question, estimate: Estimated | None) -> str:
    """Whether to trust the answer, its estimated error once that is known, its work and time, and what was swapped."""
    outside = question.outside
    if outside:
        trust = f"<p class='alert' role='status'><b>Not to be trusted</b>: {escape('; '.join(outside))}</p>"
    else:
        trust = "<p class='good' role='status'><b>Inside training</b></p>"
    error, meaning = "…", "being estimated"
    if estimate is not None:
        error, meaning = number(estimate.error), estimate.meaning
    changes = "".join(f"<p class='help'>{escape(line)}</p>" for line in question.changes)
    return (
        f"<div class='facts'><span>estimated error <b class='estimate'>{error}</b> "
        f"<span class='help'>({escape(meaning)})</span></span>"
        f"<span>work <b>{question.own.work:.4g}</b></span>"
        f"<span>answered in <b>{1e3 * question.seconds:.0f} ms</b></span></div>{trust}{changes}"
    )


def comparison_table(rows: Sequence[Judged], judge: str, shown: str) -> str:
    """A table of method, steps, work and error, the program that is shown in bold."""
    lines = [_line(row, row.name == shown) for row in rows]
    return (
        f"<table><thead><tr><th scope='col'>program</th><th scope='col' class='number'>steps</th>"
        f"<th scope='col' class='number'>work</th><th scope='col' class='number'>error</th><th scope='col'>"
        f"error (log)</th></tr></thead><tbody>{''.join(lines)}</tbody></table>"
        f"<p class='help'>Relative error at T against the {escape(judge)}."
        f"{'' if judge == 'truth' else ' Solve the truth to be sure; it may take seconds.'}</p>"
    )


def number(error: float) -> str:
    return f"{error:.2e}" if isfinite(error) else "unknown"


def _line(row: Judged, shown: bool) -> str:
    name = escape(row.name)
    if row.error is None:
        return f"<tr><td>{name}</td><td colspan='4'>{escape(row.remark)}</td></tr>"
    share = 0.0
    if row.error > 0:
        least, most = log10(LEAST_SHOWN), log10(MOST_SHOWN)
        share = 1.0 if not isfinite(row.error) else min(1.0, max(0.02, (log10(row.error) - least) / (most - least)))
    remark = f" <span class='help'>({escape(row.remark)})</span>" if row.remark else ""
    return (
        f"<tr class='{'shown' if shown else ''}'><td>{name}</td><td class='number'>{row.steps}</td>"
        f"<td class='number'>{row.work:.3g}</td><td class='number error'>{number(row.error)}{remark}</td>"
        f"<td><span class='bar' style='width:{90 * share:.0f}px'></span></td></tr>"
    )
