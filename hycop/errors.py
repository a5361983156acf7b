"""Typed errors whose message is the one line a user sees: the place, what is wrong, and what to do."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


class HyCOPError(Exception):
    """Base of every error that a user can cause and correct; the command line prints it and exits with code 2."""

    def __str__(self) -> str:
        # KeyError, which some of them are too, would print the quoted form
        return " ".join(map(str, self.args))


class HyCOPWarning(UserWarning):
    """Base of every warning to a user: one line that says what was noticed and what was done about it."""


class InvalidInputError(HyCOPError, ValueError):
    """A value is of the wrong shape, range or kind, or is not finite."""


class UnknownNameError(HyCOPError, KeyError):
    """A problem, scheme, primitive or other name that is not registered."""

    def __init__(self, kind: str, name: object, known: Iterable[str], hint: str = "") -> None:
        options = sorted(known)
        folded = {option.lower(): option for option in options}
        nearest = [folded[match] for match in get_close_matches(str(name).lower(), folded, n=3, cutoff=0.5)]
        advice = f"did you mean {' or '.join(nearest)}?" if nearest else f"known: {', '.join(options) or 'none'}"
        super().__init__(f"unknown {kind} '{name}': {advice}{' ' + hint if hint else ''}")


class IncompatibleError(HyCOPError, ValueError):
    """Parts that are valid alone but not together: a boundary, a process or a negative step a primitive cannot take."""


class NonFiniteStateError(HyCOPError, ArithmeticError):
    """The state became NaN or infinite; says at which step, primitive and sample."""


class SampleError(HyCOPError):
    """Something is wrong with one sample; ``sample`` is its index in the batch."""

    def __init__(self, sample: int, what: str, place: str = "") -> None:
        super().__init__(sample, what, place)

    @property
    def sample(self) -> int:
        return int(self.args[0])

    @property
    def place(self) -> str:
        """The file that the sample comes from, if there is one."""
        return str(self.args[2])

    def __str__(self) -> str:
        return f"{self.place}sample {self.sample}{self.args[1]}"

    def at(self, sample: int, place: str = "") -> SampleError:
        """The same error with the sample's index in a larger batch, or in a file."""
        return type(self)(sample, self.args[1], place)


class InvalidSampleError(SampleError, InvalidInputError):
    """A query that cannot be answered."""


class LostSampleError(SampleError, NonFiniteStateError):
    """A sample whose state became NaN or infinite."""


class ForeignError(SampleError):
    """Foreign code failed on one sample: it hung, crashed, was killed, or gave something that is not a state.

    ``slot`` is the place of the step in the program, once ``run`` knows it.
    """

    def __init__(self, sample: int, what: str, place: str = "", slot: int | None = None) -> None:
        super().__init__(sample, what, place)
        self.slot = slot

    def at(self, sample: int, place: str = "") -> ForeignError:
        return type(self)(sample, self.args[1], place, self.slot)


class LostForeignSampleError(ForeignError, LostSampleError):
    """A sample whose state became NaN or infinite in foreign code."""


class DatasetError(HyCOPError, OSError):
    """A dataset file is missing, damaged, or not what was asked for."""


class OutputError(HyCOPError, OSError):
    """A result cannot be written."""


class Stopped(HyCOPError):
    """The run was asked to stop; if it has a folder, its last step is kept there and it can be resumed."""
