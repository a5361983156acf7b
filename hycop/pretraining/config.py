"""Settings of the training of a network, their bounds, and the presets."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from hycop.errors import InvalidInputError, UnknownNameError
from hycop.networks import FAMILIES, find_family
from hycop.problems import Problem


class PretrainingConfig(BaseModel):
    """Everything that decides a network, apart from its data and seed. Options that are None are the family's own."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    rounds: int = Field(40, ge=1, le=10**6, description="Rounds; each draws fresh examples.")
    samples: int = Field(256, ge=2, le=10**6, description="Examples of a round.")
    held_out: int = Field(64, ge=2, le=10**6, description="Examples that choose the best weights.")
    batch: int = Field(8, ge=1, le=10**5, description="Examples of one step.")
    rate: float = Field(2e-3, gt=0, le=1, description="Largest learning rate.")
    weight_decay: float = Field(1e-5, ge=0, le=1, description="Weight decay of AdamW.")
    clip: float = Field(1.0, gt=0, description="Largest norm of a gradient.")
    patience: int = Field(50, ge=1, description="Rounds without a better network after which training stops.")
    cycles: int = Field(1, ge=1, le=100, description="How often the rate rises and falls.")
    pairs: Literal["any", "next"] = Field("any", description="Frames of a dataset that make an example: any, or next.")
    noise: float = Field(0.0, ge=0, le=1, description="Noise on the first state of a pair, over its deviation.")
    midway: float = Field(0.5, ge=0, le=1, description="Share of examples that start from states half-way.")
    longest: float | None = Field(None, gt=0, description="Longest duration; half the time of split id if empty.")
    rough: float | None = Field(
        None,
        ge=0,
        description="Size of noise on half of the states; 0.1 for linear networks, which must see all modes.",
    )
    units: str | None = Field(None, description="Units of the state (fixed, size, velocity, water, gas); None: suited.")
    shape: tuple[int, ...] | None = Field(None, description="Cells along each axis; the problem's own if empty.")
    width: int | None = Field(None, description="Width of the network.")
    modes: int | None = Field(None, description="Modes along each axis of a Fourier layer, −modes/2 to modes/2.")
    layers: int | None = Field(None, description="Layers of the network.")
    film: int | None = Field(None, description="Width of the network that turns numbers into FiLM.")
    basis: int | None = Field(None, description="Basis functions of a DeepONet for each channel.")
    cells: int | None = Field(None, description="Cells along each axis of the grid for which local kernels are made.")
    coordinates: int | None = Field(None, description="1 if a baseline sees the coordinates of the cells, 0 if not.")


PRESETS: Mapping[str, Mapping[str, object]] = {
    "quick": {},
    "laptop": {"rounds": 120, "samples": 384, "held_out": 128},
    "paper": {"rounds": 500, "samples": 1000, "held_out": 200, "batch": 32, "rate": 1e-3},
}
"""``quick``: minutes; ``laptop``: longer, with more examples; ``paper``: the source paper's numbers of examples."""

SUITED: Mapping[tuple[str, str], Mapping[str, object]] = {
    ("quick", "multiplier-film"): {"rounds": 80},
    ("quick", "pointwise"): {"rounds": 80},
}
"""Settings over those of a preset that suit a family: small networks see more examples in the same time."""


CELLS = 32 * 32
"""Cells on which a round has the number of examples of the preset; finer grids have as many fewer."""


def suited(problem: Problem, preset: str) -> dict[str, object]:
    """Settings over those of a preset that suit a problem: the grid on which its policies learn, and as many examples
    as take about the same time on every grid."""
    shape = problem.settings.get("shape", problem.shape)
    cells = prod(shape)
    if cells <= CELLS and shape == problem.shape:
        return {}
    base = PretrainingConfig(**PRESETS.get(preset, {}))  # type: ignore[arg-type]
    return {"shape": shape, "samples": max(2 * base.batch, base.samples * min(CELLS, cells) // cells)}


def configured(preset: str, family: str, settings: Mapping[str, object] | None = None) -> PretrainingConfig:
    """The settings of a preset, with others over them."""
    if preset not in PRESETS:
        raise UnknownNameError("preset", preset, PRESETS)
    known, allowed = PretrainingConfig.model_fields, find_family(family).options
    options = {option for each in FAMILIES.values() for option in each.options}
    base = {**PRESETS[preset], **SUITED.get((preset, family), {})}
    for key in settings or {}:
        if key not in known:
            raise UnknownNameError("setting", key, known)
        if key in options and key not in allowed:
            raise InvalidInputError(f"setting {key}: network {family} has no {key}; leave it out")
    try:
        return PretrainingConfig(**{**base, **(settings or {})})  # type: ignore[arg-type]
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(map(str, first["loc"]))
        raise InvalidInputError(f"setting {place} is {first['input']!r:.60}: {first['msg'].lower()}") from None
