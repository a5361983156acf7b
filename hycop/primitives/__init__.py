"""The primitives that come with HyCOP, one file a process, and the registry of all that can be found by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib.metadata import entry_points

from hycop.errors import UnknownNameError
from hycop.primitive import Primitive
from hycop.primitives.advection import MusclAdvection, SpectralAdvection, UpwindAdvection
from hycop.primitives.burgers import BurgersAdvection, FiniteVolumeViscosity, SpectralViscosity
from hycop.primitives.compressible import CompressibleNavierStokes
from hycop.primitives.compressible_viscosity import FiniteVolumeGasViscosity, SqrtDensityViscosity
from hycop.primitives.diffusion import FiniteVolumeDiffusion, SpectralDiffusion
from hycop.primitives.euler import CentralEuler, MusclEuler
from hycop.primitives.kuramoto_sivashinsky import KuramotoSivashinskyLinear, KuramotoSivashinskyNonlinear
from hycop.primitives.logistic import ExactLogistic, Rk4Logistic
from hycop.primitives.shallow_water import GravityWave, MomentumAdvection, ShallowWater

__all__ = [
    "PRIMITIVES",
    "BurgersAdvection",
    "CentralEuler",
    "CompressibleNavierStokes",
    "ExactLogistic",
    "FiniteVolumeDiffusion",
    "FiniteVolumeGasViscosity",
    "FiniteVolumeViscosity",
    "GravityWave",
    "KuramotoSivashinskyLinear",
    "KuramotoSivashinskyNonlinear",
    "MomentumAdvection",
    "MusclAdvection",
    "MusclEuler",
    "Rk4Logistic",
    "ShallowWater",
    "SpectralAdvection",
    "SpectralDiffusion",
    "SpectralViscosity",
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
        GravityWave,
        MomentumAdvection,
        ShallowWater,
        BurgersAdvection,
        SpectralViscosity,
        FiniteVolumeViscosity,
        KuramotoSivashinskyLinear,
        KuramotoSivashinskyNonlinear,
        CentralEuler,
        MusclEuler,
        SqrtDensityViscosity,
        FiniteVolumeGasViscosity,
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
