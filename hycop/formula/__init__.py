"""Equations from text: read safely, split into processes, each with a primitive."""

from __future__ import annotations

from hycop.formula.split import SplitEquation, equation

__all__ = ["SplitEquation", "equation"]
