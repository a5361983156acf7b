"""The pages of the documentation: numbers from files, and what a stranger reads first."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from docs.generator.__main__ import stale
from docs.generator.numbers import PageError, chosen, printed, read_results, the_one, with_spread
from docs.generator.pages import all_pages, rendered
from docs.generator.tables import everything, pivot

ROOT = Path(__file__).parents[1]
LONGEST_README = 120

ROW = {
    "problem": "adr2d",
    "split": "id",
    "method": "HyCOP",
    "dictionary": "spectral",
    "variant": "",
    "grid": "32x32",
    "metric": "rel_l2",
    "value": 5.37e-6,
    "std": 4e-7,
    "seeds": 3,
    "work": 55296.0,
    "seconds_per_sample": 2e-4,
    "paper": 0.021,
}
ROWS = [
    ROW,
    {**ROW, "split": "ood", "value": 7.5e-5, "paper": None},
    {**ROW, "method": "limit (SABA4 x64)", "value": 5.3e-5, "paper": None, "work": 0.0},
    {**ROW, "method": "FNO", "dictionary": "", "value": 7.9e-3, "std": 0.0, "seeds": 1, "paper": 0.0842},
    {**ROW, "split": "train", "metric": "training seconds", "value": 760.6, "paper": None},
]
RESULTS = {"fixed-time": {"rows": ROWS, "meta": {"command": "hycop table fixed-time --keep .tables", "versions": {}}}}


def pages() -> dict[str, str]:
    pictures = sorted(path.name for path in (ROOT / "results").glob("*.png"))
    return all_pages(ROOT / "docs" / "templates", read_results(ROOT / "results"), pictures)


def test_numbers_are_printed_as_in_tables() -> None:
    values = (0, 5.37e-6, 0.0123, 0.8666, 2.988, 22528, None)
    assert [printed(x) for x in values] == ["0", "5.4e-06", "1.2e-02", "0.87", "3.0", "22,528", ""]
    assert with_spread(ROW) == "5.4e-06 ± 4e-07" and with_spread({**ROW, "std": 1e-21}) == "5.4e-06"
    assert with_spread({**ROW, "seeds": 1}) == "5.4e-06" and with_spread({**ROW, "value": None}) == ""


def test_rows_are_chosen_by_their_fields() -> None:
    assert len(chosen(ROWS, {"split": "id|ood", "metric": "rel_l2"})) == 4
    assert len(chosen(ROWS, {"method": "limit*"})) == 1 and len(chosen(ROWS, {"split": "!train"})) == 4
    with pytest.raises(PageError, match="2 rows instead of one"):
        the_one(ROWS, {"method": "HyCOP", "metric": "rel_l2"})
    with pytest.raises(PageError, match="no field 'nonsense'"):
        chosen(ROWS, {"nonsense": "x"})


def test_a_table_has_the_paper_beside_and_limits_last() -> None:
    lines = pivot(chosen(ROWS, {"metric": "rel_l2"}), ["problem", "method"], ["split"], ["work"]).splitlines()
    assert lines[0] == "| method | id | ood | paper, id | work |"
    assert lines[2] == "| HyCOP | **5.4e-06 ± 4e-07** | 7.5e-05 ± 4e-07 | 2.1e-02 | 55,296 |"
    assert lines[3].startswith("| FNO | 7.9e-03 |") and lines[4].startswith("| limit | 5.3e-05 ± 4e-07 |")


def test_an_opponent_that_is_better_is_bold() -> None:
    better = [{**row, "value": 5e-6} if row["method"] == "FNO" else row for row in chosen(ROWS, {"metric": "rel_l2"})]
    _, _, ours, theirs, limit = pivot(better, ["problem", "method"], ["split"]).splitlines()
    assert "**" not in ours + limit and theirs.startswith("| FNO | **5.0e-06** |")


def test_two_values_for_one_cell_are_refused() -> None:
    with pytest.raises(PageError, match="two values for one cell"):
        pivot([ROW, {**ROW, "variant": "steps=5", "value": 1.0}], ["method"], ["split"])


def test_a_method_that_is_new_in_a_file_appears_by_itself() -> None:
    assert "| PINO |" in everything([*ROWS, {**ROW, "method": "PINO", "value": 0.5}])


def test_templates() -> None:
    number, ratio = "number fixed-time; method=HyCOP; split=id", "ratio fixed-time; method=FNO / method=HyCOP; split=id"
    text = rendered(f"{{{{ {number} }}}} and {{{{ {ratio} }}}}", RESULTS, [], {})
    assert text == "5.4e-06 and 1,471"
    assert "![A (es)](../../results/es.png)" in rendered("{{ figures es.png x_*.png; alt=A }}", {}, ["es.png"], {})
    with pytest.raises(PageError, match="nonsense"):
        rendered("{{ nonsense }}", RESULTS, [], {})
    with pytest.raises(PageError, match="name one file"):
        rendered("{{ number other; method=HyCOP }}", RESULTS, [], {})


def test_a_file_without_a_template_gets_a_page(tmp_path: Path) -> None:
    found = all_pages(tmp_path, RESULTS, [])
    assert set(found) == {"docs/results/fixed-time.md"} and "| HyCOP |" in found["docs/results/fixed-time.md"]


def test_results_pages_are_fresh() -> None:
    assert stale(ROOT, pages()) == [], "run 'make pages'"


def test_a_changed_number_makes_pages_stale(tmp_path: Path) -> None:
    found = {"docs/results/a.md": "1.0", "README.md": "2.0"}
    for path, text in found.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text, encoding="utf-8")
    assert stale(tmp_path, found) == []
    assert stale(tmp_path, {**found, "README.md": "3.0"}) == ["README.md"]


def test_the_readme_is_one_page_and_its_links_lead_somewhere() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(text.splitlines()) <= LONGEST_README
    links = [link for link in re.findall(r"\]\(([^)#]+)", text) if not link.startswith("http")]
    assert len(links) > 10 and [link for link in links if not (ROOT / link).exists()] == []


def test_every_picture_has_a_text_in_its_place() -> None:
    for path in (ROOT / "docs").rglob("*.md"):
        if "gallery" not in path.parts:
            assert not re.search(r"!\[\s*\]\(", path.read_text(encoding="utf-8")), path
