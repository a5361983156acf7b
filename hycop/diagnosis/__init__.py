"""Why a composition is wrong, and what its equation lacks."""

from hycop.diagnosis.missing import Missing, MissingTerm
from hycop.diagnosis.naming import name_missing

__all__ = ["Missing", "MissingTerm", "name_missing"]
