"""Pictures and movies that predict draws, and what is refused before anything is computed."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import hycop
from hycop.surrogate import HyCOP
from tests.helpers import SMALL_MODEL, hycop_command, small_data


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("pictures") / "in.nc"
    small_data(3, (0.05, 0.1, 0.2)).save(path)
    return path


def frames(path: Path) -> int:
    with Image.open(path) as movie:
        return int(getattr(movie, "n_frames", 1))


def test_a_picture_and_a_movie_of_one_sample(source: Path, tmp_path: Path) -> None:
    words = ("predict", SMALL_MODEL, source, "out.nc", "--sample", "2", "--plot", "u.png", "--movie", "u.gif")
    done = hycop_command(*words, folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "wrote u.png" in done.stderr and "wrote u.gif" in done.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out.nc", "u.gif", "u.png"]
    with Image.open(tmp_path / "u.png") as picture:
        assert picture.width > 500 and len(np.unique(np.asarray(picture.convert("L")))) > 20
    assert frames(tmp_path / "u.gif") == 4  # the initial state and three times
    kept = hycop_command(*words, folder=tmp_path)
    assert kept.returncode == 2 and "--overwrite" in kept.stderr
    assert hycop_command(*words, "--overwrite", folder=tmp_path).returncode == 0


@pytest.mark.skipif(shutil.which("ffmpeg") is None, reason="needs ffmpeg (apt install ffmpeg)")
def test_a_movie_as_mp4(source: Path, tmp_path: Path) -> None:
    done = hycop_command("predict", SMALL_MODEL, source, "out.nc", "--movie", "u.mp4", folder=tmp_path)
    assert done.returncode == 0 and "wrote u.mp4" in done.stderr, done.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out.nc", "u.mp4"]
    assert (tmp_path / "u.mp4").read_bytes()[4:8] == b"ftyp"  # what every mp4 begins with


def test_the_sample_that_is_drawn_is_the_one_that_was_asked_for(source: Path, tmp_path: Path) -> None:
    for sample in ("0", "1"):
        words = ("--times", "0.1", "--plot", f"{sample}.png", "--sample", sample)
        assert hycop_command("predict", SMALL_MODEL, source, f"{sample}.nc", *words, folder=tmp_path).returncode == 0
    assert (tmp_path / "0.png").read_bytes() != (tmp_path / "1.png").read_bytes()


def test_a_movie_may_have_more_frames_than_the_file_has_times(source: Path, tmp_path: Path) -> None:
    words = ("--times", "0.2", "--movie", "u.gif", "--movie-frames", "7")
    done = hycop_command("predict", SMALL_MODEL, source, "out.nc", *words, folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert frames(tmp_path / "u.gif") == 8 and hycop.load(tmp_path / "out.nc").times.shape == (3, 2)


REFUSED = {
    "no such suffix": (("--plot", "u.bmp"), "--plot u.bmp: the suffix must be .png, .pdf or .svg"),
    "no such movie": (("--movie", "u.avi"), "u.avi: unknown suffix '.avi'; movies are written as .gif or .mp4"),
    "no folder": (("--movie", "none/u.gif"), "there is no folder none"),
    "no picture": (("--sample", "1"), "--sample has no meaning without --plot or --movie"),
    "no movie": (("--plot", "u.png", "--movie-frames", "9"), "--movie-frames has no meaning without --movie"),
    "too few frames": (("--movie", "u.gif", "--movie-frames", "0"), "--movie-frames is 0"),
    "negative": (("--plot", "u.png", "--sample", "-1"), "--sample is -1"),
    "too large": (("--plot", "u.png", "--sample", "3"), "--sample is 3: there are 3 samples, counted from 0"),
    "no ffmpeg": (("--movie", "u.mp4"), "needs the program ffmpeg, which is not on the PATH"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_refused_before_it_computes(
    case: str, source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(*_: object) -> None:
        raise AssertionError("it was computed")

    monkeypatch.setattr(HyCOP, "answer", never)
    monkeypatch.setenv("PATH", str(tmp_path))
    words, said = REFUSED[case]
    done = hycop_command("predict", SMALL_MODEL, source, "out.nc", *words, folder=tmp_path)
    assert done.returncode == 2 and said in done.stderr, done.stderr
    assert done.stderr.count("\n") == 1 and not list(tmp_path.iterdir())


def test_a_picture_is_no_other_file_of_the_command(tmp_path: Path) -> None:
    small_data(1, (0.1,)).save(tmp_path / "in.nc")
    (tmp_path / "u.png").symlink_to(tmp_path / "in.nc")
    words = ("predict", SMALL_MODEL, "in.nc", "out.nc", "--plot", "u.png", "--overwrite")
    done = hycop_command(*words, folder=tmp_path)
    assert done.returncode == 2 and "also another file" in done.stderr and hycop.load(tmp_path / "in.nc").samples == 1
