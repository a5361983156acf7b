"""What a training run is told, and the presets."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from hycop.errors import InvalidInputError, UnknownNameError


class TrainingConfig(BaseModel):
    """Everything that decides the outcome of a run, apart from its data and seed."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    policy: Literal["slot", "position"] = "slot"
    features: Literal["dimensionless", "raw", "none"] = "dimensionless"
    budget: Literal["consistent", "gain", "literal"] = "consistent"
    dictionary: str | None = None
    refinement: int = Field(1, ge=1, le=8)
    learning_refinement: int | None = Field(None, ge=1, le=8)
    metric: Literal["rel_l2", "nrmse"] = "rel_l2"
    target: Literal["truth", "limit"] = "truth"
    horizon: Literal["fixed", "trajectory"] = "fixed"
    shape: tuple[int, ...] | None = None
    samples: int = Field(256, ge=8)
    validation: int = Field(200, ge=200)
    max_steps: int = Field(7, ge=2, le=18)
    repeats: int = Field(1, ge=1, le=64)
    tilts: int = Field(2, ge=1, le=4)
    max_work: float | None = Field(None, gt=0)
    work_weight: float = Field(0.0, ge=0)

    optimizer: Literal["recipe", "openes", "cma"] = "recipe"
    patterns: int = Field(2, ge=1, le=4)
    tries: int = Field(4, ge=1)
    rounds: int = Field(3, ge=1)
    iterations: int = Field(8, ge=1)

    generations: int = Field(200, ge=1)
    population: int = Field(500, ge=2)
    minibatch: int = Field(5, ge=1)
    sigma: float = Field(0.02, gt=0)
    learning_rate: float = Field(5e-3, gt=0)
    weight_decay: float = Field(1e-3, ge=0, lt=1)
    start: Literal["zero", "random"] = "zero"
    checkpoint_every: int = Field(1, ge=1)

    @property
    def substeps(self) -> int:
        return self.repeats


PRESETS: Mapping[str, Mapping[str, object]] = {
    "quick": {},
    "laptop": {"samples": 512, "validation": 400, "max_steps": 11, "iterations": 12},
    "paper": {
        "policy": "position",
        "optimizer": "openes",
        "start": "random",
        "max_steps": 18,
        "samples": 1000,
    },
}
"""``quick``: minutes; ``laptop``: longer programs, more data; ``paper``: the source paper's evolution strategy."""


def settings_from(path: Path) -> dict[str, object]:
    """The settings in a YAML file, which may also name the ``preset`` that they change.

    YAML as of version 1.1 reads ``5e-3`` as a text; pydantic turns it into the number that it looks like.
    """
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInputError(f"{path}: cannot be read ({error})") from None
    except yaml.YAMLError as error:
        raise InvalidInputError(f"{path}: not YAML ({' '.join(str(error).split())})") from None
    if not isinstance(content, dict) or not all(isinstance(key, str) for key in content):
        raise InvalidInputError(f"{path}: settings are needed, one per line, as 'max_steps: 11'")
    return content


def configured(preset: str = "quick", overrides: Mapping[str, object] | None = None) -> TrainingConfig:
    """A preset with some settings changed; an unknown one is refused with the nearest names.

    >>> configured("paper", {"population": 50}).population
    50
    """
    if preset not in PRESETS:
        raise UnknownNameError("preset", preset, PRESETS)
    overrides = {"repeats" if name == "substeps" else name: value for name, value in (overrides or {}).items()}
    for name in overrides:
        if name not in TrainingConfig.model_fields:
            raise UnknownNameError("setting", name, TrainingConfig.model_fields)
    try:
        return TrainingConfig.model_validate({**PRESETS[preset], **(overrides or {})})
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))
        raise InvalidInputError(f"setting '{place}' is {first['input']!r}: {first['msg'].lower()}") from None
