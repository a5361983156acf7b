"""Commands for learned primitives: pretrain, and what evaluate and check do with a network folder."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table as RichTable

from hycop.cli.common import JsonOption, SeedOption, app, pairs_of, report_json, texts_of, with_shape
from hycop.cli.reading import Reading
from hycop.cli.terminal import counted, say, show, tell
from hycop.dictionary import Dictionary
from hycop.errors import IncompatibleError, InvalidInputError, UnknownNameError
from hycop.files import naming
from hycop.networks import FAMILIES
from hycop.pretraining import judged, pretrain
from hycop.primitive import Primitive
from hycop.primitives.learned import NeuralOperator
from hycop.problems import PROBLEMS, Problem, find_problem
from hycop.storage.network import load_network, primitive_at

PrimitiveOption = Annotated[
    list[str] | None,
    typer.Option("--primitive", help="NAME=NETFOLDER or NAME=OTHER: add or replace a primitive; repeatable."),
]
OnlyOption = Annotated[str | None, typer.Option("--only", help="Names of the primitives to use, as ad,reaction.")]


@app.command(name="pretrain")
def pretrain_command(
    name: Annotated[str, typer.Argument(metavar="PROBLEM", help="Problem, see 'hycop problems'.")],
    folder: Annotated[Path, typer.Option("--out", help="Network folder: checkpoints, then the network.")],
    processes: Annotated[str, typer.Option(help="Processes that it advances, as advection,diffusion.")],
    network: Annotated[str, typer.Option(help=f"Kind of network: {', '.join(FAMILIES)}.")] = "fno-film",
    preset: Annotated[str, typer.Option(help="quick, laptop or paper.")] = "quick",
    data_file: Annotated[
        Path | None, typer.Option("--data", help="Dataset of these processes; else steps of their trusted flow.")
    ] = None,
    settings: Annotated[list[str] | None, typer.Option("--set", help="key=value, over the preset; repeatable.")] = None,
    seed: SeedOption = 0,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with the run in the folder.")] = False,
    json_file: JsonOption = None,
) -> None:
    """Train a network that advances some processes, to use as a primitive (extra 'learned').

    Example: hycop pretrain adr2d --out nets/ad --processes advection,diffusion --preset quick
    """
    chosen = find_problem(name)
    given: dict[str, Any] = with_shape(pairs_of(settings, "--set", "rounds=100"))
    if seed < 0:
        raise InvalidInputError(f"--seed is {seed}: a whole number, at least 0, is needed")
    wanted = [part.strip() for part in processes.split(",")]
    data = None if data_file is None else Reading().load(data_file, None)
    with naming(data_file):
        made = pretrain(
            chosen, wanted, network=network, preset=preset, seed=seed, folder=folder, resume=resume, data=data, **given
        )
    say(f"{folder}: {made!r}")
    say(", ".join(f"{key.replace('_', ' ')} {value:.2e}" for key, value in made.measured.items()))
    say(f"see 'hycop evaluate {folder}', and use it with 'hycop train {name} --primitive NAME={folder}'")
    report_json(json_file, {"folder": str(folder), "network": network, "measured": dict(made.measured)})


def evaluate_network(
    folder: str, splits: Sequence[str] | None, samples: int, seed: int, times: Sequence[float] | None, file: Path | None
) -> None:
    """Prints the error of a network against the trusted flow of its processes, over durations."""
    found = load_network(folder)
    if found.problem not in PROBLEMS:
        raise UnknownNameError("problem", found.problem, PROBLEMS, f"(of the network {folder}; it cannot be judged)")
    problem = PROBLEMS[found.problem]
    known = [split for split in ("id", "ood") if split in problem.splits]
    rows = judged(found.primitive, problem, splits or known, times, samples, seed)
    kind = found.primitive.plan.kind
    say(f"{folder}: {found.primitive!r}{', linear' if kind.linear else ''}, trained on {found.source}")
    grid = RichTable("split", "from", "duration", "rel_l2", "median", "outside its range", "steps")
    for row in rows:
        grid.add_row(
            row.split,
            row.start,
            f"{row.duration:g}",
            f"{row.error:.2e}",
            f"{row.median:.2e}",
            f"{row.outside:.0%}",
            f"{row.substeps:.2g}",
        )
    show(grid)
    tell(f"{counted(samples, 'sample')} per split, against {problem.subflow(found.primitive.advances)}")
    report_json(file, {"folder": folder, "rows": [asdict(row) for row in rows]})


def with_primitives(problem: Problem, parts: Dictionary, pairs: list[str] | None, only: str | None) -> Dictionary:
    """A dictionary with primitives from network folders, or by name, added or in the place of others; of these, some
    only."""
    for name, place in primitives_of(pairs, "ad=nets/ad").items():
        if name not in parts and not name.replace("-", "_").isidentifier():
            raise InvalidInputError(f"--primitive '{name}={place}': a name has letters, digits, '_' and '-', as ad")
        found = primitive_at(place)
        _check_fit(f"--primitive {name}={place}", found, problem)
        parts = parts.swapping(name, found) if name in parts else parts.adding(name, found)
    if only is None:
        return parts
    names = [name.strip() for name in only.split(",")]
    if len(set(names)) < len(names):
        raise InvalidInputError(f"--only '{only}': a name is given twice; leave one out")
    return Dictionary({name: parts[name] for name in names})


def _check_fit(option: str, primitive: Primitive, problem: Problem) -> None:
    """Refuses a network that was trained on states of another kind."""
    if isinstance(primitive, NeuralOperator):
        made = (primitive.plan["axes"], ", ".join(primitive.states))
        here = (len(problem.shape), ", ".join(channel.name for channel in problem.channels))
        if made != here:
            raise IncompatibleError(
                f"{option}: the network takes channels {made[1]} in {made[0]}D, but {problem.name} has {here[1]} in "
                f"{here[0]}D"
            )


def primitives_of(pairs: list[str] | None, example: str) -> dict[str, str]:
    """Names of primitives, and what is to stand there."""
    found = texts_of(pairs, "--primitive", example)
    for name, place in found.items():
        if not place:
            raise InvalidInputError(f"--primitive '{name}=': give a primitive or a network folder, as {example}")
    return found
