"""Diagnosis: why a model errs, and what to do about it."""

from __future__ import annotations

from hycop.diagnosis.budget import Budget
from hycop.diagnosis.diagnosis import Diagnosis, Named, Naming, diagnose
from hycop.diagnosis.figures import figures
from hycop.diagnosis.verdict import Verdict

__all__ = ["Budget", "Diagnosis", "Named", "Naming", "Verdict", "diagnose", "figures"]
