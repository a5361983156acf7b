"""Settings of a training run, their meanings and bounds, and the presets."""

from __future__ import annotations

import reprlib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, get_args, get_origin

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic.fields import FieldInfo

from hycop.errors import InvalidInputError, UnknownNameError
from hycop.files import read_text

PROGRAM, POLICY, DATA, RECIPE, EVOLUTION, RUN = "programs", "policy", "data", "recipe", "evolution", "run"
GROUPS: Mapping[str, str] = {
    PROGRAM: "the programs that a policy may write",
    POLICY: "the policy",
    DATA: "queries, target and error",
    RECIPE: "optimizer recipe: pattern search and Levenberg–Marquardt",
    EVOLUTION: "optimizers openes and cma",
    RUN: "the run",
}
"""Groups of settings, in the order in which they are listed."""


def _setting(group: str, default: object, meaning: str, **bounds: float) -> Any:
    return Field(default, description=meaning, json_schema_extra={"group": group}, **bounds)  # type: ignore[call-overload]


class TrainingConfig(BaseModel):
    """Everything that decides the outcome of a run, apart from its data and seed."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    policy: Literal["slot", "position"] = _setting(
        POLICY,
        "slot",
        "Form of the policy: slot chooses a pattern of primitives per query and the share of each step; position is "
        "the source paper's form, a primitive and a duration per position.",
    )
    features: Literal["dimensionless", "raw", "none"] = _setting(
        POLICY, "dimensionless", "What the policy sees of a query: dimensionless numbers, raw coefficients, or nothing."
    )
    budget: Literal["consistent", "gain", "literal"] = _setting(
        PROGRAM,
        "consistent",
        "How durations are budgeted: consistent gives every process the query time; gain lets durations make up for a "
        "biased primitive; literal lets all durations together sum to the query time (an ablation).",
    )
    dictionary: str | None = _setting(PROGRAM, None, "Named dictionary of the problem; the problem's first if empty.")
    refinement: int = _setting(PROGRAM, 1, "Programs run on a grid this many times finer than the query's.", ge=1, le=8)
    learning_refinement: int | None = _setting(
        DATA, None, "Refinement during learning only; that of refinement if empty.", ge=1, le=8
    )
    metric: Literal["rel_l2", "nrmse"] = _setting(DATA, "rel_l2", "Error that is minimised.")
    target: Literal["truth", "limit"] = _setting(
        DATA,
        "truth",
        "What programs are fitted to: the truth, or the limit to which the dictionary converges. The gate always uses "
        "the truth.",
    )
    horizon: Literal["fixed", "trajectory"] = _setting(
        DATA,
        "fixed",
        "Query times: those of split train, or all times from the first snapshot to the end of a trajectory.",
    )
    shape: tuple[Annotated[int, Field(ge=1, le=10**6)], ...] | None = _setting(
        DATA, None, "Cells along each axis of the training queries; the problem's own if empty."
    )
    samples: int = _setting(DATA, 256, "Number of training queries.", ge=8, le=10**7)
    validation: int = _setting(DATA, 200, "Number of held-out queries for the gate.", ge=200, le=10**7)
    max_steps: int = _setting(PROGRAM, 7, "Most steps of a program.", ge=2, le=18)
    substeps: int = _setting(
        PROGRAM,
        1,
        "Runs the program this many times in a row, each time for that fraction of its durations: smaller steps with "
        "the same parameters.",
        ge=1,
        le=64,
    )
    tilts: int = _setting(
        POLICY,
        2,
        "Highest degree of the polynomials in a step's position through which features change the shares of time.",
        ge=1,
        le=4,
    )
    max_work: float | None = _setting(
        PROGRAM, None, "Most work of a program per query, in channel-cell updates; no limit if empty.", gt=0
    )
    unsplit: bool = _setting(
        PROGRAM,
        True,
        "Whether a solver of the whole equation that comes with the problem answers instead of a composition that errs "
        "more at no less work; primitives that were trained always stay in use.",
    )
    work_weight: float = _setting(
        PROGRAM, 0.0, "Weight of work in the loss, per update of the whole state, in units of the error.", ge=0
    )

    optimizer: Literal["recipe", "openes", "cma"] = _setting(
        RUN,
        "recipe",
        "recipe searches patterns and polishes them by least squares; openes is the source paper's evolution strategy; "
        "cma is CMA-ES.",
    )
    patterns: int = _setting(
        RECIPE, 2, "Patterns that are polished, and among which the policy may choose.", ge=1, le=4
    )
    tries: int = _setting(RECIPE, 4, "Patterns that are tried before the best are polished.", ge=1, le=10**4)
    rounds: int = _setting(RECIPE, 3, "Rounds of polishing for each pattern.", ge=1, le=10**4)
    iterations: int = _setting(RECIPE, 8, "Most Levenberg–Marquardt iterations of a round.", ge=1, le=10**6)

    generations: int = _setting(EVOLUTION, 200, "Number of generations.", ge=1, le=10**7)
    population: int = _setting(
        EVOLUTION, 500, "Members of a generation; openes has half as many antithetic pairs.", ge=2, le=10**6
    )
    minibatch: int = _setting(EVOLUTION, 5, "Training queries on which a generation is evaluated.", ge=1, le=10**7)
    sigma: float = _setting(EVOLUTION, 0.02, "Standard deviation of the noise on theta.", gt=0)
    learning_rate: float = _setting(EVOLUTION, 5e-3, "Step size of openes.", gt=0)
    weight_decay: float = _setting(
        EVOLUTION, 1e-3, "Fraction by which openes shrinks theta in each generation.", ge=0, lt=1
    )
    start: Literal["zero", "random"] = _setting(
        EVOLUTION, "zero", "First theta: zero, which is a classical scheme for policy slot, or small random numbers."
    )
    checkpoint_every: int = _setting(RUN, 1, "Steps between two checkpoints.", ge=1, le=10**7)


RENAMED: Mapping[str, str] = {"repeats": "substeps"}
"""Earlier names of settings."""


class SettingRow(NamedTuple):
    """One setting as it is listed: ``group`` is a key of GROUPS, ``default`` that of preset quick."""

    group: str
    name: str
    meaning: str
    default: str
    allowed: str


def settings_table() -> list[SettingRow]:
    """All settings of training with their meaning, default and allowed values, group by group.

    >>> next(row for row in settings_table() if row.name == "max_steps")
    SettingRow(group='programs', name='max_steps', meaning='Most steps of a program.', default='7', allowed='2 to 18')
    """
    rows = []
    for name, field in TrainingConfig.model_fields.items():
        extra = field.json_schema_extra
        group = str(extra["group"]) if isinstance(extra, dict) else ""
        default = "" if field.default is None else str(field.default)
        rows.append(SettingRow(group, name, field.description or "", default, _allowed(field)))
    return sorted(rows, key=lambda row: list(GROUPS).index(row.group))


def _allowed(field: FieldInfo) -> str:
    if get_origin(field.annotation) is Literal:
        return ", ".join(get_args(field.annotation))
    limits = {
        key: getattr(limit, key) for limit in field.metadata for key in ("ge", "gt", "le", "lt") if hasattr(limit, key)
    }
    words = {"ge": "at least", "gt": "above", "le": "at most", "lt": "below"}
    if set(limits) == {"ge", "le"}:
        return f"{limits['ge']:,} to {limits['le']:,}"
    return ", ".join(f"{words[key]} {limit}" for key, limit in limits.items())


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

    YAML 1.1 reads ``5e-3`` as text; pydantic then makes the number of it.
    """
    try:
        content = yaml.safe_load(read_text(path))
    except yaml.YAMLError as error:
        raise InvalidInputError(f"{path}: not YAML ({' '.join(str(error).split())})") from None
    except RecursionError:
        raise InvalidInputError(f"{path}: it is nested too deeply; write one setting per line") from None
    except InvalidInputError:
        raise
    except ValueError as error:  # a number of thousands of digits, a date that does not exist
        raise InvalidInputError(f"{path}: a value cannot be read ({str(error).partition(':')[0]})") from None
    if not isinstance(content, dict) or not all(isinstance(key, str) for key in content):
        raise InvalidInputError(f"{path}: write one setting per line, as 'max_steps: 11'")
    return content


def configured(preset: str = "quick", overrides: Mapping[str, object] | None = None) -> TrainingConfig:
    """A preset with some settings changed; an unknown name is refused with the nearest ones.

    >>> configured("paper", {"population": 50}).population
    50
    """
    if preset not in PRESETS:
        raise UnknownNameError("preset", preset, PRESETS)
    for name in overrides or {}:
        if name in RENAMED:
            raise InvalidInputError(f"setting '{name}' is now called {RENAMED[name]}")
        if name not in TrainingConfig.model_fields:
            raise UnknownNameError("setting", name, TrainingConfig.model_fields)
    try:
        return TrainingConfig.model_validate({**PRESETS[preset], **(overrides or {})})
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))
        raise InvalidInputError(f"setting '{place}' is {_shown(first['input'])}: {first['msg'].lower()}") from None


def _shown(value: object) -> str:
    try:
        return reprlib.repr(value)
    except ValueError:  # Python writes no number of more than some thousand digits
        return "a number of thousands of digits"
