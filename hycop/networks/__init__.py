"""Networks for learned primitives: a registered family of architectures, and the one loop that trains them.

Architectures are data and need no torch; the modules behind them, and the loop, are imported when they are used.
"""

from __future__ import annotations

from hycop.networks.architecture import FAMILIES, Architecture, Bounds, Family, MissingTorchError, find_family, imported

__all__ = ["FAMILIES", "Architecture", "Bounds", "Family", "MissingTorchError", "find_family", "imported"]
