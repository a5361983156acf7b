"""Diagnosis: why a model errs, what its equation lacks, and what to do about it."""

from __future__ import annotations

from hycop.diagnosis.budget import Budget
from hycop.diagnosis.diagnosis import Diagnosis, diagnose
from hycop.diagnosis.figures import figures
from hycop.diagnosis.missing import Missing, MissingTerm
from hycop.diagnosis.naming import name_missing
from hycop.diagnosis.verdict import Verdict

__all__ = [
    "Budget",
    "Diagnosis",
    "Missing",
    "MissingTerm",
    "Verdict",
    "diagnose",
    "figures",
    "name_missing",
]
