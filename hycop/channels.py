"""The channels of the systems of equations that come with HyCOP."""

from __future__ import annotations

from functools import cache

from hycop.grid import AXES
from hycop.query import Channel


@cache
def gas_channels(axes: int) -> tuple[Channel, ...]:
    """Compressible flow: density, momentum per axis and energy E = p/(γ − 1) + ½ρ|v|², in the order of the state."""
    momenta = (Channel(f"momentum_{AXES[axis]}", normal=axis) for axis in range(axes))
    return (Channel("density"), *momenta, Channel("energy"))


@cache
def water_channels(axes: int) -> tuple[Channel, ...]:
    """Shallow water on one or two axes: depth h and the momenta hu, hv, in the order of the state."""
    return (Channel("h"), *(Channel(name, normal=axis) for axis, name in enumerate(("hu", "hv")[:axes])))
