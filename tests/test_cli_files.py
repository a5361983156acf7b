"""Files and options that cannot be used: one line that names the file and the place in it, or the option."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import h5py
import numpy as np
import pytest
import xarray as xr
from rich.table import Table

import hycop
from hycop.cli.terminal import show
from hycop.data import write_pdebench
from hycop.query import Setting
from tests.helpers import hycop_command, one_line

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
        (["data", "ns2d", "x.hdf5", "--layout", "foo"], "unknown layout 'foo': known: hycop, pdebench, well"),
        (["data", "ns2d", "x.nc", "--layout", "pdebench"], "pdebench writes .hdf5, .h5"),
        (["evaluate", "ad1d", "--compare"], "--compare has no meaning for the problem ad1d"),
        (["evaluate", "ad1d", "--frames", "0,1"], "--frames has no meaning without --data"),
        (["evaluate", "ad1d", "--param", "nu=1"], "--param has no meaning without --data"),
        (["evaluate", "ad1d", "--times", "0.2,0.1"], "--times '0.2,0.1': give increasing numbers"),
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


def test_a_program_for_another_time_is_refused_unless_forced(tmp_path: Path) -> None:
    file = tmp_path / "data.nc"
    hycop.save(made("ad1d"), file)
    asked = ("evaluate", "ad1d", "--data", file, "--program")
    short, right = "advection 0.01, diffusion 0.005", "advection 0.004, diffusion 0.01, advection 0.006"
    refused = one_line(hycop_command(*asked, short))
    assert "--program: the program takes diffusion 0.005 in all, but T is 0.01" in refused and "--force" in refused
    for words in ((short, "--force"), (right,)):
        result = hycop_command(*asked, *words)
        assert result.returncode == 0 and not result.stderr
    drawn = one_line(
        hycop_command("evaluate", "ad1d", "--times", "0.1,0.2", "--program", "advection 0.1, diffusion 0.1")
    )
    assert "T is 0.1..0.2" in drawn


def test_help_says_how_to_list_what_there_is() -> None:
    for command in ("evaluate", "program", "data"):
        text = " ".join(hycop_command(command, "--help").stdout.replace("│", " ").split())
        assert "'hycop problems PROBLEM' lists them" in text


def test_text_from_files_and_paths_cannot_steer_the_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a[").mkdir()
    file = tmp_path / "a[" / "]\x1b[31mred.nc"
    written = hycop_command("data", "ad1d", file, "--samples", "1", "--shape", "8")
    assert written.returncode == 0 and "a[/]\\x1b[31mred.nc: 1 sample" in written.stdout, written.stderr
    for name in ("b[/].nc", "b[bold]\n\x1b]0;title\x07.nc", "b\udcff\u202e.nc"):
        said = one_line(hycop_command("evaluate", "ad1d", "--data", tmp_path / name))
        assert name.encode("unicode_escape").decode() in said and "\x1b" not in said
    table = Table("[/]", "head\x1b[2J", title="title [/]")
    table.add_row("[bold]cell[/]", ":smile: \x07")
    show(table)
    shown = capsys.readouterr().out
    for text in ("[/]", "head\\x1b[2J", "title [/]", "[bold]cell[/]", ":smile: \\x07"):
        assert text in shown


LONG, DIGITS, BITS = "n" * 300, "9" * 5000, str(10**20)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["program", LONG], "File name too long"),
        (["evaluate", "ad1d", "--data", f"{LONG}.nc"], "too long"),
        (["problems", "--json", f"{LONG}.json"], "too long"),
        (["train", "ad1d", "--out", LONG], "too long"),
        (["program", "ad1d", "--sample", BITS], "--sample is too large: at most 1,000,000,000"),
        (["program", "ad1d", "--sample", DIGITS], "--sample"),
        (["program", "ad1d", "--seed", BITS], "--seed is too large"),
        (["evaluate", "ad1d", "--samples", BITS], "--samples is too large"),
        (["evaluate", "ad1d", "--refinement", BITS], "--refinement is too large"),
        (["evaluate", "ad1d", "--shape", BITS], "is too large"),
        (["evaluate", "ad1d", "--shape", "99999x99999"], "--shape '99999x99999' is too large"),
        (["evaluate", "ad1d", "--shape", DIGITS], "--shape '999"),
        (["train", "ad1d", "--out", "run", "--set", f"samples={BITS}"], "setting 'samples' is 100000000000000000000"),
        (["train", "ad1d", "--out", "run", "--set", f"samples={DIGITS}"], "setting 'samples' is '999"),
        (["train", "ad1d", "--out", "run", "--set", "samples=" + 20000 * "["], "--set samples: its value is nested"),
        (["train", "ad1d", "--out", "run", "--executor", "processes", "--workers", "100000"], "from 1 to 1024"),
        (["train", "ad1d", "--out", "run", "--config", "/dev/zero"], "/dev/zero: is not a regular file"),
        (["evaluate", "ad1d", "--program", f"{LONG}.json"], "too long"),
    ],
    ids=lambda part: "" if isinstance(part, str) else "-".join(part[:2])[:20],
)
def test_absurd_names_and_numbers_are_one_line(words: list[str], said: str, tmp_path: Path) -> None:
    line = one_line(hycop_command(*words, folder=tmp_path))
    assert said in line and len(line) < 1100
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("content", ["[" * 10**5, f'[{{"primitive": "advection", "duration": {DIGITS}}}]', "\xff", ""])
def test_program_files_that_cannot_be_read(content: str, tmp_path: Path) -> None:
    file = tmp_path / "program.json"
    file.write_bytes(content.encode("latin-1"))
    assert f"--program {file}: " in one_line(hycop_command("evaluate", "ad1d", "--program", file))


def test_frames_and_coefficients_beyond_all_bounds(tmp_path: Path) -> None:
    file = tmp_path / "gas.hdf5"
    write_pdebench(made("ns2d"), file)
    evaluate = ("evaluate", "ns2d", "--data", file, *STRANG)
    assert f"--frames '0,{BITS}' is too large" in one_line(hycop_command(*evaluate, "--frames", f"0,{BITS}"))
    for value in ("1e999", "9" * 400, "NaN", "true", "fast", "[1]"):
        assert "give a finite number" in one_line(hycop_command(*evaluate, "--param", f"eta={value}"))


def test_loops_of_links_are_one_line(tmp_path: Path) -> None:
    for name in ("loop", "loop.nc", "loop.json", "loop.yaml"):
        (tmp_path / name).symlink_to(name)
    for words in (
        ("evaluate", "loop"),
        ("evaluate", "ad1d", "--data", "loop.nc"),
        ("evaluate", "ad1d", "--program", "loop.json"),
        ("train", "ad1d", "--out", "loop"),
        ("train", "ad1d", "--out", "run", "--config", "loop.yaml"),
        ("data", "ad1d", "loop.nc", "--samples", "1"),
        ("predict", "loop", "loop.nc", "loop.nc"),
        ("problems", "--json", "loop.json"),
    ):
        assert "loop" in one_line(hycop_command(*words, folder=tmp_path))


def test_a_report_replaces_only_a_report(tmp_path: Path) -> None:
    """Unless it is told to, with an option that every command with a report has."""
    data, report = tmp_path / "data.nc", tmp_path / "report.json"
    data.write_bytes(b"years of work")
    for path, content in (
        (data, None),
        (report, "{}"),
        (report, '{"meta": {"command": "other"}}'),
        (report, "[" * 9999),
    ):
        if content is not None:
            path.write_text(content)
        before = path.read_bytes()
        said = one_line(hycop_command("problems", "ad1d", "--json", path))
        assert str(path) in said and "--overwrite" in said and path.read_bytes() == before
    said = one_line(hycop_command("data", "ad1d", data, "--samples", "1", "--json", data, "--overwrite"))
    assert "is also another file of this command" in said and data.read_bytes() == b"years of work"
    for more in (["--overwrite"], []):
        assert hycop_command("problems", "ad1d", "--json", report, *more).returncode == 0
    assert '"hycop problems ad1d' in report.read_text()
    for command in ("problems", "data", "evaluate", "program", "check", "table", "demo", "train", "predict", "swap"):
        assert "--overwrite" in hycop_command(command, "--help").stdout


def test_states_beyond_all_bounds_print_no_source_lines(tmp_path: Path) -> None:
    data, file = made("burgers1d", cells=16), tmp_path / "big.nc"
    hycop.save(replace(data, states=data.states * 1e200), file)
    result = hycop_command("evaluate", "burgers1d", "--data", file, *STRANG)
    assert "Warning" not in result.stderr and ".py" not in result.stderr


def test_an_interrupt_says_what_remains(tmp_path: Path) -> None:
    (tmp_path / "late.py").write_text("raise KeyboardInterrupt\n")
    stopped = hycop_command("check", f"{tmp_path / 'late.py'}:Name")
    assert (stopped.returncode, stopped.stderr) == (130, "hycop: interrupted; nothing is left half-written\n")
    train = hycop_command("train", "ad1d", "--out", tmp_path / "run", "--callback", "late:tell", folder=tmp_path)
    assert train.returncode == 130 and "--resume continues" in train.stderr and train.stderr.count("\n") == 1
