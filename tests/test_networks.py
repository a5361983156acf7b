"""Networks: any grid, identity at zero duration, architectures as data, and a loop that resumes to the same bits."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

pytest.importorskip("torch", reason="needs the extra 'learned'")

import torch
from neuralop.layers.spectral_convolution import SpectralConv

from hycop.errors import InvalidInputError, NonFiniteStateError, UnknownNameError
from hycop.networks import FAMILIES, Architecture
from hycop.networks.loop import Examples, Schedule, Training, error_of, train
from hycop.networks.module import Increment, arrays_of, set_arrays
from hycop.networks.spectral import SpectralConvolution

FNO = {"width": 6, "modes": 4, "layers": 2, "film": 8}
SMALL = {"fno-film": FNO, "fno-film-direct": FNO, "multiplier-film": {"width": 8, "film": 8}}
SMALL["uno"] = SMALL["uno-direct"] = SMALL["fno"] = SMALL["local-no"] = {"width": 6, "modes": 4, "layers": 4}
SMALL["deeponet"] = {"width": 24, "basis": 16, "layers": 3}
SMALL["unet"] = {"width": 8, "layers": 2}
every_family = pytest.mark.parametrize("family", FAMILIES)


def architecture(family: str, axes: int = 2, channels: int = 2, **more: int) -> Architecture:
    sizes = {"axes": axes, "channels": channels, "numbers": 3, "timed": 2}
    return Architecture.of({"family": family, **sizes, **SMALL.get(family, {"width": 8}), **more})


def call(module: Increment, u: torch.Tensor, numbers: torch.Tensor) -> torch.Tensor:
    with torch.inference_mode():
        out: torch.Tensor = module(u, numbers)
    return out


@every_family
@pytest.mark.parametrize("shape", [(16,), (9, 12), (3, 2), (5, 4, 6)])
def test_any_grid_of_any_dimension_and_the_identity_at_zero_duration(family: str, shape: tuple[int, ...]) -> None:
    module = architecture(family, axes=len(shape)).build(seed=1)
    u, numbers = torch.rand(2, 2, *shape), torch.tensor([[0.5, -0.2, 0.3], [0.0, 0.0, 0.9]])
    change = call(module, u, numbers)
    assert change.shape == u.shape and change.dtype == torch.float32
    assert change[0].abs().max() > 0
    assert (change[1].abs().max() == 0) == FAMILIES[family].identity
    assert module.flops(int(np.prod(shape))) > 0


def test_the_multiplier_is_linear_and_commutes_with_translation() -> None:
    module = architecture("multiplier-film").build(seed=2)
    u, v, numbers = torch.rand(1, 2, 8, 8), torch.rand(1, 2, 8, 8), torch.rand(1, 3)
    together = call(module, 2 * u - v, numbers)
    assert torch.allclose(together, 2 * call(module, u, numbers) - call(module, v, numbers), atol=1e-4)
    moved = call(module, torch.roll(u, (3, 1), (2, 3)), numbers)
    assert torch.allclose(moved, torch.roll(call(module, u, numbers), (3, 1), (2, 3)), atol=1e-4)


def test_the_spectral_layer_is_that_of_neuraloperator_and_right_on_odd_grids_too() -> None:
    layer = SpectralConvolution(3, 3, (6, 6))
    even = torch.rand(2, 3, 12, 10)
    with torch.inference_mode():
        assert torch.allclose(layer(even), SpectralConv.forward(layer, even), atol=1e-6)
        # a wave of a kept mode has the same response on every grid that carries it
        waves = [
            torch.cos(2 * torch.pi * (torch.arange(n)[:, None] / n + 2 * torch.arange(m) / m)).expand(1, 3, n, m)
            for n, m in ((12, 12), (9, 15))
        ]
        coarse, fine = (torch.fft.rfft2(layer(wave), norm="forward")[..., 1, 2] for wave in waves)
    assert torch.allclose(coarse, fine, atol=1e-6)


@every_family
def test_weights_are_arrays_and_shapes_are_known_without_memory(family: str) -> None:
    plan = architecture(family)
    one, other = plan.build(seed=1), plan.build(seed=2)
    arrays = arrays_of(one)
    assert {name: array.shape for name, array in arrays.items()} == plan.shapes()
    assert all(array.dtype == np.float32 for array in arrays.values())
    u, numbers = torch.rand(1, 2, 8, 8), torch.rand(1, 3)
    assert not torch.equal(call(one, u, numbers), call(other, u, numbers))
    set_arrays(other, arrays)
    assert torch.equal(call(one, u, numbers), call(other, u, numbers))
    with pytest.raises(InvalidInputError, match="is missing"):
        set_arrays(other, {})


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"family": "fno-fim"}, "did you mean fno-film"),
        ({"width": 10**6}, "width is 1000000: give a whole number from 1 to 512"),
        ({"width": True}, "width is True"),
        ({"depth": 3}, "unknown option 'depth'"),
        ({"timed": 9}, "timed is 9"),
        ({"width": 512, "modes": 256}, "parameters; at most"),
    ],
)
def test_an_architecture_that_cannot_be_is_refused(change: dict[str, object], reason: str) -> None:
    data = {**architecture("fno-film").to_json(), **change}
    with pytest.raises((InvalidInputError, UnknownNameError), match=reason):
        Architecture.of(data).shapes()


def examples(index: int) -> Examples:
    """The change −g(n)·u of a few waves, which every family can learn."""
    rng = np.random.default_rng(index)
    x, y = np.meshgrid(*(2 * np.pi * np.arange(6) / 6,) * 2)
    states = np.tensordot(rng.normal(size=(24, 2, 4)), np.stack([np.cos(x), np.sin(x), np.cos(y), np.sin(y)]), 1)
    numbers = rng.uniform(0.1, 1.0, (24, 3))
    changes = -numbers[:, :2].mean(axis=1)[:, None, None, None] * states
    return Examples(states, numbers, changes, 1 / np.linalg.norm((states + changes).reshape(24, -1), axis=1))


@every_family
def test_it_learns_and_goes_on_from_any_round_to_the_same_bits(family: str) -> None:
    plan, schedule, kept = architecture(family), Schedule(12, batch=8, rate=1e-2), list[Training]()
    module = plan.build(seed=3)
    done = train(module, examples, examples(99), schedule, keep=kept.append)
    assert done.best < 0.8 * done.errors[0] and done.best == min(done.errors)
    assert error_of(module, examples(99)) == pytest.approx(done.best, rel=1e-5)  # perhaps with other threads
    again = train(plan.build(seed=4), examples, examples(99), schedule, state=kept[4])
    assert again.errors == done.errors
    for group, arrays in done.arrays.items():
        assert all(np.array_equal(array, again.arrays[group][name]) for name, array in arrays.items())


def test_the_best_weights_are_kept_and_patience_ends() -> None:
    wild = Schedule(200, batch=8, rate=0.5, patience=3)
    module = architecture("pointwise").build(seed=3)
    done = train(module, examples, examples(99), wild)
    assert done.rounds < 200 and done.since == 3 and done.errors[-4] == done.best
    assert error_of(module, examples(99)) == pytest.approx(done.best, rel=1e-5)


def test_neuraloperator_brings_no_logger() -> None:
    """wandb takes a second to import, and a killed worker would leave its folders in /tmp."""
    script = "import sys, hycop.networks.fno_film; assert 'neuralop' in sys.modules and 'wandb' not in sys.modules"
    subprocess.run([sys.executable, "-c", script], check=True)


def test_a_network_that_is_lost_is_an_error() -> None:
    def broken(index: int) -> Examples:
        return examples(index)._replace(changes=np.full((24, 2, 6, 6), np.nan))

    with pytest.raises(NonFiniteStateError, match="lower rate"):
        train(architecture("pointwise").build(), examples, broken(0), Schedule(2))
