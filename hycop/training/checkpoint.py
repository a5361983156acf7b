"""The run folder: one writer at a time, and a checkpoint that is whole or the one before it."""

from __future__ import annotations

import fcntl
import hashlib
import io
import json
import os
import shutil
import signal
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from threading import current_thread, main_thread
from types import FrameType
from typing import Any, NamedTuple, TypeVar

import numpy as np

from hycop.errors import HyCOPError
from hycop.evolution import State
from hycop.files import ABOUT_DATA, output_folder, remove_leftovers, replacing
from hycop.grid import Array

FILE = "checkpoint.npz"
MODEL = "model.json"
HISTORY = "history.jsonl"
DATA = ("train.nc", "held_out.nc")
LOCK = "lock"

S = TypeVar("S", bound=State)


class RunFolderError(HyCOPError, OSError):
    """A run folder that is missing, damaged, in use, or of another run."""


class Checkpoint(NamedTuple):
    """Where a run stands: what it is (a fingerprint), which stage it is in, and the arrays to go on from."""

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
    """The folder, made if need be, for this trainer alone; the lock goes with the process, however it ends. One that
    was made for a run that wrote nothing, or whose data or settings turned out to be wrong, is removed again."""
    made = not folder.exists()
    output_folder(folder)
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
        for name in (FILE, HISTORY, *DATA):
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
    if (folder / FILE).exists() and not resume:
        raise RunFolderError(f"{folder}: holds a run already; go on with --resume, or choose another folder")
    if (folder / MODEL).exists() and not (resume and (folder / HISTORY).exists()):
        raise RunFolderError(f"{folder}: holds a model already, which would be lost; choose another folder")


def write(folder: Path, checkpoint: Checkpoint) -> None:
    """Atomic: written beside, flushed to disk, renamed; a hash of the content stands at its end."""
    buffer = io.BytesIO()
    header = json.dumps({"fingerprint": checkpoint.fingerprint, "stage": checkpoint.stage, "lines": checkpoint.lines})
    arrays: dict[str, Any] = {"header": np.frombuffer(header.encode(), dtype=np.uint8), **checkpoint.arrays}
    np.savez(buffer, **arrays)
    content = buffer.getvalue()
    with replacing(folder / FILE) as temporary:
        temporary.write_bytes(content + hashlib.sha256(content).digest())


def read(folder: Path) -> Checkpoint | None:
    """The checkpoint of a run folder, or None if it has none."""
    path = folder / FILE
    if not path.exists():
        return None
    content = path.read_bytes()
    if hashlib.sha256(content[:-32]).digest() != content[-32:]:
        raise RunFolderError(f"{path}: damaged (its hash does not match); remove it to start again")
    with np.load(io.BytesIO(content[:-32]), allow_pickle=False) as stored:
        arrays = {name: stored[name] for name in stored.files}
    header = json.loads(arrays.pop("header").tobytes().decode())
    return Checkpoint(header["fingerprint"], header["stage"], header["lines"], arrays)


class Stopped(HyCOPError):
    """The run was asked to stop; where it stands has been written and it can be resumed."""


class Journal:
    """What a run has done so far: stages of steps, the history of both, and a checkpoint after every few steps.

    Stages are numbered as they come, so a resumed run must ask for the same ones in the same order: finished stages
    give their result at once, and the unfinished one goes on from its last step. Without a folder nothing is written.
    """

    def __init__(
        self, folder: Path | None, identity: str, resume: bool = False, force: bool = False, every: int = 1
    ) -> None:
        self.folder, self.identity, self.every = folder, identity, every
        self.stopping = False
        self._stage, self._replaying = 0, False
        found = None if folder is None else _found(folder, identity, resume, force)
        self._found_stage = 0 if found is None else found.stage
        arrays = {} if found is None else found.arrays
        self._results = {name: value for name, value in arrays.items() if name.startswith("theta")}
        self._state = {name[6:]: value for name, value in arrays.items() if name.startswith("state_")}
        self._history = [] if folder is None or found is None else _lines(folder / HISTORY, found.lines)
        if folder is not None:
            # never shorter than the checkpoint says, whenever this process is killed
            with replacing(folder / HISTORY) as temporary:
                temporary.write_text("".join(line + "\n" for line in self._history), encoding="utf-8")

    def note(self, **entry: object) -> None:
        """One line of the history, unless it is there already from before the run was resumed."""
        if self._replaying:
            return
        self._history.append(json.dumps(entry))
        if self.folder is not None:
            with (self.folder / HISTORY).open("a", encoding="utf-8") as file:
                file.write(self._history[-1] + "\n")

    def follow(self, state: S, step: Callable[[S], S], steps: int) -> Array:
        """A stage: steps from a state until enough are done or it has converged; its theta."""
        self._stage += 1
        key = f"theta{self._stage}"
        self._replaying = key in self._results
        if self._replaying:
            return self._results[key]
        if self._found_stage == self._stage:
            state = state.from_arrays(self._state)
        while state.generation < steps and not state.converged:
            state = step(state)
            if self.stopping or state.generation % self.every == 0:
                self._write(state)
            if self.stopping:
                raise Stopped(
                    f"{self.folder}: stopped after step {state.generation} of stage {self._stage}; --resume goes on"
                )
        self._results[key] = state.theta
        return state.theta

    def _write(self, state: State) -> None:
        if self.folder is not None:
            arrays = {**self._results, **{f"state_{name}": value for name, value in state.to_arrays().items()}}
            write(self.folder, Checkpoint(self.identity, self._stage, len(self._history), arrays))


def _found(folder: Path, identity: str, resume: bool, force: bool) -> Checkpoint | None:
    _refuse_another(output_folder(folder), resume)
    found = read(folder)
    if found is None:
        return None
    if found.fingerprint != identity and not force:
        raise another_run(folder)
    return found


def begun(folder: Path) -> bool:
    """Whether a run in the folder, or of one of the points of a front there, has got as far as a checkpoint."""
    return any((place / FILE).exists() for place in (folder, *folder.glob("point*")))


def another_run(folder: Path) -> RunFolderError:
    return RunFolderError(
        f"{folder}: the run there has another configuration, seed, dataset or version; use the same, or --force"
    )


def _lines(path: Path, count: int) -> list[str]:
    """The history up to the last checkpoint: what came after it was lost with the process and is done again."""
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    if len(lines) < count:
        raise RunFolderError(
            f"{path}: {len(lines)} lines, but the checkpoint stands at {count}; it was cut or replaced"
        )
    return lines[:count]


@contextmanager
def stoppable(journal: Journal) -> Iterator[None]:
    """SIGTERM and Ctrl-C end the run after the step under way; only the main thread can hear them."""

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
