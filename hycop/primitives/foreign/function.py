"""Python callables."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from threading import Event

import numpy as np

from hycop.errors import ForeignError, InvalidInputError
from hycop.grid import Array
from hycop.primitives.foreign.contract import Foreign, checked_limit
from hycop.primitives.foreign.isolated import call_isolated, close_isolated
from hycop.primitives.foreign.process import Limits, checked_memory
from hycop.query import Setting


@dataclass(frozen=True, kw_only=True)
class ForeignFunction(Foreign):
    """Any Python callable ``function(u, duration, setting) → u`` as a primitive.

    It gets one sample, u (1, channel, *grid) of float64 with duration (1,), or all of them at once if ``batched``,
    which is faster if it is vectorised. It runs in this process. With a ``timeout`` (seconds for one sample) it runs in
    processes of its own instead, in parallel over samples: a hang or a crash is then an error, and ``memory`` (bytes)
    limits it. It must then be importable: no lambda, no local function.

    >>> import numpy as np, hycop
    >>> decay = ForeignFunction(function=lambda u, duration, setting: u * np.exp(-duration), advances={"decay"})
    >>> setting = hycop.Setting(hycop.Grid.box((3,)), ("u",), {})
    >>> decay.flow(np.ones((1, 1, 3)), np.array([0.0]), setting).tolist()
    [[[1.0, 1.0, 1.0]]]
    """

    function: Callable[[Array, Array, Setting], object]
    batched: bool = False
    timeout: float | None = None
    memory: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if not callable(self.function):
            raise InvalidInputError(f"function is {self.function!r:.60}: give a callable f(u, duration, setting)")
        checked_limit("timeout", self.timeout)
        checked_limit("memory", self.memory)
        checked_memory(self.memory)
        if self.timeout is None and self.memory is not None:
            raise InvalidInputError("memory: only a process of its own can be limited; give timeout too")
        if self.timeout is not None and self.batched:
            raise InvalidInputError("batched: with a timeout the function runs sample by sample; give one of them")

    @property
    def label(self) -> str:
        return f"function {getattr(self.function, '__name__', type(self.function).__name__)}"

    @property
    def threads(self) -> int:
        return 1 if self.timeout is None else super().threads

    def advance(self, u: Array, duration: float, setting: Setting, stop: Event) -> object:
        if self.timeout is None:
            return self.call(u, duration, setting)
        return call_isolated(self, u, duration, setting, Limits(self.timeout, self.memory), stop)

    def warm_up(self) -> None:
        """Nothing is left to do once the function is imported."""

    def call(self, u: Array, duration: float, setting: Setting) -> object:
        return self.function(u, np.array([duration]), setting)

    def advance_samples(self, out: Array, samples: list[int], tau: Array, setting: Setting) -> None:
        if not self.batched:
            return super().advance_samples(out, samples, tau, setting)
        rows = np.array(samples)
        given = np.array(out[rows], dtype=np.float64)
        try:
            done = np.asarray(self.function(given, tau[rows], setting.take(rows)))
            right = done.shape == given.shape and done.dtype.kind in "fiu"
        except (Exception, SystemExit):
            right = False
        if right:
            out[rows] = done
            return None
        # one by one they tell which sample is at fault
        super().advance_samples(out, samples, tau, setting)
        raise ForeignError(samples[0], f": {self.label} fails on {len(samples)} samples at once, but not one by one")

    def close(self) -> None:
        """Ends the processes of a function with a timeout; the next call starts new ones."""
        close_isolated(self)
