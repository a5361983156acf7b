"""A network folder: ``net.json`` and the weights it lists. Everything is checked before memory is allocated."""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from hycop.errors import HyCOPError, InvalidInputError, OutputError
from hycop.files import output_folder, write_json
from hycop.primitive import Primitive
from hycop.primitives import LEARNED, make_primitive
from hycop.primitives.learned import NeuralClosure, NeuralOperator
from hycop.storage.document import (
    NETWORK,
    ModelError,
    NetworkDocument,
    PrimitivePart,
    at_field,
    canonical,
    read_network,
    refusal,
    sealed,
    validated,
)
from hycop.storage.registry import described
from hycop.storage.sealing import check_files, file_hash, listed_files
from hycop.storage.weights import Layout, read_layout, read_weights, write_weights
from hycop.version import __version__

FILE, WEIGHTS, GROUP, KIND = "net.json", "weights.safetensors", "network", "NeuralOperator"
BASELINE = "baseline"
"""The setting that names the baseline of a network that answers queries by itself."""


@dataclass(frozen=True, eq=False)
class Network:
    """A trained primitive and how it came about: problem, settings, seed, source of its data, held-out errors."""

    primitive: NeuralOperator
    problem: str
    settings: Mapping[str, object]
    seed: int
    source: str
    errors: Sequence[float]


def is_network(folder: str | Path) -> bool:
    """Whether a folder holds a network."""
    return os.path.lexists(Path(folder) / FILE)


def save_network(network: Network, folder: str | Path) -> Path:
    """Writes a network folder, whole or not at all."""
    path = Path(folder) / FILE
    if os.path.lexists(path):
        raise OutputError(f"{folder}: holds a network already; choose another folder")
    output_folder(folder)
    weights = path.with_name(WEIGHTS)
    write_weights(weights, {GROUP: network.primitive.arrays()})
    content: dict[str, object] = {
        "kind": NETWORK,
        "schema_version": 1,
        "hycop": __version__,
        "problem": network.problem,
        "primitive": described(GROUP, network.primitive),
        "settings": dict(network.settings),
        "seed": network.seed,
        "source": network.source,
        "errors": ["inf" if not abs(error) < float("inf") else error for error in network.errors],
        "files": {WEIGHTS: file_hash(weights)},
    }
    validated(path, canonical(content), NetworkDocument)
    write_json(path, sealed(json.loads(canonical(content))))
    return path


def load_network(folder: str | Path) -> Network:
    """The network of a folder; a folder that is not what ``save_network`` writes is refused in one line."""
    path = _located(Path(folder))
    document = read_network(path)
    part, weights = document.primitive, path.with_name(WEIGHTS)
    if part.primitive != KIND or part.options is None or set(document.files) != {WEIGHTS}:
        raise refusal(path, f"field 'primitive' is {part.primitive!r:.60}: {KIND} with {WEIGHTS} is needed")
    if weights.is_symlink():
        raise refusal(weights, "is a link; replace it by the file itself")
    bare = _bare(path, "primitive", part)
    listed_files(path, document.files)
    # before the hash, which takes long for a file that is far too large
    _check_layout(weights, GROUP, bare, read_layout(weights).get(GROUP, {}))
    check_files(path, document.files)
    held = read_weights(weights)
    if set(held) != {GROUP}:
        raise refusal(weights, f"damaged: its arrays are not those of '{GROUP}'; restore it or train again")
    with at_field(path, "files"):
        primitive = cast(NeuralOperator, bare.with_arrays(held[GROUP]))
    errors = [float(error) for error in document.errors]
    return Network(primitive, document.problem, document.settings, document.seed, document.source, errors)


def check_networks(path: Path, parts: Sequence[PrimitivePart], files: Sequence[Path], given: Collection[str]) -> None:
    """Refuses files of weights that do not hold what the networks of a model need; no array is read.

    ``given`` names primitives that the caller has made.
    """
    networks = {
        f"dictionary.{index}": part
        for index, part in enumerate(parts)
        if part.primitive in LEARNED and part.options is not None and part.name not in given
    }
    if networks:
        held: dict[str, Mapping[str, Layout]] = {}
        for file in files:
            held |= read_layout(file)
        for place, part in networks.items():
            _check_layout(path, place, _bare(path, place, part), held.get(part.name, {}))


def _bare(path: Path, place: str, part: PrimitivePart) -> NeuralOperator | NeuralClosure:
    """A network without weights."""
    with at_field(path, place):
        try:
            options = {
                name: tuple(value) if isinstance(value, list) else value for name, value in (part.options or {}).items()
            }
            bare = cast(NeuralOperator | NeuralClosure, LEARNED[part.primitive](**options))
            bare.plan.shapes()  # small enough, and torch is there
        except (TypeError, ValueError, AttributeError) as error:
            if isinstance(error, HyCOPError):
                raise
            raise refusal(path, f"field '{place}.options': {error}") from None
    return bare


def _check_layout(path: Path, place: str, bare: NeuralOperator | NeuralClosure, held: Mapping[str, Layout]) -> None:
    """The arrays of a network have the names, shapes and type of its architecture."""
    from hycop.networks.module import check_shapes  # needs torch, which a network has asked for before

    with at_field(path, place):
        check_shapes({name: each.shape for name, each in held.items()}, bare.plan.shapes())
    for name, each in held.items():
        if each.dtype != "F32":
            raise refusal(
                path, f"field '{place}': array '{name}' is {each.dtype}, but networks are F32; train it again"
            )


def load_primitive(folder: str | Path) -> NeuralOperator:
    """The learned primitive of a folder that ``hycop pretrain`` has written."""
    found = load_network(folder)
    if BASELINE in found.settings:
        raise InvalidInputError(
            f"{folder}: holds a baseline for times of one size, but a primitive takes any duration; train it with "
            "'hycop baseline … --any-time'"
        )
    return found.primitive


def primitive_at(place: str) -> Primitive:
    """The primitive of a network folder, or one by its registered name."""
    if ":" in place and not os.path.exists(place):
        raise InvalidInputError(f"{place}: is code, which a model folder cannot hold; use it in Python instead")
    if is_network(place) or os.sep in place or os.path.isdir(place):
        return load_primitive(place)
    return make_primitive(place)


def _located(folder: Path) -> Path:
    path = folder / FILE
    if not os.path.isdir(folder):
        raise ModelError(f"{folder}: there is no such folder; give one that 'hycop pretrain' has written")
    if path.is_symlink():
        raise refusal(path, "is a link; replace it by the file itself")
    if not os.path.isfile(path):
        raise ModelError(f"{folder}: has no {FILE}; it is not a network folder, or its training has not ended")
    return path
