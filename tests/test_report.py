"""Reports: complete and well-formed pages for models, fronts, baselines and own data, and one line for bad input."""

from __future__ import annotations

import shutil
from dataclasses import dataclass, field, replace
from html.parser import HTMLParser
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
import pytest

import hycop
from hycop.data import Dataset
from hycop.errors import HyCOPError, InvalidInputError, OutputError
from hycop.execution import run
from hycop.grid import Array, Grid
from hycop.problems import PROBLEMS
from hycop.program import Program, ProgramBatch
from hycop.query import Channel, Query, Setting
from hycop.report.blocks import Page, Picture, Text
from hycop.report.charts import Axis, Series, chart
from hycop.report.learned import telling
from hycop.report.plan import SECONDS, Plan, planned
from hycop.report.timelines import MOST_BOXES, timelines
from hycop.report.writing import page_of
from tests.browser import axe_findings
from tests.helpers import hycop_command
from tests.planted import classical_model

SMALL: dict[str, Any] = {"samples": 16, "tries": 1, "patterns": 1, "rounds": 1, "iterations": 2, "max_steps": 5}
KEYS = ["learned", "gate", "errors", "front", "programs", "queries", "budget", "commutators", "trust", "curve"]
KEYS += ["facts", "rebuild"]
VOID = {"meta", "link", "img", "br", "path", "rect"}
MOST_BYTES = 5_000_000


class Reader(HTMLParser):
    """Reads a page, and fails where a tag is not closed in its turn."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.feed(text)
        self.close()
        assert not self.open, self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        if tag not in VOID:
            assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.texts).split())

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.tags if name == tag]


def read(path: Path) -> Reader:
    """The page, once it is known to be whole, self-contained and accessible as far as its text tells."""
    text = path.read_text(encoding="utf-8")
    assert len(text.encode()) < MOST_BYTES and "url(" not in text and "<script" not in text and "@import" not in text
    page = Reader(text)
    places = {str(each["id"]) for _, each in page.tags if "id" in each}
    for _, attributes in page.tags:
        for name in ("href", "src"):
            target = attributes.get(name) or "data:"
            assert target.startswith("data:") or (target[:1] == "#" and target[1:] in places), target
    assert all(image.get("alt") for image in page.all("img"))
    assert all(each.get("aria-label") or each.get("aria-hidden") for each in page.all("svg"))
    assert len(page.all("table")) == len(page.all("caption")) and all(each.get("scope") for each in page.all("th"))
    assert page.all("html")[0]["lang"] == "en" and len(page.all("h1")) == 1
    return page


def keys(page: Reader) -> list[str | None]:
    return [each["id"] for each in page.all("section")]


SLOW = {"dambreak2d": ("strang x8", (40, 40)), "ns2d": ("strang x2", None), "ns2d-pdebench": ("strang x2", (64, 64))}
"""Problems whose truth takes long: a scheme that is stable there, and the grid of a model (None: the problem's own)."""


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run in 2D."""
    folder = tmp_path_factory.mktemp("runs") / "adr"
    problem = hycop.problem("adr2d")
    # as a run would draw them, but without the error of the truth, which takes longest
    data, held_out = (problem.sample(count, "train", seed, estimated=0) for seed, count in enumerate((16, 32)))
    model = hycop.HyCOP(problem.dictionary).fit(data, held_out, folder=folder, verbose=False, **SMALL)
    model.save(folder, overwrite=True)
    return folder


@pytest.fixture(scope="module")
def line(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a Pareto front on a line."""
    folder = tmp_path_factory.mktemp("runs") / "front"
    pairs = [word for key, value in SMALL.items() for word in ("--set", f"{key}={value}")]
    result = hycop_command("train", "ad1d", "--out", folder, "--pareto", "--set", "dictionary=upwind", *pairs)
    assert result.returncode == 0, result.stderr
    return folder


@pytest.fixture(scope="module")
def plane_page(plane: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("pages") / "report.html"
    result = hycop_command("report", plane, "--out", out, "--samples", "4")
    assert result.returncode == 0, result.stderr
    assert str(out) in result.stdout
    return out


def test_a_run_in_two_dimensions_has_every_section(plane_page: Path, plane: Path) -> None:
    page = read(plane_page)
    assert keys(page) == KEYS and len(page.all("img")) == 4
    missing = plane_page.read_text().count('class="missing"')
    assert missing == 1 and "This run is a single model" in page.text
    model = hycop.HyCOP.load(plane).model
    assert f"{model.theta.size} parameters" in page.text and model.equation.formula in page.text
    assert "HyCOP" in page.text and "limit of the dictionary" in page.text and "Strang" in page.text
    assert f"hycop train adr2d --out {plane} --preset quick --set samples=16" in page.text
    assert "Verdict:" in page.text and "err less than their estimate" in page.text


def test_a_front_on_a_line_is_drawn_over_space_and_time(line: Path, tmp_path: Path) -> None:
    out = hycop.write_report(line, tmp_path / "front.html", samples=3, seed=5, verbose=False)
    page = read(out)
    assert keys(page) == KEYS and "This run is a single model" not in page.text
    assert any("over space and time" in str(image["alt"]) for image in page.all("img"))
    assert "Models of the front" in page.text and "--pareto" in page.text and "max_work" not in page.text
    assert f"hycop report {line} --samples 3 --seed 5" in page.text


@pytest.mark.validate
def test_a_report_says_the_same_twice(line: Path) -> None:
    def numbers() -> list[Any]:
        page = page_of(line / "point0", None, 3, 0)
        # seconds differ from run to run
        return [each for each in page.sections if each.key not in ("errors",)]

    assert numbers() == numbers()


def test_data_of_the_user_judge_the_model(line: Path, tmp_path: Path) -> None:
    file = tmp_path / "mine.nc"
    hycop.save(hycop.problem("ad1d").sample(4, "ood", 3, times=[0.1, 0.2, 0.3, 0.4, 0.5], estimated=0), file)
    out = tmp_path / "page.html"
    result = hycop_command("report", line / "point0", "--data", file, "--out", out)
    assert result.returncode == 0, result.stderr
    page = read(out)
    assert keys(page) == KEYS and str(file) in page.text
    assert any("truth, prediction" in str(image["alt"]) for image in page.all("img"))


@dataclass(frozen=True)
class Decay:
    """u_t = −k u, a process of one's own."""

    rate_names: tuple[str, ...] = field(default=("k",))
    advances = frozenset({"decay"})
    order = hycop.EXACT

    def flow(self, u: Array, duration: Array, setting: Setting) -> Array:
        with np.errstate(over="ignore", invalid="ignore"):  # a state that overflows is found by whoever runs it
            return u * np.exp(-setting.param("k") * duration)[:, None, None]

    def work(self, u: Array, duration: Array, setting: Setting) -> Array:
        return np.full(setting.batch, float(u[0].size))


def own_data(samples: int) -> tuple[hycop.Dictionary, Dataset]:
    rng = np.random.default_rng(0)
    setting = Setting(
        Grid.box((16,), batch=samples),
        (Channel("u"),),
        {"Dx": 10 ** rng.uniform(-3, -2, samples), "k": rng.uniform(1.0, 2.0, samples)},
    )
    parts = hycop.Dictionary({"diffusion": hycop.primitives.SpectralDiffusion(), "decay": Decay()})
    start = Query(rng.random((samples, 1, 16)), setting, np.ones(samples))
    states = [start.u0, *(run(Program.of(("diffusion", t), ("decay", t)), parts, start) for t in (0.5, 1.0))]
    return parts, Dataset("decay", "<b>mine</b>", np.stack(states, axis=1), np.array([0.0, 0.5, 1.0]), setting)


def test_an_equation_of_one_s_own_is_judged_by_its_held_out_data(tmp_path: Path) -> None:
    parts, data = own_data(60)
    folder = tmp_path / "run"
    model = hycop.HyCOP(parts).fit(data, folder=folder, verbose=False, **{**SMALL, "samples": 8, "max_steps": 3})
    model.save(folder, overwrite=True)
    page = read(hycop.write_report(model, tmp_path / "kept.html", folder=folder, samples=6, verbose=False))
    assert keys(page) == KEYS and "held out from training" in page.text and "<b>mine</b>" in page.text
    assert "data of its owner" in page.text and "hycop train" not in page.text.split("How to rebuild it")[-1]
    alone = read(hycop.write_report(model, tmp_path / "alone.html", verbose=False))
    assert keys(alone) == KEYS and "give some with --data FILE" in alone.text
    assert "Programs for queries sorted by" in alone.text or "programs are written for queries" in alone.text.lower()


@pytest.mark.validate
def test_a_changed_model_lists_its_changes(line: Path, tmp_path: Path) -> None:
    model = hycop.HyCOP.load(line / "point0")
    swapped = hycop.swap(model, primitives={"advection": "MusclAdvection"})
    page = read(hycop.write_report(swapped.model, tmp_path / "page.html", samples=2, verbose=False))
    assert all(change in page.text for change in swapped.changes) and "swapped in after training" in page.text
    assert "not calibrated" in page.text and "primitive advection" in page.text


@pytest.mark.validate
@pytest.mark.parametrize("name", [name for name in PROBLEMS if name not in SLOW])
def test_every_problem_has_a_report(name: str, tmp_path: Path) -> None:
    problem = hycop.problem(name)
    model = classical_model(problem, refinement=problem.refinement)
    page = read(hycop.write_report(model, tmp_path / "page.html", samples=2, verbose=False))
    assert keys(page) == KEYS and len(page.all("img")) >= 3


@pytest.mark.validate
@pytest.mark.parametrize("name", SLOW)
def test_a_costly_truth_is_bounded_and_what_is_left_out_is_said(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a quarter of the time that a report may take otherwise."""
    monkeypatch.setattr("hycop.report.plan.SECONDS", 6.0)
    monkeypatch.setattr("hycop.report.causes.SECONDS", 10.0)
    problem, (scheme, shape) = hycop.problem(name), SLOW[name]
    model = classical_model(problem, scheme).model
    config = model.record.config.model_copy(update={"shape": shape})
    surrogate = hycop.HyCOP.of(replace(model, record=replace(model.record, config=config)))
    begin = process_time()
    page = read(hycop.write_report(surrogate, tmp_path / "page.html", verbose=False))
    assert process_time() - begin < 90.0
    assert keys(page) == KEYS
    drawn = [image for image in page.all("img") if "truth, prediction" in str(image["alt"])]
    assert len(drawn) == 3
    # PDEBench's scheme takes half a second a query: there all of the usual queries are affordable
    limited = "at most 6 CPU seconds on the truth of each kind of query" in page.text
    assert limited or name == "ns2d-pdebench"
    assert ("on the model's own 128 × 128" in page.text) == (name == "ns2d")


def test_a_truth_that_takes_too_long_is_solved_for_fewer_queries_on_a_coarser_grid(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def taking(seconds: float) -> Plan:
        monkeypatch.setattr("hycop.report.plan.cpu_seconds", lambda call: seconds)
        return planned(hycop.problem("ns2d"), "id", 0, (128, 128), ("periodic", "periodic"))

    # on 64² the truth has half the cells along each axis, and so an eighth of the cost
    assert taking(0.01) == Plan(8, (128, 128)) and taking(SECONDS / 64) == Plan(8, (128, 128))
    fewer = taking(SECONDS / 44)
    assert (fewer.count, fewer.shape) == (
        5,
        (128, 128),
    ) and "There are 5 of these queries where 8 are usual" in fewer.remark
    coarser = taking(SECONDS / 6)
    assert (coarser.count, coarser.shape) == (6, (64, 64)) and "on 64 × 64 cells, not on" in coarser.remark
    longest = taking(1e9)
    assert (longest.count, longest.shape) == (3, (64, 64))  # the best, the median and the worst


def test_queries_that_cannot_be_answered_are_left_out_and_counted() -> None:
    parts, data = own_data(16)
    model = hycop.HyCOP(parts).fit(data, data, verbose=False, **{**SMALL, "samples": 8, "max_steps": 3})
    k = data.setting.params["k"].copy()
    k[2] = -1e4  # grows until it overflows
    grown = replace(data, setting=replace(data.setting, params={**data.setting.params, "k": k}))
    section = page_of(model, grown, None, 0).sections[KEYS.index("queries")]
    said = [block.text for block in section.blocks if isinstance(block, Text)]
    assert len(said) == 1 and said[0].startswith("1 query of 16 cannot be answered: sample 2: the state became NaN")
    k[:] = -1e4
    with pytest.raises(HyCOPError, match="the state became NaN"):
        page_of(model, grown, None, 0)


def test_a_baseline_has_no_programs(tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="needs the extra 'learned'")
    tiny: dict[str, Any] = {"trajectories": 12, "rounds": 2, "shape": (16, 16), "width": 4, "modes": 4, "layers": 2}
    folder = tmp_path / "fno"
    trained = hycop.train_baseline(hycop.problem("adr2d"), "fno", folder=folder, verbose=False, **tiny)
    out = tmp_path / "fno.html"
    result = hycop_command("report", folder, "--samples", "3", "--out", out)
    assert result.returncode == 0, result.stderr
    page = read(out)
    assert keys(page) == ["learned", "curve", "errors", "queries", "facts", "rebuild"] and len(page.all("img")) == 3
    assert "FNO" in page.text and "Strang (classical)" in page.text and "forward passes" in page.text
    assert f"hycop baseline fno adr2d --out {folder} --seed 0" in page.text
    other = hycop.problem("adr2d").sample(2, "id", 0, times=[0.123], shape=(16, 16), estimated=0)
    with pytest.raises(InvalidInputError, match=r"no time of the data can be answered: FNO answers at T ="):
        hycop.write_report(trained, tmp_path / "refused.html", data=other)
    assert not (tmp_path / "refused.html").exists()


def test_a_damaged_history_is_said_on_the_page(plane: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    shutil.copytree(plane, run)
    (run / "history.jsonl").write_text('{"generation": 0, "lo')
    hycop.write_report(run, tmp_path / "page.html", samples=2)
    assert "history.jsonl is damaged: one of its lines is not JSON" in (tmp_path / "page.html").read_text()


def test_what_cannot_be_reported_is_one_line(plane: Path, line: Path, tmp_path: Path) -> None:
    taken = tmp_path / "taken.html"
    taken.write_text("mine")
    broken = tmp_path / "broken"
    broken.mkdir()
    (broken / "front.json").write_text('{"front": [{"folder": 3}]}')
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "front.json").write_text('{"front": [{"folder": "../x", "kept": true, "learned_error": 1.0}]}')
    for words, said in (
        ((tmp_path / "nowhere",), "there is no such folder"),
        ((tmp_path,), "has no model.json"),
        ((broken,), "is not what 'hycop train --pareto' writes"),
        ((outside,), "names a folder outside"),
        ((plane, "--out", taken), "exists already"),
        ((plane, "--out", tmp_path / "page.txt"), "ends in .html"),
        ((plane, "--out", tmp_path / "none" / "page.html"), "there is no folder"),
        ((plane, "--samples", "1", "--out", tmp_path / "a.html"), "at least 2 are needed"),
        ((plane, "--data", line / "train.nc", "--out", tmp_path / "a.html"), "axes"),
        ((plane, "--data", tmp_path / "none.nc", "--out", tmp_path / "a.html"), "none.nc"),
        ((plane, "--frames", "0,1", "--out", tmp_path / "a.html"), "without --data"),
    ):
        result = hycop_command("report", *words, folder=tmp_path)
        assert result.returncode == 2 and said in result.stderr and result.stderr.count("\n") == 1, result.stderr
    assert taken.read_text() == "mine" and not (tmp_path / "a.html").exists()
    assert not (tmp_path / "report.html").exists()
    with pytest.raises(OutputError, match="exists already"):
        hycop.write_report(plane, taken, samples=2)


@pytest.mark.validate
def test_a_section_that_fails_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a problem whose boxes differ from sample to sample."""

    def lost(*_: object) -> None:
        raise InvalidInputError("the state became NaN")

    monkeypatch.setattr("hycop.report.causes.budget", lost)
    problem = hycop.problem("ks1d")
    page: Page = page_of(classical_model(problem, refinement=problem.refinement), None, 2, 0)
    said = {section.key: section.missing for section in page.sections}
    assert said["budget"] == "The state became NaN." and not said["queries"] and not said["trust"]
    assert "without the folder of its run" in said["curve"] and not said["programs"]
    captions = [each.caption for each in page.sections[KEYS.index("queries")].blocks if isinstance(each, Picture)]
    boxes = {part.split("box ")[1] for part in captions if "box " in part}
    assert len(boxes) == 2  # of the two queries, one is best and median, the other worst


def test_axes_have_room_and_ticks_for_what_they_show() -> None:
    for values, log in (([1e-9, 1e3], True), ([3.0, 3.0], True), ([0.0, 7.0], False), ([], True)):
        axis = Axis.over(values, "x", log, 0.0, 100.0)
        assert 2 <= len(axis.ticks()) <= 12
        assert all(0 <= axis.at(value) <= 100 for value in values)
    drawn = chart([Series("a<b", [1.0, 2.0], [0.0, float("nan")])], "x", "y", alt='say "<it>"', levels={"l": 0.0})
    assert Reader(drawn).all("svg")[0]["aria-label"] == 'say "<it>"' and "nan" not in drawn


def test_long_programs_are_cut_and_say_so() -> None:
    program = Program.of(*[("a", 0.1), ("b", -0.1)] * 200)
    drawn = timelines([("long", program)], ["a", "b"], "long")
    assert drawn.count("<rect") == MOST_BOXES and f"{400 - MOST_BOXES} more" in drawn and "back" in drawn


def test_the_feature_that_programs_follow_is_found() -> None:
    rng = np.random.default_rng(0)
    values = rng.random((40, 3))
    spent = np.stack([values[:, 1], 1 - values[:, 1]], axis=1)
    written = ProgramBatch(("a", "b"), np.tile([0, 1], (40, 1)), spent)
    name, order = telling(values, ["x", "y", "z"], written)
    assert name == "y" and (np.diff(values[order, 1]) >= 0).all()
    same = replace(written, durations=np.ones((40, 2)))
    assert telling(np.column_stack([np.ones(40), values[:, 0]]), ["one", "x"], same)[0] == "x"


@pytest.mark.validate
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_browser_finds_nothing_to_complain_about(plane_page: Path, browser: Any, scheme: str) -> None:
    context = browser.new_context(color_scheme=scheme)
    page, heard, asked = context.new_page(), [], []
    page.on("console", lambda message: heard.append(message.text) if message.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: heard.append(str(error)))
    page.on("request", lambda request: asked.append(request.url))
    page.goto(plane_page.as_uri())
    assert not heard and all(url.startswith(("file:", "data:")) for url in asked)
    assert page.evaluate("[...document.images].every(image => image.complete && image.naturalWidth > 0)")
    assert not axe_findings(page)
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.keyboard.press("Enter")
    page.get_by_role("link", name="Commutators").click()
    assert page.url.endswith("#commutators")
    page.set_viewport_size({"width": 400, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth <= 400")
    context.close()
