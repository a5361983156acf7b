"""Features of coefficients that vary in space."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from hycop.features.observed import TINY, Observed
from hycop.grid import Array

FLATTEST = 1e-4
"""Smallest size of a field, over its largest, that counts."""


def _sizes(seen: Observed) -> list[Array]:
    """Sizes of the fields, (batch, cell) each; a query without fields is like one with a constant."""
    return [_size(seen, name) for name in seen.fields] or [np.ones((seen.batch, 1))]


def _size(seen: Observed, name: str) -> Array:
    """Sizes of a coefficient, (batch, cell), or (batch, 1) if it is constant."""
    return np.abs(seen.fields.get(name, seen.param(name))).reshape(seen.batch, -1)


def _variation(sizes: Array) -> Array:
    return sizes.std(axis=1) / np.maximum(sizes.mean(axis=1), TINY)


def field_variation(seen: Observed) -> Array:
    """log₁₀ (1 + coefficient of variation), of the field that varies most."""
    return np.log10(1.0 + np.max([_variation(sizes) for sizes in _sizes(seen)], axis=0))


def field_contrast(seen: Observed) -> Array:
    """log₁₀ of the largest size over the smallest, at most 10⁴, of the field with the most contrast."""
    found = [
        np.maximum(high, TINY) / np.maximum(np.maximum(sizes.min(axis=1), FLATTEST * high), TINY)
        for sizes in _sizes(seen)
        for high in [sizes.max(axis=1)]
    ]
    return np.log10(np.max(found, axis=0))


def mean_of(name: str, seen: Observed) -> Array:
    """log₁₀ of the mean size of a coefficient, which has its unit."""
    return np.log10(np.maximum(_size(seen, name).mean(axis=1), TINY))


def high_of(name: str, seen: Observed) -> Array:
    """log₁₀ of the largest size of a coefficient over its mean size."""
    sizes = _size(seen, name)
    return np.log10(np.maximum(sizes.max(axis=1), TINY) / np.maximum(sizes.mean(axis=1), TINY))


def low_of(name: str, seen: Observed) -> Array:
    """log₁₀ of the smallest size of a coefficient over its mean size, at least that of 10⁻⁴ of the largest."""
    sizes = _size(seen, name)
    smallest = np.maximum(sizes.min(axis=1), FLATTEST * sizes.max(axis=1))
    return np.log10(np.maximum(smallest, TINY) / np.maximum(sizes.mean(axis=1), TINY))


def variation_of(name: str, seen: Observed) -> Array:
    """log₁₀ (1 + coefficient of variation) of a coefficient."""
    return np.log10(1.0 + _variation(_size(seen, name)))


OF_ONE: Mapping[str, Callable[[str, Observed], Array]] = {
    "field_mean": mean_of,
    "field_high": high_of,
    "field_low": low_of,
    "field_variation": variation_of,
}
"""Features of one coefficient, chosen as ``field_high:D``."""
