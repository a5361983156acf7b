"""Exponax (Koehler et al. 2024) as an opponent: exponential Runge–Kutta methods, jitted and mapped over the batch, in
double precision and with coefficients that are there already.

What makes it as strong as it can be: steps stay in Fourier space; one program serves every number of steps; cell
averages become point values at the start and averages again at the end, which is exact and costs two products;
constant advection is taken out of L and added at the end as an exact shift, because Exponax 0.2.0 keeps only the real
part of its coefficients and its steps would not converge to second order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from benchmarks.measure import needed
from hycop.grid import Array
from hycop.query import Query

HOW = "pip install -c constraints.txt -e '.[bench]'"
STEPS = (1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 17, 20, 24, 29, 35, 42, 50, 60, 72, 86, 103, 124, 150, 180, 220)


@dataclass(frozen=True)
class Exponax:
    """ETDRK methods of one order for an equation, on a grid ``finer`` times that of the query.

    ``equation`` names one of ``_steppers``; ``dealiased`` is the fraction of modes that are kept.
    """

    equation: str
    order: int
    finer: int = 1
    dealiased: float | None = 2 / 3
    levels: Sequence[int] = STEPS

    @property
    def name(self) -> str:
        grid = f", {self.finer}× finer" if self.finer > 1 else ""
        return f"Exponax ETDRK{self.order}{grid}{'' if self.dealiased else ', aliased'}"

    def solver(self, level: int, query: Query) -> Callable[[], Array]:
        jax, built, run = _compiled(self, query.grid.shape)
        numpy = jax.numpy
        lengths = query.grid.lengths[:, 0]
        if (query.grid.lengths != lengths[:, None]).any() or len(set(query.grid.shape)) > 1:
            raise ValueError("Exponax takes boxes of equal sides only")
        if self.finer > 1 and query.grid.axes > 1:
            raise ValueError("finer grids are there for lines only")
        params = {name: numpy.asarray(value) for name, value in query.setting.params.items()}
        params |= {"length": numpy.asarray(lengths), "time": numpy.asarray(query.time)}
        arrays = jax.block_until_ready(built(params, numpy.asarray(query.time / level)))
        turn = numpy.asarray(_turns(query))
        u0 = numpy.asarray(query.u0)

        def solve() -> Array:
            return np.asarray(run(arrays, u0, turn, level))

        return solve


def _turns(query: Query) -> Array:
    """The shift by c·T as factors of the modes, (batch, 1, *modes)."""
    shape = query.grid.shape
    out: Array = np.ones((query.batch, 1, *shape[:-1], shape[-1] // 2 + 1), dtype=np.complex128)
    if "cx" not in query.setting.params:
        return out
    for axis, n in enumerate(shape):
        last = axis == len(shape) - 1
        k = (np.fft.rfftfreq if last else np.fft.fftfreq)(n, 1 / n)
        k = np.where(2 * np.abs(k) == n, 0.0, k)
        way = query.setting.per_axis("c")[:, axis] * query.time / query.grid.lengths[:, axis]
        factor = np.exp(-2j * np.pi * way[:, None] * k)
        out *= factor.reshape(len(way), 1, *(len(k) if each == axis else 1 for each in range(len(shape))))
    return out


def _averaging(shape: tuple[int, ...]) -> Array:
    """Factors of the modes that turn point values into averages over the cells of a grid."""
    out: Array = np.ones((*shape[:-1], shape[-1] // 2 + 1))
    for axis, n in enumerate(shape):
        k = (np.fft.rfftfreq if axis == len(shape) - 1 else np.fft.fftfreq)(n, 1 / n)
        out *= np.sinc(k / n).reshape([len(k) if each == axis else 1 for each in range(len(shape))])
    return out


def _padded(numpy: Any, modes: Any, cells: int, finer: int) -> Any:
    """Modes on a line as those of a finer grid, without the Nyquist mode. The first of its cells lies a little before
    the middle of the first coarse one."""
    kept = cells // 2
    ahead = np.exp(2j * np.pi * np.arange(kept) * (0.5 / finer - 0.5) / cells)
    out = numpy.zeros((1, cells * finer // 2 + 1), dtype=modes.dtype)
    return out.at[:, :kept].set(finer * ahead * modes[:, :kept])


@lru_cache(maxsize=32)
def _compiled(solver: Exponax, shape: tuple[int, ...]) -> tuple[Any, Any, Any]:
    """JAX, the builder of coefficients (params, dt) and the solver (coefficients, u0, turn, steps), both batched."""
    jax, equinox, exponax = needed("jax", HOW), needed("equinox", HOW), needed("exponax", HOW)
    jax.config.update("jax_enable_x64", True)
    axes, fine = len(shape), tuple(solver.finer * n for n in shape)
    maker = _steppers(exponax)[solver.equation]
    means, fine_means = (jax.numpy.asarray(_averaging(each)) for each in (shape, fine))

    def stepper(params: Any, dt: Any) -> Any:
        return maker(axes, params, fine[0], dt, solver.order, solver.dealiased)

    names = {"adr": ("Dx", "Dy", "r"), "burgers": ("nu",), "ks": ()}[solver.equation]
    one = {name: jax.numpy.asarray(1.0) for name in (*names, "length")}
    static = equinox.filter(stepper(one, jax.numpy.asarray(1e-3)), equinox.is_array, inverse=True)
    build = jax.jit(jax.vmap(lambda params, dt: equinox.filter(stepper(params, dt), equinox.is_array)))

    def solve(arrays: Any, u0: Any, turn: Any, steps: Any) -> Any:
        whole = equinox.combine(arrays, static)
        modes = exponax.fft(u0, num_spatial_dims=axes) / means
        if solver.finer > 1:
            modes = _padded(jax.numpy, modes, shape[0], solver.finer)
        modes = jax.lax.fori_loop(0, steps, lambda _, each: whole.step_fourier(each), modes)
        if solver.finer == 1:
            return exponax.ifft(modes * means * turn, num_spatial_dims=axes, num_points=shape[0])
        # the average over a cell is that of the finer cells in it, with all their modes
        cells = exponax.ifft(modes * fine_means, num_spatial_dims=axes, num_points=fine[0])
        return cells.reshape(1, shape[0], solver.finer).mean(axis=2)

    run = jax.jit(jax.vmap(solve, in_axes=(0, 0, 0, None)))

    def built(params: Any, dt: Any) -> Any:
        return build({name: params[name] for name in one}, dt)

    return jax, built, run


@lru_cache(maxsize=1)
def _steppers(exponax: Any) -> dict[str, Callable[..., Any]]:
    """Steppers (axes, params, cells, dt, order, dealiased) of each equation, with coefficients of one sample."""
    polynomial, convection = exponax.nonlin_fun.PolynomialNonlinearFun, exponax.nonlin_fun.ConvectionNonlinearFun

    class Stepper(exponax.BaseStepper):  # type: ignore[misc,name-defined]
        linear: Any
        nonlinear: Any

        def __init__(self, axes, length, cells, dt, order, linear, nonlinear):  # type: ignore[no-untyped-def]
            self.linear, self.nonlinear = linear, nonlinear
            super().__init__(axes, length, cells, dt, num_channels=1, order=order)

        def _build_linear_operator(self, derivative_operator: Any) -> Any:
            return self.linear(derivative_operator)[None]

        def _build_nonlinear_fun(self, derivative_operator: Any) -> Any:
            return self.nonlinear(derivative_operator)

    def adr(axes: int, params: Any, cells: int, dt: Any, order: int, kept: float | None) -> Any:
        spread = [params[name] for name in ("Dx", "Dy")[:axes]]
        return Stepper(
            axes,
            1.0,
            cells,
            dt,
            order,
            lambda d: sum(D * d[axis] ** 2 for axis, D in enumerate(spread)) + params["r"],
            lambda d: polynomial(axes, cells, dealiasing_fraction=kept, coefficients=(0.0, 0.0, -params["r"])),
        )

    def carried(linear: Callable[[Any, Any], Any]) -> Callable[..., Any]:
        def make(axes: int, params: Any, cells: int, dt: Any, order: int, kept: float | None) -> Any:
            return Stepper(
                axes,
                params["length"],
                cells,
                dt,
                order,
                lambda d: linear(d[0], params),
                lambda d: convection(
                    axes, cells, derivative_operator=d, dealiasing_fraction=kept, scale=1.0, conservative=True
                ),
            )

        return make

    return {
        "adr": adr,
        "burgers": carried(lambda d, params: params["nu"] * d**2),
        "ks": carried(lambda d, params: -(d**2) - d**4),
    }
