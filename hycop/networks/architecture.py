"""What a network looks like, as data: a family by name, and whole numbers such as width and layers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

from hycop.errors import HyCOPError, InvalidInputError, UnknownNameError

if TYPE_CHECKING:
    from hycop.networks.module import Increment


class MissingTorchError(HyCOPError, ImportError):
    """A learned primitive was asked for, but torch is not installed."""


class Bounds(NamedTuple):
    """The default of a whole number, and the least and the most that it may be."""

    default: int
    least: int
    most: int


@dataclass(frozen=True)
class Family:
    """A kind of network. ``place`` is "module:Class". ``linear`` networks are linear in the state, ``pointwise`` ones
    take each cell by itself. ``identity``: no duration changes nothing, by construction."""

    place: str
    summary: str
    options: Mapping[str, Bounds]
    linear: bool = False
    pointwise: bool = False
    identity: bool = True

    @property
    def conservative(self) -> bool:
        """Whether the mean of its changes may be taken off: a change must be one, and cells must know each other."""
        return self.identity and not self.pointwise


FNO_OPTIONS: Mapping[str, Bounds] = {
    "width": Bounds(20, 1, 512),
    "modes": Bounds(24, 2, 256),
    "layers": Bounds(4, 1, 32),
    "film": Bounds(64, 1, 1024),
}

COORDINATES = Bounds(1, 0, 1)
"""Whether a network sees the coordinates of the cells, as the baselines of the source paper do."""


FAMILIES: Mapping[str, Family] = {
    "fno-film": Family(
        "hycop.networks.fno_film:FnoFilm",
        "Fourier neural operator with FiLM: u + Σ_i n_i·net_i(u, n), n(0) = 0",
        FNO_OPTIONS,
    ),
    "fno-film-direct": Family(
        "hycop.networks.fno_film_direct:FnoFilmDirect",
        "the source paper's: the state itself, not its change, so that no duration is not the identity",
        FNO_OPTIONS,
        identity=False,
    ),
    "multiplier-film": Family(
        "hycop.networks.multiplier_film:MultiplierFilm",
        "linear: a learned Fourier multiplier with FiLM, û ↦ exp(Σ_i n_i·m_i(k, n)) û",
        {"width": Bounds(64, 1, 1024), "layers": Bounds(3, 1, 32), "film": Bounds(64, 1, 1024)},
        linear=True,
    ),
    "pointwise": Family(
        "hycop.networks.pointwise:Pointwise",
        "one network for every cell: u + Σ_i n_i·net_i(u, n)",
        {"width": Bounds(64, 1, 1024), "layers": Bounds(3, 1, 32)},
        pointwise=True,
    ),
    "uno": Family(
        "hycop.networks.uno:Uno",
        "U-shaped neural operator (U-NO): Σ_i n_i·net_i(u, n), on coarser grids in its middle",
        {"width": Bounds(32, 1, 512), "modes": Bounds(4, 2, 256), "layers": Bounds(4, 2, 8)},
    ),
    "fno": Family(
        "hycop.networks.fno:Fno",
        "baseline: Fourier neural operator of PDEBench's size, the end state itself",
        {
            "width": Bounds(20, 1, 512),
            "modes": Bounds(24, 2, 256),
            "layers": Bounds(4, 1, 32),
            "coordinates": COORDINATES,
        },
        identity=False,
    ),
    "local-no": Family(
        "hycop.networks.local_no:LocalNo",
        "baseline: FNO with local integral (2D only) and differential kernels, the end state itself",
        {
            "width": Bounds(20, 1, 512),
            "modes": Bounds(24, 2, 256),
            "layers": Bounds(4, 1, 32),
            "cells": Bounds(32, 2, 4096),
            "coordinates": COORDINATES,
        },
        identity=False,
    ),
    "deeponet": Family(
        "hycop.networks.deeponet:DeepONet",
        "baseline: DeepONet, coefficients from the state times functions of the place, the end state itself",
        {"width": Bounds(256, 1, 1024), "basis": Bounds(128, 1, 1024), "layers": Bounds(4, 2, 32)},
        identity=False,
    ),
    "uno-direct": Family(
        "hycop.networks.uno_direct:UnoDirect",
        "baseline: U-shaped neural operator (U-NO), the end state itself",
        {
            "width": Bounds(32, 1, 512),
            "modes": Bounds(16, 2, 256),
            "layers": Bounds(4, 2, 8),
            "coordinates": COORDINATES,
        },
        identity=False,
    ),
    "unet": Family(
        "hycop.networks.unet:Unet",
        "baseline: U-Net with periodic convolutions, the end state itself; layers are levels of pooling",
        {"width": Bounds(16, 1, 48), "layers": Bounds(4, 1, 5), "coordinates": COORDINATES},
        identity=False,
    ),
}
"""The networks that a learned primitive may be made of, by name."""

SIZES = {"axes": Bounds(1, 1, 3), "channels": Bounds(1, 1, 64), "numbers": Bounds(1, 1, 64), "timed": Bounds(1, 1, 64)}
"""What the task of a network says of it: axes of the grid, channels of the state, dimensionless numbers that it is
told, and how many of these, from the first, grow with the duration."""

MOST_PARAMETERS = 2**28
"""Parameters of a network at most (1 GiB)."""


def find_family(name: str) -> Family:
    if name not in FAMILIES:
        raise UnknownNameError("network", name, FAMILIES)
    return FAMILIES[name]


def imported(family: str) -> tuple[Any, Any]:
    """torch, and the class of a family's module; says which extra to install where it is missing."""
    module, _, name = find_family(family).place.partition(":")
    try:
        return import_module("torch"), getattr(import_module(module), name)
    except ImportError as error:
        raise MissingTorchError(
            f"network {family} needs {error.name or 'torch'}; install it with: pip install 'hycop[learned]'"
        ) from None


@dataclass(frozen=True)
class Architecture:
    """A family with its sizes and options.

    >>> Architecture.of({"family": "pointwise", "axes": 2, "channels": 1, "numbers": 1, "timed": 1, "width": 8})
    Architecture(family='pointwise', values=(('axes', 2), ('channels', 1), ... ('width', 8), ('layers', 3)))
    """

    family: str
    values: tuple[tuple[str, int], ...]

    @classmethod
    def of(cls, data: Mapping[str, object]) -> Architecture:
        """From flat data as JSON holds it; what is left out has its default, what is unknown or too large is
        refused."""
        name = data.get("family")
        family = find_family(str(name))
        bounds = {**SIZES, **family.options}
        for key in data:
            if key != "family" and key not in bounds:
                raise UnknownNameError("option", str(key), bounds, f"(of network {name})")
        values = []
        for key, (default, least, most) in bounds.items():
            value = data.get(key, default)
            if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
                raise InvalidInputError(
                    f"network {name}: {key} is {value!r:.40}: give a whole number from {least} to {most}"
                )
            values.append((key, value))
        made = cls(str(name), tuple(values))
        if made["timed"] > made["numbers"]:
            raise InvalidInputError(f"network {name}: timed is {made['timed']}, but numbers is {made['numbers']}")
        return made

    def __getitem__(self, name: str) -> int:
        return dict(self.values)[name]

    @property
    def kind(self) -> Family:
        return FAMILIES[self.family]

    def to_json(self) -> dict[str, str | int]:
        return {"family": self.family, **dict(self.values)}

    def build(self, seed: int = 0) -> Increment:
        """The module with its first weights, the same for the same seed."""
        self._check_size()
        torch, kind = imported(self.family)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            built: Increment = kind(**dict(self.values))
        return built

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The arrays of the network by name with their shapes; allocates nothing."""
        self._check_size()
        torch, kind = imported(self.family)
        with torch.device("meta"):
            empty = kind(**dict(self.values))
        found: dict[str, tuple[int, ...]] = import_module("hycop.networks.module").shapes_of(empty)
        return found

    def _check_size(self) -> None:
        sizes = dict(self.values)
        spectral = sizes.get("modes", 1) ** sizes["axes"] * sizes["width"] ** 2
        if sizes["layers"] * spectral > MOST_PARAMETERS:
            raise InvalidInputError(
                f"network {self.family}: some {sizes['layers'] * spectral:.0e} parameters; at most "
                f"{MOST_PARAMETERS:.0e} are possible, choose a smaller width or fewer modes"
            )
