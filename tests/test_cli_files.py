"""Files and options that cannot be used: one line that names the file and the place in it, or the option."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import h5py
import numpy as np
import pytest
import xarray as xr

import hycop
from hycop.data import write_pdebench
from hycop.query import Setting
from tests.test_cli import Result, hycop_command

STRANG = ("--scheme", "strang")


def made(problem: str, cells: int = 8, **params: float) -> hycop.Dataset:
    """Two samples without a truth worth the name, of which the second has other coefficients."""
    chosen = hycop.problem(problem)
    shape = (cells,) * len(chosen.shape)
    grid = hycop.Grid.box(shape, chosen.lengths, batch=2)
    good = {name: 5.0 / 3.0 if name == "gamma" else 0.1 for name in chosen.parameters}
    coefficients = {name: np.array([value, params.get(name, value)]) for name, value in good.items()}
    x = np.sin(2 * np.pi * (np.arange(cells) + 0.5) / cells).reshape((-1,) + (1,) * (len(shape) - 1))
    momenta = [channel.normal is not None for channel in chosen.channels]
    states = np.stack([np.broadcast_to((0.0 if momentum else 3.0) + 0.1 * x, shape) for momentum in momenta])
    return hycop.Dataset(
        problem,
        "id",
        np.tile(states, (2, 2, *(1,) * states.ndim)),
        np.tile([0.0, 0.01], (2, 1)),
        Setting(grid, chosen.channels, coefficients),
    )


def one_line(result: Result) -> str:
    assert result.returncode == 2, (result.stdout, result.stderr)
    assert result.stderr.count("\n") == 1 and "Traceback" not in result.stderr
    return result.stderr


@pytest.mark.parametrize(
    ("problem", "params", "said"),
    [
        ("ns2d", {"eta": -0.1}, "parameter 'eta' is -0.1 for sample 1: it must not be negative"),
        ("ns2d", {"gamma": 1.0}, "parameter 'gamma' is 1 for sample 1: it must be above 1"),
        ("swe1d", {"g": 0.0}, "parameter 'g' is 0 for sample 1: it must be above 0"),
        ("ad1d", {"Dx": -1.0}, "parameter 'Dx' is -1 for sample 1: it must not be negative"),
        ("burgers1d", {"nu": -1.0}, "parameter 'nu' is -1 for sample 1: it must not be negative"),
    ],
)
def test_coefficients_for_which_the_equation_is_ill_posed(
    problem: str, params: dict[str, float], said: str, tmp_path: Path
) -> None:
    file = tmp_path / "odd.nc"
    hycop.save(made(problem, **params), file)
    assert f"{file}: {said}" in one_line(hycop_command("evaluate", problem, "--data", file, *STRANG))


def test_too_few_cells_or_times_name_the_file(tmp_path: Path) -> None:
    file = tmp_path / "few.nc"
    hycop.save(made("swe1d", cells=4), file)
    assert f"{file}: refinement needs at least 5 cells" in one_line(
        hycop_command("evaluate", "swe1d", "--data", file, *STRANG)
    )
    data = made("ad1d")
    hycop.save(replace(data, states=data.states[:, :1], times=data.times[:, :1]), file)
    for command in (("evaluate", "ad1d"), ("train", "ad1d", "--out", tmp_path / "run")):
        assert f"{file}: states: the dataset has initial states only" in one_line(
            hycop_command(*command, "--data", file)
        )


def test_pdebench_files_are_named(tmp_path: Path) -> None:
    file = tmp_path / "gas.hdf5"
    write_pdebench(made("ns2d"), file)
    evaluate = ("evaluate", "ns2d", "--data", file, *STRANG)
    assert f"{file}: frames [0, 9]: increasing numbers from 0 to 1" in one_line(
        hycop_command(*evaluate, "--frames", "0,9")
    )
    assert f"{file}: cannot restrict (8, 8) to (3, 3)" in one_line(hycop_command(*evaluate, "--shape", "3x3"))
    assert f"{file}: states: the dataset has initial" in one_line(hycop_command(*evaluate, "--frames", "0"))
    assert f"{file}: grid boundary: 3 names" in one_line(hycop_command(*evaluate, "--boundary", "wall,wall,wall"))
    with h5py.File(file, "a") as inside:
        inside.attrs["gamma"] = 0.9
    assert f"{file}: gamma is 0.9: it must be above 1" in one_line(hycop_command(*evaluate))


def test_times_in_single_precision_are_shown_as_they_are_meant(tmp_path: Path) -> None:
    file = tmp_path / "gas.hdf5"
    write_pdebench(made("ns2d").take(slice(0, 1)), file)
    result = hycop_command("evaluate", "ns2d", "--data", file, *STRANG)
    assert "T=0.01, 1 sample x 1 seed" in result.stdout, result.stderr


@pytest.mark.parametrize("suffix", [".nc", ".npz"])
@pytest.mark.parametrize(
    ("centres", "said"),
    [
        (lambda x: x[::-1], "coordinate 'x' must be finite and increasing"),
        (lambda x: x**2, "coordinate 'x' is not uniform"),
        (lambda x: np.linspace(0.0, 10.0, x.size), "but lengths of sample 0 is 10"),
        (lambda x: x, None),
        (lambda x: (x - 3.0).astype(np.float32), None),
        (lambda x: np.arange(x.size), None),
    ],
    ids=["falling", "uneven", "from end to end", "centres", "shifted", "numbers"],
)
def test_coordinates_agree_with_the_lengths(
    suffix: str, centres: Callable[[np.ndarray], np.ndarray], said: str | None, tmp_path: Path
) -> None:
    file = tmp_path / f"data{suffix}"
    hycop.save(made("ad1d", cells=200), file)
    x = centres((np.arange(200) + 0.5) * 10.0 / 200)
    if suffix == ".npz":
        with np.load(file) as stored:
            arrays = dict(stored)
        np.savez(file, **{**arrays, "x": x})
    else:
        plain = xr.load_dataset(file, engine="h5netcdf", decode_times=False)
        plain.assign_coords(x=x).to_netcdf(file, engine="h5netcdf")
    if said is None:
        assert hycop.load(file).samples == 2
    else:
        with pytest.raises(hycop.errors.DatasetError, match=said) as caught:
            hycop.load(file)
        assert str(caught.value).startswith(str(file))


def test_folders_and_python_objects_are_no_datasets(tmp_path: Path) -> None:
    for name in ("folder", "folder.nc", "folder.hdf5"):
        (tmp_path / name).mkdir()
        said = one_line(hycop_command("evaluate", "ad1d", "--data", tmp_path / name))
        assert f"{tmp_path / name}: is a folder" in said
    file = tmp_path / "objects.npz"
    np.savez(file, u=np.array([None]), time=np.zeros(2), lengths=np.ones(1))
    said = one_line(hycop_command("evaluate", "ad1d", "--data", file))
    assert f"{file}: array 'u' holds Python objects" in said and "pickle" not in said


def test_a_boundary_that_a_dictionary_cannot_handle(tmp_path: Path) -> None:
    remedy = "(it knows periodic); --dictionary muscl or --dictionary upwind can"
    assert remedy in one_line(hycop_command("evaluate", "adr2d", "--boundary", "wall"))
    data, file = made("ad1d"), tmp_path / "walls.nc"
    walled = replace(data, setting=data.setting.with_grid(data.setting.grid.with_boundary("wall")))
    hycop.save(walled, file)
    said = one_line(hycop_command("evaluate", "ad1d", "--data", file))
    assert str(file) in said and remedy in said
    said = one_line(hycop_command("train", "ad1d", "--data", file, "--out", tmp_path / "run"))
    assert str(file) in said and "--set dictionary=muscl or --set dictionary=upwind can" in said
    assert "no dictionary of ks1d can" in one_line(hycop_command("evaluate", "ks1d", "--boundary", "wall"))
    shown = hycop_command("evaluate", "ad1d", "--data", file, "--dictionary", "upwind", *STRANG)
    assert "8, boundary wall, T=0.01" in shown.stdout


def test_data_is_not_overwritten_unasked(tmp_path: Path) -> None:
    file = tmp_path / "out.nc"
    command = ("data", "ad1d", file, "--samples", "1", "--shape", "8")
    first = hycop_command(*command)
    assert first.returncode == 0 and "1 sample of ad1d" in first.stdout
    before = file.read_bytes()
    assert f"{file}: exists already; choose another name, or replace it with --overwrite" in one_line(
        hycop_command(*command, "--seed", "1")
    )
    assert file.read_bytes() == before
    assert hycop_command(*command, "--seed", "1", "--overwrite").returncode == 0
    assert file.read_bytes() != before


def test_a_truth_without_an_estimate_is_written(tmp_path: Path) -> None:
    file = tmp_path / "dam.nc"
    result = hycop_command("data", "dambreak2d", file, "--samples", "1", "--shape", "16x16", "--times", "0.01")
    assert result.returncode == 0 and "with no estimate of its error" in result.stdout, result.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["data", "ns2d", "x.hdf5", "--layout", "foo"], "--layout foo: the layouts are hycop, pdebench"),
        (["data", "ns2d", "x.nc", "--layout", "pdebench"], "pdebench writes .hdf5, .h5"),
        (["evaluate", "ad1d", "--compare"], "--compare has no meaning for the problem ad1d"),
        (["evaluate", "ad1d", "--frames", "0,1"], "--frames has no meaning without --data"),
        (["evaluate", "ad1d", "--param", "nu=1"], "--param has no meaning without --data"),
        (["evaluate", "ad1d", "--times", "0.2,0.1"], "--times '0.2,0.1': increasing numbers"),
        (["train", "ad1d", "--out", "run", "--frames", "0,1"], "--frames has no meaning without --data"),
        (["train", "ad1d", "--out", "run", "--data", "a.nc", "--set", "samples=16"], "--set samples has no meaning"),
        (["train", "ad1d", "--out", "run", "--held-out", "a.nc", "--set", "validation=200"], "--set validation"),
        (["train", "ad1d", "--out", "run", "--set", "samples=4", "--set", "samples=8"], "samples is given twice"),
        (["swap", "run", "out", "--primitive", "a=b", "--primitive", "a=c"], "--primitive 'a=c': a is given twice"),
    ],
)
def test_options_without_effect_are_refused(words: list[str], said: str, tmp_path: Path) -> None:
    assert said in one_line(hycop_command(*words, folder=tmp_path))
    assert not list(tmp_path.iterdir())


def test_a_program_for_another_time_is_said(tmp_path: Path) -> None:
    file = tmp_path / "data.nc"
    hycop.save(made("ad1d"), file)
    for program, said in (
        ("advection 0.01, diffusion 0.005", "--program takes diffusion 0.005 in all, but T is 0.01"),
        ("advection 0.004, diffusion 0.01, advection 0.006", ""),
    ):
        result = hycop_command("evaluate", "ad1d", "--data", file, "--program", program)
        assert result.returncode == 0
        assert said in result.stderr if said else not result.stderr


def test_help_says_how_to_list_what_there_is() -> None:
    for command in ("evaluate", "program", "data"):
        text = " ".join(hycop_command(command, "--help").stdout.replace("│", " ").split())
        assert "'hycop problems PROBLEM' lists them" in text
