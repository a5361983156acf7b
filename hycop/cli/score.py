"""Commands that make data and numbers: datasets, evaluations, tables and the demonstration."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from hycop.cli.common import (
    BoundaryOption,
    DataOption,
    DictionaryOption,
    FramesOption,
    JsonOption,
    ParamOption,
    ProgramOption,
    Reading,
    SchemeOption,
    SeedOption,
    ShapeOption,
    SplitOption,
    TimesOption,
    app,
    boundary_of,
    counting,
    describing,
    err,
    numbers,
    out,
    print_rows,
    program_of,
    report_json,
    shape_of,
)
from hycop.data import Dataset, checked_dataset_path, save
from hycop.data.pdebench import PDEBENCH, write_pdebench
from hycop.dictionary import Dictionary
from hycop.errors import InvalidInputError
from hycop.evaluation import SPLITTING, ByHand, Method, Named, Row, answered, evaluate
from hycop.experiments import TABLES, table
from hycop.experiments.demo import demo
from hycop.experiments.table import Bench
from hycop.files import checked_output, output_folder, replacing
from hycop.metrics import metric as find_metric
from hycop.policy import exact_covers
from hycop.problems import Problem, problem
from hycop.program import ProgramBatch
from hycop.splitting import portfolio, splitting
from hycop.surrogate import HyCOP
from hycop.training import configured
from hycop.training.gate import EQUAL_WORK


@app.command()
def data(
    name: Annotated[str, typer.Argument(metavar="PROBLEM", help="Problem, see 'hycop problems'.")],
    file: Annotated[Path, typer.Argument(metavar="OUT.nc", help="File to write: .nc or .npz, .hdf5 with a layout.")],
    split: SplitOption = "train",
    samples: Annotated[int, typer.Option(help="Number of samples.")] = 1000,
    seed: SeedOption = 0,
    shape: ShapeOption = None,
    times: TimesOption = None,
    boundary: BoundaryOption = None,
    layout: Annotated[str, typer.Option(help="hycop, or pdebench for compressible flow at given --times.")] = "hycop",
    json_file: JsonOption = None,
) -> None:
    """Draw queries from a split, solve them with the reference, and write a dataset.

    Example: hycop data adr2d train.nc --split train --samples 1000 --seed 0
    """
    chosen = problem(name)
    if (layout == "pdebench") != (file.suffix in PDEBENCH) or layout not in ("hycop", "pdebench"):
        raise InvalidInputError(
            f"--layout {layout} does not go with {file}: hycop writes .nc and .npz, pdebench writes .hdf5"
        )
    if layout == "pdebench" and times is None:
        raise InvalidInputError(f"{file}: in PDEBench files all samples have the same times; give --times, as 0.05,0.1")
    checked_output(file) if layout == "pdebench" else checked_dataset_path(file)
    if json_file is not None:
        checked_output(json_file)
    with counting(samples, f"truth of {name}") as advance:
        made = chosen.sample(
            samples,
            split,
            seed,
            shape=shape_of(shape),
            times=numbers(times, "--times"),
            boundary=boundary_of(boundary),
            progress=advance,
        )
    if layout == "pdebench":
        write_pdebench(made, file)
    else:
        save(made, file)
    out.print(
        f"{file}: {made.samples} samples of {name}/{split} on {'x'.join(map(str, made.setting.grid.shape))}, "
        f"truth by {made.reference} with an estimated error of {made.reference_error:.1e}",
        highlight=False,
    )
    report_json(
        json_file,
        {
            "file": str(file),
            "problem": name,
            "split": split,
            "samples": samples,
            "seed": seed,
            "reference": made.reference,
            "reference_error": made.reference_error,
        },
    )


def _datasets(chosen: Problem, split: str, samples: int, seed: int, seeds: int, **options: Any) -> list[Dataset]:
    with counting(samples * seeds, f"truth of {chosen.name}/{split}") as advance:
        return [chosen.sample(samples, split, each, progress=advance, **options) for each in range(seed, seed + seeds)]


def _checked_alone(**options: object) -> None:
    """With a dataset file, options that say what to draw have no meaning."""
    for name, value in options.items():
        if value is not None:
            raise InvalidInputError(f"--{name} has no meaning with --data: the file holds what was drawn; leave it out")


def _checked_counts(**counts: int | None) -> None:
    for name, count in counts.items():
        if count is not None and count < 1:
            raise InvalidInputError(f"{name} is {count}: at least 1 is needed")


def _named_methods(schemes: list[str] | None, program: str | None, parts: Dictionary) -> list[Method]:
    """The program by hand and the schemes that were asked for by name, if the dictionary can run them."""
    asked = [splitting(each) for each in schemes or () if each != "all"]
    for rule in asked:
        rule.check(parts)
    if program is None:
        return [*asked]
    by_hand = ByHand(program_of(program))
    ProgramBatch.of([by_hand.program], parts.names)
    return [by_hand, *asked]


def _learned(model: HyCOP) -> list[Method]:
    static = model.model.static()
    return [model, *([] if static is None else [Named("static", HyCOP.of(static))])]


def _rivals(model: HyCOP, parts: Dictionary, data: Dataset) -> list[Method]:
    """The classical schemes whose mean work is at most 1.02 times the model's."""
    refinement = model.model.refinement
    most = EQUAL_WORK * float(model.measure(data.query, parts).work.mean())
    few = data.query.take(slice(0, 8))
    return [
        scheme
        for scheme in portfolio(parts, data.setting, covers=exact_covers(parts, model.model.processes))
        if float(answered(scheme, few, parts, refinement).work.mean()) <= most
    ]


@app.command(name="evaluate")
def evaluate_command(
    name: Annotated[str, typer.Argument(metavar="PROBLEM|RUN", help="Problem, or the folder of a trained model.")],
    split: Annotated[
        list[str] | None,
        typer.Option(help="Split of the problem, repeatable; id by default, id and ood with --compare."),
    ] = None,
    scheme: SchemeOption = None,
    program: ProgramOption = None,
    dictionary: DictionaryOption = None,
    metric: Annotated[
        list[str] | None, typer.Option(help=f"Metric, repeatable; rel_l2 and {SPLITTING} by default.")
    ] = None,
    data_file: DataOption = None,
    frames: FramesOption = None,
    param: ParamOption = None,
    samples: Annotated[int | None, typer.Option(help="Samples per seed, 100 by default.")] = None,
    seed: Annotated[int | None, typer.Option(help="First seed, 0 by default.")] = None,
    seeds: Annotated[int | None, typer.Option(help="Number of datasets, for the spread; 3 by default.")] = None,
    shape: ShapeOption = None,
    times: TimesOption = None,
    boundary: BoundaryOption = None,
    refinement: Annotated[
        int | None, typer.Option(help="Run programs on a grid this many times finer; the model's or problem's own.")
    ] = None,
    compare: Annotated[
        bool, typer.Option("--compare", help="With a RUN: also every classical scheme of no more work.")
    ] = False,
    json_file: JsonOption = None,
) -> None:
    """Error and work of a trained model, classical schemes, or a program by hand, against the truth and the limit.

    Example: hycop evaluate adr2d --scheme all --split id --json schemes.json
    Example: hycop evaluate runs/adr --compare
    """
    model = HyCOP.load(name) if Path(name).is_dir() else None
    chosen = problem(name if model is None else model.model.problem)
    parts = chosen.named_dictionary(dictionary) if model is None or dictionary else model.dictionary
    if model is not None and refinement is not None:
        model = HyCOP.of(replace(model.model, refinement=refinement))
    finer = refinement or (chosen.refinement if model is None else model.model.refinement)
    if json_file is not None:
        checked_output(json_file)
    _checked_counts(**{"--samples": samples, "--seeds": seeds, "--refinement": refinement})
    # what can be refused is refused before anything is computed
    asked = _named_methods(scheme, program, parts)
    if data_file is not None:
        ours = {} if data_file.suffix in PDEBENCH else {"shape": shape, "boundary": boundary}
        _checked_alone(split=split, seed=seed, seeds=seeds, times=times, **ours)
    else:
        parts.check_boundaries(parts.names, chosen.grid(shape_of(shape), boundary_of(boundary)))
    for each in metric or ():
        if each != SPLITTING:
            find_metric(each)
    label = dictionary or next(iter(chosen.dictionaries))
    if model is not None:
        label = dictionary or model.model.config.dictionary or label
    splits = split or (["id", "ood"] if compare and data_file is None else ["id"])
    for each in splits:
        chosen.split(each)
    rows: list[Row] = []
    for each in splits:
        if data_file is not None:
            reading = Reading(samples, frames, shape, tuple(param or ()), boundary)
            datasets = [reading.load(data_file, chosen.name)]
        else:
            # a model is asked in its own box, unless told otherwise
            where = boundary_of(boundary) or (None if model is None else model.model.boundary)
            options = {"shape": shape_of(shape), "times": numbers(times, "--times"), "boundary": where}
            datasets = _datasets(chosen, each, samples or 100, seed or 0, seeds or 3, **options)
        methods = [*asked, *_further_methods(model, compare, bool(scheme and "all" in scheme), parts, datasets[0])]
        with counting(len(methods) * len(datasets), f"methods on {each}") as advance:
            rows += evaluate(
                methods or list(portfolio(parts, datasets[0].setting, copies=(1,))),
                parts,
                datasets,
                metrics=metric or ("rel_l2", SPLITTING),
                label=label,
                refinement=finer,
                border=chosen.border,
                cover=None if model is None else model.model.gate.cover,
                progress=advance,
            )
    print_rows(rows)
    report_json(json_file, {"rows": [row.to_json() for row in rows]})


def _further_methods(
    model: HyCOP | None, compare: bool, every_scheme: bool, parts: Dictionary, data: Dataset
) -> list[Method]:
    """The model and its opponents, and all schemes, as far as they were asked for."""
    methods: list[Method] = []
    if model is not None:
        methods += [*_learned(model), *(_rivals(model, parts, data) if compare else [])]
    return methods + list(portfolio(parts, data.setting) if every_scheme else [])


@app.command(name="table")
def table_command(
    name: Annotated[str | None, typer.Argument(help="Table, see --list.")] = None,
    list_all: Annotated[bool, typer.Option("--list", help="List the tables.")] = False,
    samples: Annotated[int | None, typer.Option(help="Samples per split and seed; the table's own by default.")] = None,
    seeds: Annotated[int, typer.Option(help="Number of seeds.")] = 3,
    preset: Annotated[str, typer.Option(help="How models are trained: quick, laptop or paper.")] = "quick",
    figures: Annotated[Path | None, typer.Option(help="Folder for the table's figures.")] = None,
    keep: Annotated[
        Path | None, typer.Option(help="Folder for finished parts: a table that was interrupted goes on from there.")
    ] = None,
    json_file: JsonOption = None,
) -> None:
    """Compute a table and its figures.

    Example: hycop table schemes --json schemes.json --figures figures
    """
    if list_all or name is None:
        for entry in TABLES.values():
            out.print(f"{entry.name:14} {entry.title}", highlight=False)
        return
    chosen = table(name)
    configured(preset)
    _checked_counts(**{"--samples": samples, "--seeds": seeds})
    if json_file is not None:
        checked_output(json_file)
    folder = output_folder(figures) if figures is not None else None
    with describing(name) as describe:
        bench = Bench(chosen.samples if samples is None else samples, seeds, describe, preset, keep)
        rows = chosen.build(bench)
        drawn = {} if folder is None else chosen.figures(bench, rows)
    print_rows(rows)
    if folder is not None:
        for stem, figure in drawn.items():
            with replacing(folder / f"{stem}.png") as temporary:
                figure.savefig(temporary, dpi=120)
            err.print(f"wrote {folder / stem}.png")
    report_json(json_file, {"rows": [row.to_json() for row in rows]})


@app.command(name="demo")
def demo_command(
    folder: Annotated[Path, typer.Option("--out", help="Folder for the dataset and the figure.")] = Path("demo"),
    samples: Annotated[int, typer.Option(help="Number of samples.")] = 64,
    json_file: JsonOption = None,
) -> None:
    """Make a small dataset, train a policy, compare it with the classical schemes, print the table, draw the figures.

    Example: hycop demo --out demo
    """
    if samples < 2:
        raise InvalidInputError(f"--samples is {samples}: at least 2 are needed")
    folder = output_folder(folder)
    with describing("demo") as describe:
        made = demo(folder, samples, describe)
    print_rows(made.rows)
    out.print(f"a program that it wrote: {made.program}", highlight=False)
    out.print(f"wrote {', '.join(map(str, made.files))}", highlight=False)
    report_json(json_file, {"rows": [row.to_json() for row in made.rows]})
