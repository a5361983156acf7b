"""The identity of a primitive: the same in every process, another one whenever its numbers may differ."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from hycop.dictionary import Dictionary
from hycop.grid import Array
from hycop.identity import described
from hycop.primitive import fingerprint
from hycop.primitives import PRIMITIVES, ExactLogistic, MusclAdvection, SqrtDensityViscosity, UpwindAdvection


class Kind(Enum):
    ONE = 1
    TWO = 2


@dataclass(frozen=True)
class Part:
    size: float = 1.0
    cache: list[int] = field(default_factory=list, init=False, compare=False)


@dataclass(frozen=True, eq=False)
class Network:
    """A primitive with options of every sort, and weights."""

    weights: Mapping[str, Array] = field(default_factory=lambda: {"w": np.arange(6.0).reshape(2, 3), "b": np.ones(3)})
    option: Any = None
    advances: ClassVar[frozenset[str]] = frozenset({"all"})
    order: ClassVar[None] = None

    def arrays(self) -> Mapping[str, Array]:
        return self.weights

    def with_arrays(self, arrays: Mapping[str, Array]) -> Network:
        return replace(self, weights=dict(arrays))

    def flow(self, u: Array, duration: Array, setting: object) -> Array:
        return u

    def work(self, u: Array, duration: Array, setting: object) -> Array:
        return np.ones(len(u))


class Newer(Network):
    scheme_version: ClassVar[int] = 2


class HoldsItself:
    def __init__(self) -> None:
        self.inside = self


OPTIONS: tuple[Any, ...] = (
    None, True, 1, 0, 1.5, np.inf, np.nan, 1e300, 2j, "1", b"1", Kind.ONE, Kind.TWO, Path("a"), (1,), (1, 2), (2, 1),
    ((1,), 2), frozenset({"a", "b", "c"}), frozenset({"a", "b"}), {"a": 1}, {"a": 2}, {"b": 1}, Part(), Part(2.0),
    MusclAdvection(), MusclAdvection(0.25), UpwindAdvection(0.25), np.ones(2), np.ones(3), np.ones((1, 2)),
    np.ones(2, np.float32), np.array([1.0, 2.0]), np.sin, np.cos, len, max, fingerprint, partial(max, 1),
    partial(max, 2), lambda x: x, lambda x: x + 1, HoldsItself(), Network, np.dtype("f4"),
)  # fmt: skip


def test_any_difference_shows() -> None:
    network = Network()
    moved = {"w": network.weights["w"] + np.eye(2, 3) * 1e-15, "b": network.weights["b"]}
    swapped = {"b": network.weights["w"], "w": network.weights["b"]}
    others = [Network(moved), Network(swapped), Network({"w": network.weights["w"]}), Newer()]
    everything = [network, *others, *(Network(option=option) for option in OPTIONS if option is not None)]
    everything += [kind() for kind in PRIMITIVES.values()]
    assert len({fingerprint(one) for one in everything}) == len(everything)


def test_equal_things_are_alike() -> None:
    ones = [[1, 1.0, np.float64(1), np.int32(1)], [(1, 2), [1, 2]], [{"a": 1, "b": 2}, {"b": 2, "a": 1}]]
    ones += [[np.ones(2), np.ones(2, ">f8"), np.ones(4)[::2]], [{"a", "b"}, frozenset("ab")]]
    for alike in ones:
        assert len({fingerprint(Network(option=option)) for option in alike}) == 1, alike
    used = Part()
    used.cache.append(3)
    assert described(used) == described(Part())
    assert fingerprint(MusclAdvection(cfl=0.5)) == fingerprint(MusclAdvection())


def test_what_cannot_be_described_does_not_fail() -> None:
    deep: list[Any] = []
    for _ in range(10_000):
        deep = [deep]
    with open(os.devnull) as handle:
        for option in (handle, deep, iter([1]), object()):
            assert fingerprint(Network(option=option)) == fingerprint(Network(option=option))


def test_the_version_of_a_scheme_counts() -> None:
    class Older(SqrtDensityViscosity):
        scheme_version: ClassVar[int] = 1

    Older.__module__, Older.__qualname__ = SqrtDensityViscosity.__module__, SqrtDensityViscosity.__qualname__
    assert SqrtDensityViscosity.scheme_version == 2
    assert fingerprint(Older()) != fingerprint(SqrtDensityViscosity())


SCRIPT = """
import sys
sys.path.insert(0, sys.argv[1])
from tests.test_identity import OPTIONS, Network, fingerprint
print(*(fingerprint(Network(option=option)) for option in OPTIONS))
"""


def test_it_is_the_same_in_every_process() -> None:
    root = str(Path(__file__).parents[1])
    told = {
        subprocess.run(
            [sys.executable, "-c", SCRIPT, root],
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": root},
            capture_output=True,
            check=True,
            text=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(told) == 1 and len(told.pop().split()) == len(OPTIONS)


def test_a_dictionary_is_its_names_and_primitives_in_order() -> None:
    make: Callable[..., Dictionary] = lambda **given: Dictionary(given)  # noqa: E731
    one = make(a=ExactLogistic(), b=Network())
    assert one.fingerprint() == make(a=ExactLogistic(), b=Network()).fingerprint()
    others = [
        make(b=Network(), a=ExactLogistic()),
        make(a=ExactLogistic(), c=Network()),
        make(a=ExactLogistic(), b=Network(option=1)),
        make(a=ExactLogistic()),
    ]
    assert len({each.fingerprint() for each in [one, *others]}) == 5
