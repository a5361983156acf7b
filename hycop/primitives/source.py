"""A source that is given: what it adds depends on the place, not on the state."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from hycop.boundary import EVERY
from hycop.errors import IncompatibleError
from hycop.grid import Array
from hycop.primitive import EXACT, checked_duration, update_work
from hycop.primitives.examples import scalar_example, varied
from hycop.query import Setting


@dataclass(frozen=True)
class GivenSource:
    """A given source, u_t = s(x), of one ``channel``: exact, also backwards.

    ``parameter`` is the coefficient that holds s, a number or a field; what it adds is cell averages, as is the state.
    """

    channel: str = "u"
    parameter: str = "s"

    advances: ClassVar[frozenset[str]] = frozenset({"source"})
    order: ClassVar[float] = EXACT
    boundaries: ClassVar[frozenset[str]] = EVERY
    reversible: ClassVar[bool] = True

    def rate(self, u: Array, setting: Setting) -> Array:
        names = [channel.name for channel in setting.channels]
        if self.channel not in names:
            raise IncompatibleError(f"GivenSource: there is no channel '{self.channel}' (there are {', '.join(names)})")
        out = np.zeros_like(u)
        out[:, names.index(self.channel)] = setting.field(self.parameter)
        return out

    def flow(self, u: Array, duration: Array, setting: Setting) -> Array:
        tau = checked_duration(duration, setting, self.reversible).reshape((-1,) + (1,) * (u.ndim - 1))
        return (u + tau * self.rate(u, setting)).astype(u.dtype, copy=False)

    def work(self, u: Array, duration: Array, setting: Setting) -> Array:
        return update_work(setting, 1.0 / len(setting.channels))

    def example(self, seed: int) -> tuple[Array, Setting]:
        u, setting = scalar_example(seed, (), {self.parameter: 1.5})
        return varied(u, Setting(setting.grid, (self.channel,), setting.params))  # type: ignore[arg-type]
