"""A model folder: ``model.json`` and the files it lists. It holds no code: primitives are named, not pickled, and
everything is checked before use."""

from __future__ import annotations

from hycop.storage.document import ModelError, sealed
from hycop.storage.folder import load_model, save_model
from hycop.storage.network import load_primitive

__all__ = ["ModelError", "load_model", "load_primitive", "save_model", "sealed"]
