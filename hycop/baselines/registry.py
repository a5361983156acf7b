"""The baselines by name."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module

from hycop.baselines.baseline import Baseline, BaselineError
from hycop.errors import UnknownNameError

MODULES = ("fno", "local_no", "uno", "deeponet", "unet", "pino", "ar_local_no", "step_local_no", "ar_unet")
"""The files that hold a baseline; each has it as ``BASELINE``."""


def _baselines() -> dict[str, Baseline]:
    found: list[Baseline] = [import_module(f"hycop.baselines.{module}").BASELINE for module in MODULES]
    return {baseline.name: baseline for baseline in found}


BASELINES: Mapping[str, Baseline] = _baselines()

NOT_AVAILABLE: Mapping[str, str] = {
    "Poseidon": "its pretrained weights can only be had from a model hub, and without them it is not the baseline",
}
"""Baselines of the source paper that are not here, and why."""


def find_baseline(name: str) -> Baseline:
    """A baseline by its name, or by its label in tables.

    >>> find_baseline("FNO").family
    'fno'
    """
    for baseline in BASELINES.values():
        if name.lower() in (baseline.name, baseline.label.lower()):
            return baseline
    for label, reason in NOT_AVAILABLE.items():
        if name.lower() == label.lower():
            raise BaselineError(f"baseline {label} is not available: {reason}")
    raise UnknownNameError("baseline", name, BASELINES)
