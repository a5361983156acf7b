"""Writing and reading a model folder."""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Mapping
from dataclasses import asdict, replace
from math import inf
from pathlib import Path
from typing import Any, cast

import numpy as np

from hycop.errors import OutputError
from hycop.files import output_folder, write_json
from hycop.grid import Array
from hycop.model import Answered, Model
from hycop.policy import PositionPolicy, SlotPolicy
from hycop.primitive import Primitive
from hycop.storage.assembly import assembled
from hycop.storage.document import FILE, KIND, SCHEMA, ModelError, canonical, read_document, refusal, sealed, validated
from hycop.storage.network import check_networks, is_network
from hycop.storage.registry import arrays_of, changed_since, described, restored
from hycop.storage.sealing import check_files, file_hash, listed_files
from hycop.storage.weights import read_weights, write_weights
from hycop.training.checkpoint import ARRAYS
from hycop.version import __version__

WEIGHTS, QUERIES = ARRAYS
KEPT = ("trained", "held_out")
"""Queries of its training that a model keeps."""


def save_model(model: Model, folder: str | Path, *, overwrite: bool = False) -> Path:
    """Writes the model folder, whole or not at all, after every check of ``load_model``."""
    path = Path(folder) / FILE
    if os.path.lexists(path) and not overwrite:
        raise OutputError(f"{folder}: holds a model already; choose another folder, or overwrite it")
    state = {name: arrays for name, arrays in _arrays(model).items() if arrays}
    try:
        content = _content(model)
        assembled(path, validated(path, canonical(content)), model.dictionary)
    except (ValueError, TypeError) as error:
        raise refusal(path, f"this model cannot be stored: {error}") from None
    output_folder(folder)
    files = [
        _write_arrays(path.with_name(name), arrays)
        for name, arrays in ((WEIGHTS, state), (QUERIES, _queries(model)))
        if arrays
    ]
    content["files"] = {file.name: file_hash(file) for file in files}
    write_json(path, sealed(json.loads(canonical(content))))
    for name in (WEIGHTS, QUERIES):
        for old in path.parent.glob(f"{name.partition('.')[0]}*.safetensors"):
            if old not in files:
                old.unlink()
    return path


def _write_arrays(first: Path, state: Mapping[str, Mapping[str, Array]]) -> Path:
    """Writes a file of arrays under a new name: the old ``model.json`` needs the old file until it is replaced."""
    target = first.with_name(f"{first.stem}-{secrets.token_hex(4)}{first.suffix}") if first.exists() else first
    write_weights(target, state)
    return target


def _queries(model: Model) -> dict[str, Mapping[str, Array]]:
    kept: dict[str, Answered | None] = {name: getattr(model, name) for name in KEPT}
    return {name: answered._asdict() for name, answered in kept.items() if answered is not None}


def load_model(folder: str | Path, primitives: Mapping[str, Primitive] | None = None) -> Model:
    """Loads a model folder. ``primitives`` gives, by name, those that no installed package offers; their weights are
    those of the folder, if it has some for them."""
    path = _located(Path(folder))
    document = read_document(path)
    files = listed_files(path, document.files)
    queries = [file for file in files if file.name.startswith("queries")]
    arrays = [file for file in files if file not in queries]
    check_networks(path, document.dictionary, arrays, primitives or {})
    check_files(path, document.files)
    weights: dict[str, Mapping[str, Array]] = {}
    for file in arrays:
        weights |= read_weights(file)
    kept: dict[str, Mapping[str, Array]] = {}
    for file in queries:
        kept |= read_weights(file)
    dictionary = restored(path, document, primitives or {}, weights)
    model = changed_since(assembled(path, document, dictionary), document)
    answered = {name: _answered(path, name, found, model) for name, found in kept.items()}
    return replace(model, trained=answered.get("trained"), held_out=answered.get("held_out"))


def _answered(path: Path, name: str, arrays: Mapping[str, Array], model: Model) -> Answered:
    columns = len(model.scope.view.features.names)
    found = Answered(*(np.asarray(arrays.get(part, ())) for part in Answered._fields))
    known = name in KEPT and set(arrays) == set(Answered._fields) and found.errors.dtype.kind == "f"
    if not known or found.errors.ndim != 1 or found.features.shape != (found.errors.size, columns):
        raise refusal(path, f"its queries '{name}' are not features ({columns} columns) and errors; train again")
    return found


def _arrays(model: Model) -> dict[str, Mapping[str, Array]]:
    return {name: arrays_of(primitive) for name, primitive in model.dictionary.everything.items()}


def _content(model: Model) -> dict[str, object]:
    kinds: Mapping[type, str] = {SlotPolicy: "slot", PositionPolicy: "position"}
    if type(model.policy) not in kinds:
        raise TypeError(f"the policy {type(model.policy).__name__} is not one of {', '.join(kinds.values())}")
    scope, view = model.scope, model.scope.view
    corrections = {name: {"plus": each.plus, "times": each.times} for name, each in model.corrections.items()}
    return {
        "kind": KIND,
        "schema_version": SCHEMA,
        "hycop": __version__,
        "equation": asdict(model.equation),
        "box": asdict(model.box),
        "dictionary": [described(name, primitive) for name, primitive in model.dictionary.everything.items()],
        "policy": {"kind": kinds[type(model.policy)], **asdict(cast(Any, model.policy))},
        "theta": np.asarray(model.theta, dtype=np.float64).tolist(),
        "static_theta": None if model.static_theta is None else model.static_theta.tolist(),
        "dtype": "float64",
        "scope": {
            "features": {"names": view.features.names, **asdict(view.ranges)},
            "gain_features": {"names": view.gain_features.names, **asdict(view.gain_ranges)},
            "longest": scope.longest,
            "boundary": scope.boundary,
            "longest_time": scope.longest_time,
            "constants": dict(scope.constants),
            "coefficients": dict(scope.coefficients),
            "untrained": scope.untrained,
            "fingerprints": dict(scope.fingerprints),
        },
        "gate": {name: _measure(value) for name, value in asdict(model.gate).items()},
        "record": {
            "config": model.record.config.model_dump(),
            "seed": model.record.seed,
            "data_hash": model.record.data_hash,
            "metrics": {name: _measure(value) for name, value in model.record.metrics.items()},
            "changes": model.record.changes,
        },
        "refinement": model.refinement,
        "substeps": model.substeps,
        "calibration": None if model.calibration is None else asdict(model.calibration),
        # older versions read folders without these
        **({"corrections": corrections} if corrections else {}),
        **({"economical": True} if model.economical else {}),
        "files": {},
    }


def _measure(value: object) -> object:
    return "inf" if isinstance(value, float) and value == inf else value


def _located(folder: Path) -> Path:
    path = folder / FILE
    if not os.path.exists(folder):
        raise ModelError(f"{folder}: there is no such folder; give one that save or 'hycop train' has written")
    if not os.path.isdir(folder):
        raise ModelError(f"{folder}: is a file; give the model folder that holds {FILE}")
    if is_network(folder) and not os.path.isfile(path):
        raise ModelError(f"{folder}: has no {FILE}; it holds a network, but a model is needed here")
    if not os.path.isfile(path):
        raise ModelError(f"{folder}: has no {FILE}; it is not a model folder, or its training has not ended")
    return path
