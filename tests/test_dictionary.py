"""Dictionaries: named primitives that nobody can change behind a model's back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from hycop.dictionary import Dictionary
from hycop.errors import HyCOPError, IncompatibleError, InvalidInputError, UnknownNameError
from hycop.grid import Array, Grid
from hycop.primitive import EXACT
from hycop.primitives import (
    ExactLogistic,
    FiniteVolumeDiffusion,
    MusclAdvection,
    Rk4Logistic,
    SpectralAdvection,
    SpectralDiffusion,
)
from hycop.query import Setting

DICTIONARY = Dictionary(
    {"advection": SpectralAdvection(), "diffusion": SpectralDiffusion(), "reaction": ExactLogistic()}
)


@dataclass(frozen=True)
class Everything:
    """Advances two processes at once."""

    advances = frozenset({"advection", "stirring"})
    order = EXACT

    def flow(self, u: Array, duration: Array, setting: Setting) -> Array:
        return u

    def work(self, u: Array, duration: Array, setting: Setting) -> Array:
        return np.ones(setting.batch)


def test_it_is_an_ordered_mapping() -> None:
    assert DICTIONARY.names == tuple(DICTIONARY) == ("advection", "diffusion", "reaction")
    assert len(DICTIONARY) == 3
    assert "diffusion" in DICTIONARY
    assert "gravity" not in DICTIONARY
    assert DICTIONARY["reaction"] == ExactLogistic()
    assert dict(DICTIONARY) == {name: DICTIONARY[name] for name in DICTIONARY.names}
    assert "reaction=ExactLogistic()" in repr(DICTIONARY)


def test_processes_are_those_of_all_primitives() -> None:
    assert DICTIONARY.processes == {"advection", "diffusion", "reaction"}
    assert DICTIONARY.adding("all", Everything()).processes == {"advection", "diffusion", "reaction", "stirring"}


def test_adding_leaves_the_old_one_alone() -> None:
    more = DICTIONARY.adding("muscl", MusclAdvection())
    assert more.names == ("advection", "diffusion", "reaction", "muscl")
    assert DICTIONARY.names == ("advection", "diffusion", "reaction")


def test_without_leaves_the_old_one_alone() -> None:
    less = DICTIONARY.without("diffusion")
    assert less.names == ("advection", "reaction")
    assert DICTIONARY.names == ("advection", "diffusion", "reaction")


def test_swapping_keeps_the_place() -> None:
    other = DICTIONARY.swapping("diffusion", FiniteVolumeDiffusion())
    assert other.names == DICTIONARY.names
    assert other["diffusion"] == FiniteVolumeDiffusion()
    assert DICTIONARY["diffusion"] == SpectralDiffusion()


def test_nothing_changes_it() -> None:
    source: dict[str, Any] = {"reaction": ExactLogistic()}
    dictionary = Dictionary(source)
    source["reaction"] = Rk4Logistic()
    source["more"] = Rk4Logistic()
    assert dict(dictionary) == {"reaction": ExactLogistic()}
    with pytest.raises(TypeError):
        dictionary["reaction"] = Rk4Logistic()  # type: ignore[index]
    with pytest.raises(TypeError):
        dictionary._primitives["reaction"] = Rk4Logistic()  # type: ignore[index]
    with pytest.raises(AttributeError):
        dictionary.more = Rk4Logistic()  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "ask",
    [
        lambda: DICTIONARY["difusion"],
        lambda: DICTIONARY.without("difusion"),
        lambda: DICTIONARY.swapping("difusion", SpectralDiffusion()),
    ],
    ids=["get", "without", "swapping"],
)
def test_unknown_names_bring_the_nearest(ask: Any) -> None:
    with pytest.raises(UnknownNameError, match="unknown primitive 'difusion': did you mean diffusion"):
        ask()


def test_far_off_names_bring_all() -> None:
    with pytest.raises(UnknownNameError, match="'zzz': known: advection, diffusion, reaction"):
        DICTIONARY["zzz"]


def test_an_unknown_name_is_a_lookup_error_and_one_of_ours() -> None:
    with pytest.raises(LookupError):
        DICTIONARY["zzz"]
    with pytest.raises(HyCOPError):
        DICTIONARY["zzz"]


def test_adding_twice_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="'reaction' is there already; use swapping"):
        DICTIONARY.adding("reaction", Rk4Logistic())


def test_an_empty_one_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="at least one primitive"):
        Dictionary({})
    with pytest.raises(InvalidInputError, match="at least one primitive"):
        Dictionary({"reaction": ExactLogistic()}).without("reaction")


@pytest.mark.parametrize("name", ["", 3, None])
def test_names_are_texts(name: Any) -> None:
    with pytest.raises(InvalidInputError, match=r"primitive name .* non-empty text"):
        Dictionary({name: ExactLogistic()})


class NoWork:
    advances = frozenset({"reaction"})
    order = 1

    def flow(self, u: Array, duration: Array, setting: Setting) -> Array:
        return u


@pytest.mark.parametrize(
    ("thing", "lacks"),
    [(NoWork(), "it lacks work$"), (3.0, "it lacks advances, order, flow, work"), (np.sin, "it lacks")],
)
def test_what_is_no_primitive_is_refused_by_what_it_lacks(thing: Any, lacks: str) -> None:
    with pytest.raises(IncompatibleError, match=f"'thing' .*is not a primitive: {lacks}"):
        Dictionary({"thing": thing})
    with pytest.raises(IncompatibleError, match="'thing'"):
        DICTIONARY.adding("thing", thing)
    with pytest.raises(IncompatibleError, match="'reaction'"):
        DICTIONARY.swapping("reaction", thing)


def test_boundaries_that_a_primitive_does_not_know_are_refused() -> None:
    grid = Grid.box((4, 4), boundary=("periodic", "wall"))
    DICTIONARY.check_boundaries(("diffusion", "reaction"), grid)
    with pytest.raises(
        IncompatibleError, match=r"'advection' cannot handle the wall boundary along y \(it knows periodic"
    ):
        DICTIONARY.check_boundaries(("advection",), grid)


def test_the_refusal_of_a_boundary_names_who_can() -> None:
    both = DICTIONARY.adding("muscl", MusclAdvection())
    with pytest.raises(IncompatibleError, match="use one that can: muscl"):
        both.check_boundaries(("advection",), Grid.box((4,), boundary="outflow"))
