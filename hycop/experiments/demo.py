"""The demonstration: data, classical schemes, a table and a picture."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from hycop.data import Dataset, save
from hycop.evaluation import Row, evaluate
from hycop.execution import run, simplify
from hycop.experiments.schemes import family
from hycop.experiments.table import Progress
from hycop.files import replacing
from hycop.plots import Point, demo_figure
from hycop.problems import problem
from hycop.splitting import splitting

SHOWN = ("Lie", "Strang", "ABABA", "SABA4")
COPIES = (1, 2, 4)


@dataclass(frozen=True)
class Demo:
    rows: list[Row]
    dataset: Path
    figure: Path
    program: str


def demo(folder: Path, samples: int, progress: Progress) -> Demo:
    """Makes a small ADR dataset, runs the classical schemes at several lengths, and draws what came out."""
    chosen = problem("adr2d")
    dictionary = chosen.dictionary
    done = 0

    def counted(count: int) -> None:
        nonlocal done
        done += count
        progress(f"truth of {done} of {samples} samples", 0.5 * done / samples)

    progress("truth, an independent solver on a 4x finer grid", 0.0)
    data = chosen.sample(samples, "id", seed=0, progress=counted)
    path = folder / "adr2d.nc"
    save(data, path)
    methods = [splitting(name).times(copies) for name in SHOWN for copies in COPIES]
    methods += [splitting("Strang(outer=reaction)").times(copies) for copies in COPIES]
    progress(f"{len(methods)} classical schemes", 0.55)
    rows = evaluate(methods, dictionary, [data], label="spectral")
    progress("picture", 0.95)
    figure = folder / "demo.png"
    program = _draw(data, rows, figure)
    progress("done", 1.0)
    return Demo(rows, path, figure, program)


def _draw(data: Dataset, rows: list[Row], path: Path) -> str:
    dictionary = problem(data.problem).dictionary
    one = data.take(slice(1, 2))
    timelines = {
        name: simplify(splitting(name).programs(one.query, dictionary), dictionary, one.setting)[0]
        for name in (*SHOWN, "Strang x4")
    }
    best = splitting("ABABA")
    state = run(best.programs(one.query, dictionary), dictionary, one.query)[0, 0]
    truth = one.truth[0, 0]
    fields = {
        "initial state": one.query.u0[0, 0],
        f"truth at T={float(one.query.time[0]):g}": truth,
        str(best): state,
        f"{best} − truth": state - truth,
    }
    errors = [row for row in rows if row.metric == "rel_l2"]
    points = [Point(family(row.method), row.work, row.value, row.std) for row in errors if row.work > 0]
    title = "2D advection–diffusion–reaction: one query, its programs, and what accuracy costs"
    figure = demo_figure(
        fields, one.setting.grid.lengths[0].tolist(), timelines, dictionary.names, points, errors[0].limit, title
    )
    with replacing(path) as temporary:
        figure.savefig(temporary, dpi=120)
    return str(timelines["ABABA"])
