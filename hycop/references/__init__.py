"""Independent solvers that provide the truth; they share no code with the primitives they judge."""

from __future__ import annotations

from hycop.references.burgers import ColeHopfReference
from hycop.references.compressible import CompressibleReference
from hycop.references.finite_volume import FiniteVolumeReference
from hycop.references.fourier import FourierReference
from hycop.references.kuramoto_sivashinsky import KuramotoSivashinskyReference
from hycop.references.pdebench import PDEBenchReference
from hycop.references.reference import Reference, error_estimate
from hycop.references.shallow_water import ShallowWaterReference
from hycop.references.subflows import Subflows
from hycop.references.variable import VariableReference

__all__ = [
    "ColeHopfReference",
    "CompressibleReference",
    "FiniteVolumeReference",
    "FourierReference",
    "KuramotoSivashinskyReference",
    "PDEBenchReference",
    "Reference",
    "ShallowWaterReference",
    "Subflows",
    "VariableReference",
    "error_estimate",
]
