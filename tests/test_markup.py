"""What a notebook shows: well-formed HTML that holds the facts, and never what somebody smuggled into a name."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest

import hycop
from hycop import markup
from hycop.colours import COLOURS, ink
from tests.helpers import SMALL_MODEL, small_data

EVIL = '"><script>alert(1)</script>'


class Tree(HTMLParser):
    """Checks that what is opened is closed, and collects tags and text."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.tags: list[str] = []
        self.text = ""
        self.feed(text)
        self.close()
        assert not self.open, self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def widths(html: str) -> list[float]:
    return [float(width) for width in re.findall(r'<rect [^>]*? width="([\d.]+)"', html)]


@pytest.fixture(scope="module")
def model() -> hycop.HyCOP:
    return hycop.HyCOP.load(SMALL_MODEL)


def test_a_program_is_a_timeline_to_scale() -> None:
    html = hycop.Program.of(("advection", 0.1), ("reaction", 0.3))._repr_html_()
    first, second = widths(html)
    assert second == pytest.approx(3 * first, rel=1e-3)
    tree = Tree(html)
    assert "svg" in tree.tags and "Program, 2 steps" in tree.text and "advection" in tree.text
    assert 'aria-label="advection 0.1 → reaction 0.3"' in html
    assert "no steps" in hycop.Program.of()._repr_html_()


def test_names_are_escaped_everywhere(model: hycop.HyCOP) -> None:
    program = hycop.Program.of((EVIL, 0.1), ("a", 0.2))
    dictionary = hycop.Dictionary({EVIL: next(iter(model.dictionary.values()))})
    made = [program._repr_html_(), dictionary._repr_html_(), hycop.HyCOP(dictionary)._repr_html_()]
    made += [markup.timelines({EVIL: [(EVIL, 0.1)]}), markup.page(EVIL, markup.note(EVIL), markup.preformatted(EVIL))]
    made += [markup.facts([(EVIL, EVIL)]), markup.table([EVIL], [[EVIL]])]
    for html in made:
        assert "script" not in Tree(html).tags and EVIL not in html and "&lt;script&gt;" in html


def test_a_dictionary_says_what_its_primitives_do() -> None:
    text = Tree(hycop.problem("adr2d").dictionaries["muscl"]._repr_html_()).text
    for word in ("MusclAdvection", "exact", "wall", "diffusion", "boundaries"):
        assert word in text


def test_a_model_shows_what_it_prints(model: hycop.HyCOP) -> None:
    html = model._repr_html_()
    text = Tree(html).text
    for label, line in model.model.facts():
        assert label in text and line in text
    assert len(widths(html)) == len(model.model.typical_program() or ())
    assert "not fitted" in Tree(hycop.HyCOP(model.dictionary)._repr_html_()).text


def test_an_answer_shows_programs_and_trust_without_an_estimate(model: hycop.HyCOP) -> None:
    data = small_data(8, (3.0,))
    answer = model.answer(data.query)
    text = Tree(answer._repr_html_()).text
    assert "Answer of adr1d to 8 queries" in text and "and 3 more" in text
    assert "estimate" not in answer.__dict__ and "estimated error" not in text  # a look is cheap
    assert answer.untrusted.any() and f"{answer.untrusted.sum()} of 8 not to be trusted" in text
    assert answer.error.size == 8 and "estimated error" in Tree(answer._repr_html_()).text


@pytest.mark.parametrize("name", ["adr2d", "swe1d", "ns2d", "ks1d"])
def test_a_problem_shows_its_splits_and_dictionaries(name: str) -> None:
    problem = hycop.problem(name)
    text = Tree(problem._repr_html_()).text
    assert all(word in text for word in (problem.equation.formula, *problem.splits, *problem.dictionaries))


def test_colours_repeat_and_ink_is_readable() -> None:
    assert len(set(COLOURS)) == len(COLOURS)
    names = [f"p{index}" for index in range(len(COLOURS) + 1)]
    html = markup.timelines({"": [(name, 1.0) for name in names]})
    assert html.count(f'fill="{COLOURS[0]}"') == 2
    assert {ink("#000000"), ink("#ffffff")} == {"black", "white"} and ink("#ffffff") == "black"
