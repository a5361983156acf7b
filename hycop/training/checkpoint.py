"""The run folder: one trainer at a time, its history, and the last two checkpoints, each of them whole.

The history reaches the disk before the checkpoint that counts its lines, so a resumed run finds them even after a power
loss. If the newest checkpoint is damaged, the run goes on from the one before it, to the same bits.
"""

from __future__ import annotations

import fcntl
import hashlib
import io
import json
import os
import shutil
import signal
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from threading import current_thread, main_thread
from types import FrameType
from typing import Any, NamedTuple, TypeVar

import numpy as np

from hycop.data.npz import read_arrays
from hycop.errors import HyCOPError, HyCOPWarning, Stopped
from hycop.evolution import State
from hycop.files import (
    ABOUT_DATA,
    flush,
    output_folder,
    read_bytes,
    read_text,
    remove_leftovers,
    replacing,
    writing,
)
from hycop.grid import Array

FILE = "checkpoint.npz"
PREVIOUS = "checkpoint.previous.npz"
MODEL = "model.json"
ARRAYS = ("weights.safetensors", "queries.safetensors")
"""Files of arrays of the model that a run ends with."""

HISTORY = "history.jsonl"
DATA = ("train.nc", "held_out.nc")
LOCK = "lock"
MOST = 2**30
"""Largest checkpoint or history that is read, in bytes (1 GiB): both are far smaller."""
HEADER = {"fingerprint": str, "stage": int, "lines": int}

S = TypeVar("S", bound=State)


class RunFolderError(HyCOPError, OSError):
    """A run folder that is missing, damaged, in use, or of another run."""


class DamagedCheckpointWarning(HyCOPWarning):
    """The newest checkpoint is damaged, so the run goes on from the one before it."""


class Checkpoint(NamedTuple):
    """The state of a run: its fingerprint, its stage, the lines of its history, and the arrays to go on from."""

    fingerprint: str
    stage: int
    lines: int
    arrays: Mapping[str, Array]


def fingerprint(*parts: object) -> str:
    """A hash of everything that must not change between a run and its resumption."""
    return hashlib.sha256(json.dumps(parts, sort_keys=True, default=str).encode()).hexdigest()


def array_hash(*arrays: Array) -> str:
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(str((array.dtype.str, array.shape)).encode())
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


@contextmanager
def claimed(folder: Path, resume: bool) -> Iterator[Path]:
    """Locks the folder for this trainer, and makes it if needed; the lock ends with the process. A folder made here is
    removed again if the run wrote nothing, or if its data or settings were wrong."""
    made = not folder.exists()
    output_folder(folder)
    _refuse_another(folder, resume)  # before a lock is left there, and again once it is held
    try:
        descriptor = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT)
    except OSError as error:
        raise RunFolderError(f"{folder}: cannot be written ({error.strerror}); choose another folder") from None
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise RunFolderError(f"{folder}: another trainer is at work there; wait for it or choose another") from None
        _refuse_another(folder, resume)
        for name in (FILE, HISTORY, *ARRAYS, *DATA):
            remove_leftovers(folder / name)
        yield folder
    except ABOUT_DATA:
        if made and not begun(folder):
            shutil.rmtree(folder, ignore_errors=True)
        raise
    finally:
        if made and folder.exists() and [entry.name for entry in folder.iterdir()] == [LOCK]:
            shutil.rmtree(folder, ignore_errors=True)
        os.close(descriptor)


def _refuse_another(folder: Path, resume: bool) -> None:
    if _has_checkpoint(folder) and not resume:
        raise RunFolderError(f"{folder}: holds a run already; go on with --resume, or choose another folder")
    if (folder / MODEL).exists() and not (resume and (folder / HISTORY).exists()):
        raise RunFolderError(f"{folder}: holds a model already, which would be lost; choose another folder")
    for name in (FILE, PREVIOUS, HISTORY):
        if os.path.lexists(folder / name) and not os.path.isfile(folder / name):
            raise RunFolderError(f"{folder / name}: is not a regular file; remove it, or choose another folder")


def write(folder: Path, checkpoint: Checkpoint) -> None:
    """Writes a checkpoint atomically (temporary file, hash, flush, rename) and keeps the previous one."""
    buffer = io.BytesIO()
    header = json.dumps({name: getattr(checkpoint, name) for name in HEADER})
    arrays: dict[str, Any] = {"header": np.frombuffer(header.encode(), dtype=np.uint8), **checkpoint.arrays}
    np.savez(buffer, **arrays)
    content = buffer.getvalue()
    with replacing(folder / FILE) as temporary:
        temporary.write_bytes(content + hashlib.sha256(content).digest())
        # a run that is killed between the two renamings goes on from the previous checkpoint
        if (folder / FILE).exists():
            os.replace(folder / FILE, folder / PREVIOUS)


def read(folder: Path) -> Checkpoint | None:
    """The newest checkpoint of a run folder that is whole, or None if it has none."""
    found = _newest(folder)
    return None if found is None else found[1]


def _newest(folder: Path) -> tuple[Path, Checkpoint, list[str]] | None:
    """The newest checkpoint that is whole, where it is, and the history up to it."""
    refused: RunFolderError | None = None
    for path in (folder / FILE, folder / PREVIOUS):
        if not os.path.lexists(path):
            continue
        try:
            found = _read(path)
            lines = _lines(folder / HISTORY, found.lines)
        except RunFolderError as error:
            refused = refused or error
            continue
        if refused is not None:
            said = f"{refused}; goes on from {path.name}, the checkpoint before it"
            warnings.warn(said, DamagedCheckpointWarning, stacklevel=2)
        return path, found, lines
    if refused is not None:
        raise RunFolderError(f"{refused}; restore it from a copy, or start again in another folder") from None
    return None


def _read(path: Path) -> Checkpoint:
    content = read_bytes(path, MOST, RunFolderError)
    if hashlib.sha256(content[:-32]).digest() != content[-32:]:
        raise RunFolderError(f"{path}: damaged (its hash does not match)")
    try:
        arrays = read_arrays(io.BytesIO(content[:-32]))
        header = json.loads(arrays.pop("header").tobytes())
        if {name: type(value) for name, value in header.items()} != HEADER or min(header["stage"], header["lines"]) < 0:
            raise ValueError("wrong fields in its header")
        for name, array in arrays.items():
            if array.dtype.kind not in "fiub":
                raise ValueError(f"array '{name}' does not hold numbers")
    # zipfile and NumPy raise nearly every kind of exception for a foreign archive
    except Exception as error:
        reason = next(iter(str(error).splitlines()), "") or type(error).__name__
        raise RunFolderError(f"{path}: not a checkpoint ({reason})") from None
    return Checkpoint(**header, arrays=arrays)


class Journal:
    """Stages and steps of a run, their history, and a checkpoint after every few steps.

    Stages are numbered in order, so a resumed run must run the same ones in the same order: finished stages return
    their result at once, and the unfinished one goes on from its last step. Without a folder nothing is written.
    """

    def __init__(
        self, folder: Path | None, identity: str, resume: bool = False, force: bool = False, every: int = 1
    ) -> None:
        self.folder, self.identity, self.every = folder, identity, every
        self.stopping = False
        self._stage, self._replaying = 0, False
        found, self._history = (None, []) if folder is None else _found(folder, identity, resume, force)
        self._found_stage = 0 if found is None else found.stage
        arrays = {} if found is None else found.arrays
        self._results = {name: value for name, value in arrays.items() if name.startswith("theta")}
        self._state = {name[6:]: value for name, value in arrays.items() if name.startswith("state_")}
        if folder is not None:
            # never shorter than the checkpoint says, whenever this process is killed
            with replacing(folder / HISTORY) as temporary:
                temporary.write_text("".join(line + "\n" for line in self._history), encoding="utf-8")

    def note(self, **entry: object) -> None:
        """Appends one line to the history, unless the resumed run has already written it."""
        if self._replaying:
            return
        self._history.append(json.dumps(entry))
        if self.folder is not None:
            path = self.folder / HISTORY
            with writing(path), path.open("a", encoding="utf-8") as file:
                file.write(self._history[-1] + "\n")

    def follow(self, state: S, step: Callable[[S], S], steps: int) -> Array:
        """Runs a stage from a state until it has taken ``steps`` or converged; returns its theta."""
        self._stage += 1
        key = f"theta{self._stage}"
        self._replaying = key in self._results
        if self._replaying:
            return self._results[key]
        if self._found_stage == self._stage:
            state = self._restored(state)
        while state.generation < steps and not state.converged:
            state = step(state)
            if self.stopping or state.generation % self.every == 0:
                self._write(state)
            if self.stopping:
                raise Stopped(self._stopped(state.generation))
        self._results[key] = state.theta
        return state.theta

    def _restored(self, start: S) -> S:
        """The state of the checkpoint, which must be one of the same kind."""
        try:
            state = start.from_arrays(self._state)
            theirs, ours = state.to_arrays(), start.to_arrays()
            for name in ("theta", "generation", "converged"):
                if (theirs[name].dtype, theirs[name].shape) != (ours[name].dtype, ours[name].shape):
                    raise ValueError(f"{name} is of another type or shape")
        except (TypeError, ValueError) as error:
            raise RunFolderError(
                f"{self.folder}: its checkpoint does not fit this run ({error}); start again in another folder"
            ) from None
        return state

    def _stopped(self, step: int) -> str:
        where = f"stopped after step {step} of stage {self._stage}"
        if self.folder is None:
            return f"the run was {where}; no folder was given, so nothing was kept"
        return f"{self.folder}: {where}; --resume goes on"

    def finish(self) -> None:
        """Writes a checkpoint if no stage had a step to take, so that another run is refused here too."""
        if self.folder is not None and not _has_checkpoint(self.folder):
            write(self.folder, Checkpoint(self.identity, self._stage, len(self._history), self._results))

    def _write(self, state: State) -> None:
        if self.folder is None:
            return
        # the lines that the checkpoint counts reach the disk first
        with writing(self.folder / HISTORY):
            flush(self.folder / HISTORY)
        arrays = {**self._results, **{f"state_{name}": value for name, value in state.to_arrays().items()}}
        write(self.folder, Checkpoint(self.identity, self._stage, len(self._history), arrays))


def _found(folder: Path, identity: str, resume: bool, force: bool) -> tuple[Checkpoint | None, list[str]]:
    """The checkpoint to go on from and the history up to it."""
    _refuse_another(output_folder(folder), resume)
    newest = _newest(folder)
    if newest is None:
        return None, []
    path, found, lines = newest
    if found.fingerprint != identity and not force:
        raise another_run(folder)
    if path.name == PREVIOUS:
        # else the next checkpoint would push the damaged one into its place
        with writing(path):
            os.replace(path, folder / FILE)
    return found, lines


def begun(folder: Path) -> bool:
    """Whether a run in the folder, or at one of the points of a front there, has written a checkpoint."""
    return any(_has_checkpoint(place) for place in (folder, *folder.glob("point*")))


def _has_checkpoint(folder: Path) -> bool:
    return (folder / FILE).exists() or (folder / PREVIOUS).exists()


def another_run(folder: Path) -> RunFolderError:
    return RunFolderError(
        f"{folder}: the run there has another configuration, seed, dataset or version; use the same, or train --force"
    )


def _lines(path: Path, count: int) -> list[str]:
    """The history up to the checkpoint; the steps of later lines run again."""
    lines = read_text(path, MOST, RunFolderError).split("\n")[:-1] if os.path.lexists(path) else []
    if len(lines) < count:
        raise RunFolderError(f"{path}: {len(lines)} lines, but the checkpoint counts {count} (it was cut or replaced)")
    return lines[:count]


@contextmanager
def stoppable(journal: Journal) -> Iterator[None]:
    """SIGTERM and Ctrl-C end the run after the current step; only the main thread receives them."""

    def stop(number: int, frame: FrameType | None) -> None:
        journal.stopping = True

    if current_thread() is not main_thread():
        yield
        return
    before = {number: signal.signal(number, stop) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
