"""The conformance suite: shows that a primitive keeps its contract, or says where it does not."""

from __future__ import annotations

from hycop.conformance.loading import load_primitive
from hycop.conformance.report import Check, ConformanceError, Report
from hycop.conformance.suite import check_primitive

__all__ = ["Check", "ConformanceError", "Report", "check_primitive", "load_primitive"]
