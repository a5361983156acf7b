"""What is kept of a run after every round: the arrays, and a note that names them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hycop.files import read_text, remove_leftovers, write_json
from hycop.storage.sealing import file_hash
from hycop.storage.weights import read_weights, write_weights
from hycop.training.checkpoint import RunFolderError, another_run

if TYPE_CHECKING:
    from hycop.networks.loop import Training

FILE = "checkpoint.json"


def begun(folder: Path) -> bool:
    """Whether a run has kept something in the folder."""
    return (folder / FILE).exists()


def keep(folder: Path, identity: str, state: Training) -> None:
    """Writes the arrays first and then the note that names them, so that a run that is killed between the two goes on
    from the ones before."""
    weights = folder / f"checkpoint-{state.rounds}.safetensors"
    write_weights(weights, state.arrays)
    counts = {"rounds": state.rounds, "steps": state.steps, "since": state.since}
    # text, because JSON has no infinity
    errors = {"best": str(state.best), "errors": [*map(str, state.errors)], "seconds": state.seconds}
    write_json(folder / FILE, {"identity": identity, **counts, **errors, "sha256": file_hash(weights)})
    _forget_arrays(folder, weights.name)


def kept(folder: Path, identity: str) -> dict[str, Any]:
    """The fields of the ``Training`` that was kept, if it is of the same run."""
    path = folder / FILE
    try:
        content = json.loads(read_text(path, refused=RunFolderError))
        weights = folder / f"checkpoint-{int(content['rounds'])}.safetensors"
        if content["identity"] != identity:
            raise another_run(folder)
        if file_hash(weights) != content["sha256"]:
            raise RunFolderError(f"{weights}: damaged (its hash does not match); start again in another folder")
        counts = {name: int(content[name]) for name in ("rounds", "steps", "since")}
        errors: Mapping[str, Any] = {"best": float(content["best"]), "errors": tuple(map(float, content["errors"]))}
        errors = {**errors, "seconds": float(content.get("seconds", 0.0))}
        return {**counts, **errors, "arrays": read_weights(weights)}
    except (ValueError, KeyError, TypeError) as error:
        raise RunFolderError(f"{path}: not a checkpoint ({error}); start again in another folder") from None


def forget(folder: Path) -> None:
    """Removes the checkpoints of a run that has ended."""
    (folder / FILE).unlink(missing_ok=True)
    remove_leftovers(folder / FILE)
    _forget_arrays(folder)


def _forget_arrays(folder: Path, but: str = "") -> None:
    for old in folder.glob("*checkpoint-*.safetensors"):  # also those that a killed process was writing
        if old.name != but:
            old.unlink()
