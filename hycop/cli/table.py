"""The command that computes the tables of the source paper, or some of their parts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

import typer

from hycop.cli.common import JsonOption, app, check_counts, report_json
from hycop.cli.rows import print_rows
from hycop.cli.terminal import counted, say, tell
from hycop.evaluation import Row
from hycop.experiments import TABLES, Bench, Table, assembled, find_table
from hycop.experiments.paper import PUBLISHED
from hycop.experiments.table import SUMMARY, read_rows, summarised, with_others
from hycop.files import output_folder, replacing
from hycop.plots import Figure
from hycop.progress import describing
from hycop.training import configured

ProblemArgument = Annotated[
    str | None,
    typer.Argument(
        metavar="PROBLEM", help="Only the parts about this problem; table frontier takes any, also file.py:name."
    ),
]
PartOption = Annotated[
    list[str] | None,
    typer.Option(help="Compute this part only, repeatable; rows of other parts in the file of --json are kept."),
]


@app.command(name="table")
def table_command(
    name: Annotated[str | None, typer.Argument(help="Table, see --list.")] = None,
    problem: ProblemArgument = None,
    list_all: Annotated[bool, typer.Option("--list", help="List the tables, and those of the source paper.")] = False,
    names: Annotated[bool, typer.Option("--names", help="List the names of the tables, and nothing else.")] = False,
    part: PartOption = None,
    samples: Annotated[int | None, typer.Option(help="Samples per split and seed; the table's own by default.")] = None,
    seeds: Annotated[int | None, typer.Option(help="Number of seeds; the table's own by default.")] = None,
    preset: Annotated[
        str | None, typer.Option(help="How models are trained: quick, laptop or paper; the table's own by default.")
    ] = None,
    figures: Annotated[Path | None, typer.Option(help="Folder for the table's figures.")] = None,
    keep: Annotated[
        Path | None, typer.Option(help="Folder for finished parts: a table that was interrupted goes on from there.")
    ] = None,
    json_file: JsonOption = None,
) -> None:
    """Compute a table and its figures, or some of its parts.

    Example: hycop table schemes --json schemes.json --figures figures
    Example: hycop table fixed-time --part "adr2d unsplit" --json results/fixed-time.json
    Example: hycop table frontier mine.py:problem --seeds 1
    """
    if list_all or names or name is None:
        _list(plain=names)
        return
    chosen = find_table(name) if problem is None else find_table(name).about(problem)
    check_counts(**{"--samples": samples, "--seeds": seeds})
    baselines = Bench.baseline_preset if preset is None else preset
    preset = chosen.preset if preset is None else preset
    configured(preset)
    parts = _parts(chosen, part, problem)
    # what can be refused is refused before anything is computed
    known = read_rows(json_file) if parts is not None and json_file is not None and json_file.exists() else []
    folder = output_folder(figures) if figures is not None else None
    remarks: list[str] = []
    with describing(name) as describe:
        count = (samples or chosen.samples, seeds or chosen.seeds)
        bench = Bench(*count, describe, preset, keep, remarks.append, baselines)
        fresh = assembled(chosen, bench, parts)
        rows = summarised(chosen, fresh if parts is None else with_others(chosen, fresh, parts, known))
        kept = len(rows) - len(fresh) - sum(row.part == SUMMARY for row in rows)
        drawn = {} if folder is None else chosen.figures(bench, rows)
    print_rows([*fresh, *(row for row in rows if row.part == SUMMARY)])
    if kept:
        remarks.append(f"{json_file}: {counted(kept, 'row')} of other parts kept")
    for remark in remarks:
        tell(remark)
    _draw(folder, drawn)
    _report(json_file, rows)


def _list(plain: bool) -> None:
    """The tables and their parts, then those of the source paper next to ours."""
    for entry in TABLES.values():
        say(entry.name if plain else f"{entry.name:18} {entry.title}; preset {entry.preset}, seeds {entry.seeds}")
    if not plain:
        say("\nIn the source paper -> here:")
        for shown in PUBLISHED:
            say(str(shown))


def _parts(table: Table, part: Sequence[str] | None, problem: str | None) -> list[str] | None:
    """The names of the parts that were asked for; None for all."""
    if part is None and problem is None:
        return None
    about = [] if problem is None else table.parts_about(problem)
    return list(table.named_parts([*about, *(part or ())]))


def _draw(folder: Path | None, drawn: Mapping[str, Figure]) -> None:
    for stem, figure in drawn.items():
        assert folder is not None
        with replacing(folder / f"{stem}.png") as temporary:
            figure.savefig(temporary, dpi=120)
        tell(f"wrote {folder / stem}.png")


def _report(file: Path | None, rows: Sequence[Row]) -> None:
    report_json(file, {"rows": [row.to_json() for row in rows]})
