"""Independent solvers that provide the truth; they share no code with the primitives they judge."""

from __future__ import annotations

from hycop.references.compressible import CompressibleReference
from hycop.references.finite_volume import FiniteVolumeReference
from hycop.references.fourier import FourierReference
from hycop.references.pdebench import PDEBenchReference
from hycop.references.reference import Reference, error_estimate

__all__ = [
    "CompressibleReference",
    "FiniteVolumeReference",
    "FourierReference",
    "PDEBenchReference",
    "Reference",
    "error_estimate",
]
