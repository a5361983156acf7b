"""From a document to a model: the parts are checked against each other as they are put together."""

from __future__ import annotations

from math import inf
from pathlib import Path
from typing import Any

import numpy as np

from hycop.dictionary import Dictionary
from hycop.errors import InvalidInputError
from hycop.features import FeatureMap, FeatureRange, clock
from hycop.grid import AXES, Grid, checked_boundary
from hycop.model import Model
from hycop.policy import Allotment, Pattern, Policy, PositionPolicy, SlotPolicy
from hycop.query import Channel, Query, Setting
from hycop.splitting import splitting
from hycop.storage.document import Document, FeaturesPart, PositionPart, at_field, refusal
from hycop.training import Gate, View


def assembled(path: Path, document: Document, dictionary: Dictionary) -> Model:
    """The parts put together; each is checked against the others."""
    axes = len(document.lengths)
    with at_field(path, "boundary"):
        boundary = checked_boundary(document.boundary, axes)
    if any(part.normal is not None and not 0 <= part.normal < axes for part in document.channels):
        raise refusal(path, f"field 'channels': a normal is not one of the {axes} axes")
    channels = tuple(Channel(part.name, part.normal) for part in document.channels)
    view = _view(path, document)
    policy = _policy(path, document, dictionary, view)
    if len(document.theta) != policy.size:
        raise refusal(path, f"field 'theta' has {len(document.theta)} numbers: this policy needs {policy.size}")
    static = None if document.static_theta is None else np.array(document.static_theta, dtype=np.float64)
    if static is not None and (not isinstance(policy, SlotPolicy) or static.size != policy.alone().size):
        raise refusal(path, f"field 'static_theta' has {static.size} numbers, which the policy cannot use")
    with at_field(path, "gate.classical"):
        scheme = splitting(document.gate.classical).within(document.gate.cover)
        scheme.check(dictionary)
    grid = Grid.box((2,) * axes)
    nothing = Query(np.zeros((1, len(channels), *grid.shape)), Setting(grid, channels, {}), np.zeros(1))
    if len(document.longest) != clock(nothing).shape[1]:
        raise refusal(path, f"field 'longest' has {len(document.longest)} numbers: {clock(nothing).shape[1]} needed")
    return Model(
        problem=document.problem,
        processes=tuple(document.processes),
        channels=channels,
        lengths=tuple(document.lengths),
        boundary=boundary,
        dictionary=dictionary,
        policy=policy,
        theta=np.array(document.theta, dtype=np.float64),
        view=view,
        longest=tuple(document.longest),
        gate=Gate(**{name: _number(value) for name, value in document.gate}),
        config=document.config,
        seed=document.seed,
        data_hash=document.data_hash,
        metrics={name: float(value) for name, value in document.metrics.items()},
        refinement=document.refinement,
        finer=document.finer,
        static_theta=static,
        constants=dict(document.constants),
        ranges=dict(document.ranges),
        longest_time=document.longest_time,
        changes=tuple(document.changes),
        untrained=tuple(document.untrained),
        trained_boundary=None if document.trained_boundary is None else tuple(document.trained_boundary),
    )


def _number(value: Any) -> Any:
    return inf if value == "inf" else tuple(value) if isinstance(value, list) else value


def _view(path: Path, document: Document) -> View:
    axes = len(document.lengths)

    def seen(field: str, part: FeaturesPart) -> tuple[FeatureMap, FeatureRange]:
        with at_field(path, field):
            features, ranges = FeatureMap(tuple(part.names)), FeatureRange(tuple(part.low), tuple(part.high))
            if len(part.low) != len(part.names):
                raise InvalidInputError(f"{len(part.low)} ranges for {len(part.names)} features")
            if any(low > high for low, high in zip(part.low, part.high, strict=True)):
                raise InvalidInputError("a range ends before it begins")
            alien = [name for name in part.names if name.endswith(tuple(f"_{letter}" for letter in AXES[axes:]))]
            if alien:
                raise InvalidInputError(f"{alien[0]} belongs to an axis that a model of {axes} axes does not have")
        return features, ranges

    return View(*seen("features", document.features), *seen("gain_features", document.gain_features))


def _policy(path: Path, document: Document, dictionary: Dictionary, view: View) -> Policy:
    part = document.policy
    allotment = _allotment(path, document, dictionary, len(view.gain_features.names))
    known = len(view.features.names)
    if part.features > known or (part.kind == "slot" and part.features != known):
        raise refusal(path, f"field 'policy.features' is {part.features}, but there are {known} features")
    if isinstance(part, PositionPart):
        if part.shortest > part.longest:
            raise refusal(path, f"field 'policy.shortest' is {part.shortest}, but 'longest' is {part.longest}")
        return PositionPolicy(allotment, part.features, part.longest, part.shortest)
    patterns = []
    for index, entry in enumerate(part.patterns):
        with at_field(path, f"policy.patterns.{index}"):
            if max(entry.ops) >= len(dictionary):
                raise InvalidInputError(f"step {max(entry.ops)}, but the dictionary has {len(dictionary)} primitives")
            if not allotment.within(entry.ops).covers:
                raise InvalidInputError("its steps do not cover every process")
            patterns.append(Pattern(tuple(entry.ops), tuple(entry.shares), entry.origin))
    return SlotPolicy(tuple(patterns), allotment, part.features, part.tilts)


def _allotment(path: Path, document: Document, dictionary: Dictionary, gains: int) -> Allotment:
    part, wanted = document.policy.allotment, sorted(set(document.processes))
    with at_field(path, "policy.allotment"):
        if tuple(part.names) != dictionary.names:
            raise InvalidInputError(f"its names are not those of the dictionary ({', '.join(dictionary)})")
        if max((op for ops in (*part.covers, part.redundant) for op in ops), default=0) >= len(dictionary):
            raise InvalidInputError(f"an index is beyond the {len(dictionary)} primitives of the dictionary")
        if part.gain_features != (gains if part.budget == "gain" else 0):
            raise InvalidInputError(f"gain_features is {part.gain_features}, but there are {gains}")
        advances = [dictionary[name].advances for name in dictionary]
        if any(sorted(process for op in cover for process in advances[op]) != wanted for cover in part.covers):
            raise InvalidInputError(f"a cover does not advance each of {', '.join(wanted)} once")
        if any(advances[op] & set(wanted) for op in part.redundant):
            raise InvalidInputError("a redundant primitive advances a process of the equation")
    covers = tuple(tuple(cover) for cover in part.covers)
    return Allotment(dictionary.names, covers, tuple(part.redundant), part.budget, part.gain_features)
