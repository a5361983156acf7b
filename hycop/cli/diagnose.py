"""The command that finds out why a model errs: diagnose."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hycop.cli.common import FramesOption, JsonOption, ParamOption, app, check_boundaries, report_json
from hycop.cli.reading import Reading
from hycop.cli.terminal import say, tell
from hycop.data import Dataset
from hycop.data.pdebench import PDEBENCH
from hycop.diagnosis import diagnose, figures
from hycop.files import checked_folder, naming, output_folder, replacing
from hycop.model import Model
from hycop.problems import PROBLEMS, problem_of
from hycop.surrogate import HyCOP


@app.command(name="diagnose")
def diagnose_command(
    folder: Annotated[Path, typer.Argument(metavar="RUN", help="Folder of a trained model.")],
    data_file: Annotated[Path, typer.Option("--data", help="Dataset with initial states and later truth.")],
    samples: Annotated[int | None, typer.Option(help="Samples of the file, from its first; all by default.")] = None,
    frames: FramesOption = None,
    param: ParamOption = None,
    figures_folder: Annotated[Path | None, typer.Option("--figures", help="Folder for the figures.")] = None,
    json_file: JsonOption = None,
) -> None:
    """Say why a model errs, and what to do about it: enrich the dictionary, refine the policy, improve a primitive, or
    trust it.

    Example: hycop diagnose runs/adr --data ood.nc --json diagnosis.json --figures figures
    """
    if figures_folder is not None:
        checked_folder(figures_folder)
    model = HyCOP.load(folder)
    data = _data(model.model, data_file, Reading(samples, frames, None, tuple(param or ())))
    with naming(data_file):
        check_boundaries(problem_of(model.model.equation), model.dictionary, data.setting.grid, run=folder)
    with naming(data_file, each=data.times.shape[1] - 1):
        found = diagnose(model, data)
    say(str(found))
    if figures_folder is not None:
        target = output_folder(figures_folder)
        for stem, figure in figures(found).items():
            with replacing(target / f"{stem}.png") as temporary:
                figure.savefig(temporary, dpi=120)
            tell(f"wrote {target / stem}.png")
    report_json(json_file, found.to_json())


def _data(model: Model, path: Path, reading: Reading) -> Dataset:
    """The data of any equation, since a model may lack a process; PDEBench's files are read as those of the model's."""
    known = path.suffix.lower() in PDEBENCH and model.equation.name in PROBLEMS
    return reading.load(path, model.equation.name if known else None)
