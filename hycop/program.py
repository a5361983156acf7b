"""Programs as data: which primitive, for how long, in what order."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from hycop import markup
from hycop.errors import InvalidInputError, UnknownNameError
from hycop.grid import Array, all_finite, changed

EMPTY = -1
"""Operator of a slot that holds no step, in programs shorter than the longest of their batch."""


@dataclass(frozen=True)
class Step:
    """One primitive for one duration."""

    primitive: str
    duration: float

    def __post_init__(self) -> None:
        try:
            finite = bool(np.isfinite(self.duration))
        except TypeError:
            finite = False
        if not finite:
            raise InvalidInputError(f"step '{self.primitive}': duration is {self.duration!r}, it must be finite")

    def __str__(self) -> str:
        return f"{self.primitive} {self.duration:.4g}"


@dataclass(frozen=True)
class Program:
    """The steps that take u(0) to u(T), first step first.

    >>> program = Program.of(("advection", 0.1), ("reaction", 0.2), ("advection", 0.1))
    >>> print(program)
    advection 0.1 → reaction 0.2 → advection 0.1
    >>> Program.from_json(program.to_json()) == program
    True
    """

    steps: tuple[Step, ...]

    @classmethod
    def of(cls, *steps: tuple[str, float]) -> Program:
        return cls(tuple(Step(name, float(duration)) for name, duration in steps))

    def __str__(self) -> str:
        return " → ".join(str(step) for step in self.steps) or "(no steps)"

    def _repr_html_(self) -> str:
        """A timeline, for notebooks."""
        steps = [(step.primitive, step.duration) for step in self.steps]
        return markup.page(f"Program, {len(steps)} step{'s' if len(steps) != 1 else ''}", markup.timelines({"": steps}))

    def __len__(self) -> int:
        return len(self.steps)

    def __iter__(self) -> Iterator[Step]:
        return iter(self.steps)

    def to_json(self) -> list[dict[str, str | float]]:
        return [{"primitive": step.primitive, "duration": step.duration} for step in self.steps]

    @classmethod
    def parse(cls, text: str) -> Program:
        """Reads a program as it prints; ``->``, ``,`` and ``;`` also stand between steps.

        >>> Program.parse("advection 0.1 -> reaction 0.2").steps[1].duration
        0.2
        """
        steps = []
        for part in re.split(r"→|->|,|;", text):
            *name, duration = part.split() or [""]  # names may have blanks, but do not end with a number
            if not name or not _is_number(duration) or _is_number(name[-1]):
                raise InvalidInputError(
                    f"program step '{part.strip()}': a primitive and a duration are needed, as 'advection 0.1'"
                )
            steps.append((" ".join(name), float(duration)))
        return cls.of(*steps)

    @classmethod
    def from_json(cls, steps: Sequence[dict[str, str | float]]) -> Program:
        try:
            return cls.of(*((str(step["primitive"]), float(step["duration"])) for step in steps))
        except (KeyError, TypeError, ValueError) as error:
            raise InvalidInputError(
                f"program: a list of {{'primitive': name, 'duration': number}} is needed ({error})"
            ) from None


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


@dataclass(frozen=True, eq=False)
class ProgramBatch:
    """One program per sample as arrays: ``ops[sample, k]`` indexes ``names`` (or is EMPTY), with its duration."""

    names: tuple[str, ...]
    ops: Array
    durations: Array

    def __post_init__(self) -> None:
        ops = np.asarray(self.ops)
        if ops.size and ops.dtype.kind not in "iu":
            raise InvalidInputError(f"programs: ops have dtype {ops.dtype}, whole numbers are needed")
        ops = ops.astype(np.int64, copy=False)
        durations = np.asarray(self.durations, dtype=np.float64)
        if ops.ndim != 2 or ops.shape != durations.shape:
            raise InvalidInputError(
                f"programs: ops {ops.shape} and durations {durations.shape} must both be (batch, steps)"
            )
        least, most = (int(ops.min()), int(ops.max())) if ops.size else (0, -1)
        if least < EMPTY or most >= len(self.names):
            raise InvalidInputError(f"programs: ops must index the {len(self.names)} names, or be {EMPTY} for no step")
        if not all_finite(durations):
            sample, step = np.argwhere(~np.isfinite(durations))[0]
            raise InvalidInputError(
                f"programs: duration is {durations[sample, step]} at step {step + 1} of sample {sample}"
            )
        object.__setattr__(self, "names", tuple(self.names))
        object.__setattr__(self, "ops", ops)
        object.__setattr__(self, "durations", np.where(ops == EMPTY, 0.0, durations) if least == EMPTY else durations)

    @classmethod
    def of(cls, programs: Sequence[Program], names: Sequence[str]) -> ProgramBatch:
        """Programs of any lengths, padded to the longest."""
        index = {name: op for op, name in enumerate(names)}
        longest = max((len(program) for program in programs), default=0)
        ops = np.full((len(programs), longest), EMPTY)
        durations = np.zeros((len(programs), longest))
        for sample, program in enumerate(programs):
            for k, step in enumerate(program):
                if step.primitive not in index:
                    raise UnknownNameError("primitive", step.primitive, names)
                ops[sample, k] = index[step.primitive]
                durations[sample, k] = step.duration
        return cls(tuple(names), ops, durations)

    def __len__(self) -> int:
        return int(self.ops.shape[0])

    def __getitem__(self, sample: int) -> Program:
        steps = zip(self.ops[sample], self.durations[sample], strict=True)
        return Program(tuple(Step(self.names[op], float(tau)) for op, tau in steps if op != EMPTY))

    def __iter__(self) -> Iterator[Program]:
        return (self[sample] for sample in range(len(self)))

    def step_text(self, sample: int, slot: int) -> str:
        """A step of a program by its place among all that are not empty: step 2 of 3 (advection 0.1)."""
        program, step = self[sample], int((self.ops[sample, : slot + 1] != EMPTY).sum())
        return f"step {step} of {len(program)} ({program.steps[step - 1]})"

    def take(self, samples: Array | slice) -> ProgramBatch:
        return changed(self, ops=self.ops[samples], durations=self.durations[samples])

    def with_substeps(self, substeps: int) -> ProgramBatch:
        """program^m: each step m times as often and 1/m as long."""
        if substeps < 1:
            raise InvalidInputError(f"a program cannot be cut into {substeps} substeps")
        if substeps == 1:
            return self
        return ProgramBatch(self.names, np.tile(self.ops, substeps), np.tile(self.durations / substeps, substeps))

    def with_graded_substeps(self, substeps: int, power: float) -> ProgramBatch:
        """As ``with_substeps``, but the first j of the m parts last for (j/m)^power of the time: short ones first."""
        if substeps < 1:
            raise InvalidInputError(f"a program cannot be cut into {substeps} substeps")
        shares = np.diff((np.arange(substeps + 1) / substeps) ** power)
        durations = np.concatenate([share * self.durations for share in shares], axis=1)
        return ProgramBatch(self.names, np.tile(self.ops, substeps), durations)

    def lengths(self) -> Array:
        """Number of steps per sample."""
        out: Array = (self.ops != EMPTY).sum(axis=1)
        return out

    def time_per_primitive(self) -> Array:
        """Total duration given to each name, (batch, names)."""
        return np.stack([np.where(self.ops == op, self.durations, 0.0).sum(axis=1) for op in range(len(self.names))], 1)


def chosen(first: Array, a: ProgramBatch, b: ProgramBatch) -> ProgramBatch:
    """The programs of ``a`` where ``first`` is true, else those of ``b``."""
    names, longest = shared_names(a, b), max(a.ops.shape[1], b.ops.shape[1])

    def padded(batch: ProgramBatch) -> tuple[Array, Array]:
        extra = ((0, 0), (0, longest - batch.ops.shape[1]))
        return np.pad(batch.ops, extra, constant_values=EMPTY), np.pad(batch.durations, extra)

    (ops_a, tau_a), (ops_b, tau_b) = padded(a), padded(b)
    return ProgramBatch(names, np.where(first[:, None], ops_a, ops_b), np.where(first[:, None], tau_a, tau_b))


def shared_names(a: ProgramBatch, b: ProgramBatch) -> tuple[str, ...]:
    """The names of both: those of a dictionary, after which one of them may have that of an unsplit solver."""
    shorter, longer = sorted((a.names, b.names), key=len)
    if longer[: len(shorter)] != shorter:
        raise InvalidInputError(f"programs of {', '.join(shorter)} and of {', '.join(longer)} do not go together")
    return longer


def merged(parts: Sequence[tuple[Array, ProgramBatch]]) -> ProgramBatch:
    """Programs of parts of a batch, given by their rows, as one batch with the names of all of them."""
    if len(parts) == 1:
        return parts[0][1]
    names = tuple(dict.fromkeys(name for _, programs in parts for name in programs.names))
    shape = (sum(rows.size for rows, _ in parts), max(programs.ops.shape[1] for _, programs in parts))
    ops, durations = np.full(shape, EMPTY), np.zeros(shape)
    for rows, programs in parts:
        index = np.array([*(names.index(name) for name in programs.names), EMPTY])  # EMPTY, −1, stays itself
        steps = slice(0, programs.ops.shape[1])
        ops[rows, steps], durations[rows, steps] = index[programs.ops], programs.durations
    return ProgramBatch(names, ops, durations)


def repeated(once: ProgramBatch, times: Array) -> ProgramBatch:
    """Each program repeated so many ``times`` (batch,), durations unchanged."""
    longest = int(times.max(initial=1))
    if longest == 1 and (times == 1).all():
        return once
    ops, durations = np.tile(once.ops, longest), np.tile(once.durations, longest)
    segment = np.repeat(np.arange(longest), once.ops.shape[1])
    return ProgramBatch(once.names, np.where(segment < times[:, None], ops, EMPTY), durations)


def followed(first: ProgramBatch, then: ProgramBatch) -> ProgramBatch:
    """The programs of one batch, each followed by that of the other."""
    ops, durations = np.hstack([first.ops, then.ops]), np.hstack([first.durations, then.durations])
    return ProgramBatch(shared_names(first, then), ops, durations)
