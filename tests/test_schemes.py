"""Classical splittings as data: coefficients, names, and the programs they write."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise, permutations
from math import sqrt
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hycop.dictionary import Dictionary
from hycop.errors import IncompatibleError, InvalidInputError, UnknownNameError
from hycop.execution import simplify
from hycop.grid import Array, Grid
from hycop.primitive import EXACT
from hycop.primitives import ExactLogistic, MusclAdvection, SpectralAdvection, SpectralDiffusion
from hycop.query import Channel, Query, Setting
from hycop.schemes import SCHEMES, Scheme, portfolio, process_order, splitting

properties = settings(max_examples=60, deadline=None, derandomize=True, database=None)
ADR = {"advection": SpectralAdvection(), "diffusion": SpectralDiffusion(), "reaction": ExactLogistic()}
NAMES = ["Lie", "Strang", "ABAB", "ABABA", "SABA2", "SABA3", "SABA4", "SABA5", "SABA7", "Yoshida", "Suzuki"]
POSITIVE = [name for name in NAMES if name not in ("Yoshida", "Suzuki")]
PALINDROMIC = [name for name in NAMES if name not in ("Lie", "ABAB")]
each_scheme = pytest.mark.parametrize("name", NAMES)

# SCIENCE.md §2: fractions of the time, A and B in turn
ROOT, MCLACHLAN, LAMBDA = sqrt(0.5), 0.193183327503783685, (3 - sqrt(3)) / 6
TABLE = {
    "Lie": [1, 1],
    "Strang": [0.5, 1, 0.5],
    "ABAB": [1 - ROOT, ROOT, ROOT, 1 - ROOT],
    "ABABA": [MCLACHLAN, 0.5, 1 - 2 * MCLACHLAN, 0.5, MCLACHLAN],
    "SABA2": [LAMBDA, 0.5, 1 - 2 * LAMBDA, 0.5, LAMBDA],
    "SABA3": [0.1127016654, 5 / 18, 0.3872983346, 4 / 9, 0.3872983346, 5 / 18, 0.1127016654],
    "SABA4": [0.0694318442, 0.1739274226, 0.2605776340, 0.3260725774, 0.3399810436],
    "SABA5": [0.0469100770, 0.1184634425, 0.1838552679, 0.2393143352, 0.2692346551, 0.2844444444],
}


@dataclass(frozen=True)
class Anything:
    """A process of its own that runs both ways and changes nothing."""

    process: str
    reversible: bool = True
    order = EXACT

    @property
    def advances(self) -> frozenset[str]:
        return frozenset({self.process})

    def flow(self, u: Array, duration: Array, setting: Setting) -> Array:
        return u.copy()

    def work(self, u: Array, duration: Array, setting: Setting) -> Array:
        return np.ones(setting.batch)


def processes(count: int, reversible: bool = True) -> Dictionary:
    return Dictionary({name: Anything(name, reversible) for name in "ABCD"[:count]})


def query_of(times: Any, boundary: str = "periodic") -> Query:
    time = np.atleast_1d(np.asarray(times, dtype=np.float64))
    grid = Grid.box((4, 4), boundary=boundary, batch=time.size)
    params = {"cx": 1.0, "cy": 0.5, "Dx": 0.1, "Dy": 0.1, "r": 1.0}
    return Query(np.full((time.size, 1, 4, 4), 0.5), Setting(grid, (Channel("u"),), params), time)


def pattern(scheme: Scheme, dictionary: Dictionary, boundary: str = "periodic") -> list[str]:
    return [step.primitive for step in scheme.programs(query_of(0.2, boundary), dictionary)[0]]


class TestCoefficients:
    @each_scheme
    def test_each_operator_gets_the_whole_time(self, name: str) -> None:
        coefficients = splitting(name).coefficients
        assert sum(coefficients[0::2]) == pytest.approx(1.0, abs=1e-14)
        assert sum(coefficients[1::2]) == pytest.approx(1.0, abs=1e-14)
        assert sum(splitting(name).weights) == pytest.approx(1.0, abs=1e-14)

    @pytest.mark.parametrize("name", TABLE)
    def test_they_are_those_of_the_literature(self, name: str) -> None:
        half = TABLE[name]
        found = splitting(name).coefficients[: len(half)]
        np.testing.assert_allclose(found, half, rtol=0, atol=1e-9)
        # the rest of SABA4 and SABA5 follows by symmetry
        assert len(splitting(name).coefficients) == len(half) or name in ("SABA4", "SABA5")

    @pytest.mark.parametrize("name", PALINDROMIC)
    def test_palindromes_read_the_same_backwards(self, name: str) -> None:
        scheme = splitting(name)
        np.testing.assert_allclose(scheme.coefficients, scheme.coefficients[::-1], rtol=0, atol=1e-14)
        np.testing.assert_allclose(scheme.weights, scheme.weights[::-1], rtol=0, atol=1e-14)

    @pytest.mark.parametrize("stages", range(1, 21))
    def test_saba_steps_are_positive_for_any_number_of_operators(self, stages: int) -> None:
        """Nodes and summed weights of Gauss's rule interlace (Chebyshev–Markov–Stieltjes): no negative remainder."""
        scheme = splitting(f"SABA{stages}")
        assert len(scheme.coefficients) == 2 * stages + 1
        assert len(scheme.weights) == 2 * stages
        assert min(scheme.weights) > 0
        assert not scheme.backwards
        np.testing.assert_allclose(scheme.coefficients, scheme.coefficients[::-1], rtol=0, atol=1e-14)

    def test_saba1_is_strang(self) -> None:
        assert splitting("SABA1").coefficients == splitting("Strang").coefficients

    @each_scheme
    def test_only_orders_above_two_run_backwards(self, name: str) -> None:
        scheme = splitting(name)
        assert scheme.backwards == (scheme.order > 2) == (name not in POSITIVE)

    @each_scheme
    def test_weights_give_the_coefficients_back(self, name: str) -> None:
        scheme = splitting(name)
        weights = [0.0, *scheme.weights, 0.0]
        pairs = [a + b for a, b in pairwise(weights)][: len(scheme.coefficients)]
        np.testing.assert_allclose(pairs, scheme.coefficients, rtol=0, atol=1e-14)


class TestNames:
    @pytest.mark.parametrize(
        "text",
        [*NAMES, "Strang x4", "SABA7", "SABA12 x3", "ABABA x2(outer=diffusion)", "Lie(outer=reaction)", "ABAB x16"],
    )
    def test_they_read_as_they_print(self, text: str) -> None:
        scheme = splitting(text)
        assert str(scheme) == text
        assert splitting(str(scheme)) == scheme

    @properties
    @given(
        st.sampled_from(NAMES), st.integers(1, 99), st.none() | st.sampled_from(["a", "my diffusion", "UPPER", "u(1)"])
    )
    def test_every_scheme_reads_as_it_prints(self, name: str, substeps: int, outer: str | None) -> None:
        scheme = splitting(name).with_substeps(substeps)
        scheme = scheme if outer is None else scheme.with_outer(outer)
        assert splitting(str(scheme)) == scheme

    @pytest.mark.parametrize("text", ["strang", "STRANG", " Strang ", "strang x1", "Strang ×1", "strang*1"])
    def test_spelling_is_lenient(self, text: str) -> None:
        assert splitting(text) == SCHEMES["strang"]

    @pytest.mark.parametrize(
        ("text", "nearest"),
        [
            ("strng", "Strang"),
            ("yoshda", "Yoshida"),
            ("ABABAB", "ABABA"),
            ("strang twice", "Strang"),
            ("", "known: ABAB"),
        ],
    )
    def test_unknown_schemes_bring_the_nearest(self, text: str, nearest: str) -> None:
        with pytest.raises(UnknownNameError, match=f"unknown scheme '{text}'.*{nearest}"):
            splitting(text)

    @pytest.mark.parametrize("text", ["SABA0", "SABA65"])
    def test_saba_has_limits(self, text: str) -> None:
        with pytest.raises(InvalidInputError, match=f"{text}.*between 1 and 64"):
            splitting(text)

    def test_substeps_are_counted_from_one(self) -> None:
        with pytest.raises(InvalidInputError, match="scheme Strang: 0 substeps"):
            splitting("strang x0")
        assert splitting("strang x2").with_substeps(3).substeps == 6

    def test_an_unknown_outer_operator_brings_the_nearest(self) -> None:
        with pytest.raises(UnknownNameError, match="'difusion': did you mean diffusion"):
            splitting("Strang(outer=difusion)").programs(query_of(0.1), Dictionary(ADR))


class TestPrograms:
    @each_scheme
    @pytest.mark.parametrize("count", [1, 2, 3, 4])
    @pytest.mark.parametrize("substeps", [1, 3])
    def test_every_process_gets_exactly_the_query_time(self, name: str, count: int, substeps: int) -> None:
        dictionary, query = processes(count), query_of([0.0, 0.2, 3.0])
        for outer in dictionary:
            programs = splitting(name).with_substeps(substeps).with_outer(outer).programs(query, dictionary)
            assert programs.names == dictionary.names
            expected = np.tile(query.time[:, None], (1, count))
            np.testing.assert_allclose(programs.time_per_primitive(), expected, rtol=1e-14, atol=0)

    @pytest.mark.parametrize("name", PALINDROMIC)
    def test_symmetric_schemes_write_palindromes_for_three(self, name: str) -> None:
        for substeps in (1, 2):
            program = splitting(name).with_substeps(substeps).programs(query_of(0.2), processes(3))[0]
            steps = [(step.primitive, step.duration) for step in program]
            assert [step for step, _ in steps] == [step for step, _ in steps][::-1]
            np.testing.assert_allclose([tau for _, tau in steps], [tau for _, tau in steps][::-1], atol=1e-15)

    @pytest.mark.parametrize(
        ("name", "letters"),
        [("Lie", "ABC"), ("Strang", "ABCBA"), ("Lie x2", "ABCABC"), ("Strang x2", "ABCBABCBA"), ("ABAB", "ABCBABC")],
    )
    def test_patterns(self, name: str, letters: str) -> None:
        assert "".join(pattern(splitting(name), processes(3))) == letters

    @each_scheme
    def test_two_operators_take_the_coefficients_as_they_stand(self, name: str) -> None:
        scheme = splitting(name)
        program = scheme.programs(query_of(0.2), processes(2))[0]
        np.testing.assert_allclose(
            [step.duration for step in program], 0.2 * np.array(scheme.coefficients), rtol=0, atol=1e-15
        )

    @each_scheme
    def test_one_operator_takes_one_step(self, name: str) -> None:
        assert pattern(splitting(name), processes(1)) == ["A"]

    @pytest.mark.parametrize("outer", ["A", "B", "C"])
    def test_the_outer_operator_is_outside(self, outer: str) -> None:
        steps = pattern(splitting("Strang").with_outer(outer), processes(3))
        assert steps[0] == steps[-1] == outer

    @pytest.mark.parametrize("order", list(permutations(ADR)), ids="-".join)
    @pytest.mark.parametrize("outer", [None, *ADR])
    def test_a_commuting_pair_stays_together(self, order: tuple[str, ...], outer: str | None) -> None:
        dictionary = Dictionary({name: ADR[name] for name in order})  # type: ignore[misc]
        names = process_order(dictionary, query_of(0.2).setting, outer)
        assert sorted(names) == sorted(ADR)
        assert names.index("reaction") != 1
        assert outer is None or names[0] == outer
        # and so a symmetric program runs as one of two operators
        programs = replace(splitting("Strang"), outer=outer).programs(query_of(0.2), dictionary)
        assert simplify(programs, dictionary, query_of(0.2).setting).lengths() == (5 if names[0] != "reaction" else 4)

    def test_without_a_common_transform_the_order_is_the_dictionarys(self) -> None:
        mixed = Dictionary(
            {"advection": MusclAdvection(), "reaction": ExactLogistic(), "diffusion": SpectralDiffusion()}
        )
        assert process_order(mixed, query_of(0.2).setting) == ("advection", "reaction", "diffusion")
        assert process_order(mixed, query_of(0.2).setting, "diffusion") == ("diffusion", "advection", "reaction")

    @pytest.mark.parametrize("name", ["Yoshida", "Suzuki"])
    def test_negative_steps_are_refused_where_they_would_blow_up(self, name: str) -> None:
        with pytest.raises(IncompatibleError, match=f"scheme {name} takes negative steps, but 'diffusion' cannot run"):
            splitting(name).programs(query_of(0.2), Dictionary(ADR))
        both = Dictionary({key: ADR[key] for key in ("advection", "reaction")})  # type: ignore[misc]
        durations = splitting(name).programs(query_of(0.2), both).durations
        assert (durations < 0).any()

    @pytest.mark.parametrize("name", POSITIVE)
    def test_positive_schemes_are_for_everyone(self, name: str) -> None:
        for count in (1, 2, 3, 4):
            programs = splitting(name).programs(query_of(0.2), processes(count, reversible=False))
            assert (programs.durations > 0).all()

    def test_overlapping_primitives_are_refused(self) -> None:
        both = Dictionary(ADR).adding("muscl", MusclAdvection())
        with pytest.raises(
            IncompatibleError, match=r"'advection' and 'muscl' overlap; drop one with without\('muscl'\)"
        ):
            splitting("Strang").programs(query_of(0.2), both)
        assert len(splitting("Strang").programs(query_of(0.2), both.without("muscl"))) == 1


class TestPortfolio:
    def test_it_offers_what_can_run_with_each_distinct_outer_operator(self) -> None:
        dictionary, setting = Dictionary(ADR), query_of(0.2).setting
        schemes = portfolio(dictionary, setting, substeps=(1, 2))
        assert len(set(schemes)) == len(schemes)
        assert {scheme.outer for scheme in schemes} == {None, "reaction"}
        assert {scheme.substeps for scheme in schemes} == {1, 2}
        assert not any(scheme.backwards for scheme in schemes)
        for scheme in schemes:
            scheme.programs(query_of(0.2), dictionary)

    def test_reversible_primitives_bring_the_schemes_of_order_four(self) -> None:
        both = processes(2)
        names = {scheme.name for scheme in portfolio(both, query_of(0.2).setting)}
        assert names == {scheme.name for scheme in SCHEMES.values()}
