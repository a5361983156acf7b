"""How commands read data: our files, PDEBench's and The Well's, whole or block by block."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from math import inf, isnan, prod
from pathlib import Path

from hycop.cli.common import boundary_of, pairs_of, shape_of, whole_numbers
from hycop.data import Dataset, PDEBenchFile, WellFile, load
from hycop.data.blocks import block_size, blocks
from hycop.data.netcdf import size_of
from hycop.data.pdebench import PDEBENCH
from hycop.data.the_well import is_well
from hycop.errors import HyCOPError, InvalidInputError, SampleError
from hycop.files import naming
from hycop.problems import PROBLEMS, Problem


@dataclass(frozen=True)
class Stored:
    """The samples of a file, read when they are needed, and the bytes of one."""

    path: Path
    samples: int
    bytes_per_sample: int
    read: Callable[[slice], Dataset]

    def blocks(self, bytes_per_sample: int | None = None) -> Iterator[tuple[int, Dataset]]:
        """Samples block by block, with the number of the first: as many as fit ``BLOCK_BYTES``, if each needs
        ``bytes_per_sample``."""
        size = block_size(bytes_per_sample or self.bytes_per_sample)
        for some in blocks(self.samples, size):
            with counted_from(some.start):
                data = self.read(some)
            yield some.start, data


@contextmanager
def counted_from(first: int) -> Iterator[None]:
    """Errors about a sample of a block count it from the first sample of the file."""
    try:
        yield
    except SampleError as error:
        raise error.at(first + error.sample, error.place) from None
    except HyCOPError as error:
        if first:
            error.args = (f"{error} (samples counted from {first})",)
        raise


@dataclass(frozen=True)
class Reading:
    """Which part of a file to read, and what files of PDEBench and The Well leave open; our own are complete."""

    samples: int | None = None
    frames: str | None = None
    shape: str | None = None
    params: tuple[str, ...] = ()
    boundary: str | None = None

    def load(self, path: Path, problem: str | None, *, later: bool = True, also: Collection[str] = ()) -> Dataset:
        """The data of a file, checked against the problem if it is a known one. With ``later`` the file must have
        states after the initial ones. Data of the problems named in ``also`` are accepted too."""
        return self.open(path, problem, later=later, also=also).read(slice(None))

    def open(self, path: Path, problem: str | None, *, later: bool = True, also: Collection[str] = ()) -> Stored:
        """The same, with the samples still in the file."""
        if self.samples is not None and self.samples < 1:
            raise InvalidInputError(f"--samples is {self.samples}: give at least 1")
        foreign = path.suffix.lower() in PDEBENCH
        stored = self._foreign(path, problem) if foreign else self._own(path, problem, also)
        known = PROBLEMS.get(problem or "")

        def read(some: slice) -> Dataset:
            data = stored.read(slice(*some.indices(stored.samples)))
            with naming(path):
                data = data if known is None else known.checked(data)
                if later:
                    data.check_later()
            return data

        return Stored(path, stored.samples, stored.bytes_per_sample, read)

    def _own(self, path: Path, problem: str | None, also: Collection[str]) -> Stored:
        for name, given in (("--frames", self.frames), ("--param", self.params)):
            if given:
                raise InvalidInputError(
                    f"{name} is for files of PDEBench and The Well ({', '.join(PDEBENCH)}), not for {path}"
                )
        samples, size = size_of(path)
        samples = min(samples, self.samples or samples)
        if path.suffix.lower() == ".npz":  # which is read whole
            whole = load(path, problem, also)
            return Stored(path, samples, size, whole.take)
        return Stored(path, samples, size, lambda some: load(path, problem, also, some))

    def _foreign(self, path: Path, problem: str | None) -> Stored:
        named = {name: _number(name, value) for name, value in pairs_of([*self.params], "--param", "nu=0.1").items()}
        chosen = PROBLEMS.get(problem or "")
        walls = boundary_of(self.boundary)
        file: PDEBenchFile | WellFile
        if is_well(path):
            file = _well(path, named, walls, chosen, problem)
        else:
            file = PDEBenchFile(path, params=named, boundary=walls or "periodic", problem=problem or "unknown")
            if chosen is not None and file.is_gas and "gamma" not in chosen.parameters:
                raise InvalidInputError(
                    f"{path}: compressible flow, but {chosen.name} is none; take ns2d or ns2d-pdebench"
                )
        frames = None if self.frames is None else list(whole_numbers(self.frames, ",", "--frames", "0,1"))
        known = tuple(file.params) if chosen is None else chosen.parameters
        # other numbers in a file are not coefficients, but what the user gives is
        file.params = {name: value for name, value in file.params.items() if name in known or name in named}
        count = file.times.shape[-1] if frames is None else len(frames)
        size = 8 * count * len(file.channels) * prod(file.shape)
        samples = min(file.samples, self.samples or file.samples)
        return Stored(path, samples, size, lambda some: file.read(some, frames, shape_of(self.shape)))


def _well(
    path: Path,
    params: dict[str, float],
    boundary: str | tuple[str, ...] | None,
    chosen: Problem | None,
    problem: str | None,
) -> WellFile:
    """A file of The Well; of a known problem only its channels, if the file has them all."""
    file = WellFile(path, params=params, boundary=boundary, problem=problem)
    wanted = () if chosen is None else [channel.name for channel in chosen.channels]
    if wanted and set(wanted) < {channel.name for channel in file.channels}:
        file = WellFile(path, params=params, boundary=boundary, problem=problem, only=wanted)
    return file


def _number(name: str, value: object) -> float:
    try:
        number = inf if isinstance(value, bool) else float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        number = inf
    if isnan(number) or abs(number) == inf:
        raise InvalidInputError(f"--param {name}={value}: give a finite number")
    return number
