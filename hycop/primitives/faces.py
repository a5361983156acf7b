"""What primitives with a coefficient for each face share: the ends of the axes and the widths of the cells."""

from __future__ import annotations

import numpy as np

from hycop.boundary import sides_of
from hycop.errors import IncompatibleError
from hycop.grid import AXES, Array
from hycop.kernels.sides import SIDE_CODES, Ends
from hycop.query import Setting


def ends_of(setting: Setting) -> Ends:
    """Kinds and values at the ends of all axes, those that are not there first and periodic."""
    codes, values = np.zeros((3, 2), dtype=np.int64), np.zeros((3, 2, len(setting.channels)))
    for axis, boundary in enumerate(setting.grid.boundary, 3 - setting.grid.axes):
        for end, side in enumerate(sides_of(boundary)):
            codes[axis, end] = SIDE_CODES[side.kind]
            values[axis, end] = [side.value(channel) for channel in range(len(setting.channels))]
    return Ends(codes, values)


def widths_of(setting: Setting) -> Array:
    """Widths of the cells, (batch, 3)."""
    return np.pad(setting.grid.spacing, ((0, 0), (3 - setting.grid.axes, 0)), constant_values=1.0)


def refuse_normal(primitive: object, setting: Setting) -> None:
    """Refuses the component of a vector normal to a wall, which has zero value there where a scalar has no flux."""
    for channel in setting.channels:
        if channel.normal is not None and "wall" in setting.grid.boundary[channel.normal]:
            raise IncompatibleError(
                f"{type(primitive).__name__} cannot treat channel '{channel.name}', which is normal to the wall "
                f"along {AXES[channel.normal]}; use it for scalars there"
            )
