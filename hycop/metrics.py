"""How far a prediction is from the truth: functions of (prediction, truth, setting), one value per sample.

Arrays are (batch, channel, *grid) in one to three dimensions, and e = prediction - truth is taken in float64.
The source paper and PDEBench (Takamoto et al. 2022, ``pdebench/models/metrics.py``) use the names fRMSE, bRMSE and
cRMSE for different things, so both exist here. PDEBench aggregates its batch inside some metrics; a
mean of the values here over samples is that of PDEBench where its batch has one sample.
A prediction that is not finite gives a value that is not finite; nothing is raised.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from types import MappingProxyType

import numpy as np
from scipy import fft

from hycop.errors import InvalidInputError, UnknownNameError
from hycop.grid import Array
from hycop.query import Setting

Metric = Callable[[Array, Array, Setting], Array]
BANDS = ("low", "mid", "high")

# A diverged prediction is a result (inf or nan), not a reason to warn.
_quiet = np.errstate(over="ignore", invalid="ignore", divide="ignore")


def _checked(prediction: object, truth: object, setting: Setting) -> tuple[Array, Array]:
    pair = np.asarray(prediction), np.asarray(truth)
    if pair[0].shape != pair[1].shape:
        raise InvalidInputError(f"prediction has shape {pair[0].shape}, but truth has shape {pair[1].shape}")
    expected = (setting.batch, len(setting.channels), *setting.grid.shape)
    if pair[0].shape != expected:
        raise InvalidInputError(f"prediction and truth have shape {pair[0].shape}, but the setting needs {expected}")
    for name, array in zip(("prediction", "truth"), pair, strict=True):
        if array.dtype.kind not in "fiub":
            raise InvalidInputError(f"{name} has dtype {array.dtype}: real numbers are needed")
    return pair[0].astype(np.float64), pair[1].astype(np.float64)


def _error(prediction: Array, truth: Array, setting: Setting) -> Array:
    prediction, truth = _checked(prediction, truth, setting)
    return prediction - truth


def _cells(u: Array) -> tuple[int, ...]:
    return tuple(range(2, u.ndim))


def _ratio(error: Array, scale: Array) -> Array:
    """error / scale, and for a scale of zero: 0 if the error is zero too, else inf."""
    divided = error / np.where(scale == 0, 1.0, scale)
    return np.where(scale == 0, np.where(error == 0, 0.0, np.inf), divided)


def _relative(prediction: Array, truth: Array, axes: tuple[int, ...]) -> Array:
    """‖e‖₂ / ‖truth‖₂ over some of the axes, scaled by a power of two so that no square overflows or underflows."""
    _, exponent = np.frexp(np.abs(truth).max(axis=axes, keepdims=True))
    unit = np.exp2(-np.clip(exponent, -1000, 1000).astype(np.float64))
    error, scale = (((unit * u) ** 2).sum(axis=axes) for u in (prediction - truth, truth))
    return _ratio(np.sqrt(error), np.sqrt(scale))


@_quiet
def rel_l2(prediction: Array, truth: Array, setting: Setting) -> Array:
    """‖e‖₂ / ‖truth‖₂, both norms over cells and channels together; 0 if both are zero, inf if only the truth is."""
    return _relative(*_checked(prediction, truth, setting), axes=(1, *range(2, 2 + setting.grid.axes)))


@_quiet
def rel_l2_per_channel(prediction: Array, truth: Array, setting: Setting) -> Array:
    """‖e_c‖₂ / ‖truth_c‖₂ over the cells of each channel c, (batch, channel); a zero truth as in ``rel_l2``."""
    return _relative(*_checked(prediction, truth, setting), axes=tuple(range(2, 2 + setting.grid.axes)))


@_quiet
def nrmse(prediction: Array, truth: Array, setting: Setting) -> Array:
    """PDEBench: the mean over channels of √(mean_p e_c²) / √(mean_p truth_c²), that is of ``rel_l2_per_channel``."""
    values: Array = rel_l2_per_channel(prediction, truth, setting).mean(axis=1)
    return values


@_quiet
def rmse(prediction: Array, truth: Array, setting: Setting) -> Array:
    """√(1/N Σ_p ‖e(p)‖₂²) over the N cells p, ‖·‖₂ over channels: channels add up, they are not averaged."""
    return _rms_over(_error(prediction, truth, setting), np.ones(setting.grid.shape, dtype=bool))


@_quiet
def max_error(prediction: Array, truth: Array, setting: Setting) -> Array:
    """max_p ‖e(p)‖₂, ‖·‖₂ over channels."""
    square = (_error(prediction, truth, setting) ** 2).sum(axis=1)
    values: Array = np.sqrt(square.reshape(setting.batch, -1).max(axis=1))
    return values


def _rms_over(values: Array, chosen: Array) -> Array:
    """√(mean over the chosen cells of the squared norm over channels); nan if none is chosen."""
    count = int(chosen.sum())
    square = (values[:, :, chosen] ** 2).sum(axis=(1, 2))
    return np.sqrt(square / count) if count else np.full(values.shape[0], np.nan)


@_quiet
def frmse_paper(prediction: Array, truth: Array, setting: Setting) -> Array:
    """√(1/|K| Σ_{k∈K} Σ_c (|P_c(k)| - |T_c(k)|)²) for the bands K = low, mid, high, (batch, 3).

    P and T are the plain discrete Fourier transforms Σ_p u(p) e^{-2πi k·p} (not divided by the number of
    cells: only so do the paper's fRMSE and RMSE fit together), of which only the magnitudes are compared. k runs over
    all wavenumbers of the grid in cycles per cell, so the Nyquist wavenumber of an axis is 0.5, and |k| is the
    Euclidean norm: low is |k| < 0.1, mid is 0.1 ≤ |k| < 0.3, high is |k| ≥ 0.3.
    A band without a wavenumber (tiny grids) gives nan.
    """
    magnitudes = [np.abs(fft.fftn(u, axes=_cells(u))) for u in _checked(prediction, truth, setting)]
    # Rounded because 0.06² + 0.08² is not 0.1² to the last bit, and k on an edge belongs to the upper band.
    radius = np.round(_radius([fft.fftfreq(n) for n in setting.grid.shape]), 12)
    band = np.digitize(radius, (0.1, 0.3))
    return np.stack([_rms_over(magnitudes[0] - magnitudes[1], band == b) for b in range(len(BANDS))], axis=1)


@_quiet
def frmse_pdebench(prediction: Array, truth: Array, setting: Setting) -> Array:
    """Mean over channels and over the shells s of a band of √(Σ_{k in shell s} |E_c(k)|²) / N, (batch, 3).

    E is the discrete Fourier transform of e, phases included, N the number of cells. Shell s holds the integer
    wavenumbers with ⌊|k|⌋ = s; the bands are the shells 0–3, 4–11 and ≥ 12. As in PDEBench, in two and three
    dimensions only wavenumbers 0 ≤ k < n/2 along each axis count (one quadrant or octant, so waves along
    the other diagonals are not seen) and only shells below the smallest n/2; in one dimension 0 ≤ k ≤ n/2.
    The factor of box lengths in PDEBench's code is 1 in all its runs and is left out.
    A band without a shell (n < 24 for high) gives nan.
    """
    error = _error(prediction, truth, setting)
    axes, shape = setting.grid.axes, setting.grid.shape
    kept = [n // 2 + 1 if axes == 1 else n // 2 for n in shape]
    spectrum: Array = fft.fftn(error, axes=_cells(error))
    for axis, n in enumerate(kept):
        spectrum = spectrum.take(range(n), axis=axis + 2)
    power = np.abs(spectrum.reshape(*error.shape[:2], -1)) ** 2
    shell = np.floor(_radius([np.arange(n) for n in kept])).astype(np.int64).reshape(-1)
    shells = [np.sqrt(power[..., shell == s].sum(axis=-1)) / setting.grid.cells for s in range(min(kept))]
    bands = (shells[:4], shells[4:12], shells[12:])
    none = np.full(setting.batch, np.nan)
    return np.stack([np.stack(band).mean(axis=(0, 2)) if band else none for band in bands], axis=1)


def _radius(wavenumbers: list[Array]) -> Array:
    """|k| on the grid of wavenumbers that are given along each axis."""
    return np.sqrt(sum(k.astype(np.float64) ** 2 for k in np.meshgrid(*wavenumbers, indexing="ij", sparse=True)))


@_quiet
def brmse_paper(prediction: Array, truth: Array, setting: Setting) -> Array:
    """√(1/|B| Σ_{p∈B} ‖e(p)‖₂²), B = the outermost 5 % of the cells (rounded down, at least one) on each side.

    Every axis has its two sides, periodic or not; a corner counts once.
    """
    border = np.zeros(setting.grid.shape, dtype=bool)
    for axis, n in enumerate(setting.grid.shape):
        width = max(1, n // 20)
        lines = np.moveaxis(border, axis, 0)
        lines[:width] = lines[n - width :] = True
    return _rms_over(_error(prediction, truth, setting), border)


@_quiet
def brmse_pdebench(prediction: Array, truth: Array, setting: Setting) -> Array:
    """Mean over channels of √(Σ_faces Σ_{p∈face} e_c(p)² / Σ_faces |face|), a face = the outermost cells of one side.

    Every axis has its two faces, periodic or not; a corner counts once for each of its faces. In three
    dimensions PDEBench adds up the channels under the root; here they are averaged as in one and two.
    """
    error = _error(prediction, truth, setting)
    faces = [
        np.take(error, side, axis=axis + 2).reshape(*error.shape[:2], -1)
        for axis in range(setting.grid.axes)
        for side in (0, -1)
    ]
    values: Array = np.sqrt((np.concatenate(faces, axis=2) ** 2).mean(axis=2)).mean(axis=1)
    return values


@_quiet
def invariants(u: Array, setting: Setting) -> Array:
    """The total of each channel, ∫ u_c dx = Σ_p u_c(p) ∏ dx, (batch, channel)."""
    state, _ = _checked(u, u, setting)
    totals: Array = state.sum(axis=_cells(state)) * setting.grid.spacing.prod(axis=1)[:, None]
    return totals


def _conserved(setting: Setting, conserved: Collection[str] | None) -> list[int]:
    names = [channel.name for channel in setting.channels]
    if conserved is None:
        return list(range(len(names)))
    for name in conserved:
        if name not in names:
            raise UnknownNameError("channel", name, names)
    if not conserved:
        raise InvalidInputError("conserved: no channel is named, so there is no conservation error to measure")
    return [position for position, name in enumerate(names) if name in conserved]


@_quiet
def crmse_paper(prediction: Array, truth: Array, setting: Setting, conserved: Collection[str] | None = None) -> Array:
    """√(1/r Σ_j (C_j(prediction) - C_j(truth))²), C_j the ``invariants`` of the r conserved channels (default: all)."""
    totals = invariants(_error(prediction, truth, setting), setting)[:, _conserved(setting, conserved)]
    values: Array = np.sqrt((totals**2).mean(axis=1))
    return values


@_quiet
def crmse_pdebench(
    prediction: Array, truth: Array, setting: Setting, conserved: Collection[str] | None = None
) -> Array:
    """Mean over the conserved channels (default: all) of |Σ_p e_c(p)| / N.

    PDEBench takes the root mean square over its batch before the mean over channels; a mean of
    these values over samples is never larger than that.
    """
    error = _error(prediction, truth, setting)
    values: Array = np.abs(error.mean(axis=_cells(error))[:, _conserved(setting, conserved)]).mean(axis=1)
    return values


BINS = np.linspace(-5.0, 5.0, 51)
"""Edges of the histogram of states, in standard deviations of the truth around its mean."""


@_quiet
def spectrum_error(prediction: Array, truth: Array, setting: Setting) -> Array:
    """‖log₁₀ E − log₁₀ E_truth‖₂ / ‖log₁₀ E_truth‖₂ of the mean energy spectra, one value for the whole batch.

    E(j) is the mean of |û(j)|² over samples, times and channels, for the modes 1 ≤ j ≤ n/3 along the first axis: what
    is left of a resolved band when products are dealiased. For chaotic states, of which no single one can be predicted.
    û is the sum over the n cells as it stands: the scale of û and the modes that count enter the norm below, so values
    on other numbers of cells, or with another normalisation, do not compare.
    """
    pair = _checked(prediction, truth, setting)
    modes = slice(1, setting.grid.shape[0] // 3 + 1)
    energies = (np.abs(fft.rfft(u, axis=2)) ** 2 for u in pair)
    mean, known = (np.log10(e.mean(axis=(0, 1, *range(3, e.ndim)))[modes]) for e in energies)
    return np.array([np.linalg.norm(mean - known) / np.linalg.norm(known)])


@_quiet
def kl_divergence(prediction: Array, truth: Array, setting: Setting) -> Array:
    """KL(truth ‖ prediction) = Σ p log(p/q) of the histograms of all values together, one value for the whole batch.

    Fifty fixed bins within five standard deviations of the truth, what is beyond in the outermost; a pseudo-count of
    one in each bin keeps it finite.
    """
    prediction, truth = _checked(prediction, truth, setting)
    edges = truth.mean() + BINS * max(truth.std(), np.finfo(np.float64).tiny)
    if not np.isfinite(prediction).all():
        return np.array([np.nan])
    counts = [np.histogram(np.clip(u, edges[0], edges[-1]), edges)[0] + 1.0 for u in (truth, prediction)]
    p, q = (count / count.sum() for count in counts)
    return np.array([(p * np.log(p / q)).sum()])


def _one_band(bands: Metric, position: int) -> Metric:
    def band(prediction: Array, truth: Array, setting: Setting) -> Array:
        return bands(prediction, truth, setting)[:, position]

    band.__doc__ = f"The {BANDS[position]} band of the following.\n\n{bands.__doc__}"
    return band


def _all_metrics() -> dict[str, Metric]:
    metrics: dict[str, Metric] = {"rel_l2": rel_l2, "rmse": rmse, "nrmse": nrmse, "max_error": max_error}
    for bands, name in ((frmse_paper, "frmse_paper"), (frmse_pdebench, "frmse_pdebench")):
        metrics.update({f"{name}_{band}": _one_band(bands, position) for position, band in enumerate(BANDS)})
    metrics.update(brmse_paper=brmse_paper, brmse_pdebench=brmse_pdebench)
    metrics.update(crmse_paper=crmse_paper, crmse_pdebench=crmse_pdebench)
    return metrics


METRICS: Mapping[str, Metric] = MappingProxyType(_all_metrics())
"""One value per sample."""

STATISTICS: Mapping[str, Metric] = MappingProxyType({"spectrum_error": spectrum_error, "kl_divergence": kl_divergence})
"""One value for all samples together."""


def find_metric(name: str) -> Metric:
    """A metric by its name: one value per sample, or one for all of them where it is statistical.

    >>> find_metric("rel_l2") is rel_l2
    True
    """
    known = {**METRICS, **STATISTICS}
    if name not in known:
        raise UnknownNameError("metric", name, known)
    return known[name]
