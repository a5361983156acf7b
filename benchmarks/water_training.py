"""How fast the programs of a population are judged on ``swe2d``, against the same programs in PyTorch, without and with
``torch.compile``, and in JAX.

All opponents run the scheme of HyCOP's kernels with whole arrays (``water_arrays``), with sub-steps that the waves of
each program ask for. Results must agree to 10⁻¹⁰. The fastest size of a part of the population counts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from benchmarks.measure import Ratio, compared, interleaved, needed
from benchmarks.population import EQUAL, quickest
from benchmarks.water_arrays import CFL, STEPS, Functions, fastest, sub_step
from hycop.execution import run
from hycop.grid import Array
from hycop.policy import Allotment, Inputs, Pattern, SlotPolicy
from hycop.problems import find_problem
from hycop.schemes import splitting
from hycop.training.objective import Objective

STRANG_TWICE = Pattern((0, 1, 0, 1, 0), (0.25, 0.5, 0.5, 0.5, 0.25), "Strang x2")
PARTS = (4, 20, 100)
"""Programs that an opponent takes through all moves at a time."""

GOALS: Mapping[str, Mapping[str, float]] = {
    "hancock": {"PyTorch": 10.0, "torch.compile": 2.5, "JAX": 5.0},
    "weno5": {"PyTorch": 10.0, "torch.compile": 2.5, "JAX": 7.0},
}
DICTIONARIES = {"hancock": "muscl", "weno5": "weno5"}
Step = Callable[..., list[Any]]


@dataclass(frozen=True, eq=False)
class Task:
    """Programs of one pattern (member × query): the durations (program, move), the channels of the initial states and
    of the truth, gravity (program, 1, 1), and the widths of a cell."""

    kinds: Sequence[int]
    durations: Array
    u0: Array
    truth: Array
    g: Array
    dx: tuple[float, float]
    scheme: str

    @classmethod
    def of(cls, objective: Objective, policy: SlotPolicy, thetas: Array, scheme: str) -> Task:
        query = objective.query
        programs = policy.programs(thetas, objective.inputs)
        rows = np.tile(np.arange(query.batch), len(thetas))
        return cls(
            [int(op) for op in programs.ops[0]],
            programs.durations,
            np.ascontiguousarray(query.u0[rows].swapaxes(0, 1)),
            np.ascontiguousarray(objective.truth[rows].swapaxes(0, 1)),
            query.setting.param("g")[rows][:, None, None],
            (float(query.grid.spacing[0, 0]), float(query.grid.spacing[0, 1])),
            scheme,
        )


def of_torch(torch: Any, task: Task, part: int, compiled: bool) -> Callable[[], Array]:
    """The losses (program,) by PyTorch, a part of the programs at a time; with ``compiled`` its steps are."""
    f, cfl = Functions.of_torch(torch), CFL[task.scheme]
    step: Step = partial(STEPS[task.scheme], f)
    one = torch.compile(step, dynamic=False) if compiled else step
    durations, u0, truth, g = (torch.as_tensor(each) for each in (task.durations, task.u0, task.truth, task.g))

    def advanced(channels: Sequence[Any], gravity: bool, remaining: Any, g: Any) -> Sequence[Any]:
        while bool((remaining > 0).any()):
            rate = fastest(f, gravity, tuple(channels), task.dx, g)  # type: ignore[arg-type]
            tau = sub_step(f, remaining, rate, cfl)
            ratio = (None, *(tau[:, None, None] / dx for dx in task.dx))
            channels = one(gravity, tuple(channels), ratio, g)
            remaining = remaining - tau
        return channels

    def losses() -> Array:
        found = []
        for first in range(0, u0.shape[1], part):
            rows = slice(first, first + part)
            channels: Sequence[Any] = u0[:, rows].unbind(0)
            for move, kind in enumerate(task.kinds):
                channels = advanced(channels, kind == 0, durations[rows, move], g[rows])
            off = torch.stack(list(channels)) - truth[:, rows]
            found.append(off.square().sum((0, 2, 3)).sqrt() / truth[:, rows].square().sum((0, 2, 3)).sqrt())
        return np.asarray(torch.cat(found))

    return losses


def of_jax(jax: Any, task: Task, part: int) -> Callable[[], Array]:
    """The losses (program,) by JAX, compiled as a whole."""
    jax.config.update("jax_enable_x64", True)
    f, cfl, numpy = Functions.of_jax(jax), CFL[task.scheme], jax.numpy
    step = partial(STEPS[task.scheme], f)
    count = len(task.durations)
    part = max(size for size in range(1, min(part, count) + 1) if count % size == 0)

    def advanced(channels: Sequence[Any], gravity: bool, remaining: Any, g: Any) -> Sequence[Any]:
        def once(carried: Any) -> Any:
            remaining, channels = carried
            tau = sub_step(f, remaining, fastest(f, gravity, channels, task.dx, g), cfl)
            ratio = (None, *(tau[:, None, None] / dx for dx in task.dx))
            return remaining - tau, tuple(step(gravity, channels, ratio, g))

        return jax.lax.while_loop(lambda carried: (carried[0] > 0).any(), once, (remaining, tuple(channels)))[1]

    def some(fields: Any) -> Any:
        durations, u0, truth, g = fields

        # both processes in turn, so that each is compiled once; a move of no duration takes no step
        def both(channels: Any, durations: Any) -> Any:
            for kind in (0, 1):
                channels = advanced(channels, kind == 0, durations[kind], g)
            return channels, None

        channels = jax.lax.scan(both, tuple(u0), durations)[0]
        off = numpy.stack(channels) - truth
        return numpy.sqrt((off**2).sum((0, 2, 3)) / (truth**2).sum((0, 2, 3)))

    whole = jax.jit(lambda fields: jax.lax.map(some, fields))

    def cut(each: Array, axis: int) -> Any:
        parts = np.stack(np.split(each, count // part, axis=axis))
        return numpy.asarray(parts)

    fields = [cut(_in_pairs(task), 2), cut(task.u0, 1), cut(task.truth, 1), cut(task.g, 0)]
    return lambda: np.asarray(whole(fields)).reshape(-1)


def _in_pairs(task: Task) -> Array:
    """Durations (pair, process, program) of moves that alternate between the two processes, the first one first."""
    assert list(task.kinds) == [move % 2 for move in range(len(task.kinds))]
    padded = np.pad(task.durations.T, ((0, len(task.kinds) % 2), (0, 0)))
    return np.ascontiguousarray(padded.reshape(-1, 2, len(task.durations)))


def _population(scheme: str, members: int, batch: int) -> tuple[Objective, SlotPolicy, Array]:
    problem, rng = find_problem("swe2d"), np.random.default_rng(0)
    dictionary, query = problem.dictionaries[DICTIONARIES[scheme]], problem.queries(batch, "train", 0)
    truth = run(splitting("strang x4").programs(query, dictionary), dictionary, query)
    inputs = Inputs(rng.uniform(-1, 1, (batch, 6)), np.zeros((batch, 0)), query.time)
    policy = SlotPolicy((STRANG_TWICE,), Allotment.of(dictionary, problem.processes, "consistent"), 6)
    return Objective(dictionary, query, truth, inputs), policy, 0.1 * rng.standard_normal((members, policy.size))


def _rivals(task: Task, parts: Sequence[int]) -> dict[str, dict[str, Callable[[], Array]]]:
    torch = needed("torch", "pip install -c constraints.txt -e '.[learned]'")
    torch.set_num_threads(1)
    jax = needed("jax", "pip install -c constraints.txt -e '.[bench]'")
    return {
        "PyTorch": {f"{part} at a time": of_torch(torch, task, part, False) for part in parts},
        # every size is compiled anew, so one of them has to do
        "torch.compile": {f"{parts[-2]} at a time": of_torch(torch, task, parts[-2], True)},
        "JAX": {f"{part} at a time": of_jax(jax, task, part) for part in parts[:2]},
    }


def measure(
    members: int = 20,
    batch: int = 5,
    rounds: int = 3,
    parts: Sequence[int] = PARTS,
    schemes: Sequence[str] = tuple(GOALS),
    without: Sequence[str] = (),
) -> list[Ratio]:
    """``without`` names opponents that are left out."""
    found = []
    for scheme in schemes:
        objective, policy, thetas = _population(scheme, members, batch)
        task = Task.of(objective, policy, thetas, scheme)
        ours = np.asarray(objective.losses(policy, thetas)).reshape(-1)
        rivals = {who: calls for who, calls in _rivals(task, parts).items() if who not in without}
        best = {who: quickest(dict(calls), 1) if len(calls) > 1 else next(iter(calls)) for who, calls in rivals.items()}
        chosen = {who: rivals[who][form] for who, form in best.items()}
        for who, call in chosen.items():
            if not np.abs(call() - ours).max() < EQUAL:
                raise AssertionError(f"swe2d, {scheme}: HyCOP and {who} disagree: the comparison would mean nothing")
        seconds = interleaved({"HyCOP": partial(objective.losses, policy, thetas), **chosen}, rounds)
        name = "MUSCL" if scheme == "hancock" else "WENO5"
        what = f"slot policy on swe2d, {name}, {members} × {batch} programs of {len(task.kinds)} moves"
        for who in chosen:
            goal, detail = GOALS[scheme][who], f"{who}: {best[who]}"
            row = compared("swe2d-training", f"{who} / HyCOP: {what}", seconds, "HyCOP", who, goal, detail=detail)
            found.append(row)
    return found
