"""Commands that change a model without training: swap."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hycop.cli.common import BoundaryOption, JsonOption, app, boundary_of, report_json
from hycop.cli.networks import primitives_of
from hycop.cli.terminal import say
from hycop.errors import OutputError
from hycop.progress import waiting
from hycop.surrogate import HyCOP
from hycop.transfer import ELSEWHERE, compared, swap


@app.command(name="swap")
def swap_command(
    folder: Annotated[Path, typer.Argument(metavar="RUN", help="Folder of a trained model.")],
    target: Annotated[Path, typer.Argument(metavar="OUT", help="Folder for the new model.")],
    boundary: BoundaryOption = None,
    primitive: Annotated[
        list[str] | None,
        typer.Option(
            help="NAME=OTHER: a primitive, a network folder, or a dictionary of the problem that has one; repeatable."
        ),
    ] = None,
    auto: Annotated[
        bool, typer.Option("--auto", help="Replace primitives that do not know the boundary by those that do.")
    ] = False,
    substeps: Annotated[
        int | None,
        typer.Option(
            help="Cut programs so many times finer, for boxes in which less commutes. "
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
    given = primitives_of(primitive, "advection=MusclAdvection")
    before = HyCOP.load(folder)
    swapped = swap(before, boundary=boundary_of(boundary), primitives=given, auto=auto, substeps=substeps)
    with waiting("comparing with the model before"):
        found = compared(before, swapped.model)
    swapped.model.save(target)
    for line in swapped.changes:
        say(line)
    say(f"{target}: policy as it was; its held-out error was measured before the swap")
    if found.remark:
        say(found.remark)
    unsettled = {name: value for name, value in found._asdict().items() if isinstance(value, float)}
    report_json(json_file, {"folder": str(target), "changes": list(swapped.changes), "unsettled": unsettled})
