"""One sample at several times: side by side, over space and time, or as a movie."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hycop.colours import COLOURS
from hycop.errors import OutputError
from hycop.files import checked_output, replacing
from hycop.grid import Array
from hycop.plots.fields import draw_field, slice_of
from hycop.plots.figure import BESIDE, Axes, Figure, new_figure

MOST_COLUMNS = 6
"""Times that are drawn side by side; of more, some are chosen evenly."""

FEWEST_ROWS = 6
"""Times from which on a plane of space and time says more than lines."""

SECONDS = 6.0
"""How long a movie lasts, unless that needs fewer than 2 or more than 20 frames a second."""

ROUNDING = 1e-12
"""Differences of values, relative to the largest value of any channel, that are not shown."""

MOVIES = (".gif", ".mp4")


class Frames(NamedTuple):
    """One sample: states (time, channel, *grid), their times, the names of the channels, and the size of the box."""

    states: Array
    times: Array
    channels: Sequence[str]
    lengths: Sequence[float]

    @property
    def axes(self) -> int:
        return self.states.ndim - 2

    def some(self, most: int = MOST_COLUMNS) -> Frames:
        """At most some of the times, evenly chosen, the first and the last among them."""
        count = len(self.times)
        kept = np.unique(np.linspace(0, count - 1, min(most, count)).round().astype(int))
        return self._replace(states=self.states[kept], times=self.times[kept])

    def only(self, channel: str) -> Frames:
        place = list(self.channels).index(channel)
        return self._replace(states=self.states[:, place : place + 1], channels=[channel])

    def range_of(self, channel: int) -> tuple[float, float]:
        """The least and the greatest value of a channel at any time, a little apart if they are the same."""
        low, high = float(self.states[:, channel].min()), float(self.states[:, channel].max())
        alike = ROUNDING * float(np.abs(self.states).max())  # rounding errors are not worth a picture
        return (low, high) if high - low > alike else (low - 0.5, high + 0.5)


def draw_frames(panels: Any, frames: Frames) -> None:
    """Rows of panels, one for each channel: in 1D one panel with a line for each time, in 2D and 3D a panel for each
    time, all on one scale of colours."""
    for place, (row, name) in enumerate(zip(panels, frames.channels, strict=True)):
        if frames.axes == 1:
            _draw_lines(row[0], frames, place)
            continue
        low, high = frames.range_of(place)
        for axes, u, time in zip(row, frames.states[:, place], frames.times, strict=True):
            title = f"{name}, t = {time:.4g}"
            draw_field(axes, u, frames.lengths, title, vmin=low, vmax=high, cmap="viridis", colorbar=axes is row[-1])


def _draw_lines(axes: Axes, frames: Frames, place: int) -> None:
    """A channel in 1D: a line for each time, from dark to light as time passes."""
    from matplotlib import colormaps

    u = frames.states[:, place]
    x = (np.arange(u.shape[1]) + 0.5) * frames.lengths[0] / u.shape[1]
    shades = colormaps["viridis"](np.linspace(0.0, 0.88, len(frames.times)))
    for values, time, shade in zip(u, frames.times, shades, strict=True):
        axes.plot(x, values, color=shade, label=f"t = {time:.4g}")
    axes.set(xlabel="x", ylabel=frames.channels[place])
    axes.grid(True, alpha=0.2)
    axes.legend(fontsize=8, **BESIDE)


def draw_space_time(axes: Axes, frames: Frames, channel: int = 0) -> None:
    """A channel of a sample in 1D over space and time."""
    u, times = frames.states[:, channel], np.asarray(frames.times, dtype=np.float64)
    middles = 0.5 * (times[1:] + times[:-1])
    # every state fills the time that is nearest to it
    edges = np.concatenate([times[:1], middles, times[-1:]])
    x = np.linspace(0.0, float(frames.lengths[0]), u.shape[1] + 1)
    low, high = frames.range_of(channel)
    mesh = axes.pcolormesh(x, edges, u, cmap="viridis", vmin=low, vmax=high, rasterized=True)
    figure = axes.figure
    assert figure is not None
    figure.colorbar(mesh, ax=axes, label=frames.channels[channel])
    axes.set(xlabel="x", ylabel="t")


def frames_figure(frames: Frames, title: str) -> Figure:
    """A sample at several times: lines in 1D, beside a plane of space and time if there are many; else fields."""
    shown, rows = frames.some(), len(frames.channels)
    if frames.axes == 1:
        planes = len(frames.times) >= FEWEST_ROWS
        figure = new_figure(11.5 if planes else 7.0, 2.9 * rows + 0.5)
        panels = figure.subplots(rows, 1 + planes, squeeze=False)
        draw_frames(panels, shown)
        for place, axes in enumerate(panels[:, 1] if planes else ()):
            draw_space_time(axes, frames, place)
    else:
        columns = len(shown.times)
        figure = new_figure(2.5 * columns + 0.8, 2.6 * rows + 0.5)
        draw_frames(figure.subplots(rows, columns, squeeze=False), shown)
    figure.suptitle(title, fontsize=11)
    return figure


def check_movie(path: Path) -> Path:
    """The path, if a movie can be written there: as .gif, or as .mp4 if there is an ffmpeg to do it."""
    suffix = path.suffix.lower()
    if suffix not in MOVIES:
        raise OutputError(f"{path}: unknown suffix '{path.suffix}'; movies are written as .gif or .mp4")
    if suffix == ".mp4" and shutil.which("ffmpeg") is None:
        raise OutputError(
            f"{path}: .mp4 needs the program ffmpeg, which is not on the PATH; install it "
            "(apt install ffmpeg, brew install ffmpeg, conda install ffmpeg), or write a .gif"
        )
    return checked_output(path)


def write_movie(frames: Frames, path: Path, title: str, advance: Callable[[float], None] | None = None) -> None:
    """A movie of one sample, whole or not at all. All frames have the same scales; ``advance`` is told of each."""
    path = check_movie(path)
    figure, draw = _stage(frames, title)
    rate = min(20.0, max(2.0, len(frames.times) / SECONDS))
    write = _write_gif if path.suffix.lower() == ".gif" else _write_mp4

    def shown() -> Iterator[None]:
        for index in range(len(frames.times)):
            draw(index)
            yield
            if advance is not None:
                advance(1)

    with replacing(path) as temporary, _ffmpeg_failure(path):
        write(figure, shown(), temporary, rate)


def _write_gif(figure: Figure, shown: Iterable[None], path: Path, rate: float) -> None:
    """All frames have one palette: with one for each, a colour would not mean the same in all of them."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from PIL import Image  # which matplotlib needs, too

    canvas: Any = FigureCanvasAgg(figure)  # whose methods have no types
    palette = Image.new("P", (1, 1))
    palette.putpalette(_palette().ravel().tolist())
    pictures = []
    for _ in shown:
        canvas.draw()
        picture = Image.fromarray(np.array(canvas.buffer_rgba())[..., :3])
        pictures.append(picture.quantize(palette=palette, dither=Image.Dither.NONE))
    pictures[0].save(path, save_all=True, append_images=pictures[1:], duration=round(1000 / rate), loop=0)


def _palette() -> NDArray[np.uint8]:
    """The 256 colours of a movie: those of fields, greys for text, and shades of the colour of lines."""
    from matplotlib import colormaps
    from matplotlib.colors import to_rgb

    paleness = np.linspace(0.0, 1.0, 24)[:, None]
    lines = (1 - paleness) * np.array(to_rgb(COLOURS[0])) + paleness
    greys = np.tile(np.linspace(0.0, 1.0, 32)[:, None], (1, 3))
    fields = colormaps["viridis"](np.linspace(0.0, 1.0, 200))[:, :3]
    return np.rint(255 * np.concatenate([fields, greys, lines])).astype(np.uint8)


def _write_mp4(figure: Figure, shown: Iterable[None], path: Path, rate: float) -> None:
    from matplotlib.animation import FFMpegWriter

    # players want an even number of pixels and this coding of colours
    coding = ["-pix_fmt", "yuv420p", "-vf", "pad=ceil(iw/2)*2:ceil(ih/2)*2"]
    writer = FFMpegWriter(fps=rate, extra_args=coding)  # type: ignore[arg-type]
    with writer.saving(figure, str(path), dpi=100):
        for _ in shown:
            writer.grab_frame()


@contextmanager
def _ffmpeg_failure(path: Path) -> Iterator[None]:
    """Turns a failure of ffmpeg into an error of one line."""
    try:
        yield
    except Exception as error:
        code = getattr(error, "returncode", None)  # of subprocess.CalledProcessError
        if code is None:
            raise
        raise OutputError(f"{path}: ffmpeg failed with exit code {code}; try a .gif") from None


def _stage(frames: Frames, title: str) -> tuple[Figure, Callable[[int], None]]:
    """A figure with the first frame, and a function that turns it into another one."""
    count, drawn = len(frames.channels), []
    figure = new_figure(5.6 if frames.axes == 1 else 4.0 * count + 0.4, 2.6 * count + 0.7 if frames.axes == 1 else 4.0)
    shape = (count, 1) if frames.axes == 1 else (1, count)
    for place, axes in enumerate(figure.subplots(*shape, squeeze=False).ravel()):
        low, high = frames.range_of(place)
        name, u = frames.channels[place], frames.states[0, place]
        draw_field(axes, u, frames.lengths, name, vmin=low, vmax=high, cmap="viridis")
        if frames.axes == 1:
            margin = 0.04 * (high - low)
            axes.set(ylim=(low - margin, high + margin), title="", ylabel=name)
            axes.grid(True, alpha=0.2)
        drawn.append(axes.lines[0] if frames.axes == 1 else axes.images[0])
    heading = figure.suptitle("", fontsize=10)
    heading.set_fontfamily("monospace")  # digits of one width: the heading stays where it is

    def draw(index: int) -> None:
        heading.set_text(f"{title}, t = {frames.times[index]:.4f}")
        for place, artist in enumerate(drawn):
            u = frames.states[index, place]
            if frames.axes == 1:
                artist.set_ydata(u)
            else:
                artist.set_data(slice_of(u).T)

    draw(0)
    figure.draw_without_rendering()
    figure.set_layout_engine("none")  # the layout is that of the first frame, so nothing jumps
    return figure, draw
