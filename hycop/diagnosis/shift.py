"""How far the queries are from those of training, and what that explains.

    |E_file[ℓ] − E_training[ℓ]| ≤ L · W_1(file, training)   (Kantorovich–Rubinstein)

with ℓ the error of a query, L its Lipschitz constant and W_1 the Wasserstein distance, both over features in units of
their trained ranges.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass

import numpy as np
from scipy.spatial.distance import cdist

from hycop.diagnosis.case import Case
from hycop.grid import Array
from hycop.model import Answered


@dataclass(frozen=True)
class Shift:
    """Distance of the queries from those of training, and mean errors on both.

    ``features`` is W_1 of each feature in units of its trained range, ``distance`` that of all together, ``lipschitz``
    the largest |ℓ − ℓ'| / d over pairs of queries, ``bound`` their product. ``trained``, ``held_out`` and ``file`` are
    mean errors.
    """

    features: Mapping[str, float]
    distance: float
    lipschitz: float
    trained: float
    held_out: float | None
    file: float

    @property
    def bound(self) -> float:
        return self.lipschitz * self.distance

    @property
    def gap(self) -> float:
        """E_file[ℓ] − E_training[ℓ], which the bound is for."""
        return self.file - self.trained

    @property
    def gaps(self) -> dict[str, float]:
        """From training to held-out queries (generalisation), and from those to the file (shift)."""
        if self.held_out is None:
            return {"shift": self.gap}
        return {"generalisation": self.held_out - self.trained, "shift": self.file - self.held_out}

    def to_json(self) -> dict[str, object]:
        return {**asdict(self), "bound": self.bound, "gap": self.gap}


def shift(case: Case, errors: Array) -> Shift | None:
    """The shift of a case whose answers have these errors (batch,); None if the model keeps no training queries, or
    none with finite features and errors."""
    from scipy.stats import wasserstein_distance, wasserstein_distance_nd  # takes a second to import

    names, kept = case.model.scope.view.features.names, case.model.trained
    if kept is None or not names:
        return None
    here, there = _finite(Answered(case.features, errors)), _finite(kept)
    if not (len(here.errors) and len(there.errors)):
        return None
    ranges = case.model.scope.view.ranges
    width = np.asarray(ranges.high) - np.asarray(ranges.low)
    scale = np.where(width > 0, width, 1.0)
    ours, theirs = here.features / scale, there.features / scale
    return Shift(
        {name: float(wasserstein_distance(ours[:, i], theirs[:, i])) for i, name in enumerate(names)},
        float(wasserstein_distance_nd(ours, theirs)),
        _steepest(np.concatenate([ours, theirs]), np.concatenate([here.errors, there.errors])),
        float(there.errors.mean()),
        None if case.model.held_out is None else float(_finite(case.model.held_out).errors.mean()),
        float(here.errors.mean()),
    )


def _finite(answered: Answered) -> Answered:
    good = np.isfinite(answered.features).all(axis=1) & np.isfinite(answered.errors)
    return Answered(answered.features[good], answered.errors[good])


def _steepest(points: Array, values: Array) -> float:
    """Largest |ℓ_i − ℓ_j| / d_ij over pairs of points; infinite if the features do not tell two errors apart."""
    apart = cdist(points, points)
    rise = np.abs(values[:, None] - values[None, :])
    with np.errstate(divide="ignore"):
        return float(np.divide(rise, apart, out=np.zeros_like(rise), where=rise > 0).max())
