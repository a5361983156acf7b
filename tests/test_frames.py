"""One sample at several times, side by side and as a movie."""

from __future__ import annotations

import shutil
import stat
import subprocess
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure
from PIL import Image

from hycop.errors import OutputError
from hycop.plots import Frames, check_movie, frames_figure, write_movie


def frames(times: int, channels: int, *shape: int) -> Frames:
    states = np.random.default_rng(0).random((times, channels, *shape))
    return Frames(states, np.linspace(0.0, 1.0, times), [f"u{i}" for i in range(channels)], [1.0] * len(shape))


def test_few_times_are_chosen_evenly() -> None:
    some = frames(31, 1, 8).some(4)
    assert some.times.tolist() == pytest.approx([0.0, 1 / 3, 2 / 3, 1.0]) and some.states.shape == (4, 1, 8)
    assert frames(3, 1, 8).some(4).times.size == 3


def test_rounding_errors_are_not_stretched_over_all_colours() -> None:
    states = np.stack([np.ones((3, 8)), 1e-16 * np.random.default_rng(0).random((3, 8))], axis=1)
    low, high = Frames(states, np.arange(3.0), ["h", "hv"], [1.0]).range_of(1)
    assert high - low == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("times", "channels", "shape", "panels"),
    [(3, 2, (16,), 2), (12, 2, (16,), 4), (3, 1, (8, 6), 3), (20, 2, (8, 6), 12), (2, 1, (4, 5, 6), 2)],
)
def test_pictures_of_every_dimension(times: int, channels: int, shape: tuple[int, ...], panels: int) -> None:
    figure = frames_figure(frames(times, channels, *shape), "title")
    assert isinstance(figure, Figure) and sum(axes.get_label() != "<colorbar>" for axes in figure.axes) == panels


@pytest.mark.parametrize("shape", [(16,), (8, 6), (4, 5, 6)])
def test_a_movie_has_a_frame_for_each_time(shape: tuple[int, ...], tmp_path: Path) -> None:
    told: list[float] = []
    write_movie(frames(4, 2, *shape), tmp_path / "u.gif", "title", told.append)
    with Image.open(tmp_path / "u.gif") as movie:
        assert movie.n_frames == 4 and told == [1, 1, 1, 1]
        pictures = []
        for index in range(4):
            movie.seek(index)
            pictures.append(np.asarray(movie.convert("RGB")))
    assert all((one != other).any() for one, other in pairwise(pictures))
    assert [path.name for path in tmp_path.iterdir()] == ["u.gif"]


def test_a_constant_field_looks_the_same_in_all_frames(tmp_path: Path) -> None:
    """Scales that followed each frame would show a decaying field as a constant one."""
    states = np.linspace(1.0, 0.1, 3)[:, None, None, None] * np.ones((3, 1, 4, 4))
    write_movie(Frames(states, np.arange(3.0), ["u"], [1.0, 1.0]), tmp_path / "u.gif", "title")
    with Image.open(tmp_path / "u.gif") as movie:
        middle, bars = [], []
        for index in range(3):
            movie.seek(index)
            picture = movie.convert("RGB")
            middle.append(picture.getpixel((picture.width // 3, picture.height // 2)))
            bars.append(np.asarray(picture)[:, -60:])  # the bar that says what a colour means
    assert len(set(middle)) == 3 and len(np.unique(bars[0].reshape(-1, 3), axis=0)) > 60
    assert np.array_equal(bars[0], bars[1]) and np.array_equal(bars[0], bars[2])


def test_movies_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(OutputError, match=r"\.gif or \.mp4"):
        check_movie(tmp_path / "u.avi")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(OutputError, match=r"needs the program ffmpeg.*write a \.gif"):
        check_movie(tmp_path / "u.mp4")
    with pytest.raises(OutputError, match="no folder"):
        check_movie(tmp_path / "nowhere" / "u.gif")


def encoder(folder: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    """A program in the place of ffmpeg: one that fails."""
    path = folder / "ffmpeg"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")


@pytest.mark.skipif(shutil.which("ffmpeg") is None, reason="needs ffmpeg (apt install ffmpeg)")
def test_an_mp4_has_a_frame_for_each_time_and_plays_anywhere(tmp_path: Path) -> None:
    path = tmp_path / "u.mp4"
    write_movie(frames(3, 1, 8, 6), path, "title")
    asked = ("-v", "error", "-show_entries", "stream=codec_name,pix_fmt,width,height", "-of", "csv=p=0")
    told = subprocess.run(["ffprobe", *asked, path], check=True, capture_output=True, text=True).stdout
    codec, width, height, colours = told.strip().split(",")
    assert (codec, colours) == ("h264", "yuv420p") and int(width) % 2 == int(height) % 2 == 0
    decoded = ["ffmpeg", "-v", "error", "-i", path, "-f", "rawvideo", "-pix_fmt", "gray", "-"]
    pixels = np.frombuffer(subprocess.run(decoded, check=True, capture_output=True).stdout, dtype=np.uint8)
    shown = pixels.reshape(-1, int(height), int(width)).astype(int)
    assert len(shown) == 3 and all(np.abs(after - before).max() > 30 for before, after in pairwise(shown))


def test_a_failure_of_ffmpeg_is_one_line_and_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    encoder(tmp_path, monkeypatch, "cat > /dev/null; exit 3")
    with pytest.raises(OutputError, match=r"ffmpeg failed with exit code 3; try a \.gif"):
        write_movie(frames(3, 1, 8, 6), tmp_path / "u.mp4", "title")
    assert [path.name for path in tmp_path.iterdir()] == ["ffmpeg"]
