"""The truths of compressible flow against analytic solutions, against each other and against PDEBench's own data."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from hycop.channels import gas_channels
from hycop.data import PDEBenchFile
from hycop.data.gas import decode, encode
from hycop.errors import InvalidInputError, NonFiniteStateError, UnknownNameError
from hycop.grid import Array, Grid
from hycop.primitive import ALL_CHANNELS, Primitive
from hycop.problems.compressible import PROBLEMS, RandomFlow
from hycop.problems.draw import Draw
from hycop.query import Channel, Setting
from hycop.references import CompressibleReference, PDEBenchReference, Reference, error_estimate
from hycop.references.chebyshev import chebyshev_weights

GAMMA = 5.0 / 3.0
ALL = frozenset({"euler", "viscosity"})
EULER, VISCOSITY = frozenset({"euler"}), frozenset({"viscosity"})
Solver = type[CompressibleReference] | type[PDEBenchReference]
SOLVERS: tuple[Solver, ...] = (CompressibleReference, PDEBenchReference)
FIXTURE = (
    Path(__file__).resolve().parents[2] / "shared" / "data" / "2D_CFD_Rand_M0.1_Eta0.1_Zeta0.1_periodic_128_sample.hdf5"
)
needs_fixture = pytest.mark.skipif(not FIXTURE.exists(), reason=f"PDEBench's sample is not at {FIXTURE}")


def make_setting(
    shape: tuple[int, int] = (32, 32),
    batch: int = 1,
    lengths: tuple[float, float] = (1.0, 1.0),
    eta: float = 0.1,
    zeta: float = 0.1,
) -> Setting:
    params = {"gamma": np.full(batch, GAMMA), "eta": np.full(batch, eta), "zeta": np.full(batch, zeta)}
    return Setting(Grid.box(shape, lengths, batch=batch), gas_channels(2), params)


def flow_state(setting: Setting, seed: int = 0) -> Array:
    """A smooth random flow as point values: waves of number 1 and 2."""
    rng = np.random.default_rng(seed)
    x, y = (
        s / length.reshape(-1, 1, 1) for s, length in zip(setting.grid.centres(), setting.grid.lengths.T, strict=True)
    )
    fields = np.zeros((setting.batch, 4, *setting.grid.shape))
    for i, j in ((1, 0), (0, 1), (1, 1), (2, -1)):
        phase = rng.uniform(0, 2 * np.pi, (setting.batch, 4, 1, 1))
        fields += np.sin(2 * np.pi * (i * x + j * y)[:, None] + phase)
    border = (
        np.array([1.0, 0.0, 0.0, 2.0]).reshape(1, 4, 1, 1) + np.array([0.1, 0.3, 0.3, 0.2]).reshape(1, 4, 1, 1) * fields
    )
    return encode(border, GAMMA)


def along_x(setting: Setting, border: list[Array | float]) -> Array:
    """The state of (density, v_x, v_y, pressure) given as functions of x, or constants."""
    shape = (setting.batch, *setting.grid.shape)
    return encode(np.stack([np.broadcast_to(np.asarray(field), shape) for field in border], axis=1), GAMMA)


def nrmse(state: Array, truth: Array) -> Array:
    """Per sample: relative root mean square error of density, velocities and pressure, averaged over these."""
    ours, theirs = decode(state, GAMMA), decode(truth, GAMMA)
    out: Array = np.sqrt(((ours - theirs) ** 2).mean(axis=(2, 3)) / (theirs**2).mean(axis=(2, 3))).mean(axis=1)
    return out


def solved(reference: CompressibleReference | PDEBenchReference, state: Array, setting: Setting, time: float) -> Array:
    return reference.solve(state, setting, np.full((setting.batch, 1), time))[:, 0]


def gentle(solver: Solver, processes: frozenset[str]) -> CompressibleReference | PDEBenchReference:
    """The solver on the grid itself, with steps as short as the viscosity of a coarse grid asks for."""
    if solver is PDEBenchReference:
        return PDEBenchReference(processes)
    return CompressibleReference(processes, 1, courant=0.25, stiffness=4.0)


@pytest.mark.parametrize(("solver", "tolerance"), [(CompressibleReference, 2e-4), (PDEBenchReference, 2e-2)])
def test_a_shear_wave_decays_into_heat(solver: Solver, tolerance: float) -> None:
    setting = make_setting((32, 8))
    x, k, size, time = setting.grid.centres()[0], 2 * np.pi, 0.5, 0.3
    decay = np.exp(-0.1 * k**2 * time)
    heated = 2.0 + (GAMMA - 1) * 1.5 * size**2 / 2 * np.cos(k * x) ** 2 * (1 - decay**2)
    start = along_x(setting, [1.5, 0.0, size * np.sin(k * x), 2.0])
    exact = along_x(setting, [1.5, 0.0, size * decay * np.sin(k * x), heated])
    out = solved(gentle(solver, VISCOSITY), start, setting, time)
    assert np.abs(out[:, 2] - exact[:, 2]).max() < tolerance * np.abs(exact[:, 2]).max()
    assert np.abs(out[:, 3] - exact[:, 3]).max() < tolerance * np.ptp(heated)
    np.testing.assert_allclose(out[:, :2], start[:, :2], rtol=1e-13)


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_longitudinal_wave_decays_at_its_own_rate(solver: Solver) -> None:
    setting = make_setting((32, 8), eta=0.05, zeta=0.2)
    x, k, time = setting.grid.centres()[0], 2 * np.pi, 0.1
    out = solved(gentle(solver, VISCOSITY), along_x(setting, [1.5, np.sin(k * x), 0.0, 2.0]), setting, time)
    exact = np.exp(-(0.05 + 0.2 + 0.05 / 3) * k**2 * time) * np.sin(k * x) * np.ones(setting.grid.shape)
    tolerance = 2e-4 if solver is CompressibleReference else 1e-2
    np.testing.assert_allclose(out[:, 1] / 1.5, exact, atol=tolerance * np.abs(exact).max())


@pytest.mark.parametrize("axis", [0, 1])
def test_a_sound_wave_travels_and_decays(axis: int) -> None:
    """λ² + ν k² λ + c² k² = 0 for small amplitudes."""
    setting = make_setting((48, 48), eta=0.02, zeta=0.02)
    x, k, tiny, time = setting.grid.centres()[axis], 2 * np.pi, 1e-6, 0.2
    nu, c = 0.02 * (7 / 3), np.sqrt(GAMMA * 2.0 / 1.5)
    root = -nu * k**2 / 2 + 1j * np.sqrt((c * k) ** 2 - (nu * k**2 / 2) ** 2)

    def state(t: float) -> Array:
        density = tiny * np.exp(root * t + 1j * k * x)
        velocity = -root * density / (1j * k * 1.5)
        velocities: list[Array | float] = [velocity.real, 0.0] if axis == 0 else [0.0, velocity.real]
        return along_x(setting, [1.5 + density.real, *velocities, 2.0 + c**2 * density.real])

    start, end = state(0.0), state(time)
    out = solved(CompressibleReference(ALL, 1), start, setting, time)
    for channel in (0, 1 + axis):
        change = np.abs(end[:, channel] - start[:, channel]).max()
        assert np.abs(out[:, channel] - end[:, channel]).max() < 2e-3 * change


def vortex(grid: Grid, time: float) -> Array:
    """The isentropic vortex (Shu 1998), carried across a box of length 10."""
    x, y = ((s - 5.0 - time + 5.0) % 10.0 - 5.0 for s in grid.centres())
    swirl = 5.0 / (2 * np.pi) * np.exp((1 - x**2 - y**2) / 2)
    density = (1 - (GAMMA - 1) / (2 * GAMMA) * swirl**2) ** (1 / (GAMMA - 1))
    border = [density, 1 - y * swirl, 1 + x * swirl, density**GAMMA]
    return encode(np.stack(np.broadcast_arrays(*border), axis=1), GAMMA)


def test_the_isentropic_vortex_converges_to_high_order() -> None:
    errors = []
    for cells in (32, 64):
        setting = make_setting((cells, cells), lengths=(10.0, 10.0))
        out = solved(CompressibleReference(EULER, 1), vortex(setting.grid, 0.0), setting, 1.0)
        errors.append(float(np.abs(out - vortex(setting.grid, 1.0)).max()))
    assert errors[1] < 2e-3
    assert np.log2(errors[0] / errors[1]) > 4.0


def test_pdebench_s_vortex_is_second_order() -> None:
    errors = []
    for cells in (32, 64):
        setting = make_setting((cells, cells), lengths=(10.0, 10.0))
        out = solved(PDEBenchReference(EULER), vortex(setting.grid, 0.0), setting, 1.0)
        errors.append(float(np.abs(out - vortex(setting.grid, 1.0)).mean()))
    assert errors[1] < 2e-3
    assert np.log2(errors[0] / errors[1]) > 1.6


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("processes", [EULER, VISCOSITY, ALL])
def test_totals_stay(solver: Solver, processes: frozenset[str]) -> None:
    setting = make_setting((20, 16), batch=2, lengths=(1.0, 0.7))
    state = flow_state(setting)
    reference = solver(processes, 2)
    assert reference.conserves == ALL_CHANNELS and reference.advances == processes
    out = reference.flow(state, np.array([0.02, 0.05]), setting)
    scale = np.abs(state).mean(axis=(2, 3))
    assert np.all(np.abs(out.mean(axis=(2, 3)) - state.mean(axis=(2, 3))) < 1e-12 * scale)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("processes", [EULER, VISCOSITY, ALL])
def test_x_and_y_are_alike(solver: Solver, processes: frozenset[str]) -> None:
    setting, turned = make_setting((16, 12), lengths=(1.0, 0.7)), make_setting((12, 16), lengths=(0.7, 1.0))
    state = flow_state(setting)
    swapped = state.swapaxes(2, 3)[:, [0, 2, 1, 3]]
    out, other = (solved(solver(processes, 1), *case, 0.03) for case in ((state, setting), (swapped, turned)))
    np.testing.assert_allclose(other.swapaxes(2, 3)[:, [0, 2, 1, 3]], out, rtol=1e-11, atol=1e-12)


def test_split_flows_converge_to_the_unsplit_one() -> None:
    setting = make_setting((24, 24))
    state = flow_state(setting)
    whole = solved(gentle(CompressibleReference, ALL), state, setting, 0.04)
    errors = []
    for steps in (2, 4):
        u, h = state, 0.04 / steps
        for _ in range(steps):
            for processes, part in ((EULER, h / 2), (VISCOSITY, h), (EULER, h / 2)):
                u = solved(gentle(CompressibleReference, processes), u, setting, part)
        errors.append(float(nrmse(u, whole)[0]))
    assert errors[1] < 5e-3
    assert np.log2(errors[0] / errors[1]) > 1.7


def test_pdebench_s_scheme_converges_to_the_truth_at_first_order() -> None:
    setting = make_setting((16, 16), batch=2)

    def initial(grid: Grid) -> Array:
        return flow_state(setting.with_grid(grid))

    times = np.full((2, 1), 0.05)
    truth = CompressibleReference(ALL, 4).trajectory(initial, setting, times)[:, 1]
    errors = [
        nrmse(PDEBenchReference(ALL, refinement).trajectory(initial, setting, times)[:, 1], truth).mean()
        for refinement in (2, 4)
    ]
    assert errors[1] < 1e-2
    assert 1.5 < errors[0] / errors[1] < 5.0


@pytest.mark.parametrize("stages", [4, 5, 9, 20])
def test_chebyshev_steps_are_second_order_and_stable(stages: int) -> None:
    weights, stable = chebyshev_weights(stages)

    def growth(z: Array) -> Array:
        before, earlier = 1.0 + weights[1, 4] * z, np.ones_like(z)
        for a, b, c, d, e in weights[2:]:
            before, earlier = a + b * before + c * earlier + d * z * before + e * z, before
        return before

    z = np.array([1e-3, -1e-3])
    np.testing.assert_allclose(growth(z), np.exp(z), rtol=1e-9)
    assert np.abs(growth(np.linspace(-stable, 0.0, 2001))).max() <= 1.0 + 1e-12
    assert stable > 0.34 * stages**2
    assert np.abs(growth(np.linspace(-0.9 * stable, -0.05, 501) + 1j)).max() <= 1.0


def test_halving_the_grid_changes_little() -> None:
    """The error estimate of the truth of a 32² query: one sample with a steep window, one without."""
    problem = PROBLEMS[0]
    setting = make_setting((32, 32))
    for windowed in (False, True):

        def initial(grid: Grid, windowed: bool = windowed) -> Array:
            return RandomFlow((0.1, 0.1), windowed)(Draw.of(3, "ns2d", 0, 1), setting.with_grid(grid))

        reference = problem.reference(ALL, ("periodic", "periodic"), (32, 32))
        assert error_estimate(reference, initial, setting, np.array([[0.005]])) < 3e-4


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("processes", [EULER, VISCOSITY, ALL])
def test_a_sample_does_not_see_its_batch_or_the_threads(solver: Solver, processes: frozenset[str]) -> None:
    setting = make_setting((9, 12), batch=5)
    state = flow_state(setting)
    times = np.sort(np.random.default_rng(3).uniform(0.0, 0.04, (5, 2)), axis=1)
    times[2, 0] = 0.0
    together = solver(processes, 2, workers=3).averages(np.repeat(np.repeat(state, 2, 2), 2, 3), setting, times)
    alone = solver(processes, 2, workers=1)
    for samples in ([0], [4, 2], [3, 1, 0]):
        fine = np.repeat(np.repeat(state[samples], 2, 2), 2, 3)
        assert np.array_equal(alone.averages(fine, setting.take(np.array(samples)), times[samples]), together[samples])


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_reference_is_a_primitive(solver: Solver) -> None:
    setting = make_setting((16, 16), batch=3)
    state = flow_state(setting)
    reference: Reference = solver(ALL, 2)
    assert isinstance(reference, Primitive) and not reference.reversible
    assert np.array_equal(reference.flow(state, np.zeros(3), setting), state)
    work = reference.work(state, np.array([0.0, 0.1, 1.0]), setting)
    assert np.all(work > 0) and work[2] > work[1]
    assert reference.finer().refinement == 4
    twice = reference.flow(reference.flow(state, np.full(3, 0.02), setting), np.full(3, 0.02), setting)
    assert nrmse(twice, reference.flow(state, np.full(3, 0.04), setting)).max() < 5e-3


@pytest.mark.parametrize("solver", SOLVERS)
def test_an_invalid_sample_fails_alone(solver: Solver) -> None:
    setting = make_setting((12, 12), batch=3)
    state = flow_state(setting)
    state[1, 0, 3, 3] = -1.0
    out = np.empty_like(state)
    reference = solver(ALL, 1)
    reference.advance(state, np.full(3, 0.01), setting, out)
    assert np.isnan(out[1]).all() and np.isfinite(out[[0, 2]]).all()
    with pytest.raises(NonFiniteStateError, match="sample 1"):
        reference.solve(state, setting, np.full((3, 1), 0.01))


@pytest.mark.parametrize("solver", SOLVERS)
def test_errors_name_what_is_wrong(solver: Solver) -> None:
    setting = make_setting((12, 12))
    state, times = flow_state(setting), np.full((1, 1), 0.01)
    walled = setting.with_grid(setting.grid.with_boundary(("periodic", "wall")))
    for broken, match in (
        (walled, "axis y is wall"),
        (Setting(setting.grid, gas_channels(2), {"gamma": np.ones(1) * 1.4}), "parameter 'eta' is missing"),
        (replace(setting, params={**setting.params, "gamma": np.ones(1)}), "gamma above 1"),
        (replace(setting, params={**setting.params, "zeta": -np.ones(1)}), "eta and zeta not negative"),
        (Setting(setting.grid, tuple(Channel(name) for name in "abcd"), setting.params), "density, momentum_x"),
    ):
        with pytest.raises(InvalidInputError, match=match):
            solver(ALL, 1).solve(state, broken, times)
    with pytest.raises(InvalidInputError, match="axis x is periodic with 6 cells"):
        solver(ALL, 1).solve(state[:, :, :6], make_setting((6, 12)), times)
    with pytest.raises(UnknownNameError, match="euler"):
        solver(frozenset({"eulr"}), 1)
    solver(EULER, 1).solve(state, Setting(setting.grid, gas_channels(2), {"gamma": np.full(1, 1.4)}), times)


def test_options_are_checked() -> None:
    for options in ({"courant": 0.0}, {"courant": 1.5}, {"stiffness": 0.0}, {"stiffness": np.inf}):
        with pytest.raises(InvalidInputError, match=next(iter(options))):
            CompressibleReference(ALL, **options)
    with pytest.raises(InvalidInputError, match="cfl"):
        PDEBenchReference(ALL, cfl=0.7)


@needs_fixture
@pytest.mark.parametrize(("samples", "bounds"), [(slice(0, 2), (1e-3, 1e-2)), (slice(2, 4), (1e-3, 2e-2))])
def test_against_pdebench_s_own_data(samples: slice, bounds: tuple[float, float]) -> None:
    """Its scheme comes close; a converged solution differs by the splitting error of the data."""
    data = PDEBenchFile(FIXTURE).read(samples, frames=[0, 1])
    start, end, time = data.states[:, 0], data.states[:, 1], float(data.times[0, 1])
    assert nrmse(solved(PDEBenchReference(ALL), start, data.setting, time), end).mean() < 1.5e-3
    assert bounds[0] < nrmse(solved(CompressibleReference(ALL, 1), start, data.setting, time), end).mean() < bounds[1]
