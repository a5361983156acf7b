"""Problems of one's own, from a formula and ranges to the command line."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from hycop.boundary import Dirichlet
from hycop.errors import HyCOPError, LostSampleError
from hycop.experiments import frontier
from hycop.formula import equation
from hycop.grid import Array
from hycop.metrics import rel_l2
from hycop.primitives import HELD, OFFERED, MusclAdvection, VariableDiffusion
from hycop.problems import PROBLEMS, find_problem, own_problem, register
from hycop.problems.initial_conditions import Wave
from hycop.query import Setting
from hycop.references import VariableReference
from hycop.references.fourier import interpolate
from hycop.surrogate import HyCOP
from tests.helpers import hycop_command

FILE = '''
from dataclasses import dataclass
import numpy as np
import hycop
from hycop.formula import equation
from hycop.problems import own_problem
from hycop.problems.initial_conditions import Wave

split = equation("u_t = -c*u_x + D*u_xx + u - u^3", name="windy-allen-cahn")
ranges = {"c": (0.2, 0.6), "D": (1e-3, 4e-3)}
small = {"max_steps": 5, "tries": 1, "patterns": 1, "samples": 40}


def waves(draw, setting):
    return Wave(1, 2)(draw, (setting.grid.centres()[0],))[:, None]


problem = split.problem(
    ranges=ranges, ood={"c": (0.6, 0.9)}, initial=waves, time=(0.2, 0.8), shape=(24,), settings=small
)


@dataclass(frozen=True)
class DoubleWell:
    """u_t = u - u^3, exactly."""

    advances = frozenset({"reaction"})
    order = hycop.EXACT

    def flow(self, u, duration, setting):
        fade = np.exp(-2 * duration).reshape((-1,) + (1,) * (u.ndim - 1))
        return u / np.sqrt(u**2 + (1 - u**2) * fade)

    def work(self, u, duration, setting):
        return np.full(setting.batch, float(u[0].size))


exact = own_problem(
    hycop.Equation("own-well", split.equation.processes, ("u",), split.equation.coefficients),
    split.dictionary.swapping("reaction", DoubleWell()),
    ranges=ranges,
    initial={"u": Wave(1, 2)},
    time=(0.2, 0.8),
    shape=(24,),
    settings=small,
)
'''


def scipy_truth(u0, setting, duration):
    """Allen–Cahn with wind by SciPy, on the grid that is asked."""
    n, length = u0.shape[-1], setting.grid.lengths[:, 0]
    out = np.empty_like(u0)
    for i in range(len(u0)):
        k = 2j * np.pi * np.fft.fftfreq(n, length[i] / n)
        slope = np.where(np.arange(n) == n / 2, 0.0, k)
        c, D = setting.param("c")[i], setting.param("D")[i]

        def rate(_, u, slope=slope, k=k, c=c, D=D):
            modes = np.fft.fft(u)
            return np.fft.ifft(modes * (D * k**2 - c * slope)).real + u - u**3

        out[i, 0] = solve_ivp(rate, (0, duration[i]), u0[i, 0], "LSODA", rtol=1e-9, atol=1e-11).y[:, -1]
    return out


SPLIT = equation("u_t = -c*u_x + D*u_xx + u - u^3", name="allen-cahn-here")
OPTIONS = {
    "ranges": {"c": (0.2, 0.6), "D": (1e-3, 4e-3)},
    "initial": {"u": Wave(1, 2)},
    "time": (0.2, 0.8),
    "shape": (24,),
}


def test_a_function_and_a_refined_program_agree_on_the_truth() -> None:
    mine, refined = SPLIT.problem(**OPTIONS, truth=scipy_truth), SPLIT.problem(**OPTIONS)
    one, two = mine.sample(4, "id", 1), refined.sample(4, "id", 1)
    assert np.array_equal(one.setting.params["c"], two.setting.params["c"])
    assert np.linalg.norm(one.truth - two.truth) < 3e-6 * np.linalg.norm(one.truth)
    assert "scipy_truth" in one.reference and "own primitives" in two.reference
    assert two.reference_error is not None and two.reference_error < 1e-5


def test_a_function_is_not_asked_for_the_initial_state() -> None:
    durations: list[float] = []

    def decay(u: Array, setting: Setting, duration: Array) -> Array:
        durations.extend(duration.tolist())
        return u * np.exp(-duration)[:, None, None] + 1e-3 * (duration == 0).reshape(-1, 1, 1)

    problem = SPLIT.problem(**OPTIONS, truth=decay)
    problem.sample(3, "id", 0, estimated=0)
    assert len(durations) == 3 and min(durations) > 0
    u, setting = np.ones((2, 1, 24)), problem.queries(2, "id").setting
    assert np.array_equal(problem.subflow(problem.processes).flow(u, np.array([0.0, 1.0]), setting)[0], u[0])


def test_parts_of_an_own_equation_have_a_trusted_flow() -> None:
    problem = SPLIT.problem(**OPTIONS, truth=scipy_truth)
    query = problem.queries(3, "id", 2)
    reaction = problem.subflow(["reaction"]).flow(query.u0, query.time, query.setting)
    fade = np.exp(-2 * query.time)[:, None, None]
    field = interpolate(query.u0, query.setting, 16)  # it acts on the field, not on its cell averages
    exact = (field / np.sqrt(field**2 + (1 - field**2) * fade)).reshape(3, 1, 24, 16).mean(axis=-1)
    assert np.abs(reaction - exact).max() < 1e-4


def test_own_problems_train_and_answer() -> None:
    problem = SPLIT.problem(**OPTIONS)
    model = HyCOP(problem.dictionary).fit(
        problem, samples=40, max_steps=5, tries=1, patterns=1, rounds=1, verbose=False
    )
    data = problem.sample(8, "id", 5)
    answer = model.answer(data.query)
    error = np.linalg.norm(answer.states - data.truth) / np.linalg.norm(data.truth)
    assert error < 1e-3 and answer.untrusted.mean() < 0.5  # a few lie beyond what 40 samples have shown


def test_registering() -> None:
    problem = SPLIT.problem(**OPTIONS)
    register(problem)
    assert find_problem("allen-cahn-here") is problem
    shipped = replace(PROBLEMS["adr2d"], name="adr2d")
    with pytest.raises(HyCOPError, match="comes with HyCOP"):
        register(shipped)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"ranges": {"c": (0.2, 0.6)}}, "coefficient 'D'"),
        ({"ranges": {"c": (0.2, 0.6), "D": (1e-3, 4e-3), "q": (0, 1)}}, "unknown coefficient 'q'"),
        ({"ranges": {"c": (0.6, 0.2), "D": (1e-3, 4e-3)}}, "c is"),
        ({"ranges": {"c": "fast", "D": (1e-3, 4e-3)}}, "c is"),
        ({"ranges": {"c": (0.2, 0.6), "D": (-1e-3, 4e-3)}}, "'D' is -0.001"),
        ({"time": (0.0, 1.0)}, "time is"),
        ({"time": 3}, "time is"),
        ({"initial": {"v": Wave(1, 2)}}, "initial"),
        ({"initial": 7}, "initial"),
        ({"shape": (24.5,)}, "grid shape"),
    ],
)  # fmt: skip
def test_mistakes_are_one_line(change: dict[str, object], message: str) -> None:
    with pytest.raises(HyCOPError, match=message) as found:
        SPLIT.problem(**{**OPTIONS, **change}).sample(2, "id", 0)
    assert "\n" not in str(found.value)


def test_a_truth_of_the_wrong_shape_is_refused() -> None:
    problem = SPLIT.problem(**OPTIONS, truth=lambda u, setting, duration: u[:, :, ::2])
    with pytest.raises(HyCOPError, match="returned shape"):
        problem.sample(2, "id", 0)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("own")
    (place / "own.py").write_text(FILE)
    return place


def test_a_truth_that_blows_up_says_what_to_do() -> None:
    """u_t = a u^3 has no solution after t = 1/(2 a u^2)."""
    split = equation("u_t = D*u_xx + a*u^3", name="blow-up")
    ranges = {"D": (1e-3, 2e-3), "a": (5.0, 6.0)}
    mine = split.problem(ranges=ranges, initial={"u": Wave(1, 2)}, time=(1.0, 2.0), shape=(16,))
    with pytest.raises(LostSampleError, match=r"shorter time, or a solver of yours as truth="):
        mine.sample(2, "train", 0)


def test_coefficients_may_be_drawn_as_fields() -> None:
    """A wind that varies in space, between an inflow of a given value and an outflow."""
    split = equation("u_t = -cx*u_x + Dx*u_xx", name="windy")
    parts = split.dictionary.swapping("advection", MusclAdvection()).swapping("diffusion", VariableDiffusion())
    ranges = {"cx": lambda draw, box: 0.2 + 0.3 * Wave(1, 1)(draw, box), "Dx": (1e-2, 2e-2)}
    ends = [(Dirichlet(1.0), "outflow")]
    mine = own_problem(
        split.equation, parts, ranges=ranges, initial={"u": Wave(1, 1)}, time=(0.2, 0.4), shape=32, boundary=ends
    )
    whole = mine.sample(4, "train", 3)
    assert whole.setting.fields["cx"].shape == (4, 32) and np.ptp(whole.setting.fields["cx"], axis=1).min() > 0.1
    assert whole.setting.params["Dx"].shape == (4,) and "cx varies in space" in mine._repr_html_()
    assert np.array_equal(mine.sample(2, "train", 3, estimated=0).states, whole.states[:2])
    trusted = VariableReference(frozenset({"advection", "diffusion"}), refinement=8)
    times, fine = whole.times[:, 1:], trusted.fine_state(whole.states[:, 0], whole.setting)
    found = trusted.averages(fine, whole.setting, times)
    assert rel_l2(whole.states[:, 1], found[:, 0], whole.setting).max() < 0.02


def test_mistakes_of_own_functions_are_one_line() -> None:
    split = equation("u_t = D*u_xx")
    given = {"ranges": {"D": (1e-2, 2e-2)}, "initial": {"u": Wave(1, 1)}, "time": (0.1, 0.2), "shape": (16,)}
    with pytest.raises(HyCOPError, match=r"truth: the function .* raised ZeroDivisionError"):
        split.problem(**given, truth=lambda u, setting, duration: 1 // 0).sample(1)
    for wrong, said in (("truth", "give a function"), ("refinement", "whole number"), ("at", "at is -1: a positive")):
        with pytest.raises(HyCOPError, match=said):
            split.problem(**given, **{wrong: -1})


TEXTBOOK: Mapping[str, tuple[str, Mapping[str, tuple[float, float]], float]] = {
    "korteweg-de-vries": ("u_t = -6*u*u_x - d*u_xxx", {"d": (5e-4, 1e-3)}, 0.1),
    "cahn-hilliard": ("u_t = dx(dx(u^3 - u)) - g*u_xxxx", {"g": (2e-3, 5e-3)}, 0.02),
    "klein-gordon": ("u_t = v; v_t = c*u_xx - m*u - b*u^3", {"c": (0.5, 1), "m": (0.5, 1), "b": (0, 1)}, 1.0),
    "fitzhugh-nagumo": ("u_t = D*u_xx + u - u^3/3 - w; w_t = e*(u + 0.7 - 0.8*w)", {"D": (0, 0.01), "e": (0, 1)}, 1.0),
}


@pytest.mark.parametrize("case", TEXTBOOK)
def test_the_truth_of_a_formula_converges(case: str) -> None:
    """Also where a splitting into its processes is hard to bring to convergence, or unstable."""
    text, ranges, time = TEXTBOOK[case]
    split = equation(text, name=case)
    initial = {channel.name: Wave(1, 1) for channel in split.equation.channels}
    mine = split.problem(ranges=ranges, initial=initial, time=(0.5 * time, time), shape=(45,))
    whole = mine.sample(3, "train", 0)
    assert whole.reference_error is not None and whole.reference_error < 1e-5
    again = mine.sample(2, "train", 0, estimated=0)  # each sample takes the steps that it needs, whatever the others do
    assert np.array_equal(again.states, whole.states[:2])


def test_own_problems_on_the_command_line(folder: Path) -> None:
    listed = hycop_command("problems", "own.py:problem", folder=folder)
    assert listed.returncode == 0 and "c in [0.2, 0.6]" in listed.stdout, listed.stderr
    made = hycop_command("data", "own.py:problem", "id.nc", "--split", "id", "--samples", "4", folder=folder)
    assert made.returncode == 0 and "own primitives" in made.stdout, made.stderr
    scored = hycop_command("evaluate", "own.py:problem", "--data", "id.nc", "--scheme", "strang x4", folder=folder)
    assert scored.returncode == 0 and "Strang x4" in scored.stdout, scored.stderr
    for words, message in (
        (("problems", "own.py:split"), "not a problem"),
        (("problems", "own.py:nothing"), "unknown problem 'nothing'"),
        (("problems", "missing.py:problem"), "no such file"),
        (("problems", "own.py"), "own.py:problem"),
        (("problems", "mine"), "--with file.py for a run"),
        (("data", "own.py:problem", "x.nc", "--split", "nowhere"), "nowhere"),
    ):
        result = hycop_command(*words, folder=folder)
        assert result.returncode == 2 and message in result.stderr and result.stderr.count("\n") == 1
    (folder / "broken.py").write_text("1 / 0")
    broken = hycop_command("problems", "broken.py:problem", folder=folder)
    assert broken.returncode == 2 and "ZeroDivisionError" in broken.stderr
    (folder / "garbled.py").write_text("import hycop\nhycop.equation('u_t = u_xx +* u')")
    garbled = hycop_command("problems", "garbled.py:problem", folder=folder)
    assert garbled.returncode == 2 and garbled.stderr.startswith("hycop: garbled.py: equation, column 12")


def test_a_run_with_own_primitives_needs_their_file(folder: Path) -> None:
    trained = hycop_command("train", "own.py:exact", "--out", "run", "--set", "rounds=1", folder=folder)
    assert trained.returncode == 0, trained.stderr
    made = hycop_command("data", "own.py:exact", "well.nc", "--split", "id", "--samples", "4", folder=folder)
    assert made.returncode == 0, made.stderr
    words = ("predict", "run", "well.nc", "answers.nc", "--times", "0.3")
    OFFERED.clear()  # commands of the tests share a process
    HELD.clear()
    refused = hycop_command(*words, folder=folder)
    assert refused.returncode == 2 and "--with FILE.py" in refused.stderr
    answered = hycop_command(*words, "--with", "own.py", folder=folder)
    assert answered.returncode == 0, answered.stderr
    workers = ("--executor", "processes", "--workers", "1", "--overwrite")  # which know its primitives too
    before = (folder / "answers.nc").read_bytes()
    spread = hycop_command(*words, "--with", "own.py", *workers, folder=folder)
    assert spread.returncode == 0 and (folder / "answers.nc").read_bytes() == before, spread.stderr
    scored = hycop_command("evaluate", "run", "--with", "own.py", "--samples", "4", folder=folder)
    assert scored.returncode == 0 and "HyCOP" in scored.stdout, scored.stderr
    found = hycop_command("diagnose", "run", "--with", "own.py", "--data", "well.nc", folder=folder)
    assert found.returncode == 0 and found.stdout, found.stderr
    words = ("report", "run", "--with", "own.py", "--out", "page.html", "--samples", "4")
    reported = hycop_command(*words, folder=folder)
    assert reported.returncode == 0 and (folder / "page.html").stat().st_size > 10_000, reported.stderr


def test_a_table_about_an_own_problem(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frontier, "POINTS", 1)
    monkeypatch.setattr(frontier, "BATCHES", (1, 4))
    words = ("table", "frontier", "own.py:exact", "--seeds", "1", "--json", "frontier.json")
    done = hycop_command(*words, folder=folder)
    assert done.returncode == 0, done.stderr
    rows = json.loads((folder / "frontier.json").read_text())["rows"]
    assert {row["problem"] for row in rows} == {"own-well"} and {row["part"] for row in rows} >= {
        "own-well",
        "own-well classical",
    }
    assert "unknown part 'own-well'" in hycop_command("table", "schemes", "own.py:exact", folder=folder).stderr
