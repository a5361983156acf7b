"""The demonstration: data, classical schemes, a policy that learns, a table and two pictures."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from hycop.data import Dataset, save
from hycop.evaluation import Contender, DictionaryLimit, Row, composed, evaluate, family
from hycop.execution import run, simplify
from hycop.experiments.bench import Describe
from hycop.files import replacing
from hycop.plots import Figure, Point, demo_figure, timeline_figure
from hycop.problems import find_problem
from hycop.program import Program
from hycop.query import Query, Setting
from hycop.schemes import splitting
from hycop.surrogate import HyCOP

SHOWN = ("Lie", "Strang", "ABABA", "SABA4")
SUBSTEPS = (1, 2, 4)
TRAINING: Mapping[str, Any] = {"samples": 128, "tries": 2, "patterns": 1, "max_steps": 7}


@dataclass(frozen=True)
class Demo:
    rows: list[Row]
    files: tuple[Path, ...]
    program: str


def demo(folder: Path, samples: int, progress: Describe) -> Demo:
    """Makes a small ADR dataset, trains a policy, compares it with the classical schemes at several lengths, and draws
    what came out."""
    chosen = find_problem("adr2d")
    dictionary = chosen.dictionary
    done = 0

    def counted(count: int) -> None:
        nonlocal done
        done += count
        progress(f"truth of {done} of {samples} samples", 0.2 * done / samples)

    progress("truth, an independent solver on a 4x finer grid", 0.0)
    data = chosen.sample(samples, "id", seed=0, progress=counted)
    save(data, folder / "adr2d.nc")
    progress("training: its own queries", 0.25)
    model = HyCOP(dictionary).fit(
        chosen,
        seed=0,
        report=lambda entry: progress(f"training, {entry.stage}: loss {entry.loss:.2e}", 0.25 + 0.5 * entry.share),
        **TRAINING,
    )
    model.save(folder / "model", overwrite=True)
    names = (*SHOWN, "Strang(outer=reaction)")
    schemes = [splitting(name).with_substeps(substeps) for name in names for substeps in SUBSTEPS]
    static = model.model.static()
    learned = {"HyCOP": model, **({} if static is None else {"static": HyCOP.of(static)})}
    contenders = [Contender(name, solver, "spectral") for name, solver in learned.items()]
    contenders += composed(schemes, dictionary, label="spectral")
    progress(f"{len(contenders)} methods", 0.8)
    rows = evaluate(contenders, [data], limit_of=DictionaryLimit(dictionary, "spectral"))
    progress("pictures", 0.95)
    one = data.take(slice(1, 2))
    figures = {"demo.png": _overview(model, one, rows), "programs.png": _across_regimes(model, one)}
    for name, figure in figures.items():
        with replacing(folder / name) as temporary:
            figure.savefig(temporary, dpi=120)
    progress("done", 1.0)
    files = (folder / "adr2d.nc", folder / "model", *(folder / name for name in figures))
    return Demo(rows, files, str(model.programs(one.query)[0]))


def _overview(model: HyCOP, one: Dataset, rows: list[Row]) -> Figure:
    dictionary = model.dictionary
    timelines = {
        name: simplify(splitting(name).programs(one.query, dictionary), dictionary, one.setting)[0] for name in SHOWN
    }
    timelines["HyCOP"] = model.programs(one.query)[0]
    state = run(model.programs(one.query), dictionary, one.query)[0, 0]
    truth = one.truth[0, 0]
    fields = {
        "initial state": one.query.u0[0, 0],
        f"truth at T={float(one.query.time[0]):g}": truth,
        "HyCOP": state,
        "HyCOP − truth": state - truth,
    }
    errors = [row for row in rows if row.metric == "rel_l2"]
    points = [Point(family(row.method), row.work, row.value, row.std) for row in errors if row.work > 0]
    title = "2D advection–diffusion–reaction: one query, its programs, and what accuracy costs"
    lengths = one.setting.grid.lengths[0].tolist()
    return demo_figure(fields, lengths, timelines, dictionary.names, points, errors[0].limit, title)


def _across_regimes(model: HyCOP, one: Dataset) -> Figure:
    """The learned programs for one initial state as Péclet and Damköhler numbers change."""
    names = ("cx", "cy", "Dx", "Dy", "r")
    programs: dict[str, Program] = {}
    for diffusivity in (0.2, 0.1, 0.05):
        for rate in (0.1, 0.4, 1.0):
            values = dict(zip(names, (1.0, 1.0, diffusivity, diffusivity, rate), strict=True))
            programs[f"Pe {1 / diffusivity:.0f}, Da {rate / 2:.2f}"] = _program(model, one.query, values)
    return timeline_figure(programs, model.dictionary.names)


def _program(model: HyCOP, query: Query, params: Mapping[str, float]) -> Program:
    setting = Setting(query.grid, query.setting.channels, {name: np.array([value]) for name, value in params.items()})
    return model.programs(Query(query.u0, setting, query.time))[0]
