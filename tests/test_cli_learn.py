"""Training and prediction on the command line: settings, fronts, listeners, files, and what is refused."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import hycop
from hycop.errors import InvalidInputError
from hycop.training.config import settings_table
from tests.helpers import Result, hycop_command

FAST = ("samples=16", "tries=1", "patterns=1", "rounds=1", "iterations=2", "shape=[16]")
LIGHT = ("tries=1", "patterns=1", "rounds=1", "iterations=2", "max_steps=4", "dictionary=upwind")
SMALL = ("samples=16", *LIGHT)


def train(folder: Path, *more: str | Path, settings: tuple[str, ...] = SMALL, problem: str = "ad1d") -> Result:
    pairs = [word for setting in settings for word in ("--set", setting)]
    return hycop_command("train", problem, "--out", folder, *pairs, *more, folder=folder.parent)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "ad"
    result = train(folder)
    assert result.returncode == 0, result.stderr
    assert "best classical scheme at equal work" in result.stdout
    return folder


def test_evaluate_compares_on_both_splits(run: Path, tmp_path: Path) -> None:
    target = tmp_path / "rows.json"
    result = hycop_command("evaluate", run, "--compare", "--samples", "4", "--json", target)
    assert result.returncode == 0, result.stderr
    rows = json.loads(target.read_text())["rows"]
    assert {row["split"] for row in rows} == {"id", "ood"} and {row["seeds"] for row in rows} == {3}
    methods = {row["method"] for row in rows}
    assert {"HyCOP", "static", "Strang"} <= methods and any(name.startswith("limit") for name in methods)
    for split in ("id", "ood"):
        work = {row["method"]: row["work"] for row in rows if row["split"] == split}
        assert all(value <= 1.05 * work["HyCOP"] for name, value in work.items() if name != "static")


def test_predict_flags_what_it_was_not_trained_for(run: Path, tmp_path: Path) -> None:
    hycop.save(hycop.problem("ad1d").sample(6, "ood", seed=1), tmp_path / "in.nc")
    for suffix in ("nc", "npz"):
        target = tmp_path / f"out.{suffix}"
        result = hycop_command("predict", run, tmp_path / "in.nc", target, "--times", "0.2,0.5")
        assert (
            result.returncode == 0
            and "lie outside the trained range of" in result.stderr
            and "peclet_x" in result.stderr
        )
        answer = hycop.load(target)
        assert answer.untrusted is not None and answer.untrusted.shape == (6, 3)
        assert not answer.untrusted[:, 0].any() and answer.untrusted[:, 1:].any(axis=1).mean() > 0.5
        assert answer.take(slice(0, 2)).at(1).untrusted.shape == (2, 2)  # type: ignore[union-attr]


def test_predict_as_json_is_rows_with_reasons(run: Path, tmp_path: Path) -> None:
    hycop.save(hycop.problem("ad1d").sample(4, "ood", seed=1, estimated=0), tmp_path / "in.nc")
    words = ("predict", run, tmp_path / "in.nc", tmp_path / "out.nc", "--times", "0,0.2,0.5", "--json")
    result = hycop_command(*words, tmp_path / "rows.json")
    assert result.returncode == 0, result.stderr
    rows = json.loads((tmp_path / "rows.json").read_text())["rows"]
    assert [(row["sample"], row["time"]) for row in rows] == [(i, t) for i in range(4) for t in (0.0, 0.2, 0.5)]
    model, data = hycop.HyCOP.load(run), hycop.load(tmp_path / "in.nc")
    answer = model.answer(model.query(data.states[:, 0], data.setting.params, [0.0, 0.2, 0.5]))
    assert [tuple(row["reasons"]) for row in rows] == list(answer.reasons)
    assert [row["untrusted"] for row in rows] == answer.untrusted.tolist() and answer.untrusted.any()
    assert not any(row["untrusted"] for row in rows if row["time"] == 0)


def test_train_lists_its_settings() -> None:
    result = hycop_command("train", "--settings")
    assert result.returncode == 0, result.stderr
    lines = {line.split()[0]: line for line in result.stdout.splitlines() if line.strip()}
    for setting in settings_table():
        assert setting.name in lines, setting.name


def test_a_finished_model_is_not_trained_over(run: Path) -> None:
    """Also where nothing was to be learned, so that there is no checkpoint."""
    before = (run / "model.json").read_bytes()
    result = train(run)
    assert result.returncode == 2 and "holds a" in result.stderr and "choose another folder" in result.stderr
    assert (run / "model.json").read_bytes() == before


def test_settings_from_a_file(tmp_path: Path) -> None:
    (tmp_path / "small.yaml").write_text(
        "preset: laptop\nsamples: 16\ntries: 1\npatterns: 1\nrounds: 1\niterations: 2\ndictionary: upwind\n"
    )
    result = train(tmp_path / "run", "--config", tmp_path / "small.yaml", settings=("max_steps=3", "validation=200"))
    assert result.returncode == 0, result.stderr
    config = hycop.HyCOP.load(tmp_path / "run").model.record.config
    assert (config.samples, config.max_steps, config.iterations) == (16, 3, 2)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("max_steps: [", "not YAML"),
        ("- 3", "one setting per line"),
        ("max_stepz: 3", "did you mean max_steps"),
        ("max_steps: 1", "max_steps"),
    ],
)
def test_bad_settings_files_are_refused(text: str, wanted: str, tmp_path: Path) -> None:
    (tmp_path / "bad.yaml").write_text(text)
    result = train(tmp_path / "run", "--config", tmp_path / "bad.yaml", settings=())
    assert result.returncode == 2 and wanted in result.stderr and result.stderr.count("\n") == 1
    assert not (tmp_path / "run").exists()


def test_a_listener_is_told_every_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "listener.py").write_text("heard = []\ndef tell(entry):\n    heard.append(entry)\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    # with gains there is something to learn even in the shortest program
    result = train(tmp_path / "run", "--callback", "listener:tell", settings=(*SMALL, "budget=gain"))
    assert result.returncode == 0, result.stderr
    import listener  # type: ignore[import-not-found]

    last = listener.heard[-1]
    assert len(listener.heard) >= 4 and last.evaluations > 0 and 0 < last.share <= 1
    assert last.best <= last.classical_loss and last.classical
    for wrong in ("listener", "listener:nobody", "no_such_module:tell"):
        refused = train(tmp_path / "other", "--callback", wrong)
        assert refused.returncode == 2 and refused.stderr.count("\n") == 1
    assert not (tmp_path / "other").exists()


@pytest.mark.validate
def _ask_the_front(folder: Path, count: int) -> None:
    """A front answers by its cheapest point in no time, by its best if there is time, and to a tolerance."""
    model = hycop.HyCOP.load(folder)
    points = [hycop.HyCOP.load(folder / f"point{index}") for index in range(count)]
    query = hycop.problem("burgers1d").queries(3, "train", shape=(16,))
    own = [each.answer(query) for each in points]
    np.testing.assert_array_equal(model.answer(query).states, own[-1].states)
    np.testing.assert_array_equal(model.answer(query, max_seconds=1e-12).states, own[0].states)
    np.testing.assert_array_equal(model.answer(query, max_seconds=1e3).states, own[-1].states)
    u0, nu = query.u0[:1], {name: values[:1] for name, values in query.setting.params.items()}
    hurried = model.predict(u0, nu, float(query.time[0]), max_seconds=1e-12)
    np.testing.assert_array_equal(hurried[:, 0], points[0].predict(u0, nu, float(query.time[0]))[:, 0])
    easy = model.answer(query, tol=1e3)
    assert easy.tolerance_met is not None and easy.tolerance_met.all() and (easy.work <= own[-1].work).all()
    with pytest.raises(InvalidInputError, match="tol and max_seconds: give one"):
        model.answer(query, tol=1.0, max_seconds=1.0)
    with pytest.raises(InvalidInputError, match="max_seconds is 0: seconds above zero"):
        model.answer(query, max_seconds=0)
    with pytest.raises(InvalidInputError, match="one operating point; load the folder of a front"):
        points[0].answer(query, max_seconds=1.0)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("[]", "is not a front"),
        ('{"front": [{"folder": "../x"}], "seconds_per_work": {"../x": 1}}', "must name folders point0"),
        ('{"front": [{"folder": "point0"}], "seconds_per_work": {"point0": -1}}', "positive numbers"),
        ('{"front": [{"folder": "point0"}], "seconds_per_work": {"point0": 1}}', "there is no such folder"),
    ],
)
def test_a_front_that_is_none_is_refused(tmp_path: Path, content: str, said: str) -> None:
    (tmp_path / "front.json").write_text(content)
    with pytest.raises(hycop.HyCOPError, match=said):
        hycop.HyCOP.load(tmp_path)


def test_a_front_has_models_numbers_and_a_picture(tmp_path: Path) -> None:
    front_of = partial(train, tmp_path / "front", "--pareto", problem="burgers1d", settings=(*FAST, "max_steps=6"))
    result = front_of()
    assert result.returncode == 0, result.stderr
    front = json.loads((tmp_path / "front" / "front.json").read_text())["front"]
    work = [point["learned_work"] for point in front]
    assert 2 <= len(front) <= 6 and work == sorted(work)
    assert (tmp_path / "front" / "front.png").stat().st_size > 1000
    assert hycop.HyCOP.load(tmp_path / "front" / front[-1]["folder"]).model.theta.size
    _ask_the_front(tmp_path / "front", len(front))
    again = front_of("--resume")
    assert again.returncode == 0, again.stderr
    assert json.loads((tmp_path / "front" / "front.json").read_text())["front"] == front


def test_held_out_data_of_one_s_own(tmp_path: Path) -> None:
    chosen = hycop.problem("ad1d")
    hycop.save(chosen.sample(12, "train", seed=0), tmp_path / "learn.nc")
    hycop.save(chosen.sample(40, "train", seed=1), tmp_path / "judge.nc")
    files = ("--data", tmp_path / "learn.nc", "--held-out", tmp_path / "judge.nc")
    result = train(tmp_path / "run", *files, settings=LIGHT)
    assert result.returncode == 0, result.stderr
    assert hycop.HyCOP.load(tmp_path / "run").model.gate.samples == 40


def test_data_and_drawing_do_not_mix(run: Path, tmp_path: Path) -> None:
    hycop.save(hycop.problem("ad1d").sample(4, "id", seed=1), tmp_path / "in.nc")
    for option in (("--times", "0.1"), ("--split", "ood"), ("--shape", "32"), ("--seeds", "2")):
        result = hycop_command("evaluate", run, "--data", tmp_path / "in.nc", *option)
        assert result.returncode == 2 and option[0] in result.stderr and result.stderr.count("\n") == 1
    assert hycop_command("evaluate", run, "--data", tmp_path / "in.nc").returncode == 0


def test_refinement_is_the_same_for_all_methods(tmp_path: Path) -> None:
    errors = {}
    for factor in ("1", "4"):
        target = tmp_path / f"{factor}.json"
        words = ("--dictionary", "upwind", "--samples", "4", "--seeds", "1", "--refinement", factor, "--json", target)
        assert hycop_command("evaluate", "ad1d", "--scheme", "strang", *words).returncode == 0
        errors[factor] = {
            row["method"].partition(" (")[0]: row["value"]
            for row in json.loads(target.read_text())["rows"]
            if row["metric"] == "rel_l2"
        }
    assert errors["4"]["Strang"] < 0.5 * errors["1"]["Strang"] and errors["4"]["limit"] < 0.5 * errors["1"]["limit"]


def test_channels_are_found_by_name(run: Path, tmp_path: Path) -> None:
    water = hycop.problem("swe1d").sample(2, "id", seed=0, times=[0.01])
    turned = water.arranged(water.setting.channels[::-1])
    assert [channel.name for channel in turned.setting.channels] == ["hu", "h"]
    back = turned.arranged(water.setting.channels)
    assert (back.states == water.states).all() and (turned.states[:, :, 0] == water.states[:, :, 1]).all()
    data = hycop.problem("ad1d").sample(2, "id", seed=1)
    other = hycop.Setting(data.setting.grid, (hycop.Channel("v"),), data.setting.params)
    hycop.save(hycop.Dataset("ad1d", "id", data.states, data.times, other), tmp_path / "v.nc")
    for words in (
        ("predict", run, tmp_path / "v.nc", tmp_path / "out.nc"),
        ("evaluate", run, "--data", tmp_path / "v.nc"),
    ):
        result = hycop_command(*words)
        assert result.returncode == 2 and "channels v" in result.stderr and result.stderr.count("\n") == 1
    assert not (tmp_path / "out.nc").exists()


def test_unknown_and_missing_parameters(run: Path, tmp_path: Path) -> None:
    data = hycop.problem("ad1d").sample(2, "id", seed=1)
    params = dict(data.setting.params)
    for name, content in (("zeta", {**params, "zeta": params["cx"]}), ("Dx", {"cx": params["cx"]})):
        setting = hycop.Setting(data.setting.grid, data.setting.channels, content)
        hycop.save(hycop.Dataset("ad1d", "id", data.states, data.times, setting), tmp_path / "odd.nc")
        for words in (
            ("predict", run, tmp_path / "odd.nc", tmp_path / "o.nc"),
            ("evaluate", run, "--data", tmp_path / "odd.nc"),
        ):
            result = hycop_command(*words)
            assert result.returncode == 2 and f"'{name}'" in result.stderr and result.stderr.count("\n") == 1
        assert f"'{name}'" in train(tmp_path / "run", "--data", tmp_path / "odd.nc", settings=LIGHT).stderr


def test_inputs_are_never_overwritten(run: Path, tmp_path: Path) -> None:
    file = tmp_path / "train.nc"
    hycop.save(hycop.problem("ad1d").sample(2, "id", seed=1), file)
    before = file.read_bytes()
    assert "also the input" in hycop_command("predict", run, file, file).stderr
    assert "could be overwritten" in train(tmp_path, "--data", file).stderr
    assert file.read_bytes() == before


def test_other_boundaries_and_endless_times(run: Path, tmp_path: Path) -> None:
    file = tmp_path / "in.nc"
    hycop.save(hycop.problem("ad1d").sample(3, "id", seed=1), file)
    result = hycop_command("predict", run, file, tmp_path / "walls.nc", "--times", "0,0.2", "--boundary", "wall")
    assert result.returncode == 0 and "3 of 6" in result.stderr  # the initial state is what it is
    for times in ("1e9", "1e300"):
        result = hycop_command("predict", run, file, tmp_path / "late.nc", "--times", times)
        assert result.returncode == 2 and "shorter" in result.stderr and result.stderr.count("\n") == 1
    assert "2 samples at 1 time" in hycop_command("predict", run, file, tmp_path / "two.nc", "--samples", "2").stdout


def test_answers_are_not_overwritten_unasked(run: Path, tmp_path: Path) -> None:
    source, target = tmp_path / "in.nc", tmp_path / "out.nc"
    hycop.save(hycop.problem("ad1d").sample(1, "id", seed=1), source)
    target.write_text("mine")
    refused = hycop_command("predict", run, source, target)
    assert refused.returncode == 2 and "--overwrite" in refused.stderr and target.read_text() == "mine"
    assert "1 sample at 1 time" in hycop_command("predict", run, source, target, "--overwrite").stdout
    assert hycop.load(target).samples == 1


def test_answers_are_at_the_times_of_the_data(run: Path, tmp_path: Path) -> None:
    data = hycop.problem("ad1d").sample(2, "id", seed=1, times=[0.1, 0.3])
    late = replace(data, states=data.states[:, 1:], times=data.times[:, 1:])
    hycop.save(late, tmp_path / "late.nc")
    assert hycop_command("predict", run, tmp_path / "late.nc", tmp_path / "out.nc").returncode == 0
    np.testing.assert_allclose(hycop.load(tmp_path / "out.nc").times, [[0.1, 0.3]] * 2)
    words = ("predict", run, tmp_path / "late.nc", tmp_path / "later.nc", "--times", "0.5")  # after the initial state
    assert hycop_command(*words).returncode == 0
    np.testing.assert_allclose(hycop.load(tmp_path / "later.nc").times, [[0.1, 0.6]] * 2)


def test_a_model_that_cannot_handle_a_boundary_can_be_swapped(run: Path, tmp_path: Path) -> None:
    model = hycop.HyCOP.load(run).model
    advection = hycop.problem("ad1d").dictionaries["spectral"]["advection"]
    hycop.HyCOP.of(replace(model, dictionary=model.dictionary.swapping("advection", advection))).save(tmp_path / "run")
    data = hycop.problem("ad1d").sample(1, "id", seed=1)
    walled = replace(data, setting=data.setting.with_grid(data.setting.grid.with_boundary("wall")))
    hycop.save(walled, tmp_path / "walls.nc")
    for words in (
        ("evaluate", tmp_path / "run", "--data", tmp_path / "walls.nc"),
        ("predict", tmp_path / "run", tmp_path / "walls.nc", tmp_path / "out.nc"),
    ):
        result = hycop_command(*words)
        assert result.returncode == 2
        assert f"hycop swap {tmp_path / 'run'} OUT --boundary wall --auto" in result.stderr.splitlines()[-1]


def test_nothing_to_resume_is_said(tmp_path: Path) -> None:
    first, again = train(tmp_path / "run", "--resume"), train(tmp_path / "run", "--resume")
    assert first.returncode == again.returncode == 0
    assert f"{tmp_path / 'run'}: holds no run to resume; one is started" in first.stderr
    assert not again.stderr
