"""The error of the trusted part and of the data: what is smaller is not blamed on the model."""

from __future__ import annotations

from dataclasses import asdict, dataclass

import numpy as np

from hycop.diagnosis.case import Case
from hycop.diagnosis.trusted import Trusted
from hycop.execution import refined_query
from hycop.grid import Array, Grid, changed, restrict
from hycop.metrics import rel_l2

MARGIN = 2.0
"""A term is blamed if it is this many times larger than its floor: floors are estimates."""

HALVED, COARSENED = 4, 16
"""Queries for the error of the trusted flows, and for that of the reconstruction of initial states."""

FEWEST_CELLS = 5
"""Cells along an axis that a reconstruction needs."""

ROUNDING = 1e-12
"""A splitting error below this is rounding."""

SLOWEST, FASTEST = 1.5, 32.0
"""Bounds on the factor by which the reconstruction error falls with the cell width: that of a jump, that of a smooth
state (fifth order)."""


@dataclass(frozen=True)
class Floor:
    """Mean relative errors that the trusted part and the data bring with them.

    - ``reference``: of the truth, as the file states it (0 if it does not), and its rounding
    - ``noise``: of the truth, from differences between neighbouring cells that no solution has
    - ``reconstruction``: from the initial cell averages to the fine grid; what the averages do not tell
    - ``limit``, ``programs``, ``difference``: change of Ψ∞, of Ψ and of Ψ∞ − Ψ when cells and steps of the trusted
      flows are halved
    """

    reference: float = 0.0
    noise: float = 0.0
    reconstruction: float = 0.0
    limit: float = 0.0
    programs: float = 0.0
    difference: float = 0.0

    @property
    def data(self) -> float:
        """What a file of cell averages can tell: an error at this level is that of the data."""
        return self.reference + self.noise + self.reconstruction

    def of(self, term: str) -> float:
        """The error below which a term is not blamed."""
        return {
            "mismatch": self.data + self.limit,
            "splitting": self.difference + ROUNDING,
            "primitive": self.reconstruction + self.programs,
        }[term]

    def exceeded(self, term: str, size: float) -> bool:
        return size > MARGIN * self.of(term)

    def to_json(self) -> dict[str, float]:
        return asdict(self)


def floor_of(case: Case, trusted: Trusted | None, separable: bool, noisy: Array) -> Floor:
    """The floor of a case; ``noisy`` is the field in which noise of the data shows. Without a trusted part it knows of
    the data only."""
    known = {
        "reference": (case.source.reference_error or 0.0) + case.rounding,
        "noise": float(np.mean(noise(noisy, case.query.grid) / case.size * np.sqrt(noisy[0].size))),
    }
    if trusted is None:
        return Floor(**known)
    few, some = (case.take(case.few(count)) for count in (HALVED, COARSENED))
    known["reconstruction"] = float(np.mean(reconstruction_error(some, trusted)))
    shape, sizes = few.query.grid.shape, {}
    limits, programs = [], []
    for parts in (trusted, trusted.finer()):
        fine = parts.start(few.query)
        limits.append(restrict(parts.limit(fine), shape))
        if separable:
            programs.append(restrict(parts.run(few.programs, fine), shape))
    sizes["limit"] = limits[1] - limits[0]
    if separable:
        sizes["programs"] = programs[1] - programs[0]
        sizes["difference"] = sizes["limit"] - sizes["programs"]
    return Floor(**known, **{name: float(few.relative(change).mean()) for name, change in sizes.items()})


def noise(fields: Array, grid: Grid) -> Array:
    """Standard deviation (batch,) of white noise in fields (batch, channel, *grid), from third differences along each
    axis: their median in each channel is small for any field that is smooth almost everywhere, jumps included."""
    found = np.full(fields.shape[:2], np.inf)
    for axis in range(grid.axes):
        if grid.shape[axis] > 3:
            rough = np.abs(np.diff(fields, n=3, axis=2 + axis)).reshape(*fields.shape[:2], -1)
            # 1 − 3 + 3 − 1: variance 20; the median of |N(0, 1)| is 0.6745
            found = np.minimum(found, np.median(rough, axis=2) / (0.6745 * np.sqrt(20.0)))
    return np.asarray(np.sqrt(np.mean(np.where(np.isfinite(found), found, 0.0) ** 2, axis=1)))


def reconstruction_error(case: Case, trusted: Trusted) -> Array:
    """Relative error (batch,) at the end that comes from reconstructing the initial state from cell averages.

    Averages over cells 2 and 4 times wider tell how it falls with the cell width: e_1 ≈ e_2 (e_2/e_4). Zero where the
    grid has too few cells for that.
    """
    grid = case.query.grid
    if any(n % 4 or n // 4 < FEWEST_CELLS for n in grid.shape):
        return np.zeros(case.batch)
    best = trusted.limit(trusted.start(case.query))
    errors = []
    for factor in (2, 4):
        shape = tuple(n // factor for n in grid.shape)
        wide = case.query.setting.with_grid(Grid(shape, grid.lengths, grid.boundary))
        coarse = changed(case.query, u0=restrict(case.query.u0, shape), setting=wide)
        reached = trusted.limit(refined_query(coarse, factor * trusted.refinement))
        errors.append(rel_l2(restrict(reached, shape), restrict(best, shape), wide))
    ratio = np.clip(errors[1] / np.maximum(errors[0], np.finfo(float).tiny), SLOWEST, FASTEST)
    return np.asarray(errors[0] / ratio)
