"""Pictures and movies of what predict answers, for one sample."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from hycop.cli.common import check_counts, check_file, refuse_options
from hycop.cli.terminal import tell
from hycop.data import Dataset
from hycop.errors import InvalidInputError, OutputError
from hycop.files import checked_output, replacing
from hycop.plot import frames_of
from hycop.plots import check_movie, frames_figure, write_movie
from hycop.progress import counting

SUFFIXES = (".png", ".pdf", ".svg")

PlotOption = Annotated[
    Path | None, typer.Option(help="Picture of one sample at the times asked for, .png, .pdf or .svg.")
]
MovieOption = Annotated[
    Path | None, typer.Option(help="Movie of one sample: .gif, or .mp4 if the program ffmpeg is there.")
]
SampleOption = Annotated[
    int | None, typer.Option(help="Sample of --plot and --movie, counted from 0; the first by default.")
]
MovieFramesOption = Annotated[
    int | None,
    typer.Option(help="Frames of --movie, evenly spaced up to the last time; the times asked for by default."),
]

Answering = Callable[[Dataset, list[float]], Dataset]
"""(data, times after the initial states) → answers."""


@dataclass(frozen=True)
class Pictures:
    """What is drawn of which sample."""

    plot: Path | None = None
    movie: Path | None = None
    sample: int | None = None
    frames: int | None = None

    def check(self, source: Path, target: Path, overwrite: bool) -> None:
        """Refuses what cannot be written, before anything is computed."""
        if self.movie is None:
            refuse_options("without --movie", **{"movie-frames": self.frames})
        if self.plot is None and self.movie is None:
            refuse_options("without --plot or --movie", sample=self.sample)
        if self.sample is not None and self.sample < 0:
            raise InvalidInputError(f"--sample is {self.sample}: it must not be negative")
        check_counts(**{"--movie-frames": self.frames})
        if self.plot is not None and self.plot.suffix.lower() not in SUFFIXES:
            raise OutputError(f"--plot {self.plot}: the suffix must be {', '.join(SUFFIXES[:-1])} or {SUFFIXES[-1]}")
        if self.movie is not None:
            check_movie(self.movie)
        taken = {os.path.realpath(path) for path in (source, target)}
        for path in (self.plot, self.movie):
            if path is not None:
                check_file(checked_output(path), overwrite)
                if os.path.realpath(path) in taken:
                    raise InvalidInputError(f"{path}: is also another file of this command; choose another name")

    def check_sample(self, samples: int) -> None:
        if self.sample is not None and self.sample >= samples:
            raise InvalidInputError(f"--sample is {self.sample}: there are {samples} samples, counted from 0")

    def shown(self, first: int, data: Dataset) -> slice | None:
        """The sample that is drawn among those of a block that begins at ``first``, if it is there."""
        place = (self.sample or 0) - first
        wanted = self.plot is not None or self.movie is not None
        return slice(place, place + 1) if wanted and 0 <= place < data.samples else None

    def draw(self, answer: Dataset, data: Dataset, answering: Answering | None = None) -> None:
        """Draws the answers to the one sample that is shown. ``answering`` gives those at the times of
        --movie-frames."""
        flagged = answer.untrusted is not None and bool(answer.untrusted[0].any())
        title = f"{answer.problem}, sample {self.sample or 0}{' (not to be trusted)' if flagged else ''}"
        if self.plot is not None:
            with replacing(self.plot) as temporary:
                frames_figure(frames_of(answer), title).savefig(temporary, dpi=120)
            tell(f"wrote {self.plot}")
        if self.movie is None:
            return
        frames = frames_of(answer)
        if self.frames is not None and answering is not None:
            last = float(answer.times[0, -1] - answer.times[0, 0])
            times = np.linspace(0.0, last, self.frames + 1)[1:].tolist()
            frames = frames_of(answering(data, times))
        with counting(len(frames.times), "movie") as advance:
            write_movie(frames, self.movie, title, advance)
        tell(f"wrote {self.movie}")
