"""A model folder: ``model.json`` and the files it lists. It holds no code: primitives are named, not pickled, and
everything is checked before use."""

from __future__ import annotations

from hycop.storage.document import ModelError, sealed
from hycop.storage.folder import load_model, save_model

__all__ = ["ModelError", "load_model", "save_model", "sealed"]
