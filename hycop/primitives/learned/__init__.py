"""Learned primitives: networks that advance processes as any other primitive does (extra ``learned``)."""

from __future__ import annotations

from hycop.primitives.learned.closure import NeuralClosure
from hycop.primitives.learned.neural_operator import NeuralOperator
from hycop.primitives.learned.numbers import Numbers
from hycop.primitives.learned.units import units_for

__all__ = ["NeuralClosure", "NeuralOperator", "Numbers", "units_for"]
