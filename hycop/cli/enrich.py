"""Commands that mend a model: enrich."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, get_args

import typer

from hycop.cli.common import JsonOption, SeedOption, app, check_boundaries, pairs_of, report_json
from hycop.cli.reading import Reading
from hycop.cli.terminal import say
from hycop.enrichment import Closure, enrich
from hycop.errors import InvalidInputError, OutputError, UnknownNameError
from hycop.files import checked_folder, naming
from hycop.problems import problem_of
from hycop.surrogate import HyCOP


@app.command(name="enrich")
def enrich_command(
    folder: Annotated[Path, typer.Argument(metavar="RUN", help="Folder of a trained model.")],
    target: Annotated[Path, typer.Argument(metavar="OUT", help="Folder for the new model.")],
    data_file: Annotated[Path, typer.Option("--data", help="Dataset that the model does not explain.")],
    closure: Annotated[
        str, typer.Option(help="symbolic: the named terms become a primitive; network: a network; auto: the better.")
    ] = "auto",
    inputs: Annotated[
        list[str] | None,
        typer.Option("--inputs", help="Coefficients of the data that a network is told, as r or r,k; repeatable."),
    ] = None,
    coefficients: Annotated[
        bool, typer.Option("--coefficients", help="Correct coefficients of the model that are off.")
    ] = False,
    settings: Annotated[
        list[str] | None, typer.Option("--set", help="key=value, over the model's own training; repeatable.")
    ] = None,
    seed: SeedOption = 0,
    json_file: JsonOption = None,
) -> None:
    """Find what a model lacks to explain data, add it, and relearn the policy only.

    Example: hycop enrich runs/ad runs/adr --data target.nc
    Example: hycop enrich runs/ad runs/adr --data target.nc --closure network --inputs r
    Example: hycop enrich runs/ad runs/ad-corrected --data measured.nc --coefficients
    """
    if target.exists():
        raise OutputError(f"{target}: exists already; choose another folder")
    checked_folder(target)
    if closure not in get_args(Closure):
        raise UnknownNameError("--closure", closure, get_args(Closure))
    if inputs and closure == "symbolic":
        raise InvalidInputError("--inputs are those of a network: choose --closure network or auto, or leave them out")
    given: dict[str, Any] = pairs_of(settings, "--set", "rounds=3")
    model = HyCOP.load(folder)
    data = Reading().load(data_file, None)
    with naming(data_file):
        check_boundaries(problem_of(model.model.equation), model.dictionary, data.setting.grid, run=folder)
        made = enrich(
            model,
            data,
            closure=closure,  # type: ignore[arg-type]
            inputs=[name.strip() for text in inputs or () for name in text.split(",")],
            coefficients=coefficients,
            seed=seed,
            **given,
        )
    made.model.save(target)
    say(str(made.missing))
    for line in (*made.reasons, *made.changes):
        say(line)
    say(f"held-out error {made.before:.3e} → {made.after:.3e}")
    if made.closure is not None:
        say(f"correlation of the closure's map with that of the residual: {made.correlation:.4f}")
        for line in made.model.model.gate.explained():
            say(f"gate: {line}")
    report_json(json_file, {"folder": str(target), **made.to_json()})
