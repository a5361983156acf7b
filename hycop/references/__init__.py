"""Independent solvers that provide the truth; they share no code with the primitives they judge."""

from __future__ import annotations

from hycop.references.finite_volume import FiniteVolumeReference
from hycop.references.fourier import FourierReference
from hycop.references.reference import Reference, error_estimate

__all__ = ["FiniteVolumeReference", "FourierReference", "Reference", "error_estimate"]
