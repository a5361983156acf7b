"""What several test files use."""

from __future__ import annotations

import contextlib
import io
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import xarray as xr

from hycop.channels import gas_channels, water_channels
from hycop.cli import main
from hycop.data import Dataset, write_pdebench
from hycop.data.gas import encode
from hycop.dictionary import Dictionary
from hycop.execution import run
from hycop.grid import Array, Grid
from hycop.primitive import Primitive
from hycop.primitives import (
    PRIMITIVES,
    CentralEuler,
    ExactLogistic,
    FiniteVolumeGasViscosity,
    MusclAdvection,
    MusclEuler,
    SpectralAdvection,
    SpectralDiffusion,
    SqrtDensityViscosity,
)
from hycop.problems import find_problem
from hycop.query import Channel, Query, Setting
from hycop.schemes import splitting
from hycop.surrogate import HyCOP

SCALAR_KINDS: dict[str, Callable[[], Primitive]] = {
    name: kind
    for name, kind in PRIMITIVES.items()
    if {"advection", "diffusion", "reaction"} & kind().advances and not name.endswith(("BurgersAdvection", "Rate"))
}
"""Primitives of a scalar with constant coefficients; those of systems have test files of their own."""

# ------------------------------------------------------------------------------------------- the command line

ROOT = Path(__file__).parents[1]


class Result(NamedTuple):
    returncode: int
    stdout: str
    stderr: str


def hycop_command(*words: str | Path, folder: Path = ROOT) -> Result:
    """The command in this process (starting one costs two seconds), with what it would print and return."""
    stdout, stderr = io.StringIO(), io.StringIO()
    with (
        pytest.MonkeyPatch.context() as patch,
        contextlib.redirect_stdout(stdout),
        contextlib.redirect_stderr(stderr),
    ):
        patch.setattr(sys, "argv", ["hycop", *map(str, words)])
        patch.setenv("COLUMNS", "200")
        patch.chdir(folder)
        try:
            main()
            code = 0
        except SystemExit as stop:
            code = int(stop.code or 0)
    return Result(code, stdout.getvalue(), stderr.getvalue())


def one_line(result: Result) -> str:
    """What a command that was refused says."""
    assert result.returncode == 2, (result.stdout, result.stderr)
    assert result.stderr.count("\n") == 1 and "Traceback" not in result.stderr
    return result.stderr


# ------------------------------------------------------------------------------------------- scalars

EXACT_FLOWS = Dictionary(
    {"advection": SpectralAdvection(), "diffusion": SpectralDiffusion(), "reaction": ExactLogistic()}
)


DICTIONARY = EXACT_FLOWS.adding("muscl", MusclAdvection())


def query_of(batch: int, boundary: str = "periodic", seed: int = 0) -> Query:
    """Random states in (0, 1) with coefficients of their own."""
    rng = np.random.default_rng(seed)
    grid = Grid((6, 5), rng.uniform(0.5, 2.0, (batch, 2)), (boundary,) * 2)
    params = {name: rng.uniform(0.1, 1.0, batch) for name in ("cx", "cy", "r")}
    params |= {name: rng.uniform(0.0, 0.1, batch) for name in ("Dx", "Dy")}
    return Query(rng.uniform(0.1, 0.9, (batch, 1, 6, 5)), Setting(grid, (Channel("u"),), params), np.ones(batch))


SCALAR = (Channel("u"),)


def one_box(shape: tuple[int, ...], boundary: str | tuple[str, ...] = "periodic", **params: float) -> Setting:
    return Setting(Grid.box(shape, 1.0, boundary), SCALAR, params)


# ------------------------------------------------------------------------------------------- shallow water

CHANNELS = (Channel("h"), Channel("hu", normal=0), Channel("hv", normal=1))


SIGNS = np.array([[1.0, 1.0], [-1.0, 1.0], [1.0, -1.0]])


G = 9.81


DATA = Path(__file__).resolve().parents[2] / "shared" / "data"


def relative(u: Array, truth: Array) -> float:
    return float(np.linalg.norm(u - truth) / np.linalg.norm(truth))


# ------------------------------------------------------------------------------------------- datasets

SUFFIXES = [".nc", ".npz"]


def make(
    shape: tuple[int, ...] = (6,),
    *,
    samples: int = 3,
    times: int = 3,
    dtype: Any = np.float64,
    boundary: Any = "periodic",
    channels: tuple[Channel, ...] = (Channel("u"),),
    seed: int = 7,
) -> Dataset:
    rng = np.random.default_rng(seed)
    grid = Grid(shape, rng.uniform(1.0, 9.0, (samples, len(shape))), Grid.box(shape, boundary=boundary).boundary)
    setting = Setting(grid, channels, {"cx": rng.normal(size=samples), "g": 9.81})
    states = rng.normal(size=(samples, times, len(channels), *shape)).astype(dtype)
    clock = np.cumsum(rng.uniform(0.0, 1.0, (samples, times)), axis=1)
    clock[:, 0] = 0.0
    return Dataset("toy", "train", states, clock, setting, seed, "exact", 1e-9, "0.1.0")


def assert_same(a: Dataset, b: Dataset) -> None:
    for field in ("problem", "split", "seed", "reference", "reference_error", "version"):
        assert getattr(a, field) == getattr(b, field), field
    assert a.states.dtype == b.states.dtype
    assert a.setting.channels == b.setting.channels
    assert a.setting.grid.boundary == b.setting.grid.boundary
    assert list(a.setting.params) == list(b.setting.params)
    for x, y in [(a.states, b.states), (a.times, b.times), (a.setting.grid.lengths, b.setting.grid.lengths)]:
        np.testing.assert_array_equal(x, y)
    for name, value in a.setting.params.items():
        np.testing.assert_array_equal(value, b.setting.params[name])


def foreign(**replaced: Any) -> dict[str, Any]:
    variables = {
        "h": (("sample", "time", "x"), np.ones((2, 3, 4), np.float32)),
        "m": (("sample", "time", "x"), np.zeros((2, 3, 4), np.float32)),
        "time": (("sample", "time"), np.tile([0.0, 0.5, 1.0], (2, 1))),
        "lengths": (("sample", "axis"), np.array([[1.0], [2.0]])),
        "g": (("sample",), np.array([9.0, 10.0])),
        "x": (("x",), np.arange(4.0)),
    } | replaced
    return {name: variable for name, variable in variables.items() if variable is not None}


def write_foreign(path: Path, attrs: dict[str, Any] | None = None, **replaced: Any) -> Path:
    variables, attrs = foreign(**replaced), attrs or {}
    if path.suffix == ".npz":
        np.savez(path, **{name: variable[1] for name, variable in variables.items()}, **attrs)
    else:
        xr.Dataset(variables, attrs=attrs).to_netcdf(path, engine="h5netcdf")
    return path


def make_gas(shape: tuple[int, ...] = (6, 4), samples: int = 3, frames: int = 3, gamma: float = 1.4) -> Dataset:
    rng = np.random.default_rng(1)
    reported = rng.uniform(0.5, 2.0, (samples * frames, 2 + len(shape), *shape))
    reported[:, 1:-1] -= 1.2
    states = encode(reported, gamma).reshape(samples, frames, 2 + len(shape), *shape)
    setting = Setting(
        Grid.box(shape, batch=samples),
        gas_channels(len(shape)),
        {"gamma": np.full(samples, gamma), "eta": np.full(samples, 0.1), "zeta": np.full(samples, 0.2)},
    )
    return Dataset("ns2d", "id", states, np.tile(0.25 * np.arange(frames), (samples, 1)), setting)


def write_gas(path: Path) -> None:
    write_pdebench(make_gas(), path)


# ------------------------------------------------------------------------------------------- gas

CONSERVATIVE = Dictionary({"euler": CentralEuler(), "viscosity": FiniteVolumeGasViscosity()})


SHOCKS = Dictionary({"euler": MusclEuler(), "viscosity": FiniteVolumeGasViscosity()})


SPECTRAL = Dictionary({"euler": CentralEuler(), "viscosity": SqrtDensityViscosity()})


def conserved(density: Array, velocities: list[Array], pressure: Array, gamma: float) -> Array:
    """The state (batch, channel, *grid) of primitive fields (batch, *grid)."""
    density, pressure, *velocities = np.broadcast_arrays(density, pressure, *velocities)
    energy = pressure / (gamma - 1) + sum(0.5 * density * v**2 for v in velocities)
    return np.stack([density, *(density * v for v in velocities), energy], axis=1)


def primitive_fields(u: Array, gamma: float) -> Array:
    """Density, velocities and pressure, (batch, channel, *grid)."""
    density, momenta, energy = u[:, :1], u[:, 1:-1], u[:, -1:]
    pressure = (gamma - 1) * (energy - 0.5 * (momenta**2).sum(axis=1, keepdims=True) / density)
    return np.concatenate([density, momenta / density, pressure], axis=1)


def setting_of(
    shape: tuple[int, ...], lengths: float = 1.0, boundary: str | tuple[str, ...] = "periodic", **params: float
) -> Setting:
    values = {"gamma": 1.4, "eta": 0.0, "zeta": 0.0} | params
    return Setting(Grid.box(shape, lengths, boundary), gas_channels(len(shape)), values)


def nrmse(u: Array, truth: Array, gamma: float = 5 / 3) -> Array:
    """RMSE over the field relative to its RMS, for density, velocities and pressure, mean over samples."""
    ours, theirs = primitive_fields(u, gamma), primitive_fields(truth, gamma)
    error = np.sqrt(((ours - theirs) ** 2).mean(axis=(2, 3)) / (theirs**2).mean(axis=(2, 3)))
    return error.mean(axis=0)


# ------------------------------------------------------------------------------------------- references

WATER = frozenset({"gravity", "momentum"})


def water(
    shape: tuple[int, ...], batch: int = 1, lengths: Any = 10.0, boundary: Any = "periodic", g: Any = 9.81
) -> Setting:
    return Setting(Grid.box(shape, lengths, boundary, batch), water_channels(len(shape)), {"g": g})


def line(cells: int, batch: int = 1, length: float = 2.0, **params: Any) -> Setting:
    return Setting(Grid.box((cells,), length, "periodic", batch), (Channel("u"),), params)


def hills(grid: Grid) -> Array:
    """A smooth periodic state, subcritical; samples differ by a shift."""
    shift = np.arange(grid.batch).reshape((-1,) + (1,) * grid.axes)
    angles = [2 * np.pi * x / grid.lengths[:, i].reshape(shift.shape) + shift for i, x in enumerate(grid.centres())]
    depth = 1 + 0.1 * np.sin(sum(angles)) + 0.1 * np.cos(2 * angles[0])
    momenta = [0.3 * np.cos(angle + axis) + 0.1 * np.sin(angles[0]) for axis, angle in enumerate(angles)]
    return np.stack(np.broadcast_arrays(depth, *momenta), axis=1)


# ------------------------------------------------------------------------------------------- models


def tiny_model() -> HyCOP:
    """A model of adr2d as it was learned in seconds, whatever the gate says of so small a training."""
    problem = find_problem("adr2d")
    learn, held_out = (problem.sample(32, "train", seed, shape=(16, 16), estimated=0) for seed in (0, 1))
    least = {"tries": 1, "patterns": 1, "rounds": 1, "iterations": 2, "max_steps": 6}
    fitted = HyCOP(problem.dictionary).fit(learn, held_out, verbose=False, **least)  # type: ignore[arg-type]
    return HyCOP.of(replace(fitted.model, gate=fitted.model.gate.opened()))


# ------------------------------------------------------------------------------------------- networks

KINDS = {"c": "velocity", "D": "diffusivity", "r": "rate"}


def tiny_network(
    processes: tuple[str, ...], numbers: tuple[str, ...], axes: int = 1, family: str = "fno-film", **options: int
) -> Any:
    """A learned primitive of a scalar with small random weights, told coefficients such as cx and r; needs torch."""
    from hycop.primitives.learned import NeuralOperator

    told = {name: (KINDS[name[0]], "xyz".index(name[1]) if name[1:] else None) for name in numbers}
    sizes = {"axes": axes, "channels": 1, "numbers": len(numbers), "timed": len(numbers)}
    ranges = dict.fromkeys(numbers, (0.05, 3.0))
    plan = {"family": family, **sizes, **options}
    bare = NeuralOperator(plan, processes, {"u": (0.0, 1.0)}, told, ranges, 0.25, ("periodic",) * axes)
    rng = np.random.default_rng(0)
    return bare.with_arrays({name: 0.02 * rng.normal(size=shape) for name, shape in bare.plan.shapes().items()})


def tiny_baselines(patch: pytest.MonkeyPatch) -> None:
    """Baselines of tables learn next to nothing, in seconds."""
    from hycop.baselines import training
    from hycop.experiments.bench import Bench

    least = {"trajectories": 12, "rounds": 2, "batch": 12, "rate": 1e-3}
    patch.setattr(training, "PRESETS", dict.fromkeys(training.PRESETS, least))
    patch.setattr(training, "LAPTOP_ROUNDS", {})
    patch.setattr(training, "FEWER", 1)
    patch.setattr(Bench, "_check_self_test", lambda bench, family: None)


# ------------------------------------------------------------------------------------------- a small model

SMALL_MODEL = Path(__file__).parent / "models" / "schema2"
"""A model folder of advection, diffusion and reaction on a line: loading it takes no training."""


def small_data(samples: int = 3, times: tuple[float, ...] = (0.05, 0.2), cells: int = 64) -> Dataset:
    """Data that the small model can answer, from fine programs of its own dictionary."""
    rng = np.random.default_rng(0)
    dictionary = HyCOP.load(SMALL_MODEL).dictionary
    grid = Grid.box((cells,), 2.5, batch=samples)
    params = {name: rng.uniform(*ends, samples) for name, ends in PARAMS.items()}
    setting = Setting(grid, (Channel("u"),), params)
    x = (np.arange(cells) + 0.5) / cells
    u0 = 0.5 + 0.4 * np.sin(2 * np.pi * (x + rng.random((samples, 1, 1))))
    query = Query(u0, setting, np.zeros(samples)).at(times)
    states = run(splitting("strang x32").programs(query, dictionary), dictionary, query)
    states = np.concatenate([u0[:, None], states.reshape(samples, len(times), 1, cells)], axis=1)
    return Dataset("adr1d", "small", states, np.array([0.0, *times]), setting)


PARAMS = {"cx": (0.2, 1.0), "Dx": (0.05, 0.1), "r": (0.2, 0.8)}
