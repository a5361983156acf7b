"""Baseline networks: they fit, they learn known flows, their symmetries, their published sizes, and other grids."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

pytest.importorskip("torch", reason="needs the extra 'learned'")

import torch

from hycop.baselines import BASELINES, BaselineError
from hycop.baselines.selftest import STATED, advection, fit_error, flow_error, heat, self_test
from hycop.grid import Array
from hycop.networks import FAMILIES, Architecture
from hycop.networks.direct import Direct, centres
from hycop.networks.fno import Fno
from hycop.networks.local_no import LocalNO, LocalNo
from hycop.networks.module import Increment
from hycop.networks.spectral import SpectralConvolution

SHORT: dict[str, tuple[tuple[int, float], tuple[int, float], tuple[int, float]]] = {
    "fno": ((100, 1e-1), (10, 2e-1), (10, 4e-1)),
    "local-no": ((100, 1e-1), (10, 2e-1), (10, 4e-1)),
    "unet": ((60, 1e-1), (5, 1e-1), (5, 4e-1)),
    "deeponet": ((200, 1e-1), (20, 3e-1), (20, 6e-1)),
    "uno-direct": ((100, 1e-1), (10, 2e-1), (10, 4e-1)),
}
"""Rounds and largest error of fitting, heat and advection: these only show that a network learns. What it is to reach
is ``STATED`` in ``hycop.baselines.selftest``."""

every_baseline = pytest.mark.parametrize("family", SHORT)


def plan(family: str, axes: int = 2, channels: int = 1, numbers: int = 1, **more: int) -> Architecture:
    return Architecture.of(
        {"family": family, "axes": axes, "channels": channels, "numbers": numbers, "timed": 1, **more}
    )


def call(module: Increment, u: torch.Tensor, numbers: torch.Tensor) -> torch.Tensor:
    with torch.inference_mode():
        out: torch.Tensor = module(u, numbers)
    return out


@every_baseline
def test_it_fits_eight_samples(family: str) -> None:
    rounds, bound = SHORT[family][0]
    assert fit_error(family, rounds) <= bound


@every_baseline
@pytest.mark.parametrize("flow", [heat, advection])
def test_it_learns_a_known_flow(family: str, flow: Callable[[Array], Array]) -> None:
    rounds, bound = SHORT[family][1 if flow is heat else 2]
    assert flow_error(family, flow, rounds) <= bound


@every_baseline
@pytest.mark.validate
def test_it_passes_its_self_test(family: str) -> None:
    self_test(family).raise_if_failed()


def test_every_baseline_has_a_self_test() -> None:
    assert {baseline.family for baseline in BASELINES.values()} == set(STATED) == set(SHORT)
    with pytest.raises(BaselineError, match="no self-test"):
        self_test("fno-film")


@pytest.mark.parametrize(
    ("family", "cells", "same"),
    [
        ("fno", (1, 3), True),
        ("local-no", (1, 3), True),
        ("uno-direct", (2, 4), True),  # its middle layers have half as many cells
        ("unet", (16, 16), True),
        ("unet", (8, 16), False),
        ("deeponet", (16, 16), False),
    ],
)
def test_without_coordinates_it_commutes_with_shifts(family: str, cells: tuple[int, int], same: bool) -> None:
    without = {"coordinates": 0} if "coordinates" in FAMILIES[family].options else {}
    module = plan(family, channels=2, **without).build(seed=2)
    u, numbers = torch.randn(2, 2, 32, 32), torch.rand(2, 1)
    there = call(module, u, numbers).roll(cells, (2, 3))
    assert torch.allclose(call(module, u.roll(cells, (2, 3)), numbers), there, atol=1e-5) == same


@pytest.mark.parametrize("family", [name for name in SHORT if name != "deeponet"])
def test_coordinates_are_the_cell_centres_and_break_the_symmetry(family: str) -> None:
    module = plan(family).build(seed=2)
    assert isinstance(module, Direct)
    u, numbers = torch.randn(1, 1, 32, 32), torch.rand(1, 1)
    seen = module.seen(u, numbers)
    assert (
        seen.shape == (1, 4, 32, 32) and torch.equal(seen[0, 1:3], centres(u)) and bool((seen[:, 3] == numbers).all())
    )
    assert seen[0, 1, :, 5].tolist() == [(cell + 0.5) / 32 for cell in range(32)]
    moved = call(module, u.roll((16, 16), (2, 3)), numbers)
    assert not torch.allclose(moved, call(module, u, numbers).roll((16, 16), (2, 3)), atol=1e-5)


def size(family: str, **more: int) -> int:
    """Parameters for one channel, five numbers and two coordinates; a complex one counts twice."""
    return sum(int(np.prod(shape)) for shape in plan(family, numbers=5, **more).shapes().values())


def test_the_fno_has_the_published_size() -> None:
    """PDEBench's FNO2d: width 20, 12 × 12 modes of two corners, 4 layers; spectral weights 2·20·20·12·12 complex."""
    published = 4 * 2 * (2 * 20 * 20 * 12 * 12)
    # neuraloperator keeps the modes 0 to 12 along the last axis where PDEBench keeps 0 to 11
    spectral = published * 13 // 12
    # W_l without a bias, and what PDEBench lacks: a bias of each K_l, C_l from 20 to 10 to 20 channels, s_l
    skip, bias, mixing, gate = 20 * 20, 20, (20 * 10 + 10) + (10 * 20 + 20), 20
    # PDEBench lifts with one linear layer and projects through 128 channels
    lift, project = (8 * 40 + 40) + (40 * 20 + 20), (20 * 40 + 40) + (40 + 1)
    assert size("fno") == spectral + 4 * (skip + bias + mixing + gate) + lift + project


def test_the_local_no_has_the_published_size() -> None:
    """As ``fno``, without C_l and s_l, with 3 × 3 differences and one matrix for each of 4 sectors of a disk. neuralop
    counts a fifth matrix, which belongs to no basis function of torch-harmonics 0.7.4."""
    spectral, lift, project = 4 * 2 * (2 * 20 * 20 * 12 * 13), 40 * 9 + 20 * 41, 40 * 21 + 41
    assert size("local-no") == spectral + 4 * (20 * 20 + 20 + 9 * 20 * 20 + 4 * 20 * 20 + 20) + lift + project


def test_the_unet_has_the_published_size() -> None:
    """Four poolings from width 16 to 256: two 3 × 3 convolutions for each level down and up, 2 × 2 on the way up."""
    down = sum(9 * (a * b + b * b) + 2 * b for a, b in zip([8, 16, 32, 64, 128], [16, 32, 64, 128, 256], strict=True))
    up = sum(4 * 2 * b * b + b + 9 * (2 * b * b + b * b) + 2 * b for b in (128, 64, 32, 16))
    assert size("unet") == down + up + 16 + 1


def test_the_deeponet_has_the_published_size() -> None:
    """128 coefficients for each channel, width 256; three convolutions, four dense layers in branch and trunk."""
    seen = sum(9 * a * b + b for a, b in zip([1, 32, 64], [32, 64, 128], strict=True))
    hidden = 2 * (256 * 256 + 256) + 256 * 128 + 128
    assert size("deeponet") == seen + (128 * 16 + 5) * 256 + 256 + hidden + 2 * 256 + 256 + hidden + 1


def test_the_local_no_is_that_of_neuraloperator_inside_and_periodic_at_the_edges() -> None:
    module = plan("local-no", layers=1, modes=4).build(seed=3)
    assert isinstance(module, LocalNo)
    theirs = LocalNO((4, 4), module.inputs, 1, 20, (32, 32), 1, radius_cutoff=4 / 32, positional_embedding=None)
    theirs.lifting, theirs.projection, blocks = module.lift, module.project, theirs.local_no_blocks
    blocks.convs, blocks.local_no_skips, blocks.differential[0].conv = (
        module.spectral,
        module.skips,
        module.differences[0],
    )
    u, numbers = torch.rand(2, 1, 32, 32), torch.rand(2, 1)
    with torch.inference_mode():
        blocks.local_convs[0].weight[..., :4] = module.integrals[0].weight
        inside = (theirs(module.seen(u, numbers)) - module.end_state(u, numbers))[..., 2:-2, 2:-2]
    assert inside.abs().max() < 1e-5  # its integrals see zeros beyond the edges


def test_the_fno_is_that_of_neuraloperator() -> None:
    from neuralop.models import FNO

    module = plan("fno").build(seed=3)
    assert isinstance(module, Fno)
    theirs = FNO((24, 24), module.inputs, 1, 20, positional_embedding=None, conv_module=SpectralConvolution)
    theirs.lifting, theirs.fno_blocks, theirs.projection = module.lift, module.blocks, module.project
    u, numbers = torch.rand(2, 1, 32, 32), torch.rand(2, 1)
    with torch.inference_mode():
        assert torch.allclose(theirs(module.seen(u, numbers)), module.end_state(u, numbers), atol=1e-5)


def test_local_kernels_converge_on_finer_grids() -> None:
    """A smooth field has nearly the same local part on every grid, also where the disk is computed by its modes."""
    module = plan("local-no", layers=1).build(seed=4)
    assert isinstance(module, LocalNo)

    def local(*shape: int) -> torch.Tensor:
        x, y = centres(torch.zeros(1, 1, *shape))
        field = torch.sin(2 * torch.pi * (x + torch.arange(20)[:, None, None] / 20)) * torch.cos(2 * torch.pi * y)
        with torch.inference_mode():
            return torch.fft.rfft2(module.local(0, field[None]), norm="forward")[..., 1, 1].abs()

    made, finer, finest, uneven = local(32, 32), local(160, 160), local(320, 320), local(96, 80)
    scale = finest.abs().max()
    assert (finer - finest).abs().max() < 0.05 * scale and (uneven - finest).abs().max() < 0.2 * scale
    assert (made - finest).abs().max() < 0.5 * scale


@every_baseline
@pytest.mark.parametrize("shape", [(48, 40), (33, 32), (7, 5), (64,), (8, 8, 8)])
def test_other_grids_and_any_number_of_samples(family: str, shape: tuple[int, ...]) -> None:
    small = {"modes": 4} if "modes" in FAMILIES[family].options else {}
    module = plan(family, axes=len(shape), channels=2, **small).build(seed=5).eval()
    u, numbers = torch.randn(3, 2, *shape), torch.rand(3, 1)
    together = call(module, u, numbers)
    assert together.shape == u.shape and bool(together.isfinite().all())
    for sample in range(3):
        alone = call(module, u[sample : sample + 1], numbers[sample : sample + 1])
        assert torch.allclose(alone, together[sample : sample + 1], atol=1e-5)


@every_baseline
def test_the_dam_break_grid(family: str) -> None:
    module = plan(family, channels=3).build(seed=5).eval()
    assert call(module, torch.rand(1, 3, 320, 320), torch.rand(1, 1)).isfinite().all()
    assert module.flops(320 * 320) > 50 * module.flops(32 * 32)
