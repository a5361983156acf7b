"""Commands for learned primitives: pretrain, and what evaluate and check do with a network folder."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table as RichTable

from hycop.cli.common import JsonOption, Reading, SeedOption, app, pairs_of, report_json, shape_of
from hycop.cli.terminal import counted, say, show, tell
from hycop.dictionary import Dictionary
from hycop.errors import InvalidInputError
from hycop.files import naming
from hycop.networks import FAMILIES
from hycop.pretraining import judged, pretrain
from hycop.primitive import Primitive
from hycop.primitives import find_primitive
from hycop.problems import find_problem
from hycop.storage.network import is_network, load_network, load_primitive

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
    given: dict[str, Any] = pairs_of(settings, "--set", "rounds=100")
    if isinstance(given.get("shape"), str):
        given["shape"] = shape_of(str(given["shape"]), "setting shape")
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
    problem = find_problem(found.problem)
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


def with_primitives(parts: Dictionary, pairs: list[str] | None, only: str | None) -> Dictionary:
    """A dictionary with primitives from network folders, or by name, added or in the place of others; of these, some
    only."""
    for name, place in pairs_of(pairs, "--primitive", "ad=nets/ad").items():
        found = primitive_at(str(place))
        parts = parts.swapping(name, found) if name in parts else parts.adding(name, found)
    if only is None:
        return parts
    return Dictionary({name.strip(): parts[name.strip()] for name in only.split(",")})


def primitive_at(place: str) -> Primitive:
    """The primitive of a network folder, or one by its registered name."""
    if is_network(place) or "/" in place or Path(place).is_dir():
        return load_primitive(place)
    return find_primitive(place)()
