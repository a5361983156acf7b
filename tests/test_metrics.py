"""Metrics: values computed by hand, and properties that hold for any state."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from hycop import metrics
from hycop.errors import InvalidInputError, UnknownNameError
from hycop.grid import Array, Grid
from hycop.metrics import METRICS, STATISTICS
from hycop.query import Channel, Setting


def setting_of(u: Array, lengths: Any = 1.0) -> Setting:
    channels = tuple(Channel(f"c{index}") for index in range(u.shape[1]))
    return Setting(Grid.box(u.shape[2:], lengths, batch=u.shape[0]), channels, {})


def cosine(n: int, k: int, amplitude: float = 1.0) -> Array:
    return amplitude * np.cos(2 * np.pi * k * np.arange(n) / n)


# By hand


def test_pointwise_metrics() -> None:
    truth = np.array([[[3.0, 4.0], [0.0, 1.0]]])  # two channels on two cells
    prediction = truth + np.array([[[3.0, 0.0], [4.0, 1.0]]])
    setting = setting_of(truth)
    assert metrics.rel_l2(prediction, truth, setting) == pytest.approx([np.sqrt(26 / 26)])
    assert metrics.rel_l2_per_channel(prediction, truth, setting) == pytest.approx(np.array([[3 / 5, np.sqrt(17.0)]]))
    assert metrics.nrmse(prediction, truth, setting) == pytest.approx([(3 / 5 + np.sqrt(17.0)) / 2])
    assert metrics.rmse(prediction, truth, setting) == pytest.approx([np.sqrt((25 + 1) / 2)])
    assert metrics.max_error(prediction, truth, setting) == pytest.approx([5.0])


def test_nrmse_is_the_ratio_of_root_mean_squares() -> None:
    rng = np.random.default_rng(0)
    truth, prediction = rng.normal(size=(2, 3, 2, 8, 8))
    cells = (2, 3)
    ratio = np.sqrt(((prediction - truth) ** 2).mean(axis=cells)) / np.sqrt((truth**2).mean(axis=cells))
    np.testing.assert_allclose(metrics.nrmse(prediction, truth, setting_of(truth)), ratio.mean(axis=1), rtol=1e-13)


@pytest.mark.parametrize("unit", [1e-200, 1e-30, 1e30, 1e200])
def test_relative_errors_know_no_units(unit: float) -> None:
    truth, prediction = np.random.default_rng(0).normal(size=(2, 3, 2, 8))
    setting = setting_of(truth)
    for metric in (metrics.rel_l2, metrics.nrmse):
        expected = metric(prediction, truth, setting)
        np.testing.assert_allclose(metric(unit * prediction, unit * truth, setting), expected, rtol=1e-14)


def test_zero_truth() -> None:
    truth = np.zeros((2, 2, 4))
    truth[:, 1] = 1.0
    prediction = truth.copy()
    prediction[1, 0, 2] = 0.5
    setting = setting_of(truth)
    assert metrics.rel_l2_per_channel(prediction, truth, setting).tolist() == [[0.0, 0.0], [np.inf, 0.0]]
    assert metrics.nrmse(prediction, truth, setting).tolist() == [0.0, np.inf]
    assert metrics.rel_l2(prediction, truth, setting) == pytest.approx([0.0, 0.25])
    assert metrics.rel_l2(prediction, 0 * truth, setting).tolist() == [np.inf, np.inf]
    assert metrics.rel_l2(0 * truth, 0 * truth, setting).tolist() == [0.0, 0.0]


def test_frmse_paper_of_single_waves() -> None:
    n = 20  # wavenumbers k/20: |k| ≤ 1 low (3), 2 to 5 mid (8), 6 to 10 high (9)
    for k, band, count in [(1, 0, 3), (2, 1, 8), (5, 1, 8), (6, 2, 9)]:
        truth = cosine(n, k)[None, None]
        expected = np.zeros(3)
        expected[band] = np.sqrt(2 * (0.5 * n) ** 2 / count)  # two modes of magnitude n/2
        found = metrics.frmse_paper(3 * truth, 2 * truth, setting_of(truth))
        np.testing.assert_allclose(found, expected[None], atol=1e-12)


def test_frmse_paper_ignores_phases_and_adds_channels() -> None:
    rng = np.random.default_rng(1)
    truth = rng.normal(size=(1, 2, 16, 8))
    shifted = np.roll(truth, (3, 2), axis=(2, 3))
    setting = setting_of(truth)
    np.testing.assert_allclose(metrics.frmse_paper(shifted, truth, setting), 0.0, atol=1e-12)
    one = metrics.frmse_paper(2 * truth[:, :1], truth[:, :1], setting_of(truth[:, :1]))
    doubled = truth[:, [0, 0]]
    np.testing.assert_allclose(metrics.frmse_paper(2 * doubled, doubled, setting), np.sqrt(2) * one)


def test_frmse_paper_edges_belong_to_the_upper_band() -> None:
    # On 50 × 50 the mode (3, 4) has |k| = √(0.06² + 0.08²) = 0.1: the first of mid.
    x, y = np.meshgrid(np.arange(50), np.arange(50), indexing="ij")
    truth = np.cos(2 * np.pi * (3 * x + 4 * y) / 50)[None, None]
    low, mid, high = metrics.frmse_paper(2 * truth, truth, setting_of(truth))[0]
    assert low < 1e-9 and mid > 1 and high < 1e-9


def test_frmse_pdebench_in_one_dimension() -> None:
    n = 64
    truth = np.zeros((1, 1, n))
    for k, band, shells, mode in [(0, 0, 4, n), (3, 0, 4, n / 2), (4, 1, 8, n / 2), (12, 2, 21, n / 2), (32, 2, 21, n)]:
        expected = np.zeros(3)
        expected[band] = mode / n / shells  # the high band is 12 to 32, with the Nyquist mode
        found = metrics.frmse_pdebench(cosine(n, k)[None, None], truth, setting_of(truth))
        np.testing.assert_allclose(found, expected[None], atol=1e-12)


def test_frmse_pdebench_in_two_dimensions() -> None:
    n = 32
    x, y = np.meshgrid(np.arange(n), np.arange(n), indexing="ij")
    truth = np.zeros((1, 2, n, n))
    wave = np.zeros_like(truth)
    wave[0, 0] = np.cos(2 * np.pi * (3 * x + 3 * y) / n)  # shell ⌊√18⌋ = 4, one mode of N/2 in the quadrant
    found = metrics.frmse_pdebench(wave, truth, setting_of(truth))
    np.testing.assert_allclose(found, [[0.0, 0.5 / 8 / 2, 0.0]], atol=1e-12)
    wave[0, 0] = np.cos(2 * np.pi * (3 * x - 3 * y) / n)  # the other diagonal is outside the quadrant
    np.testing.assert_allclose(metrics.frmse_pdebench(wave, truth, setting_of(truth)), 0.0, atol=1e-12)
    wave[0, 0] = np.cos(2 * np.pi * 14 * x / n)  # shells 12 to 15
    found = metrics.frmse_pdebench(wave, truth, setting_of(truth))
    np.testing.assert_allclose(found, [[0.0, 0.0, 0.5 / 4 / 2]], atol=1e-12)


def test_frmse_pdebench_against_plain_loops() -> None:
    truth, prediction = np.random.default_rng(2).normal(size=(2, 1, 2, 26, 30))
    spectrum = np.abs(np.fft.fftn(prediction - truth, axes=(2, 3))) ** 2
    shells = np.zeros((2, 13))
    for i in range(13):
        for j in range(15):
            shell = int(np.sqrt(i * i + j * j))
            if shell < 13:
                shells[:, shell] += spectrum[0, :, i, j]
    roots = np.sqrt(shells) / (26 * 30)
    expected = [roots[:, :4].mean(), roots[:, 4:12].mean(), roots[:, 12:].mean()]
    np.testing.assert_allclose(metrics.frmse_pdebench(prediction, truth, setting_of(truth)), [expected], rtol=1e-12)


def test_band_that_the_grid_does_not_have_is_nan() -> None:
    u = np.ones((2, 1, 16, 16))
    assert np.isnan(metrics.frmse_pdebench(u, u, setting_of(u))[:, 2]).all()
    assert np.isnan(metrics.frmse_paper(u[..., :1, :1], u[..., :1, :1], setting_of(u[..., :1, :1]))[:, 1:]).all()


def test_brmse() -> None:
    truth = np.zeros((1, 2, 40))  # 5 % of 40 cells is 2 on each side
    prediction = truth.copy()
    prediction[0, 0, [0, 1, 38, 39]] = [1.0, 2.0, 3.0, 4.0]
    prediction[0, 1, 0] = 2.0
    prediction[0, 0, 20] = 100.0
    setting = setting_of(truth)
    assert metrics.brmse_paper(prediction, truth, setting) == pytest.approx([np.sqrt((30 + 4) / 4)])
    assert metrics.brmse_pdebench(prediction, truth, setting) == pytest.approx([(np.sqrt(17 / 2) + np.sqrt(4 / 2)) / 2])


def test_brmse_counts_corners_once_or_twice() -> None:
    truth = np.zeros((1, 1, 4, 3))
    prediction = truth.copy()
    prediction[0, 0, 0, 0] = 1.0
    setting = setting_of(truth)
    assert metrics.brmse_paper(prediction, truth, setting) == pytest.approx([np.sqrt(1 / 10)])
    assert metrics.brmse_pdebench(prediction, truth, setting) == pytest.approx([np.sqrt(2 / 14)])


def test_invariants_and_crmse() -> None:
    truth = np.ones((2, 2, 4, 2))
    prediction = truth.copy()
    prediction[:, 0, 0, 0] += 8.0
    prediction[:, 1, 1, 1] -= 4.0
    grid = Grid((4, 2), np.array([[1.0, 1.0], [2.0, 4.0]]), ("periodic", "wall"))
    setting = Setting(grid, (Channel("h"), Channel("m", 0)), {})
    assert metrics.invariants(truth, setting).tolist() == [[1.0, 1.0], [8.0, 8.0]]
    assert metrics.crmse_paper(prediction, truth, setting) == pytest.approx(
        [np.sqrt((1 + 0.25) / 2), 8 * np.sqrt((1 + 0.25) / 2)]
    )
    assert metrics.crmse_paper(prediction, truth, setting, ["m"]) == pytest.approx([0.5, 4.0])
    assert metrics.crmse_pdebench(prediction, truth, setting) == pytest.approx([0.75, 0.75])
    assert metrics.crmse_pdebench(prediction, truth, setting, frozenset({"h"})) == pytest.approx([1.0, 1.0])
    for metric in (metrics.crmse_paper, metrics.crmse_pdebench):
        with pytest.raises(UnknownNameError, match="unknown channel 'mass'"):
            metric(prediction, truth, setting, ["mass"])
        with pytest.raises(InvalidInputError, match="no channel is named"):
            metric(prediction, truth, setting, [])


def test_three_dimensions() -> None:
    truth = np.zeros((1, 1, 4, 4, 4))
    prediction = truth + 2.0
    setting = setting_of(truth)
    for name in ("rmse", "max_error", "brmse_paper", "brmse_pdebench", "crmse_paper", "crmse_pdebench"):
        assert metrics.find_metric(name)(prediction, truth, setting) == pytest.approx([2.0]), name
    # Only k = 0 differs, |P(0)| = 2·64, and it is alone in low: one wave on four cells is 0.25, mid already.
    assert metrics.frmse_paper(prediction, truth, setting)[0].tolist() == [128.0, 0.0, 0.0]
    # Only shell 0 of the shells 0 and 1 differs.
    np.testing.assert_allclose(metrics.frmse_pdebench(prediction, truth, setting)[0, 0], 1.0)


# Properties

values = st.floats(-1e3, 1e3, width=32)
shapes = st.lists(st.integers(1, 5), min_size=1, max_size=3)
batches = st.tuples(st.integers(1, 3), st.integers(1, 3), shapes).map(lambda t: (t[0], t[1], *t[2]))
states = batches.flatmap(lambda shape: hnp.arrays(np.float64, (2, *shape), elements=values))
any_metric = st.sampled_from(sorted(METRICS))


@given(states, any_metric)
@settings(max_examples=60, deadline=None)
def test_zero_on_equality_and_not_negative(pair: Array, name: str) -> None:
    setting = setting_of(pair[0])
    measured = METRICS[name](pair[0], pair[1], setting)
    assert measured.shape == (pair.shape[1],) and measured.dtype == np.float64
    assert ((measured >= 0) | np.isnan(measured)).all()
    assert np.isnan(measured).all() or not np.isnan(measured).any()  # nan: the grid has no such band
    equal = METRICS[name](pair[0], pair[0], setting)
    np.testing.assert_array_equal(equal[~np.isnan(measured)], 0.0)


@given(states, any_metric, st.sampled_from([0.25, 2.0, 1024.0]))
@settings(max_examples=60, deadline=None)
def test_scaling(pair: Array, name: str, factor: float) -> None:
    setting = setting_of(pair[0])
    before, after = METRICS[name](*pair, setting), METRICS[name](*(factor * pair), setting)
    relative = name in ("rel_l2", "nrmse")
    np.testing.assert_allclose(after, before if relative else factor * before, rtol=1e-9, atol=1e-9 * factor)


@given(states, any_metric, st.randoms(use_true_random=False))
@settings(max_examples=60, deadline=None)
def test_samples_are_independent(pair: Array, name: str, random: Any) -> None:
    setting = setting_of(pair[0])
    order = list(range(setting.batch))
    random.shuffle(order)
    chosen = np.array(order)
    whole = METRICS[name](*pair, setting)
    np.testing.assert_allclose(METRICS[name](*pair[:, chosen], setting.take(chosen)), whole[chosen], rtol=1e-12)


@given(states)
@settings(max_examples=60, deadline=None)
def test_relations(pair: Array) -> None:
    setting = setting_of(pair[0])
    rmse, worst = metrics.rmse(*pair, setting), metrics.max_error(*pair, setting)
    tolerance = 1e-9 * (1 + worst)
    assert (rmse <= worst + tolerance).all()
    assert (metrics.brmse_paper(*pair, setting) <= worst + tolerance).all()
    assert (metrics.crmse_pdebench(*pair, setting) <= rmse + tolerance).all()
    norm = np.sqrt((pair[1] ** 2).reshape(setting.batch, -1).sum(axis=1))
    assume((norm > 1e-3).all())
    np.testing.assert_allclose(metrics.rel_l2(*pair, setting) * norm, rmse * np.sqrt(setting.grid.cells), rtol=1e-9)


@pytest.mark.parametrize("name", sorted(METRICS))
@pytest.mark.parametrize("bad", [np.nan, np.inf, 1e200])
def test_diverged_prediction_is_measured_without_a_warning(name: str, bad: float) -> None:
    truth = np.ones((2, 1, 32))
    prediction = truth.copy()
    prediction[1, 0, 0] = bad
    measured = METRICS[name](prediction, truth, setting_of(truth))
    assert measured[0] == 0 and not measured[1] < 1e100


def test_float32_is_measured_in_float64() -> None:
    truth = np.full((1, 1, 100_000), 0.1, dtype=np.float32)
    assert metrics.rel_l2(2 * truth, truth, setting_of(truth))[0] == 1.0


# Errors, registry, summary


@pytest.mark.parametrize("name", sorted(METRICS))
def test_shape_mismatch_names_both_shapes(name: str) -> None:
    u = np.ones((2, 1, 8))
    with pytest.raises(InvalidInputError, match=r"prediction has shape \(2, 1, 4\), but truth has shape \(2, 1, 8\)"):
        METRICS[name](u[..., :4], u, setting_of(u))
    with pytest.raises(InvalidInputError, match=r"have shape \(2, 1, 8\), but the setting needs \(2, 1, 4\)"):
        METRICS[name](u, u, setting_of(u[..., :4]))
    with pytest.raises(InvalidInputError, match="prediction has dtype complex128"):
        METRICS[name](u * 1j, u, setting_of(u))


def test_registry() -> None:
    assert {"rel_l2", "frmse_paper_low", "frmse_pdebench_high", "brmse_paper", "crmse_pdebench"} <= set(METRICS)
    rng = np.random.default_rng(3)
    pair = rng.normal(size=(2, 2, 1, 64))
    setting = setting_of(pair[0])
    for position, band in enumerate(metrics.BANDS):
        for bands, name in [(metrics.frmse_paper, "frmse_paper"), (metrics.frmse_pdebench, "frmse_pdebench")]:
            np.testing.assert_array_equal(
                metrics.find_metric(f"{name}_{band}")(*pair, setting), bands(*pair, setting)[:, position]
            )
    with pytest.raises(UnknownNameError, match="unknown metric 'rel_l1': did you mean rel_l2"):
        metrics.find_metric("rel_l1")


def test_statistics_see_distributions_and_spectra_not_phases() -> None:
    rng = np.random.default_rng(0)
    number = np.arange(1, 12)[:, None]
    x = np.arange(96) / 96

    def states(seed: int, slope: float) -> np.ndarray:
        phase = np.random.default_rng(seed).uniform(0, 2 * np.pi, (400, number.size))
        waves = np.cos(2 * np.pi * number * x + phase[:, :, None]) * (number**slope)
        return waves.sum(axis=1)[:, None]

    first, again, steeper = states(0, -1.0), states(1, -1.0), states(2, -2.0)
    setting = setting_of(first)
    noise = 1e-6 * rng.standard_normal(first.shape)
    first, again, steeper = first + noise, again + noise, steeper + noise
    for name in STATISTICS:
        assert metrics.find_metric(name)(first, first, setting)[0] == 0
        assert (
            metrics.find_metric(name)(first, again, setting)[0]
            < 0.2 * metrics.find_metric(name)(first, steeper, setting)[0]
        )
        assert np.isnan(metrics.find_metric(name)(np.full_like(first, np.nan), first, setting)[0])
    shifted = again + 1.0
    assert metrics.find_metric("kl_divergence")(shifted, first, setting)[0] > 0.05
