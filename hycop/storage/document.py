"""``model.json``: its fields with their bounds, and a hash of its content that reveals changes."""

from __future__ import annotations

import hashlib
import json
import reprlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Literal, TypeAlias, TypeVar

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from hycop.errors import HyCOPError
from hycop.grid import AXES
from hycop.model import MOST_SUBSTEPS
from hycop.pde import Kind
from hycop.policy import LONGEST, Budget
from hycop.storage.upgrade import upgraded
from hycop.training import TrainingConfig
from hycop.training.checkpoint import MODEL

FILE = MODEL
KIND = "hycop-model"
NETWORK = "hycop-network"
SCHEMA = 2
LARGEST = 16 * 2**20
"""Largest ``model.json``, in bytes."""

MOST_PRIMITIVES = 64


class ModelError(HyCOPError, OSError):
    """A model folder that is missing, damaged, of another version, or not a model at all."""


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, allow_inf_nan=False)


Name: TypeAlias = Annotated[str, Field(min_length=1, max_length=200)]
Names: TypeAlias = Annotated[list[Name], Field(max_length=64)]
Numbers: TypeAlias = Annotated[list[float], Field(max_length=64)]
Count: TypeAlias = Annotated[int, Field(ge=0, le=64)]
Ops: TypeAlias = Annotated[list[Annotated[int, Field(ge=0, lt=MOST_PRIMITIVES)]], Field(max_length=MOST_PRIMITIVES)]
Measure: TypeAlias = float | Literal["inf"]  # JSON has no infinity, but a learned program may have diverged
Fingerprint: TypeAlias = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
Scalar: TypeAlias = bool | int | float | str | None
Values: TypeAlias = Annotated[list[Scalar], Field(max_length=4096)]
Option: TypeAlias = Scalar | Values | Annotated[dict[Name, Scalar | Values], Field(max_length=256)]


class ChannelPart(_Part):
    name: Name
    normal: int | None


class CoefficientPart(_Part):
    kind: Kind
    axis: Annotated[int, Field(ge=0, lt=len(AXES))] | None = None
    above: float | None = None
    at_least: float | None = None


class EquationPart(_Part):
    name: Annotated[str, Field(max_length=200)]
    processes: Annotated[Names, Field(min_length=1)]
    channels: Annotated[list[ChannelPart], Field(min_length=1, max_length=256)]
    coefficients: Annotated[dict[Name, CoefficientPart], Field(max_length=256)]
    features: Names | None
    gain_features: Names
    speeds: Names
    unit_rate: Annotated[float, Field(ge=0)]
    positive: Names
    formula: Annotated[str, Field(max_length=2000)]
    guessed: bool


class BoxPart(_Part):
    lengths: Annotated[list[Annotated[float, Field(gt=0)]], Field(min_length=1, max_length=len(AXES))]
    boundary: Names


class PrimitivePart(_Part):
    """A primitive by its registry name. Options are null if a file cannot hold them; ``load`` must then be given the
    primitive. Its ``arrays`` are in the file of weights; ``fingerprint`` is that of the saved model."""

    name: Name
    primitive: Name
    options: Annotated[dict[Name, Option], Field(max_length=64)] | None
    arrays: bool = False
    fingerprint: Fingerprint | None = None


class AllotmentPart(_Part):
    names: Names
    covers: Annotated[list[Ops], Field(min_length=1, max_length=4096)]
    redundant: Ops
    budget: Budget
    gain_features: Count


class PatternPart(_Part):
    ops: Annotated[Ops, Field(min_length=1, max_length=LONGEST)]
    shares: Numbers
    origin: Annotated[str, Field(max_length=400)]


class SlotPart(_Part):
    kind: Literal["slot"]
    patterns: Annotated[list[PatternPart], Field(min_length=1, max_length=64)]
    allotment: AllotmentPart
    features: Count
    tilts: Annotated[int, Field(ge=1, le=LONGEST)] = 2


class PositionPart(_Part):
    kind: Literal["position"]
    allotment: AllotmentPart
    features: Count
    longest: Annotated[int, Field(ge=1, le=LONGEST)]
    shortest: Annotated[int, Field(ge=1, le=LONGEST)]


class FeaturesPart(_Part):
    names: Names
    low: Numbers
    high: Numbers


class GatePart(_Part):
    kept: bool
    classical: Name
    learned_error: Measure
    classical_error: Measure
    learned_extreme: Measure
    classical_extreme: Measure
    classical_when_clipped: bool
    classical_when_repeated: bool = False
    classical_when_far: bool = True
    learned_work: Measure
    classical_work: Measure
    samples: Annotated[int, Field(ge=0)]
    cover: Names | None = None
    confidence: Annotated[float, Field(ge=0, le=1)] | None = None
    splitting: Name | None = None
    splitting_cover: Names | None = None
    reach: Annotated[float, Field(ge=0)] | None = None
    whole: Name | None = None
    whole_refinement: Annotated[int, Field(ge=1)] | None = None
    whole_error: Measure | None = None
    whole_work: Measure | None = None
    instead: Name | None = None


class CalibrationPart(_Part):
    scale: Annotated[float, Field(gt=0)]
    growth: float
    shortest: Annotated[float, Field(gt=0)]
    longest: Annotated[float, Field(gt=0)]
    floor: Annotated[float, Field(ge=0)]
    samples: Annotated[int, Field(ge=1)]
    curvature: float = 0.0
    finer_cut: Annotated[int, Field(ge=2, le=64)] = 4
    finer_grid: Annotated[float, Field(gt=1, le=8)] = 2.0


class ScopePart(_Part):
    features: FeaturesPart
    gain_features: FeaturesPart
    longest: Annotated[list[Annotated[float, Field(ge=0)]], Field(max_length=64)]
    boundary: Names
    longest_time: Annotated[float, Field(gt=0)] | None = None
    constants: Annotated[dict[Name, float], Field(max_length=64)] = {}
    coefficients: Annotated[dict[Name, tuple[float, float]], Field(max_length=64)] = {}
    untrained: Names = []
    fingerprints: Annotated[dict[Name, Fingerprint], Field(max_length=MOST_PRIMITIVES)] = {}


class RecordPart(_Part):
    config: TrainingConfig
    seed: Annotated[int, Field(ge=0, lt=2**64)]
    data_hash: Annotated[str, Field(pattern="^[0-9a-f]{0,128}$")]
    metrics: Annotated[dict[Name, Measure], Field(max_length=1000)]
    changes: Annotated[list[Annotated[str, Field(max_length=2000)]], Field(max_length=1000)] = []


class CorrectionPart(_Part):
    plus: float
    times: float


class Document(_Part):
    """``model.json`` without its own ``sha256``."""

    kind: Literal["hycop-model"]
    schema_version: Literal[2]
    hycop: Annotated[str, Field(max_length=100)]
    equation: EquationPart
    box: BoxPart
    dictionary: Annotated[list[PrimitivePart], Field(min_length=1, max_length=MOST_PRIMITIVES)]
    policy: Annotated[SlotPart | PositionPart, Field(discriminator="kind")]
    theta: Annotated[list[float], Field(max_length=100_000)]
    static_theta: Annotated[list[float], Field(max_length=100_000)] | None = None
    dtype: Literal["float64"]
    scope: ScopePart
    gate: GatePart
    record: RecordPart
    refinement: Annotated[int, Field(ge=1, le=64)]
    substeps: Annotated[int, Field(ge=1, le=MOST_SUBSTEPS)] = 1
    calibration: CalibrationPart | None = None
    corrections: Annotated[dict[Name, CorrectionPart], Field(max_length=256)] = {}
    economical: bool = False
    files: Annotated[dict[str, str], Field(max_length=64)]


class NetworkDocument(_Part):
    """``net.json`` but for its own ``sha256``: a learned primitive, the problem it was trained on, and how."""

    kind: Literal["hycop-network"]
    schema_version: Literal[1]
    hycop: Annotated[str, Field(max_length=100)]
    problem: Name
    primitive: PrimitivePart
    settings: Annotated[dict[Name, Option], Field(max_length=64)]
    seed: Annotated[int, Field(ge=0, lt=2**64)]
    source: Annotated[str, Field(max_length=2000)]
    errors: Annotated[list[Measure], Field(max_length=100_000)]
    files: Annotated[dict[str, str], Field(min_length=1, max_length=1)]


D = TypeVar("D", Document, NetworkDocument)


def sealed(content: Mapping[str, object]) -> dict[str, object]:
    """The content with the hash of its canonical form, which reveals changes."""
    bare = {name: value for name, value in content.items() if name != "sha256"}
    return {**bare, "sha256": hashlib.sha256(canonical(bare)).hexdigest()}


def canonical(content: object) -> bytes:
    """The canonical form of a content, which is hashed."""

    def plain(value: object) -> object:
        if isinstance(value, np.generic):
            return value.item()
        raise TypeError(f"a {type(value).__name__} is not data")

    return json.dumps(content, default=plain, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode()


def refusal(path: Path, reason: str) -> ModelError:
    """An error of one line, whatever text a foreign file puts into the reason."""
    line = " ".join("".join(letter if letter.isprintable() else " " for letter in reason).split())
    return ModelError(f"{path}: {line[:600]}")


@contextmanager
def at_field(path: Path, name: str) -> Iterator[None]:
    """Adds the name of the field to an error."""
    try:
        yield
    except ModelError:
        raise
    except HyCOPError as error:
        raise refusal(path, f"field '{name}': {error}") from None


def read_document(path: Path) -> Document:
    content = _parsed(path)
    if isinstance(content, dict) and content.get("kind") == NETWORK:
        raise ModelError(f"{path}: is a network, not a model; load it with hycop.load_primitive")
    if not isinstance(content, dict) or content.get("kind") != KIND:
        raise ModelError(f'{path}: is JSON, but not a model of HyCOP (no "kind": "{KIND}")')
    version = content.get("schema_version")
    if isinstance(version, int) and version > SCHEMA:
        raise refusal(path, f"made by a newer hycop (schema version {version}, known up to {SCHEMA}); upgrade hycop")
    if version not in range(1, SCHEMA + 1) or isinstance(version, bool):
        raise refusal(path, f"field 'schema_version' is {reprlib.repr(version)}: 1 to {SCHEMA} is needed")
    text = _unsealed(path, content)
    if version == 1:
        try:
            text = canonical(upgraded(content))
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise refusal(path, f"field {error} is missing or not what schema 1 has there") from None
    return validated(path, text)


def read_network(path: Path) -> NetworkDocument:
    """``net.json`` of a network folder."""
    content = _parsed(path)
    if not isinstance(content, dict) or content.get("kind") != NETWORK:
        raise ModelError(f'{path}: is JSON, but not a network of HyCOP (no "kind": "{NETWORK}")')
    version = content.get("schema_version")
    if isinstance(version, int) and version > 1:
        raise refusal(path, f"made by a newer hycop (schema version {version}, known up to 1); upgrade hycop")
    return validated(path, _unsealed(path, content), NetworkDocument)


def _unsealed(path: Path, content: dict[str, object]) -> bytes:
    """The canonical text of a content whose hash is the one that it carries."""
    seal = content.pop("sha256", None)
    try:
        text = canonical(content)
    except (ValueError, RecursionError) as error:
        raise refusal(path, f"damaged or changed by hand ({error}); restore it or train again") from None
    if hashlib.sha256(text).hexdigest() != seal:
        raise ModelError(f"{path}: damaged or changed by hand (its sha256 does not match); restore it or train again")
    return text


def _parsed(path: Path) -> object:
    """Plain JSON of bounded size, without NaN and without duplicate fields."""

    def constant(text: str) -> object:
        raise ValueError(f"{text} is not a finite number")

    def unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
        out = dict(pairs)
        if len(out) != len(pairs):
            raise ValueError("a field stands there twice")
        return out

    try:
        with path.open("rb") as file:
            raw = file.read(LARGEST + 1)
        if len(raw) > LARGEST:
            raise ModelError(f"{path}: is larger than {LARGEST // 2**20} MiB; it is not a model of HyCOP")
        return json.loads(raw.decode(), parse_constant=constant, object_pairs_hook=unique)
    except ModelError:
        raise
    except OSError as error:
        raise ModelError(f"{path}: cannot be read ({error.strerror}); check its permissions") from None
    except RecursionError:
        raise ModelError(f"{path}: is nested too deeply; it is not a model of HyCOP") from None
    except ValueError as error:
        raise refusal(path, f"damaged: not JSON ({error}); restore it or train again") from None


def validated(path: Path, text: bytes, kind: type[D] = Document) -> D:  # type: ignore[assignment]
    try:
        return kind.model_validate_json(text, strict=True)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
    place = ".".join(map(str, first["loc"])) or "content"
    if first["type"] == "extra_forbidden":
        raise refusal(path, f"unknown field '{place}'; it was made by another version of hycop or by hand")
    if first["type"] == "json_invalid":  # Python has read it, so it is only nested deeper than pydantic allows
        raise refusal(path, "is nested too deeply; it is not a model of HyCOP")
    if first["type"] == "missing":
        raise refusal(path, f"field '{place}' is missing")
    raise refusal(path, f"field '{place}' is {reprlib.repr(first['input'])}: {first['msg'].lower()}")
