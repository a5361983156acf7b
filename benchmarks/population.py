"""How fast the programs of a population are judged on ``adr2d``, against the same programs in PyTorch and JAX.

The opponents are given the programs with equal neighbours merged already, so that writing and merging them counts for
HyCOP only. They work on a part of the population at a time, which keeps it in cache, and exist in two forms: linear
moves by transforms with separable multipliers, or by products with the circulant matrices of both axes. The fastest
form and size of a part counts. All results must agree to 10⁻¹⁰.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from benchmarks.data import SPECTRAL, adr_query
from benchmarks.measure import Ratio, compared, interleaved, needed
from hycop.engine import Engine
from hycop.execution import run
from hycop.grid import Array
from hycop.policy import Allotment, Inputs, Pattern, Policy, PositionPolicy, SlotPolicy
from hycop.query import Query
from hycop.schemes import splitting
from hycop.training.objective import Objective

PROCESSES = ("advection", "diffusion", "reaction")
ADVECTION, DIFFUSION, REACTION = range(3)
STRANG_TWICE = Pattern((0, 1, 2, 1, 0, 2, 1, 0), (0.25, 0.25, 0.5, 0.5, 0.5, 0.5, 0.25, 0.25), "Strang x2")
PARTS = (64, 256, 2500)
"""Programs that an opponent takes through all moves at a time."""

IDLE, LINEAR, GROWTH = range(3)
EQUAL = 1e-10


@dataclass(frozen=True, eq=False)
class Task:
    """What both sides compute: for every program (member × query) its moves (program, move), each with the durations
    of the operators, and the relative distance of the end state from the truth."""

    moves: Array
    durations: Array
    u0: Array
    truth: Array
    exponents: tuple[Array, Array]
    growth: Array

    @classmethod
    def of(cls, objective: Objective, policy: Policy, thetas: Array) -> Task:
        query, members = objective.query, len(thetas)
        programs = policy.programs(thetas, objective.inputs)
        engine = Engine.of(programs, SPECTRAL, query.setting)
        plan = engine.plan(programs)
        kinds = np.array([*(GROWTH if ops == (REACTION,) else LINEAR for ops in engine.kinds), IDLE])
        rows = np.tile(np.arange(query.batch), members)
        return cls(
            kinds[plan.kind],
            plan.durations,
            query.u0[rows, 0],
            objective.truth[rows, 0],
            tuple(each[rows] for each in _rates(query)),  # type: ignore[arg-type]
            query.setting.param("r")[rows],
        )

    @property
    def pattern(self) -> list[int]:
        """The moves of all programs, where they are the same."""
        assert (self.moves == self.moves[:1]).all()
        return [int(move) for move in self.moves[0]]


def _rates(query: Query) -> tuple[Array, Array]:
    """Rates (query, operator, mode) of advection and diffusion along both axes, the last one with half its modes."""
    n, m = query.grid.shape
    found = []
    for axis, k in (("x", np.fft.fftfreq(n, 1 / n)), ("y", np.fft.rfftfreq(m, 1 / m))):
        wave = 2 * np.pi * k
        turning = np.where(2 * np.abs(k) == (n if axis == "x" else m), 0.0, wave)
        c, d = (query.setting.param(f"{letter}{axis}")[:, None] for letter in "cD")
        found.append(np.stack([-1j * c * turning, -d * wave**2 + 0j], axis=1))
    return found[0], found[1]


class Eager:
    """A task in PyTorch without compilation."""

    def __init__(self, torch: Any, task: Task) -> None:
        self.torch = torch
        make = torch.as_tensor
        self.moves, self.durations = make(task.moves), make(task.durations)
        self.u0, self.truth, self.r = make(task.u0), make(task.truth), make(task.growth)
        self.x, self.y = (make(each) for each in task.exponents)
        n, m = task.u0.shape[1:]
        self.sizes = (n, m)
        self.turns = [(torch.arange(k)[:, None] - torch.arange(k)[None]) % k for k in (n, m)]

    def losses(self, circulant: bool, part: int) -> Any:
        step = self._circulant if circulant else self._transformed
        parts = [slice(first, first + part) for first in range(0, len(self.u0), part)]
        return self.torch.cat([self._part(each, step) for each in parts])

    def _part(self, rows: slice, linear: Callable[[Any, Any, Any], Any]) -> Any:
        u, moves, durations = self.u0[rows], self.moves[rows], self.durations[rows]
        r, truth = self.r[rows], self.truth[rows]
        rates = self.x[rows], self.y[rows]
        for k in range(moves.shape[1]):
            for kind in (LINEAR, GROWTH):
                mine = self.torch.nonzero(moves[:, k] == kind)[:, 0]
                if not len(mine):
                    continue
                all_of_them = len(mine) == len(u)
                before, tau = (u, durations[:, k]) if all_of_them else (u[mine], durations[mine, k])
                if kind == GROWTH:
                    fade = self.torch.exp(-(r if all_of_them else r[mine]) * tau[:, REACTION])[:, None, None]
                    after = before / (fade + before * (1 - fade))
                else:
                    after = linear(before, tau, rates if all_of_them else tuple(each[mine] for each in rates))
                if all_of_them:
                    u = after
                else:
                    u = u.clone() if k == 0 else u
                    u[mine] = after
        norm = self.torch.linalg.vector_norm
        return norm(u - truth, dim=(1, 2)) / norm(truth, dim=(1, 2))

    def _multipliers(self, tau: Any, rates: Any) -> list[Any]:
        two = tau[:, :REACTION].to(rates[0].dtype)
        return [self.torch.exp((two[:, :, None] * each).sum(1)) for each in rates]

    def _transformed(self, u: Any, tau: Any, rates: Any) -> Any:
        x, y = self._multipliers(tau, rates)
        modes = self.torch.fft.rfft2(u)
        modes *= x[:, :, None]
        modes *= y[:, None, :]
        return self.torch.fft.irfft2(modes, s=self.sizes)

    def _circulant(self, u: Any, tau: Any, rates: Any) -> Any:
        x, y = self._multipliers(tau, rates)
        m = self.sizes[1]
        left = self.torch.fft.ifft(x).real[:, self.turns[0]]
        right = self.torch.fft.irfft(y, n=m)[:, self.turns[1].T]
        return left @ (u @ right)


class Jitted:
    """A task whose programs have one pattern, compiled as a whole by JAX."""

    def __init__(self, jax: Any, task: Task) -> None:
        jax.config.update("jax_enable_x64", True)
        self.jax, self.task = jax, task
        self.pattern = task.pattern
        fields = (task.durations, task.u0, task.truth, *task.exponents, task.growth)
        self.fields = [jax.numpy.asarray(each) for each in fields]

    def losses(self, circulant: bool, part: int) -> Callable[[], Array]:
        count = len(self.task.u0)
        part = max(size for size in range(1, min(part, count) + 1) if count % size == 0)
        cut = [each.reshape(count // part, part, *each.shape[1:]) for each in self.fields]
        whole = self.jax.jit(lambda fields: self.jax.lax.map(partial(self._part, circulant), fields))
        return lambda: np.asarray(whole(cut)).reshape(-1)

    def _part(self, circulant: bool, fields: Sequence[Any]) -> Any:
        np_ = self.jax.numpy
        durations, u, truth, x, y, r = fields
        for k, kind in enumerate(self.pattern):
            tau = durations[:, k]
            if kind == GROWTH:
                fade = np_.exp(-r * tau[:, REACTION])[:, None, None]
                u = u / (fade + u * (1 - fade))
            elif kind == LINEAR:
                along = [np_.exp((tau[:, :REACTION, None] * each).sum(1)) for each in (x, y)]
                u = self._circulant(u, *along) if circulant else self._transformed(u, *along)
        norm = lambda v: np_.sqrt((v * v).sum((1, 2)))  # noqa: E731
        return norm(u - truth) / norm(truth)

    def _transformed(self, u: Any, x: Any, y: Any) -> Any:
        fft = self.jax.numpy.fft
        return fft.irfft2(fft.rfft2(u) * x[:, :, None] * y[:, None, :], s=u.shape[1:])

    def _circulant(self, u: Any, x: Any, y: Any) -> Any:
        n, m = u.shape[1:]
        fft = self.jax.numpy.fft
        down, across = np.arange(n), np.arange(m)
        left = fft.ifft(x).real[:, (down[:, None] - down[None]) % n]
        right = fft.irfft(y, n=m)[:, (across[None] - across[:, None]) % m]
        return left @ (u @ right)


def judged(members: int, batch: int, cells: int = 32, kind: str = "slot") -> tuple[Objective, Policy, Array]:
    """Members around the middle of training: programs of one pattern (slot) or of patterns of their own (position)."""
    query, rng = adr_query(batch, cells), np.random.default_rng(0)
    truth = run(splitting("saba4 x4").programs(query, SPECTRAL), SPECTRAL, query)
    inputs = Inputs(rng.uniform(-1, 1, (query.batch, 8)), np.zeros((query.batch, 0)), query.time)
    allotment = Allotment.of(SPECTRAL, PROCESSES, "consistent")
    objective = Objective(SPECTRAL, query, truth, inputs)
    if kind == "slot":
        slot = SlotPolicy((STRANG_TWICE,), allotment, 8)
        return objective, slot, 0.1 * rng.standard_normal((members, slot.size))
    position = PositionPolicy(allotment, 8, longest=10, shortest=7)
    return objective, position, 0.5 * rng.standard_normal((members, position.size))


def _checked(name: str, call: Callable[[], Any], ours: Array) -> None:
    call()  # now and then PyTorch's first pass is off by 1e-9, and only that one; HyCOP's never is
    theirs = np.asarray(call())
    if not np.abs(theirs - ours.reshape(-1)).max() < EQUAL:
        raise AssertionError(f"HyCOP and {name} disagree: the comparison would mean nothing")


def quickest(calls: dict[str, Callable[[], object]], rounds: int = 2) -> str:
    """The name of the call that takes least."""
    seconds = interleaved(calls, rounds, pause=0.0)
    return min(calls, key=lambda name: min(seconds[name].cpu))


def measure(
    members: int = 500, batch: int = 5, cells: int = 32, rounds: int = 9, parts: Sequence[int] = PARTS
) -> list[Ratio]:
    """By default the population and the minibatch of the paper's evolution strategy."""
    torch = needed("torch", "pip install -c constraints.txt -e '.[learned]'")
    torch.set_num_threads(1)
    # As in a long run, where larger arrays have come and gone, malloc keeps the memory of these for both sides.
    np.zeros(2**22 - 2**10).sum()
    found = []
    # the paper evolves a position policy; a slot policy has longer programs and no idle steps
    for kind, goal in (("slot", 4.0), ("position", 4.0)):
        objective, policy, thetas = judged(members, batch, cells, kind)
        task, ours = Task.of(objective, policy, thetas), np.asarray(objective.losses(policy, thetas))
        forms = [(circulant, part) for circulant in (False, True) for part in parts]
        eager = Eager(torch, task)
        rivals: dict[str, dict[str, Callable[[], object]]] = {
            "PyTorch": {_form(*form): partial(eager.losses, *form) for form in forms}
        }
        if kind == "slot":
            jitted = Jitted(needed("jax", "pip install -c constraints.txt -e '.[bench]'"), task)
            rivals["JAX"] = {_form(*form): jitted.losses(*form) for form in forms}
        with torch.inference_mode():
            best = {who: quickest(calls) for who, calls in rivals.items()}
            chosen = {who: rivals[who][form] for who, form in best.items()}
            for who, call in chosen.items():
                _checked(who, call, ours)
            seconds = interleaved({"HyCOP": partial(objective.losses, policy, thetas), **chosen}, rounds)
        rate = members * batch / float(np.median(seconds["HyCOP"].cpu))
        what = f"{kind} policy on adr2d, {members} × {batch} programs of {task.moves.shape[1]} moves, {cells}²"
        for who in rivals:
            detail = f"{who} {best[who]}; HyCOP judges {rate:.0f} programs a second"
            aim = goal if who == "PyTorch" else 2.0
            found.append(
                compared("adr2d-training", f"{who} / HyCOP: {what}", seconds, "HyCOP", who, aim, detail=detail)
            )
    return found


def _form(circulant: bool, part: int) -> str:
    return f"by {'circulant products' if circulant else 'transforms'}, {part} at a time"
