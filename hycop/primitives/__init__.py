"""The primitives that come with HyCOP, one file a process, and the registry of all that can be found by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib.metadata import entry_points

from hycop.errors import UnknownNameError
from hycop.primitive import Primitive
from hycop.primitives.advection import MusclAdvection, SpectralAdvection, UpwindAdvection
from hycop.primitives.compressible import CompressibleNavierStokes
from hycop.primitives.compressible_viscosity import FiniteVolumeViscosity, SqrtDensityViscosity
from hycop.primitives.diffusion import FiniteVolumeDiffusion, SpectralDiffusion
from hycop.primitives.euler import CentralEuler, MusclEuler
from hycop.primitives.logistic import ExactLogistic, Rk4Logistic

__all__ = [
    "PRIMITIVES",
    "CentralEuler",
    "CompressibleNavierStokes",
    "ExactLogistic",
    "FiniteVolumeDiffusion",
    "FiniteVolumeViscosity",
    "MusclAdvection",
    "MusclEuler",
    "Rk4Logistic",
    "SpectralAdvection",
    "SpectralDiffusion",
    "SqrtDensityViscosity",
    "UpwindAdvection",
    "find_primitive",
]

PRIMITIVES: Mapping[str, Callable[[], Primitive]] = {
    kind.__name__: kind
    for kind in (
        SpectralAdvection,
        SpectralDiffusion,
        UpwindAdvection,
        MusclAdvection,
        FiniteVolumeDiffusion,
        ExactLogistic,
        Rk4Logistic,
        CentralEuler,
        MusclEuler,
        SqrtDensityViscosity,
        FiniteVolumeViscosity,
        CompressibleNavierStokes,
    )
}


def find_primitive(name: str) -> Callable[[], Primitive]:
    """The class of a primitive by its name: one of ours, or one that a package offers as ``hycop.primitives``."""
    if name in PRIMITIVES:
        return PRIMITIVES[name]
    offered = {point.name: point for point in entry_points(group="hycop.primitives")}
    if name not in offered:
        raise UnknownNameError("primitive", name, [*PRIMITIVES, *offered])
    kind: Callable[[], Primitive] = offered[name].load()
    return kind
