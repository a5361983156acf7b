"""Features of coefficients that vary in space."""

from __future__ import annotations

import numpy as np

from hycop.errors import InvalidInputError
from hycop.features.observed import TINY, Observed
from hycop.grid import Array


def _sizes(seen: Observed) -> list[Array]:
    """Sizes of the fields, (batch, cell) each."""
    if not seen.fields:
        raise InvalidInputError("no coefficient of the query varies in space")
    return [np.abs(values).reshape(seen.batch, -1) for values in seen.fields.values()]


def field_variation(seen: Observed) -> Array:
    """log₁₀ (1 + coefficient of variation), of the field that varies most."""
    found = [sizes.std(axis=1) / np.maximum(sizes.mean(axis=1), TINY) for sizes in _sizes(seen)]
    return np.log10(1.0 + np.max(found, axis=0))


def field_contrast(seen: Observed) -> Array:
    """log₁₀ of the largest size over the smallest, at most 10⁴, of the field with the most contrast."""
    largest = [sizes.max(axis=1) for sizes in _sizes(seen)]
    found = [
        np.maximum(high, TINY) / np.maximum(np.maximum(sizes.min(axis=1), 1e-4 * high), TINY)
        for high, sizes in zip(largest, _sizes(seen), strict=True)
    ]
    return np.log10(np.max(found, axis=0))
