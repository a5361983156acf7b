"""What the studio shows, without a page: questions, errors, programs by hand, parts, files."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import hycop
from hycop.errors import DatasetError, InvalidInputError
from hycop.program import Program, Step
from hycop.studio.ranges import Range
from hycop.studio.session import (
    HELD_OUT_START,
    UPLOADED,
    Controls,
    Session,
    parsed,
    run_by_hand,
    with_step,
    with_step_added,
    with_step_moved,
    without_step,
    written,
)
from tests.helpers import hycop_command, tiny_model

PROBLEM = hycop.problem("adr2d")
LEAST = {"tries": 1, "patterns": 1, "rounds": 1, "iterations": 2, "max_steps": 6}


@pytest.fixture(scope="module")
def model() -> hycop.HyCOP:
    return tiny_model()


@pytest.fixture(scope="module")
def data() -> hycop.Dataset:
    return PROBLEM.sample(3, "id", seed=4, shape=(16, 16), estimated=0)


@pytest.fixture
def session(model: hycop.HyCOP, data: hycop.Dataset) -> Session:
    return Session(model, data)


@pytest.fixture
def controls(session: Session) -> Controls:
    return session.controls()


def test_the_first_question_is_the_models_own_answer(session: Session, controls: Controls, model: hycop.HyCOP) -> None:
    question = session.ask(controls)
    answer = model.answer(question.query)
    assert question.own.program == answer.programs[0]
    assert np.array_equal(question.own.states, answer.states) and question.own.work == answer.work[0]
    assert question.query.u0.shape == (1, 1, 32, 32) and not question.outside
    assert session.ask(controls) is question  # nothing is computed twice


def test_the_estimate_is_that_of_the_answer(session: Session, controls: Controls, model: hycop.HyCOP) -> None:
    question = session.ask(controls)
    answer = model.answer(question.query)
    assert question.estimate.error == answer.error[0]
    assert question.estimate.calibrated == answer.estimate.calibrated
    assert question.error(question.own) == answer.estimate.distance[0]


def test_the_program_changes_with_a_coefficient(session: Session, controls: Controls) -> None:
    before = session.ask(controls).own.program
    after = session.ask(replace(controls, params={**controls.params, "r": 0.9}, time=0.31)).own.program
    assert after != before


def test_sliders_reach_beyond_training_and_no_further_than_the_equation(session: Session) -> None:
    for name, each in session.coefficients.items():
        assert each.trained is not None
        assert each.low < each.trained[0] <= each.start <= each.trained[1] < each.high, name
    assert session.coefficients["Dx"].low >= 0 and session.time.high > 0.4
    assert Range(0.0, 3.1, 1.0).step == 0.01


def test_beyond_training_the_reasons_are_sentences(session: Session, controls: Controls) -> None:
    far = {name: each.high for name, each in session.coefficients.items()}
    reasons = session.ask(replace(controls, params=far)).outside
    assert reasons and any("trained on" in each for each in reasons)


def test_seeds_and_families_give_other_states(session: Session, controls: Controls) -> None:
    def state(**other: object) -> np.ndarray:
        return session.ask(replace(controls, **other)).query.u0  # type: ignore[arg-type]

    assert not np.array_equal(state(), state(number=1))
    assert not np.array_equal(state(), state(start="ring"))
    assert np.array_equal(state(number=1), state(number=1, time=0.1))
    assert "narrow gaussian (not trained)" in session.starts


def test_the_truth_holds_for_any_parts_and_programs(session: Session, controls: Controls) -> None:
    question = session.ask(controls)
    assert question.judge == "refined answer"
    guessed = question.error(question.own)
    solved = session.solve_truth(controls)
    assert solved is question and solved.judge == "truth" and solved.truth is not None
    assert solved.error(solved.own) == pytest.approx(guessed, rel=2.0)
    other = session.ask(replace(controls, primitives={"reaction": "Rk4Logistic"}))
    assert other.truth is solved.truth
    assert session.ask(replace(controls, time=0.1)).truth is None


def test_classical_schemes_stand_beside_the_model(session: Session, controls: Controls) -> None:
    question = session.ask(controls)
    rows = {row.name: row for row in question.comparison()}
    assert "HyCOP" in rows and any("(gate)" in name for name in rows)
    strang = next(row for name, row in rows.items() if name.startswith("Strang"))
    assert strang.error is not None and strang.error > 0 and strang.work > 0


def test_a_program_by_hand_changes_error_and_work(session: Session, controls: Controls) -> None:
    question = session.ask(controls)
    own = question.own.program
    longer = with_step(own, 0, Step(own.steps[0].primitive, 1.5 * own.steps[0].duration))
    by_hand, refusal = run_by_hand(question, longer)
    assert by_hand is not None and not refusal
    assert question.error(by_hand) > 10 * question.error(question.own)
    assert [row.name for row in question.comparison(by_hand)][:2] == ["HyCOP", "by hand"]
    twice = Program(tuple(Step(step.primitive, step.duration / 2) for step in own)).steps * 2
    finer, _ = run_by_hand(question, Program(twice))
    assert finer is not None and finer.work > question.own.work


def test_a_process_that_is_not_integrated_over_the_time_is_named(session: Session, controls: Controls) -> None:
    question = session.ask(controls)
    own = question.own.program
    assert question.not_covered(own) == [] == question.not_covered(parsed(written(own), session.model.dictionary.names))
    short = Program.of(("advection", 0.2), ("reaction", 0.1))
    assert question.not_covered(short) == [
        "diffusion is integrated over 0, not over T = 0.2",
        "reaction is integrated over 0.1, not over T = 0.2",
    ]


def test_a_program_that_cannot_run_is_a_sentence(session: Session, controls: Controls) -> None:
    question = session.ask(controls)
    assert run_by_hand(question, None) == (None, "")
    candidate, refusal = run_by_hand(question, Program.of(("diffusion", -1.0)))
    assert candidate is None and "diffusion" in refusal and "\n" not in refusal


def test_programs_are_edited_step_by_step() -> None:
    program = Program.of(("a", 0.1), ("b", 0.2), ("c", 0.3))
    assert [step.primitive for step in with_step_moved(program, 1, -1)] == ["b", "a", "c"]
    assert with_step_moved(program, 2, 1) == program == with_step_moved(program, 0, -1)
    assert len(with_step_added(program, 0, Step("b", 0.4))) == 4
    assert with_step_added(program, 0, Step("b", 0.4)).steps[1] == Step("b", 0.4)
    assert without_step(program, 1) == Program.of(("a", 0.1), ("c", 0.3))
    assert with_step(program, 2, Step("a", 1.0)).steps[2] == Step("a", 1.0)
    with pytest.raises(InvalidInputError, match="at least one step"):
        without_step(Program.of(("a", 0.1)), 0)


@pytest.mark.parametrize("text", ["", "advection", "advection x", "nothing 0.1", "advection nan"])
def test_a_bad_line_is_refused(text: str) -> None:
    with pytest.raises(InvalidInputError) as refused:
        parsed(text, ("advection", "diffusion"))
    assert "\n" not in str(refused.value)


def test_the_field_goes_from_the_start_to_the_answer(session: Session, controls: Controls) -> None:
    question = session.ask(controls)
    own = question.own
    assert np.array_equal(question.state(own, 0), question.query.u0[0])
    assert np.array_equal(question.state(own, len(own.program)), own.states[0])
    middle = question.state(own, 1)
    assert not np.array_equal(middle, question.query.u0[0]) and not np.array_equal(middle, own.states[0])


def test_the_field_is_on_the_grid_that_the_model_runs_on(
    model: hycop.HyCOP, data: hycop.Dataset, controls: Controls, monkeypatch: pytest.MonkeyPatch
) -> None:
    fine = Session(hycop.HyCOP.of(replace(model.model, refinement=2)), data)
    question = fine.ask(controls)
    whole = question.state(question.own, 1)
    assert whole.shape == (1, 64, 64)
    monkeypatch.setattr("hycop.studio.question.MOST_BYTES", 0)  # one at a time where all of them are too large
    assert np.array_equal(fine.ask(replace(controls, tol=None)).state(question.own, 1), whole)


def test_a_boundary_is_swapped_with_the_primitives_that_it_needs(session: Session, controls: Controls) -> None:
    assert list(session.boundaries) == ["periodic", "wall", "outflow"]
    question = session.ask(replace(controls, boundary="wall"))
    assert question.query.grid.boundary == ("wall", "wall")
    assert any("MusclAdvection" in line for line in question.changes)
    assert "boundary wall was not trained" in question.outside and not question.estimate.calibrated


def test_a_primitive_is_swapped(session: Session, controls: Controls) -> None:
    assert next(iter(session.choices["advection"])) == "SpectralAdvection"
    question = session.ask(replace(controls, primitives={"advection": "UpwindAdvection"}))
    plain = session.ask(controls)
    assert question.error(question.own) > plain.error(plain.own)
    assert any("UpwindAdvection" in line for line in question.changes)
    assert any(each.startswith("primitive advection") for each in question.outside)


def test_an_answer_to_a_tolerance(session: Session, controls: Controls) -> None:
    question = session.ask(replace(controls, tol=1e-4))
    assert question.answer.tolerance == 1e-4 and question.judge == "answer to the tolerance"
    own = question.comparison()[0]
    assert own.remark == "estimated" and own.error == question.estimate.error
    assert "tolerance 0.0001" in question.estimate.meaning


def test_a_sample_of_a_file_brings_its_coefficients_and_truth(
    session: Session, controls: Controls, data: hycop.Dataset, tmp_path: Path
) -> None:
    data.save(tmp_path / "mine.npz")
    assert session.upload("mine.npz", (tmp_path / "mine.npz").read_bytes()) == 3
    taken = session.adopted(controls, UPLOADED, 2)
    assert taken.params["cx"] == data.setting.params["cx"][2] and taken.time == data.times[2, -1]
    solved = session.solve_truth(taken)
    assert np.array_equal(solved.query.u0[0], data.states[2, 0])
    assert solved.truth is not None and np.array_equal(solved.truth[0], data.states[2, -1])
    elsewhere = session.solve_truth(replace(taken, time=0.1))  # solved by the problem's reference
    assert elsewhere.truth is not None and not np.array_equal(elsewhere.truth, solved.truth)
    with pytest.raises(InvalidInputError, match="samples 0 to 2"):
        session.adopted(controls, UPLOADED, 3)
    assert HELD_OUT_START in session.starts


@pytest.mark.parametrize("name", ["bad.nc", "bad.npz", "bad.txt", "../../bad.nc", "", "a/b\\c.nc"])
def test_a_bad_file_is_a_sentence_that_names_it_and_changes_nothing(session: Session, name: str) -> None:
    with pytest.raises(DatasetError) as refused:
        session.upload(name, b"no data")
    told, called = str(refused.value), Path(name.replace("\\", "/")).name or "file"
    assert told.startswith(called) and "/tmp" not in told and "\n" not in told
    assert UPLOADED not in session.starts


def test_a_file_of_another_problem_is_refused(session: Session, tmp_path: Path) -> None:
    other = hycop.problem("ad1d").sample(1, "id", shape=(16,), estimated=0)
    other.save(tmp_path / "other.nc")
    with pytest.raises(DatasetError, match="ad1d"):
        session.upload("other.nc", (tmp_path / "other.nc").read_bytes())


def test_an_equation_of_ones_own_starts_from_its_data() -> None:
    line = hycop.problem("ad1d")
    known = line.sample(96, "train", shape=(16,), estimated=0)
    setting = hycop.Setting(known.setting.grid, ("c",), known.setting.params)  # type: ignore[arg-type]
    mine = replace(known, problem="mine", setting=setting)
    own = hycop.Equation("mine", line.processes, ("c",), line.equation.coefficients)  # type: ignore[arg-type]
    fitted = hycop.HyCOP(line.dictionary, own).fit(mine, verbose=False, **LEAST)  # type: ignore[arg-type]
    session = Session(fitted, mine)
    first = session.controls()
    assert session.problem is None and first.start == HELD_OUT_START and set(session.coefficients) == {"cx", "Dx"}
    solved = session.solve_truth(first)
    assert solved.truth is not None and solved.error(solved.own) < 0.5
    with pytest.raises(InvalidInputError, match="no truth is known"):
        session.solve_truth(replace(first, time=0.5 * first.time))
    alone = Session(fitted)  # without data: waves, and sliders around one
    question = alone.ask(alone.controls())
    assert question.query.u0.shape == (1, 1, 128) and question.own.work > 0


def test_without_panel_one_line_says_what_to_install(
    model: hycop.HyCOP, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in sys.modules if name.startswith(("panel", "hycop.studio."))]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "panel", None)
    with pytest.raises(hycop.HyCOPError, match=r"pip install 'hycop\[studio\]'"):
        model.explore()
    model.save(tmp_path / "run")
    result = hycop_command("studio", tmp_path / "run", "--no-browser")
    assert result.returncode == 2 and result.stderr.count("\n") == 1 and "hycop[studio]" in result.stderr
