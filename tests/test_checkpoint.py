"""Run folders: what a kill, a power loss, a full disk or somebody's hands can do to them."""

from __future__ import annotations

import hashlib
import io
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hycop.errors import OutputError
from hycop.evolution import State
from hycop.evolution.optimizer import noise
from hycop.training.checkpoint import (
    FILE,
    HISTORY,
    PREVIOUS,
    DamagedCheckpointWarning,
    Journal,
    RunFolderError,
    Stopped,
    read,
)

STEPS = 6


def started() -> State:
    return State(theta=np.zeros(4), generation=0, seed=7)


def learn(folder: Path | None, resume: bool = False, until: int = STEPS) -> list[float]:
    """Two stages of a random walk, the second of which may be left after some steps."""
    journal = Journal(folder, "walk", resume)
    total = 0.0

    def step(state: State) -> State:
        journal.note(stage=journal._stage, step=state.generation)
        if journal._stage == 2 and state.generation == until:
            raise KeyboardInterrupt
        walk = noise(state.seed + journal._stage, state.generation, 0, 1, 4)[0]
        return State(theta=state.theta + walk, generation=state.generation + 1, seed=state.seed)

    for _ in range(2):
        total = total + journal.follow(started(), step, STEPS)
    return np.asarray(total).tolist()


def stopped(folder: Path, until: int = 4) -> Path:
    """The folder of a run that ended in its second stage."""
    with pytest.raises(KeyboardInterrupt):
        learn(folder, until=until)
    return folder


def resealed(change: Callable[[dict[str, Any]], None]) -> Callable[[bytes], bytes]:
    """An archive with other arrays and a hash that is right."""

    def damage(content: bytes) -> bytes:
        with np.load(io.BytesIO(content[:-32])) as file:
            arrays = dict(file)
        change(arrays)
        buffer = io.BytesIO()
        np.savez(buffer, **arrays)
        return buffer.getvalue() + hashlib.sha256(buffer.getvalue()).digest()

    return damage


def header(content: str) -> Callable[[bytes], bytes]:
    return resealed(lambda arrays: arrays.update(header=np.frombuffer(content.encode(), np.uint8)))


DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "flipped": lambda content: content[:100] + b"x" + content[101:],
    "cut": lambda content: content[:-5],
    "empty": lambda content: b"",
    "no archive": lambda content: b"text" + hashlib.sha256(b"text").digest(),
    "no header": resealed(lambda arrays: arrays.pop("header")),
    "header of text": resealed(lambda arrays: arrays.update(header=np.array("text"))),
    "header is a list": header("[1, 2]"),
    "header with wrong types": header('{"fingerprint": "walk", "stage": "2", "lines": 3}'),
    "header with negative counts": header('{"fingerprint": "walk", "stage": 2, "lines": -3}'),
    "header is deep": header("[" * 100_000),
    "an array of text": resealed(lambda arrays: arrays.update(state_theta=np.array(["a"]))),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_checkpoint_falls_back_to_the_one_before_it_and_to_the_same_bits(tmp_path: Path, damage: str) -> None:
    expected = learn(tmp_path / "whole")
    folder = stopped(tmp_path / "run")
    newest, older = (folder / FILE).read_bytes(), (folder / PREVIOUS).read_bytes()
    (folder / FILE).write_bytes(DAMAGES[damage](newest))
    with pytest.warns(DamagedCheckpointWarning, match=rf"^[^\n]*{FILE}[^\n]*goes on from {PREVIOUS}[^\n]*$"):
        assert learn(folder, resume=True) == expected
    assert (folder / HISTORY).read_text() == (tmp_path / "whole" / HISTORY).read_text()
    assert (folder / FILE).read_bytes() == (tmp_path / "whole" / FILE).read_bytes()
    # without an older one, or with one that is as bad, the run is refused
    for others in ((), (PREVIOUS,)):
        for name in (FILE, *others):
            (folder / name).write_bytes(DAMAGES[damage](older))
        if not others:
            (folder / PREVIOUS).unlink()
        with pytest.raises(RunFolderError, match=rf"^[^\n]*{FILE}: [^\n]*start again in another folder$"):
            learn(folder, resume=True)


def test_a_run_that_falls_back_keeps_a_whole_checkpoint_at_every_instant(tmp_path: Path) -> None:
    folder = stopped(tmp_path / "run")
    (folder / FILE).write_bytes(b"damaged")
    with pytest.warns(DamagedCheckpointWarning):
        Journal(folder, "walk", resume=True)  # and killed before its first step
    assert learn(folder, resume=True) == learn(tmp_path / "whole")


def test_one_checkpoint_of_an_older_version_is_resumed(tmp_path: Path) -> None:
    folder = stopped(tmp_path / "run")
    (folder / PREVIOUS).unlink()
    assert learn(folder, resume=True) == learn(None)
    # a run that was killed between its two renamings has the previous one only
    killed = stopped(tmp_path / "killed")
    (killed / FILE).unlink()
    with pytest.raises(RunFolderError, match="--resume"):
        learn(killed)
    assert learn(killed, resume=True) == learn(None)


def test_the_history_reaches_the_disk_before_the_checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    events: list[str] = []
    fsync, replace = os.fsync, os.replace

    def flushed(descriptor: int) -> None:
        place = Path(os.readlink(f"/proc/self/fd/{descriptor}"))
        events.append("temporary" if ".tmp" in place.name else place.name)
        fsync(descriptor)

    def renamed(source: Path, target: Path) -> None:
        events.append(f"to {Path(target).name}")
        replace(source, target)

    monkeypatch.setattr(os, "fsync", flushed)
    monkeypatch.setattr(os, "replace", renamed)
    stopped(tmp_path / "run", until=0)
    assert events[-5:] == [HISTORY, f"to {PREVIOUS}", "temporary", f"to {FILE}", "run"]


def test_a_cut_history_serves_the_older_checkpoint(tmp_path: Path) -> None:
    folder = stopped(tmp_path / "run")
    lines = (folder / HISTORY).read_text().splitlines(keepends=True)
    (folder / HISTORY).write_text("".join(lines[:9]) + lines[9][:5])
    with pytest.warns(DamagedCheckpointWarning, match="9 lines, but the checkpoint counts 10"):
        assert learn(folder, resume=True) == learn(None)
    (folder / HISTORY).write_text(lines[0])
    with pytest.raises(RunFolderError, match="1 lines, but the checkpoint counts"):
        learn(folder, resume=True)


@pytest.mark.parametrize("name", [FILE, HISTORY])
@pytest.mark.parametrize("kind", ["folder", "pipe", "loop"])
def test_what_is_no_regular_file_is_refused(tmp_path: Path, name: str, kind: str) -> None:
    folder = stopped(tmp_path / "run")
    (folder / name).unlink()
    make: dict[str, Callable[[Path], Any]] = {
        "folder": Path.mkdir,
        "pipe": os.mkfifo,
        "loop": lambda path: path.symlink_to(path),
    }
    make[kind](folder / name)
    with pytest.raises(RunFolderError, match=rf"^[^\n]*{name}: is not a regular file[^\n]*$"):
        learn(folder, resume=True)


def test_a_history_that_is_not_text_is_refused(tmp_path: Path) -> None:
    folder = stopped(tmp_path / "run")
    (folder / HISTORY).write_bytes(b"\xff\xfe" * 50)
    with pytest.raises(RunFolderError, match=rf"{HISTORY}: is not UTF-8"):
        learn(folder, resume=True)


@pytest.mark.parametrize(
    "change",
    [
        lambda arrays: arrays.pop("state_theta"),
        lambda arrays: arrays.update(state_theta=np.zeros(9)),
        lambda arrays: arrays.update(state_generation=np.array(1.5)),
        lambda arrays: arrays.update(state_extra=np.zeros(1)),
    ],
)
def test_a_state_of_another_optimiser_is_refused(tmp_path: Path, change: Any) -> None:
    folder = stopped(tmp_path / "run")
    (folder / FILE).write_bytes(resealed(change)((folder / FILE).read_bytes()))
    with pytest.raises(RunFolderError, match=r"^[^\n]*its checkpoint does not fit this run[^\n]*$"):
        learn(folder, resume=True)


def test_a_folder_that_is_removed_under_a_run_is_one_line(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "run", "walk")
    journal.note(step=1)
    shutil.rmtree(tmp_path / "run")
    for act in (lambda: journal.note(step=2), lambda: journal._write(started())):
        with pytest.raises(OutputError, match=rf"^[^\n]*{HISTORY}: cannot be written .No such file[^\n]*$"):
            act()


def test_a_full_disk_is_one_line(tmp_path: Path) -> None:
    journal = Journal(tmp_path, "walk")
    (tmp_path / HISTORY).unlink()
    (tmp_path / HISTORY).symlink_to("/dev/full")
    with pytest.raises(OutputError, match=rf"^[^\n]*{HISTORY}: cannot be written .No space left[^\n]*$"):
        journal.note(step=1)


@pytest.mark.parametrize(("kept", "said"), [(True, "run: stopped .*--resume goes on$"), (False, "nothing was kept$")])
def test_a_stop_says_what_remains(tmp_path: Path, kept: bool, said: str) -> None:
    journal = Journal(tmp_path / "run" if kept else None, "walk")
    journal.stopping = True
    with pytest.raises(Stopped, match=said) as caught:
        journal.follow(started(), lambda state: State(theta=state.theta, generation=1, seed=7), STEPS)
    assert "None" not in str(caught.value) and (read(tmp_path / "run") is not None) == kept


def test_the_history_is_json_lines(tmp_path: Path) -> None:
    learn(tmp_path)
    lines = [json.loads(line) for line in (tmp_path / HISTORY).read_text().splitlines()]
    assert [line["step"] for line in lines] == [*range(STEPS)] * 2
