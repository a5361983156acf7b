"""How many programs a second a population is judged by, against the same programs in plain PyTorch.

The opponent is what a competent user writes with batched tensors: states in lock-step, at every position the linear
steps through one ``rfft2`` with separable multipliers of each sample, the reaction exact and pointwise, either for all
samples with ``where`` or for the samples that need it by index; the faster of the two counts. It is given the programs,
so that writing them counts for HyCOP only. On a busy machine measure with ``NUMBA_NUM_THREADS=1``, which holds for
both: PyTorch's threads wait for each other after every operation, so that a core taken by others costs it far more.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Any

import numba
import numpy as np

from benchmarks.data import SPECTRAL, adr_query
from benchmarks.measure import Ratio, interleaved, median_ratio, milliseconds
from hycop.execution import run
from hycop.grid import Array
from hycop.policy import Allotment, Inputs, Pattern, Policy, PositionPolicy, SlotPolicy
from hycop.program import EMPTY, ProgramBatch
from hycop.query import Query
from hycop.schemes import splitting
from hycop.training.objective import Objective

PROCESSES = ("advection", "diffusion", "reaction")
ADVECTION, DIFFUSION, REACTION = range(3)
STRANG_TWICE = Pattern((0, 1, 2, 1, 0, 2, 1, 0), (0.25, 0.25, 0.5, 0.5, 0.5, 0.5, 0.25, 0.25), "Strang x2")


class Eager:
    """The programs of a population (members × batch) for a query with truth, in PyTorch without compilation."""

    def __init__(self, torch: Any, programs: ProgramBatch, query: Query, truth: Array, members: int) -> None:
        self.torch, self.members = torch, members
        self.ops, self.durations = torch.as_tensor(programs.ops), torch.as_tensor(programs.durations)
        self.u0, self.truth = (self._rows(u[:, 0]) for u in (query.u0, truth))
        params = {name: self._rows(value)[:, None] for name, value in query.setting.params.items()}
        n, m = query.grid.shape
        wave = {
            "x": 2 * np.pi * torch.fft.fftfreq(n, 1 / n).double(),
            "y": 2 * np.pi * torch.arange(m // 2 + 1).double(),
        }
        rates = {}
        for axis, k in wave.items():
            turning = torch.where(torch.arange(len(k)) == (n if axis == "x" else m) // 2, 0.0, k)
            moving, spreading = -1j * params[f"c{axis}"] * turning, -params[f"D{axis}"] * k**2
            rates[axis] = torch.stack([moving, spreading.to(moving.dtype)])  # (op, row, mode)
        self.x_rates, self.y_rates = rates["x"], rates["y"]
        self.r = params["r"][:, 0]
        self.rows = torch.arange(len(programs))

    def _rows(self, values: Array) -> Any:
        """A value per query as a value per program."""
        return self.torch.as_tensor(np.ascontiguousarray(values)).repeat(self.members, *(1,) * (values.ndim - 1))

    def _linear(self, u: Any, rows: Any, op: Any, tau: Any) -> Any:
        modes = self.torch.fft.rfft2(u)
        modes *= self.torch.exp(self.x_rates[op, rows] * tau[:, None])[:, :, None]
        modes *= self.torch.exp(self.y_rates[op, rows] * tau[:, None])[:, None, :]
        return self.torch.fft.irfft2(modes, s=u.shape[1:])

    def _reaction(self, u: Any, rows: Any, tau: Any) -> Any:
        fade = self.torch.exp(-self.r[rows] * tau)[:, None, None]
        return u / (fade + u * (1 - fade))

    def _losses(self, u: Any) -> Any:
        norm = self.torch.linalg.vector_norm
        return (norm(u - self.truth, dim=(1, 2)) / norm(self.truth, dim=(1, 2))).reshape(self.members, -1)

    def everywhere(self) -> Any:
        """Every sample takes both steps, and keeps the one it needs."""
        u, where = self.u0, self.torch.where
        for op, tau in zip(self.ops.T, self.durations.T, strict=True):
            linear = self._linear(u, self.rows, op.clamp(0, 1), tau)
            kind = op[:, None, None]
            u = where(kind == REACTION, self._reaction(u, self.rows, tau), where(kind == EMPTY, u, linear))
        return self._losses(u)

    def by_index(self) -> Any:
        """The samples that need a step are taken out, advanced and put back; all of them without copies."""
        u = self.u0.clone()
        for op, tau in zip(self.ops.T, self.durations.T, strict=True):
            for chosen in (op == REACTION, (op == ADVECTION) | (op == DIFFUSION)):
                rows = self.torch.nonzero(chosen)[:, 0]
                everyone = len(rows) == len(u)
                if not len(rows):
                    continue
                before = u if everyone else u[rows]
                if op[rows[0]] == REACTION:
                    after = self._reaction(before, rows, tau[rows])
                else:
                    after = self._linear(before, rows, op[rows], tau[rows])
                if everyone:
                    u = after
                else:
                    u[rows] = after
        return self._losses(u)


def _population(kind: str, members: int, query: Query, truth: Array) -> tuple[Objective, Policy, Array]:
    """Members around the middle of training: programs of one pattern (slot) or of patterns of their own (position)."""
    rng = np.random.default_rng(0)
    inputs = Inputs(rng.uniform(-1, 1, (query.batch, 8)), np.zeros((query.batch, 0)), query.time)
    allotment = Allotment.of(SPECTRAL, PROCESSES, "consistent")
    objective = Objective(SPECTRAL, query, truth, inputs)
    if kind == "slot":
        slot = SlotPolicy((STRANG_TWICE,), allotment, 8)
        return objective, slot, 0.1 * rng.standard_normal((members, slot.size))
    position = PositionPolicy(allotment, 8, longest=10, shortest=7)
    return objective, position, 0.5 * rng.standard_normal((members, position.size))


def measure(members: int = 500, batch: int = 5, cells: int = 32, rounds: int = 9) -> list[Ratio]:
    """By default the population and the minibatch of the paper's evolution strategy."""
    try:
        torch = import_module("torch")
    except ImportError:
        print("population: skipped, because torch is not installed (pip install -c constraints.txt torch)")
        return []
    torch.set_num_threads(numba.get_num_threads())
    # As in a long run, where larger arrays have come and gone, malloc keeps the memory of these for both sides.
    np.zeros(2**22 - 2**10).sum()
    query = adr_query(batch, cells)
    truth = run(splitting("saba4 x4").programs(query, SPECTRAL), SPECTRAL, query)
    ratios = []
    # the paper evolves a position policy, and 5 is asked of that; a slot policy has longer programs and no idle steps
    for kind, goal in (("position", 5.0), ("slot", 3.0)):
        objective, policy, thetas = _population(kind, members, query, truth)
        programs = policy.programs(thetas, objective.inputs)
        eager = Eager(torch, programs, query, truth, members)
        calls: dict[str, Callable[[], object]] = {
            "HyCOP": partial(objective.losses, policy, thetas),
            "where": eager.everywhere,
            "by index": eager.by_index,
        }
        ours = np.asarray(objective.losses(policy, thetas))
        for name in ("where", "by index"):
            calls[name]()  # now and then PyTorch's first pass is off by 1e-9, and only that one; HyCOP's never is
            theirs = calls[name]().numpy()  # type: ignore[attr-defined]
            if not np.abs(theirs - ours).max() < 1e-10:
                raise AssertionError(f"{kind}: HyCOP and PyTorch ({name}) disagree: the comparison would mean nothing")
        with torch.inference_mode():
            seconds = interleaved(calls, rounds)
        best = min(("where", "by index"), key=lambda name: sum(seconds[name]))
        length = f"{programs.lengths().min()}–{programs.lengths().max()} steps"
        what = (
            f"HyCOP / PyTorch evaluations a second, {kind} policy, {members} × {batch} programs of {length}, {cells}²"
        )
        rate = members * batch / float(np.median(seconds["HyCOP"]))
        detail = f"HyCOP {rate:.0f} programs/s; {milliseconds(seconds)}; threads of both: {numba.get_num_threads()}"
        ratios.append(Ratio("population", what, median_ratio(seconds, best, "HyCOP"), goal, True, detail))
    return ratios
