"""The primitives that come with HyCOP, one file a process, and the registry of all that can be found by name.

A class is imported when it is first asked for: ``hycop.primitives.MusclAdvection``,
``from hycop.primitives import MusclAdvection`` and ``find_primitive("MusclAdvection")`` give the same.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any, cast

from hycop.errors import InvalidInputError, UnknownNameError
from hycop.primitive import Primitive, fingerprint


class Registry(Mapping[str, Callable[..., Primitive]]):
    """Classes by name, given as "module:Class" and imported when they are looked up."""

    def __init__(self, places: Mapping[str, str]) -> None:
        self._places = dict(places)

    def __getitem__(self, name: str) -> Callable[..., Primitive]:
        module, _, attribute = self._places[name].partition(":")
        return cast(Callable[..., Primitive], getattr(import_module(module), attribute))

    def __contains__(self, name: object) -> bool:
        return name in self._places

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)


PRIMITIVES = Registry(
    {
        "SpectralAdvection": "hycop.primitives.advection:SpectralAdvection",
        "SpectralDiffusion": "hycop.primitives.diffusion:SpectralDiffusion",
        "UpwindAdvection": "hycop.primitives.advection:UpwindAdvection",
        "MusclAdvection": "hycop.primitives.advection:MusclAdvection",
        "FiniteVolumeDiffusion": "hycop.primitives.diffusion:FiniteVolumeDiffusion",
        "VariableDiffusion": "hycop.primitives.variable_diffusion:VariableDiffusion",
        "SpectralAdvectionDiffusion": "hycop.primitives.advection_diffusion:SpectralAdvectionDiffusion",
        "GivenSource": "hycop.primitives.source:GivenSource",
        "ExactLogistic": "hycop.primitives.logistic:ExactLogistic",
        "Rk4Logistic": "hycop.primitives.logistic:Rk4Logistic",
        "GravityWave": "hycop.primitives.shallow_water:GravityWave",
        "MomentumAdvection": "hycop.primitives.shallow_water:MomentumAdvection",
        "ShallowWater": "hycop.primitives.shallow_water:ShallowWater",
        "GravityWaveOverBed": "hycop.primitives.over_bed:GravityWaveOverBed",
        "ShallowWaterOverBed": "hycop.primitives.over_bed:ShallowWaterOverBed",
        "BurgersAdvection": "hycop.primitives.burgers:BurgersAdvection",
        "SpectralBurgersAdvection": "hycop.primitives.burgers:SpectralBurgersAdvection",
        "SpectralViscosity": "hycop.primitives.burgers:SpectralViscosity",
        "FiniteVolumeViscosity": "hycop.primitives.burgers:FiniteVolumeViscosity",
        "KuramotoSivashinskyLinear": "hycop.primitives.kuramoto_sivashinsky:KuramotoSivashinskyLinear",
        "KuramotoSivashinskyNonlinear": "hycop.primitives.kuramoto_sivashinsky:KuramotoSivashinskyNonlinear",
        "CentralEuler": "hycop.primitives.euler:CentralEuler",
        "MusclEuler": "hycop.primitives.euler:MusclEuler",
        "SqrtDensityViscosity": "hycop.primitives.compressible_viscosity:SqrtDensityViscosity",
        "FiniteVolumeGasViscosity": "hycop.primitives.compressible_viscosity:FiniteVolumeGasViscosity",
        "CompressibleNavierStokes": "hycop.primitives.compressible:CompressibleNavierStokes",
        "ExponentialRungeKutta": "hycop.primitives.exponential:ExponentialRungeKutta",
        "SymbolicTerms": "hycop.primitives.symbolic:SymbolicTerms",
        "LinearTerms": "hycop.primitives.linear:LinearTerms",
        "CoupledLinearTerms": "hycop.primitives.linear:CoupledLinearTerms",
        "PointwiseRate": "hycop.primitives.pointwise:PointwiseRate",
        "ConservativeFlux": "hycop.primitives.flux:ConservativeFlux",
    }
)
"""The primitives of HyCOP by name."""

LEARNED = Registry(
    {
        "NeuralOperator": "hycop.primitives.learned:NeuralOperator",
        "NeuralClosure": "hycop.primitives.learned:NeuralClosure",
    }
)
"""Those that are made from weights, which a folder holds (extra ``learned``)."""

FOREIGN = Registry(
    {
        "ForeignFunction": "hycop.primitives.foreign.function:ForeignFunction",
        "OnnxNetwork": "hycop.primitives.foreign.network:OnnxNetwork",
        "ExternalProgram": "hycop.primitives.foreign.program:ExternalProgram",
        "TesseractSolver": "hycop.primitives.foreign.tesseract:TesseractSolver",
    }
)
"""The kinds of foreign primitives by name; they need to be told what they run."""


OFFERED: dict[str, Callable[..., Primitive]] = {}
"""Classes of one's own by "module:Class" that ``offer`` has made known in this process."""

_KNOWN: ChainMap[str, Callable[..., Primitive]] = ChainMap(
    cast(Any, PRIMITIVES), cast(Any, LEARNED), cast(Any, FOREIGN), OFFERED
)


def offer(kind: type) -> None:
    """Lets model folders name a class of one's own for as long as this process runs."""
    OFFERED[f"{kind.__module__}:{kind.__qualname__}"] = kind


HELD: dict[str, Primitive] = {}
"""Primitives that hold code of one's own, by fingerprint, that ``offer_instance`` has made known in this process."""


def offer_instance(primitive: Primitive) -> None:
    """Lets model folders name a primitive that they cannot hold, such as one with a function, as long as this process
    runs."""
    HELD[fingerprint(primitive)] = primitive


def __getattr__(name: str) -> Callable[..., Primitive]:
    if name in _KNOWN:
        return _KNOWN[name]
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted({*globals(), *_KNOWN})


def find_primitive(name: str) -> Callable[..., Primitive]:
    """The class of a primitive by its name: one of ours, or one that a package offers as ``hycop.primitives``."""
    if name in _KNOWN:
        return _KNOWN[name]
    offered = {point.name: point for point in entry_points(group="hycop.primitives")}
    if name not in offered:
        raise UnknownNameError("primitive", name, [*_KNOWN, *offered])
    return cast(Callable[..., Primitive], offered[name].load())


def make_primitive(name: str) -> Primitive:
    """A primitive by its name alone, if it needs to know nothing else."""
    if name in LEARNED:
        raise InvalidInputError(f"{name} is made from weights; give the folder that 'hycop pretrain' has written")
    if name in FOREIGN:
        raise InvalidInputError(f"{name} needs to know what it runs; make it in Python and give the object")
    kind = find_primitive(name)
    try:
        return kind()
    except TypeError as error:
        raise InvalidInputError(f"{name} cannot be made without options ({error}); give an object instead") from None
