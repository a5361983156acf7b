"""The command that writes the report of a run: report."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hycop.baselines import is_baseline, load_baseline
from hycop.cli.common import FramesOption, OverwriteOption, ParamOption, app, check_file, refuse_options
from hycop.cli.reading import Reading
from hycop.cli.terminal import say
from hycop.data import Dataset
from hycop.data.pdebench import PDEBENCH
from hycop.errors import OutputError
from hycop.files import checked_output, naming
from hycop.problems import PROBLEMS
from hycop.report import write_report
from hycop.surrogate import HyCOP


@app.command(name="report")
def report_command(
    folder: Annotated[Path, typer.Argument(metavar="RUN", help="Folder of a trained model, a front or a baseline.")],
    out: Annotated[Path, typer.Option("--out", help="Page to write.")] = Path("report.html"),
    data_file: Annotated[
        Path | None, typer.Option("--data", help="Dataset with truth to judge by; else queries are drawn.")
    ] = None,
    samples: Annotated[
        int | None, typer.Option(help="Queries of each split; as many as their truth allows by default.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of the drawn queries.")] = 0,
    frames: FramesOption = None,
    param: ParamOption = None,
    overwrite: OverwriteOption = False,
) -> None:
    """Write one HTML page about a run: what was learned, how well, why it errs, and where not to trust it.

    Example: hycop report runs/adr --out report.html
    Example: hycop report runs/adr --data measured.nc --samples 16
    """
    if out.suffix.lower() not in (".html", ".htm"):
        raise OutputError(f"--out {out}: a report is a page; give a name that ends in .html")
    checked_output(out)
    check_file(out, overwrite)
    reading = Reading(None, frames, None, tuple(param or ()))
    if data_file is None:
        refuse_options("without --data", frames=frames, param=param)
    data = None if data_file is None else _data(folder, data_file, reading)
    with naming(data_file):
        named = "" if data_file is None else str(data_file)
        write_report(folder, out, data=data, data_name=named, samples=samples, seed=seed, overwrite=overwrite)
    say(f"{out}: {out.stat().st_size / 1e6:.1f} MB; open it in a browser")


def _data(folder: Path, path: Path, reading: Reading) -> Dataset:
    """Data of any equation; PDEBench's files are read as those of the run's."""
    if path.suffix.lower() not in PDEBENCH:
        return reading.load(path, None)
    name = load_baseline(folder).network.problem if is_baseline(folder) else HyCOP.load(folder).model.equation.name
    return reading.load(path, name if name in PROBLEMS else None)
