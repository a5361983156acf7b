"""Tables by parts: which rows are kept, what a kept part depends on, and where the paper's tables are."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from hycop.data import Dataset
from hycop.errors import InvalidInputError, UnknownNameError
from hycop.evaluation import Row
from hycop.experiments import TABLES, assembled, code
from hycop.experiments.bench import Bench
from hycop.experiments.paper import PUBLISHED
from hycop.experiments.table import Part, Table, read_rows, with_others
from hycop.problems import find_problem
from tests.helpers import hycop_command


def part_of(method: str, computed: list[str]) -> Part:
    data = find_problem("ad1d").sample(2, "id", 0, shape=(8,), estimated=0)

    def rows(bench: Bench, seed: int) -> list[Row]:
        computed.append(method)
        return [Row.of(data, method=method, metric="rel_l2", value=float(len(computed)))]

    return rows


def three_parts(computed: list[str]) -> Table:
    return Table("three", "three parts", {name: part_of(name, computed) for name in ("a", "a more", "b")})


def bench(folder: Path | None = None) -> Bench:
    return Bench(1, 1, lambda text, share: None, folder=folder)


def test_some_parts_are_computed_and_the_others_kept() -> None:
    computed: list[str] = []
    table = three_parts(computed)
    whole = assembled(table, bench())
    assert [(row.part, row.method) for row in whole] == [(name, name) for name in table.parts]
    fresh = assembled(table, bench(), ["a more"])
    assert computed == ["a", "a more", "b", "a more"]
    joined = with_others(table, fresh, ["a more"], whole)
    assert [row.value for row in joined] == [1.0, 4.0, 3.0]
    old = [replace(row, part="") for row in whole]  # of a file from before rows named their part
    assert [(row.part, row.value) for row in with_others(table, fresh, ["a more"], old)] == [
        ("", 1.0),
        ("", 3.0),
        ("a more", 4.0),
    ]
    assert table.parts_about("a") == ["a", "a more"]
    for wrong in (lambda: assembled(table, bench(), ["c"]), lambda: table.parts_about("c")):
        with pytest.raises(UnknownNameError, match=r"unknown part 'c'.*\(of table three\)"):
            wrong()


def test_rows_of_old_files_have_no_part(tmp_path: Path) -> None:
    row = part_of("m", [])(bench(), 0)[0]
    content = replace(row, part="p").to_json()
    assert Row.from_json(content).part == "p"
    del content["part"], content["boundary"]
    assert Row.from_json(content) == row
    file = tmp_path / "t.json"
    for text in ("{", '{"rows": [{}]}', "[]"):
        file.write_text(text)
        with pytest.raises(InvalidInputError, match=r"t\.json: not a table of 'hycop table'"):
            read_rows(file)
    for name in ("fixed-time", "ns", "1d"):  # the files of this project
        assert read_rows(Path(__file__).parents[1] / "results" / f"{name}.json")


def test_the_command_keeps_other_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    computed: list[str] = []
    monkeypatch.setitem(TABLES, "three", three_parts(computed))  # type: ignore[arg-type]
    file = tmp_path / "three.json"
    made = hycop_command("table", "three", "--seeds", "1", "--json", file)
    assert made.returncode == 0, made.stderr
    again = hycop_command("table", "three", "--part", "b", "--seeds", "1", "--json", file)
    assert again.returncode == 0 and "2 rows of other parts kept" in again.stderr
    assert [row.value for row in read_rows(file)] == [1.0, 2.0, 4.0]
    about = hycop_command("table", "three", "a", "--seeds", "1", "--json", file)
    assert about.returncode == 0 and [row.value for row in read_rows(file)] == [5.0, 6.0, 4.0]
    wrong = hycop_command("table", "three", "--part", "d", "--json", file)
    assert wrong.returncode == 2 and "unknown part 'd'" in wrong.stderr
    unnamed = hycop_command("table", "frontier", "mine.py")
    assert unnamed.returncode == 2 and "name the problem in it too, as mine.py:problem" in unnamed.stderr
    assert json.loads(file.read_text())["rows"][0]["part"] == "a"


def test_kept_parts_depend_on_the_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    computed: list[str] = []
    table = three_parts(computed)
    for _ in range(2):
        assembled(table, bench(tmp_path), ["b"])
    assert computed == ["b"]
    monkeypatch.setattr("hycop.experiments.bench.solver_version", lambda: "another")
    assembled(table, bench(tmp_path), ["b"])
    assert computed == ["b", "b"]


def test_datasets_depend_on_the_code_of_their_truth(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[Dataset] = []
    small = replace(find_problem("ad1d"), estimated=0)
    monkeypatch.setattr("hycop.experiments.bench.find_problem", lambda name: small)
    for version in ("one", "one", "two"):
        monkeypatch.setattr("hycop.experiments.bench.truth_version", lambda version=version: version)
        drawn.append(bench(tmp_path).data("ad1d", "id", 0, 2, shape=(8,)))
    assert len(list(tmp_path.glob("*.nc"))) == 2
    np.testing.assert_array_equal(drawn[0].states, drawn[2].states)


def test_words_and_figures_do_not_change_the_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "one.py"
    monkeypatch.setattr(code, "PACKAGE", tmp_path)

    def version(text: str) -> str:
        file.write_text(text)
        return code._hashed((file,))

    plain = "X = 1\n\ndef f(a):\n    return a\n"
    same = '"""Words."""\nX = 1  # why\n"""More."""\n\n\ndef f(a):\n    """Words."""\n    return (a)\n'
    drawing = plain + "def g(a) -> Mapping[str, Figure]:\n    return a\n"
    shown = plain + "def _repr_html_(a):\n    return a\n"
    assert version(plain) == version(same) == version(drawing) == version(shown)
    assert version(plain) != version(plain.replace("X = 1", "X = 2"))
    assert version(plain) != version(plain.replace("return a", "return -a"))


def test_a_part_depends_on_the_experiments_that_it_imports(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = code.experiment_version("hycop.experiments.dam_break")
    assert whole != code.experiment_version("hycop.experiments.fixed_time")
    assert code.experiment_version("tests.test_table_parts") == code._hashed(())
    seen: list[tuple[Path, ...]] = []
    monkeypatch.setattr(code, "_hashed", lambda paths: seen.append(paths) or "")
    code.experiment_version.__wrapped__("hycop.experiments.dam_break")
    assert {path.stem for path in seen[0]} == {"dam_break", "judging", "fixtures", "monolithic"}
    code.solver_version.__wrapped__()
    names = {path.relative_to(code.PACKAGE).parts[0] for path in seen[1]}
    assert {"kernels", "primitives", "references", "problems", "policy", "training", "networks"} <= names
    assert not {"cli", "plots", "plot.py", "markup.py", "colours.py", "experiments", "progress.py"} & names


def test_every_table_of_the_paper_is_somewhere() -> None:
    for shown in PUBLISHED:
        assert shown.table is not None or shown.note
        if shown.table is not None:
            assert shown.table in TABLES, shown
            assert set(shown.parts) <= set(TABLES[shown.table].parts), shown
    numbers = [shown.number for shown in PUBLISHED]
    assert len(set(numbers)) == len(numbers)
    plain = {re.sub(r"\(.\)", "", number) for number in numbers}
    assert {f"Table {k}" for k in range(1, 18)} | {f"Figure {k}" for k in range(1, 25)} <= plain
    (poseidon,) = (shown for shown in PUBLISHED if shown.number == "Poseidon")
    assert poseidon.table is None and "model hub" in poseidon.note


def test_the_list_shows_both() -> None:
    listed = hycop_command("table", "--list").stdout
    assert "Table 1(b) fixed time, 2D SWE and 2D ADR -> fixed-time (swe2d" in listed and "Poseidon" in listed
    assert "fixed-time" in hycop_command("table", "--names").stdout.split()
