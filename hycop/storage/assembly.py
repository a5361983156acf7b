"""Builds a model from a document, and checks its parts against each other."""

from __future__ import annotations

from math import inf
from pathlib import Path
from typing import Any

import numpy as np

from hycop.boundary import checked_boundary
from hycop.corrections import Correction
from hycop.dictionary import Dictionary
from hycop.errors import InvalidInputError, UnknownNameError
from hycop.estimation import Calibration
from hycop.features import FeatureMap, FeatureRange
from hycop.features.times import TIMES, find_speed
from hycop.grid import AXES
from hycop.model import Box, Model, Record
from hycop.pde import Coefficient, Equation
from hycop.policy import Allotment, Pattern, Policy, PositionPolicy, SlotPolicy
from hycop.query import Channel
from hycop.scope import Scope, View
from hycop.storage.document import Document, FeaturesPart, PositionPart, at_field, refusal
from hycop.training import Gate


def assembled(path: Path, document: Document, dictionary: Dictionary) -> Model:
    """The model of a document; each part is checked against the others."""
    axes = len(document.box.lengths)
    equation = _equation(path, document)
    with at_field(path, "box.boundary"):
        boundary = checked_boundary(document.box.boundary, axes)
    view = _view(path, document)
    policy = _policy(path, document, dictionary, view)
    if len(document.theta) != policy.size:
        raise refusal(path, f"field 'theta' has {len(document.theta)} numbers: this policy needs {policy.size}")
    static = None if document.static_theta is None else np.array(document.static_theta, dtype=np.float64)
    if static is not None and (not isinstance(policy, SlotPolicy) or static.size != policy.alone().size):
        raise refusal(path, f"field 'static_theta' has {static.size} numbers, which the policy cannot use")
    gate = Gate(**{name: _number(value) for name, value in document.gate})
    with at_field(path, "gate.classical"):
        gate.check(dictionary)
    return Model(
        equation=equation,
        dictionary=dictionary,
        policy=policy,
        theta=np.array(document.theta, dtype=np.float64),
        scope=_scope(path, document, view),
        gate=gate,
        box=Box(tuple(document.box.lengths), boundary),
        record=_record(document),
        refinement=document.refinement,
        substeps=document.substeps,
        static_theta=static,
        calibration=_calibration(path, document),
        corrections=_corrections(path, document),
        economical=document.economical,
    )


def _calibration(path: Path, document: Document) -> Calibration | None:
    """Folders of earlier versions have none: their error estimates are not calibrated."""
    if document.calibration is None:
        return None
    found = Calibration(**dict(document.calibration))
    if found.shortest > found.longest:
        raise refusal(path, "field 'calibration': its shortest time is longer than its longest")
    return found


def _corrections(path: Path, document: Document) -> dict[str, Correction]:
    with at_field(path, "corrections"):
        for name in document.corrections:
            if name not in document.equation.coefficients:
                raise UnknownNameError("coefficient", name, document.equation.coefficients)
        return {name: Correction(name, part.plus, part.times) for name, part in document.corrections.items()}


def _equation(path: Path, document: Document) -> Equation:
    part, axes = document.equation, len(document.box.lengths)
    if any(one.normal is not None and not 0 <= one.normal < axes for one in part.channels):
        raise refusal(path, f"field 'equation.channels': a normal is not one of the {axes} axes")
    with at_field(path, "equation"):
        for name in part.speeds:
            find_speed(name)
        FeatureMap((*(part.features or ()), *part.gain_features))
        if any(each.axis is not None and each.axis >= axes for each in part.coefficients.values()):
            raise InvalidInputError(f"a coefficient belongs to an axis that a model of {axes} axes does not have")
        return Equation(
            name=part.name,
            processes=tuple(part.processes),
            channels=tuple(Channel(one.name, one.normal) for one in part.channels),
            coefficients={name: Coefficient(**dict(each)) for name, each in part.coefficients.items()},
            features=None if part.features is None else tuple(part.features),
            gain_features=tuple(part.gain_features),
            speeds=tuple(part.speeds),
            unit_rate=part.unit_rate,
            positive=tuple(part.positive),
            formula=part.formula,
            guessed=part.guessed,
        )


def _scope(path: Path, document: Document, view: View) -> Scope:
    part, axes = document.scope, len(document.box.lengths)
    if len(part.longest) != len(TIMES):
        raise refusal(path, f"field 'scope.longest' has {len(part.longest)} numbers: {len(TIMES)} are needed")
    with at_field(path, "scope.boundary"):
        boundary = checked_boundary(part.boundary, axes)
    return Scope(
        view=view,
        longest=tuple(part.longest),
        boundary=boundary,
        longest_time=part.longest_time,
        constants=dict(part.constants),
        coefficients=dict(part.coefficients),
        untrained=tuple(part.untrained),
        fingerprints=dict(part.fingerprints),
    )


def _record(document: Document) -> Record:
    part = document.record
    metrics = {name: float(value) for name, value in part.metrics.items()}
    return Record(part.config, part.seed, part.data_hash, metrics, tuple(part.changes))


def _number(value: Any) -> Any:
    return inf if value == "inf" else tuple(value) if isinstance(value, list) else value


def _view(path: Path, document: Document) -> View:
    axes = len(document.box.lengths)

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

    scope = document.scope
    return View(*seen("scope.features", scope.features), *seen("scope.gain_features", scope.gain_features))


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
            if max(entry.ops) >= len(allotment.names):
                raise InvalidInputError(f"step {max(entry.ops)}, but the policy has {len(allotment.names)} primitives")
            if not allotment.within(entry.ops).covers:
                raise InvalidInputError("its steps do not cover every process")
            patterns.append(Pattern(tuple(entry.ops), tuple(entry.shares), entry.origin))
    return SlotPolicy(tuple(patterns), allotment, part.features, part.tilts)


def _allotment(path: Path, document: Document, dictionary: Dictionary, gains: int) -> Allotment:
    part, wanted = document.policy.allotment, sorted(set(document.equation.processes))
    names = dictionary.names
    with at_field(path, "policy.allotment"):
        if tuple(part.names) != names:
            raise InvalidInputError(f"its names are not those of the dictionary ({', '.join(dictionary)})")
        if max((op for ops in (*part.covers, part.redundant) for op in ops), default=0) >= len(names):
            raise InvalidInputError(f"an index is beyond the {len(names)} primitives of the policy")
        if part.gain_features != (gains if part.budget == "gain" else 0):
            raise InvalidInputError(f"gain_features is {part.gain_features}, but there are {gains}")
        advances = [dictionary[name].advances for name in names]
        if any(sorted(process for op in cover for process in advances[op]) != wanted for cover in part.covers):
            raise InvalidInputError(f"a cover does not advance each of {', '.join(wanted)} once")
        if any(advances[op] & set(wanted) for op in part.redundant):
            raise InvalidInputError("a redundant primitive advances a process of the equation")
    covers = tuple(tuple(cover) for cover in part.covers)
    return Allotment(names, covers, tuple(part.redundant), part.budget, part.gain_features)
