"""The residual of an equation in the loss of a network, as in the source paper: central differences of the end state on
the training grid, and (u(T) − u₀)/T for u_t."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from hycop.baselines.baseline import BaselineError
from hycop.grid import AXES, Array
from hycop.pde import Equation
from hycop.pretraining import Lesson, Steps
from hycop.primitives.learned import NeuralOperator

if TYPE_CHECKING:
    from torch import Tensor

    from hycop.networks.loop import Examples
    from hycop.networks.module import Increment

Rate = Callable[["Tensor", Mapping[str, "Tensor"], "Tensor"], "Tensor"]
"""(state (batch, channel, *grid), coefficients (batch,), cell widths (batch, axis)) → u_t by the equation."""


def residual_of(equation: Equation) -> Rate:
    """The rate u_t of an equation by central differences."""
    known = RATES.get(tuple(sorted(equation.processes)))
    if known is None:
        raise BaselineError(
            f"PINO needs the residual of the equation, which is not known for {equation.name}: use another baseline"
        )
    return known


@dataclass(frozen=True)
class ResidualLesson(Lesson):
    """Adds ``weight`` times the relative residual to the loss, once a share ``after`` of the rounds is done."""

    rate: Rate = field(default=lambda u, params, dx: u)
    weight: float = 0.0
    after: float = 0.0

    def judged(
        self, examples: Examples, steps: Steps, primitive: NeuralOperator, share: float
    ) -> Examples | WithResidual:
        if share < self.after:
            return examples
        _, _, unit = primitive.seen(steps.before, steps.duration, steps.setting)
        grid = steps.setting.grid
        return WithResidual(
            examples,
            steps.before,
            unit,
            steps.duration,
            {name: np.asarray(value) for name, value in steps.setting.params.items()},
            grid.lengths / np.array(grid.shape),
            self.rate,
            self.weight,
        )

    @property
    def identity(self) -> object:
        return (super().identity, self.weight, self.after)


@dataclass(frozen=True)
class WithResidual:
    """Examples whose errors have ‖(u − u₀)/T − F(u)‖·T/‖u_T‖ added, times a weight, for the network's end state u."""

    examples: Examples
    before: Array
    unit: Array
    duration: Array
    params: Mapping[str, Array]
    dx: Array
    rate: Rate
    weight: float

    @property
    def states(self) -> Array:
        return self.examples.states

    def take(self, samples: Array) -> WithResidual:
        params = {name: value[samples] for name, value in self.params.items()}
        parts = (self.before[samples], self.unit[samples], self.duration[samples], params, self.dx[samples])
        return WithResidual(self.examples.take(samples), *parts, self.rate, self.weight)

    def errors(self, module: Increment) -> Tensor:
        import torch

        from hycop.networks.loop import weighted_norm

        def tensor(array: Array) -> Tensor:
            return torch.from_numpy(np.ascontiguousarray(array, np.float32))

        states, numbers, changes, weights = map(tensor, self.examples)
        found = module(states, numbers)
        unit, time = tensor(self.unit), tensor(self.duration)
        u = tensor(self.before) + unit * found
        params = {name: tensor(value) for name, value in self.params.items()}
        late = found - spread_to(time, u) * self.rate(u, params, tensor(self.dx)) / unit
        return weighted_norm(found - changes, weights) + self.weight * weighted_norm(late, weights)


def spread_to(column: Tensor, like: Tensor) -> Tensor:
    """(batch,) ready to broadcast to (batch, channel, *grid)."""
    return column.reshape(-1, *(1,) * (like.ndim - 1))


def first(u: Tensor, axis: int, dx: Tensor) -> Tensor:
    """∂u along an axis by central differences with periodic ends."""
    import torch

    across = spread_to(dx[:, axis], u)
    return (torch.roll(u, -1, 2 + axis) - torch.roll(u, 1, 2 + axis)) / (2 * across)


def second(u: Tensor, axis: int, dx: Tensor) -> Tensor:
    import torch

    across = spread_to(dx[:, axis], u)
    return (torch.roll(u, -1, 2 + axis) - 2 * u + torch.roll(u, 1, 2 + axis)) / across**2


def _advection_diffusion_reaction(u: Tensor, params: Mapping[str, Tensor], dx: Tensor) -> Tensor:
    """−c·∇u + Σ D_i ∂_ii u + r u (1 − u), with the terms whose coefficients there are."""
    out = 0 * u
    for axis in range(u.ndim - 2):
        letter = AXES[axis]
        if f"c{letter}" in params:
            out = out - spread_to(params[f"c{letter}"], u) * first(u, axis, dx)
        if f"D{letter}" in params:
            out = out + spread_to(params[f"D{letter}"], u) * second(u, axis, dx)
    return out + spread_to(params["r"], u) * u * (1 - u) if "r" in params else out


def _burgers(u: Tensor, params: Mapping[str, Tensor], dx: Tensor) -> Tensor:
    """−∂ₓ(u²/2) + ν ∂ₓₓu."""
    return spread_to(params["nu"], u) * second(u, 0, dx) - first(0.5 * u**2, 0, dx)


def _shallow_water(u: Tensor, params: Mapping[str, Tensor], dx: Tensor) -> Tensor:
    """−∇·(m), −∇·(m ⊗ m/h) − ∇(g h²/2)."""
    import torch

    h, m = u[:, :1], u[:, 1:]
    pressure = 0.5 * spread_to(params["g"], u) * h**2
    speed = m / h.clamp_min(1e-3)
    axes = range(u.ndim - 2)
    mass, momentum = 0 * h, 0 * m
    for axis in axes:
        mass = mass - first(m[:, axis : axis + 1], axis, dx)
        momentum = momentum - first(m * speed[:, axis : axis + 1], axis, dx)
    return torch.cat([mass, momentum - torch.cat([first(pressure, axis, dx) for axis in axes], dim=1)], dim=1)


def _gas(u: Tensor, params: Mapping[str, Tensor], dx: Tensor) -> Tensor:
    """Compressible Navier–Stokes with PDEBench's viscosity: density, momenta, energy."""
    import torch

    axes = range(u.ndim - 2)
    rho, m, energy = u[:, :1].clamp_min(1e-3), u[:, 1:-1], u[:, -1:]
    v = m / rho
    gamma, eta, zeta = (spread_to(params[name], u) for name in ("gamma", "eta", "zeta"))
    pressure = (gamma - 1) * (energy - 0.5 * rho * (v**2).sum(dim=1, keepdim=True))
    along = torch.eye(len(axes)).reshape(len(axes), len(axes), *(1,) * len(axes))
    mass, momentum, heat = 0 * energy, 0 * m, 0 * energy
    for axis in axes:
        mass = mass - first(m[:, axis : axis + 1], axis, dx)
        speed = v[:, axis : axis + 1]
        viscosity = eta + (zeta + eta / 3) * along[axis][None]  # of each component of v along this axis
        stress = viscosity * rho * first(v, axis, dx)
        momentum = momentum + first(stress - m * speed - pressure * along[axis][None], axis, dx)
        heat = heat + first((v * stress).sum(dim=1, keepdim=True) - (energy + pressure) * speed, axis, dx)
    return torch.cat([mass, momentum, heat], dim=1)


RATES: Mapping[tuple[str, ...], Rate] = {
    **{
        tuple(sorted(some)): _advection_diffusion_reaction
        for some in (
            {"advection"},
            {"diffusion"},
            {"reaction"},
            {"advection", "diffusion"},
            {"advection", "diffusion", "reaction"},
        )
    },
    ("advection", "viscosity"): _burgers,
    ("gravity", "momentum"): _shallow_water,
    ("euler", "viscosity"): _gas,
}
"""The right-hand side of an equation by its processes."""
