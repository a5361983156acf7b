"""Commands that change a model without training: swap."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hycop.cli.common import BoundaryOption, JsonOption, app, boundary_of, out, pairs_of, report_json
from hycop.errors import OutputError
from hycop.files import checked_output
from hycop.surrogate import HyCOP
from hycop.transfer import swap


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
    json_file: JsonOption = None,
) -> None:
    """Write a model with other boundaries or primitives: same policy, nothing retrained.

    Example: hycop swap runs/swe runs/swe-walls --boundary wall
    Example: hycop swap runs/adr runs/adr-walls --boundary wall --auto
    """
    if json_file is not None:
        checked_output(json_file)
    if target.exists():
        raise OutputError(f"{target}: exists already; choose another folder")
    given = {name: str(other) for name, other in pairs_of(primitive, "--primitive", "advection=MusclAdvection").items()}
    swapped = swap(HyCOP.load(folder), boundary=boundary_of(boundary), primitives=given, auto=auto)
    swapped.model.save(target)
    for line in swapped.changes:
        out.print(line, highlight=False)
    out.print(f"{target}: policy as it was; its held-out error was measured before the swap", highlight=False)
    report_json(json_file, {"folder": str(target), "changes": list(swapped.changes)})
