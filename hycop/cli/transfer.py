"""Commands that change a model without training: swap."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from hycop.cli.common import (
    BoundaryOption,
    JsonOption,
    app,
    boundary_of,
    pairs_of,
    report_json,
)
from hycop.cli.terminal import say
from hycop.errors import NonFiniteStateError, OutputError
from hycop.model import MOST_FINER
from hycop.problems import PROBLEMS
from hycop.surrogate import HyCOP
from hycop.transfer import ELSEWHERE, swap, unsettled

ASKED = 8
"""Queries on which a swapped model is compared with itself."""

WORSE = 5.0
"""Growth of that difference by a swap from which on finer programs are advised."""


@app.command(name="swap")
def swap_command(
    folder: Annotated[Path, typer.Argument(metavar="RUN", help="Folder of a trained model.")],
    target: Annotated[Path, typer.Argument(metavar="OUT", help="Folder for the new model.")],
    boundary: BoundaryOption = None,
    primitive: Annotated[
        list[str] | None,
        typer.Option(help="NAME=OTHER: another primitive, or a dictionary of the problem that has it; repeatable."),
    ] = None,
    auto: Annotated[
        bool, typer.Option("--auto", help="Replace primitives that do not know the boundary by those that do.")
    ] = False,
    finer: Annotated[
        int | None,
        typer.Option(
            help="Repeat programs so many times as often, for boxes in which less commutes. "
            f"Default: {ELSEWHERE} times what it was if the swap leaves the trained boundary."
        ),
    ] = None,
    json_file: JsonOption = None,
) -> None:
    """Write a model with other boundaries or primitives: same policy, nothing retrained.

    Example: hycop swap runs/swe runs/swe-walls --boundary wall
    Example: hycop swap runs/adr runs/adr-walls --boundary wall --auto
    """
    if target.exists():
        raise OutputError(f"{target}: exists already; choose another folder")
    given = {name: str(other) for name, other in pairs_of(primitive, "--primitive", "advection=MusclAdvection").items()}
    before = HyCOP.load(folder)
    swapped = swap(before, boundary=boundary_of(boundary), primitives=given, auto=auto, finer=finer)
    found, remark = _compared(before, swapped.model)
    swapped.model.save(target)
    for line in swapped.changes:
        say(line)
    say(f"{target}: policy as it was; its held-out error was measured before the swap")
    if remark:
        say(remark)
    report_json(json_file, {"folder": str(target), "changes": list(swapped.changes), "unsettled": found})


def _compared(before: HyCOP, after: HyCOP) -> tuple[dict[str, float], str]:
    """How much both models' answers change with finer programs, and what a user should know of that."""
    known = PROBLEMS.get(before.model.problem)
    if known is None or known.lengths != before.model.lengths:
        return {}, ""
    found: dict[str, float] = {}
    told = f"with programs twice as fine its answers to {ASKED} queries of split id"
    try:
        # as fine as each other, so that what differs is due to the swap
        as_fine = HyCOP.of(replace(before.model, finer=after.model.finer))
        for when, model in {"before": as_fine, "after": after}.items():
            found[when] = unsettled(model, known.queries(ASKED, boundary=model.model.boundary))
    except NonFiniteStateError as error:
        return found, f"{told} are lost: {error}"
    remark = f"{told} change by {found['after']:.1e}, before the swap by {found['before']:.1e}"
    if found["after"] > WORSE * found["before"]:
        remark += (
            f": less commutes here than where it was trained; try --finer {min(4 * after.model.finer, MOST_FINER)}, "
            "and see 'hycop evaluate OUT --compare'"
        )
    return found, remark
