"""Evaluation: errors, limits, rows."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import hycop
from hycop.errors import UnknownNameError
from hycop.evaluation import SPLITTING, ByHand, Named, Row, evaluate, limit, merged
from hycop.splitting import portfolio, splitting


@pytest.fixture(scope="module")
def data() -> hycop.Dataset:
    return hycop.problem("adr2d").sample(24, "id", seed=0)


def test_the_limit_stops_changing(data: hycop.Dataset) -> None:
    dictionary = hycop.problem("adr2d").dictionary
    reached = limit(dictionary, data.query)
    assert reached.change < 1e-7 and reached.copies <= 64
    finer = hycop.run(splitting("saba4").times(64).programs(data.query, dictionary), dictionary, data.query)
    assert np.abs(finer - reached.states).max() < 1e-6


def test_numbers_are_those_of_the_field(data: hycop.Dataset) -> None:
    """Measured elsewhere for exact sub-flows: Strang about 2e-3, ABABA 3e-4, SABA4 7e-5; limit 4e-5."""
    dictionary = hycop.problem("adr2d").dictionary
    methods = [splitting(name) for name in ("lie", "strang", "strang(outer=reaction)", "ababa", "saba4")]
    rows = evaluate(methods, dictionary, [data], label="spectral")
    found = {row.method: row.value for row in rows if row.metric == SPLITTING}
    assert 3e-3 < found["Lie"] < 1.2e-2
    assert 1e-3 < found["Strang"] < 4e-3
    assert 2 * found["Strang"] < found["Strang(outer=reaction)"] < 2e-2
    assert 1.5e-4 < found["ABABA"] < 6e-4
    assert 2e-5 < found["SABA4"] < 1.4e-4
    total = {row.method: row for row in rows if row.metric == "rel_l2"}
    (bottom,) = [row for name, row in total.items() if name.startswith("limit")]
    assert 1e-5 < bottom.value < 8e-5
    assert all(row.limit == pytest.approx(bottom.value) for row in total.values())
    works = [total[name].work for name in ("Lie", "Strang", "ABABA", "SABA4")]
    assert works == sorted(works) and works[0] == 1024 * (10 + 1)


def test_rows_carry_everything(data: hycop.Dataset) -> None:
    dictionary = hycop.problem("adr2d").dictionary
    program = hycop.Program.parse("advection 0.2, diffusion 0.2, reaction 0.2")
    other = hycop.problem("adr2d").sample(24, "id", seed=1)
    rows = evaluate([ByHand(program), splitting("lie")], dictionary, [data, other], metrics=["rel_l2", "max_error"])
    keys = (
        "problem split method dictionary variant time grid metric value std seeds samples work "
        "seconds_per_sample truth limit paper boundary"
    )
    assert list(rows[0].to_json()) == keys.split()
    assert rows[0].method == str(program) and rows[0].seeds == 2 and rows[0].std > 0
    assert rows[0].value == pytest.approx(rows[2].value, rel=1e-9)  # Lie is that program
    assert rows[0].time == 0.2 and rows[0].grid == "32x32"
    with pytest.raises(UnknownNameError, match="rel_l2"):
        evaluate([splitting("lie")], dictionary, [data], metrics=["rel_12"])


def test_rows_tell_the_boundary_of_their_queries() -> None:
    chosen = hycop.problem("ad2d")
    parts = chosen.dictionaries["upwind"]
    rows = []
    for boundary in ("periodic", ("wall", "periodic"), "wall"):
        grid = chosen.grid((8, 8), boundary)
        setting = hycop.Setting(grid, chosen.channels, dict.fromkeys(chosen.parameters, 0.1))
        data = hycop.Dataset("ad2d", "id", np.ones((1, 2, 1, 8, 8)), [[0.5, 0.6]], setting)
        rows += evaluate([splitting("lie")], parts, [data], metrics=["rel_l2"])
    assert [row.boundary for row in rows[::2]] == ["periodic", "wall,periodic", "wall"]
    assert rows[0].time == pytest.approx(0.1)  # since the initial state
    assert len(merged([rows, rows])) == len(rows)  # rows of other boundaries are others
    again = [Row.from_json(row.to_json()) for row in rows]
    assert [row.boundary for row in again] == [row.boundary for row in rows]


@pytest.mark.parametrize(
    "file", sorted((Path(__file__).parents[1] / "results").glob("*.json")), ids=lambda file: file.stem
)
def test_kept_results_still_load(file: Path) -> None:
    content = json.loads(file.read_text())["rows"]
    if "problem" in content[0]:
        assert all(Row.from_json(row).boundary == row.get("boundary", "periodic") for row in content)


def test_the_portfolio_holds_every_distinct_scheme(data: hycop.Dataset) -> None:
    chosen = hycop.problem("adr2d")
    one, _, query = data.setting.take(slice(0, 1)), data, data.query.take(slice(0, 1))
    names = [str(scheme) for scheme in portfolio(chosen.dictionary, one, copies=(1, 2))]
    assert "SABA5 x2" in names and "Strang(outer=reaction)" in names
    assert not any("diffusion" in name or "Yoshida" in name for name in names)
    assert len(names) == len(set(names)) == 2 * 8 * 2
    muscl = chosen.dictionaries["muscl"]
    assert any("outer=diffusion" in str(scheme) for scheme in portfolio(muscl, one))
    for scheme in portfolio(muscl, one, copies=(2,)):
        totals = scheme.programs(query, muscl).time_per_primitive()
        assert np.allclose(totals, 0.2, atol=1e-12)
    turning = hycop.Dictionary({"advection": chosen.dictionary["advection"], "reaction": chosen.dictionary["reaction"]})
    assert any("Yoshida" in str(scheme) for scheme in portfolio(turning, one))


def test_a_scheme_under_another_name_runs_on_the_same_grid() -> None:
    """Opponents of a model that runs on a finer grid are refined as it is, whatever they are called."""
    chosen = hycop.problem("ad1d")
    data = chosen.sample(2, "id", seed=0)
    scheme = hycop.splitting("Lie")
    plain, named = (
        evaluate([method], chosen.named_dictionary("upwind"), [data], refinement=2)[0]
        for method in (scheme, Named("opponent", scheme))
    )
    assert plain.value == named.value and plain.work == named.work
