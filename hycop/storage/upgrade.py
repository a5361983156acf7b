"""Upgrades ``model.json`` from schema 1, which named a problem instead of holding its equation, to schema 2."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from hycop.features.times import guessed_from_names
from hycop.pde import Equation
from hycop.problems import PROBLEMS
from hycop.query import Channel

Content = Mapping[str, Any]

RECORD = ("config", "seed", "data_hash", "metrics", "changes")
SCOPE = ("features", "gain_features", "longest", "longest_time", "constants", "untrained")


def upgraded(content: Content) -> dict[str, object]:
    """Content of schema 1 in the fields of schema 2. Errors in it stay, and the validation of schema 2 refuses them."""
    old = dict(content)
    new: dict[str, object] = {
        "schema_version": 2,
        "equation": asdict(_equation(old)),
        "box": {"lengths": old.pop("lengths"), "boundary": old["boundary"]},
        "substeps": old.pop("finer", 1),
    }
    scope = {name: old.pop(name) for name in SCOPE if name in old}
    scope["coefficients"] = old.pop("ranges", {})
    scope["boundary"] = old.pop("trained_boundary", None) or old["boundary"]
    record = {name: old.pop(name) for name in RECORD if name in old}
    config = dict(record["config"])
    config["substeps"] = config.pop("repeats", 1)
    for name in ("problem", "processes", "channels", "boundary", "schema_version"):
        del old[name]
    return {**old, **new, "scope": scope, "record": {**record, "config": config}}


def _equation(old: Content) -> Equation:
    """The equation of the problem that it was trained on, or one guessed from the names in the file."""
    channels = tuple(Channel(part["name"], part["normal"]) for part in old["channels"])
    known = PROBLEMS.get(old["problem"])
    if known is not None and (known.processes, known.channels) == (tuple(old["processes"]), channels):
        return known.equation
    names = {*old.get("constants", {}), *old.get("ranges", {})}
    return guessed_from_names(old["problem"], tuple(old["processes"]), channels, names, len(old["boundary"]))
