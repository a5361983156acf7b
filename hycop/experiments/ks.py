"""Table ``ks``: the Kuramoto–Sivashinsky equation, state by state and as statistics of its attractor.

- ``direct``: every query straight from its initial state with at most 18 steps for the trained times; a longer query is
  cut into equal segments. T in [5, 8] is short enough for the relative L2 error to be meaningful; for T in [8, 20]
  spectrum error (SE) and divergence of the state histograms (KL) say more. The paper gives both for ``id``, ``ood-wt``.
- ``attractor``: SE and KL over all times after the first tenth of T = 240, in segments of 2.4 units of time, each with
  a program of at most 18 steps for the state at its start. The policy of ``direct`` does not suit: trained on smooth
  initial states, it takes long steps first and short ones once waves have grown, which is wrong on the attractor. So
  another policy is trained on segments of other trajectories.

Programs run on 256 cells: on 128 the widest domains lack the modes that damp, and on the attractor every method ends at
amplitudes that are several times too large.

Nearby solutions of a chaotic equation diverge, so the truth is also compared with itself from perturbed initial states:
no method can be expected to be closer once its own errors have grown.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

from hycop.data import Dataset
from hycop.evaluation import LIMIT, LIMIT_SCHEME, SPLITTING, Composed, Composing, Row, Variant, evaluate
from hycop.experiments.bench import Bench
from hycop.experiments.judging import (
    CLASSICAL,
    classical_alone,
    contenders,
    limit_of,
    plain_limit,
    training_seconds,
    unsplit_rows,
)
from hycop.experiments.table import Table
from hycop.grid import Array
from hycop.metrics import find_metric
from hycop.plots import COLOURS, Figure, new_figure
from hycop.problems import find_problem
from hycop.query import Query, Setting
from hycop.references import KuramotoSivashinskyReference
from hycop.schemes import splitting
from hycop.surrogate import HyCOP

NAME, DICTIONARY = "ks1d", "spectral"
SPLITS = ("id", "ood-w", "ood-t", "ood-wt")
DIRECT, ATTRACTOR = Variant.of({"direct": ""}), Variant.of({"attractor": ""})
STATISTICS = ("spectrum_error", "kl_divergence")
PAPER = {
    ("id", "spectrum_error"): 9.74e-2,
    ("id", "kl_divergence"): 4.72e-2,
    ("ood-wt", "spectrum_error"): 5.75e-2,
    ("ood-wt", "kl_divergence"): 4.95e-2,
}

PERTURBED = "truth, perturbed"
PERTURBATION = {"direct": 1e-6, "attractor": 1e-2}
"""Relative perturbation of the initial states. For the attractor it is so large that the solutions diverge as early as
those of a method, and only their statistics agree."""

HORIZON, SEGMENT, TRANSIENT = 240.0, 2.4, 24.0
TIMES = np.arange(1, round(HORIZON / SEGMENT) + 1) * SEGMENT
LONG_SAMPLES = 48
"""Trajectories to T = 240 per split and seed, at most."""

LESSONS, EVERY = 9, 4
"""Number of trajectories for training, and for the gate; every fourth segment of each is used."""

LEARNING: Mapping[str, Any] = {
    "tries": 1,  # steps are so short in a segment that the first pattern serves as well as others
    "rounds": 1,
}

LIMIT_SUBSTEPS = 4
"""Substeps of the limit's scheme in a segment: its steps are at most 0.22 long."""

SHOWN, FRAMES = 8, 40
HORIZONS = {"id": 8.0, "ood-w": 8.0, "ood-t": 20.0, "ood-wt": 20.0}
"""Final time of each figure; the paper's."""


def perturbed_truth(u0: Array, setting: Setting, times: Array, seed: int, size: float) -> Array:
    """The truth (batch, time, channel, cell) from initial states with noise in every cell of the fine grid."""
    reference = find_problem(NAME).subflow(find_problem(NAME).processes)
    assert isinstance(reference, KuramotoSivashinskyReference)
    fine = reference.fine_state(u0, setting)
    noise = np.random.Generator(np.random.Philox(key=[seed, 0])).standard_normal(fine.shape)
    return reference.averages(fine + size * (noise - noise.mean(axis=2, keepdims=True)), setting, times)


class Rolled(NamedTuple):
    """States (batch, time, channel, cell) at the end of every segment, mean work, longest step, seconds."""

    states: Array
    work: float
    longest: float
    seconds: float


def rolled(solver: Composing, start: Query) -> Rolled:
    """Answers to segment after segment, each from the state at the end of the one before."""
    begin = perf_counter()
    u, states, work, longest = start.u0, [], 0.0, 0.0
    for _ in TIMES:
        query = Query(u, start.setting, start.time)
        u, cost = solver.solve(query)
        states.append(u)
        work += float(cost.mean())
        longest = max(longest, float(solver.programs(query).durations.max()))
    return Rolled(np.stack(states, axis=1), work, longest, perf_counter() - begin)


def attractor_statistic(name: str, states: Array, truth: Array, setting: Setting) -> float:
    """SE or KL of trajectories (batch, time, channel, cell), over all samples and all times after the transient."""
    late = TIMES > TRANSIENT
    pooled = [u[:, late].reshape(-1, *u.shape[2:]) for u in (states, truth)]
    every = setting.take(np.repeat(np.arange(setting.batch), int(late.sum())))
    return float(find_metric(name)(pooled[0], pooled[1], every)[0])


def _long_data(samples: int, split: str, seed: int, times: Array) -> Dataset:
    """Truth at many times, without an estimate of its error: after dozens of e-foldings the estimate would be 1."""
    return replace(find_problem(NAME), estimated=0).sample(samples, split, seed, times=times.tolist())


def segments(trajectories: int, seed: int) -> Dataset:
    """Queries that start at any time of long training trajectories and last for one segment."""
    data = _long_data(trajectories, "train", seed, TIMES)
    starts = np.arange(0, TIMES.size, EVERY)
    pairs = np.stack([data.states[:, starts], data.states[:, starts + 1]], axis=2)
    return replace(
        data,
        states=pairs.reshape(-1, *pairs.shape[2:]),
        times=np.tile([0.0, SEGMENT], (trajectories * starts.size, 1)),
        setting=data.setting.take(np.repeat(np.arange(trajectories), starts.size)),
    )


def _trained_on_segments(bench: Bench, seed: int) -> HyCOP:
    """A policy for states of the attractor."""
    train, held_out = (segments(LESSONS, stream) for stream in (seed, seed + 2**32))
    model = HyCOP(find_problem(NAME).named_dictionary(DICTIONARY))
    return model.fit(train, held_out, preset=bench.preset, seed=seed, **LEARNING)


def _direct(bench: Bench, seed: int) -> list[Row]:
    learned = bench.learned(NAME, seed)
    inner = learned.model.model
    everyone = contenders(learned.model, classical_alone(inner))
    metrics = ("rel_l2", *STATISTICS, SPLITTING)
    rows: list[Row] = []
    for split in SPLITS:
        data = bench.data(NAME, split, seed)
        found = plain_limit(evaluate(everyone, [data], limit_of=limit_of(inner), metrics=metrics))
        query = data.query
        again = perturbed_truth(query.u0, query.setting, query.time[:, None], seed, PERTURBATION["direct"])[:, 0]
        for name in metrics[:-1]:
            like = next(row for row in found if row.metric == name)
            value = float(find_metric(name)(again, data.truth, query.setting).mean())
            found.append(replace(like, method=PERTURBED, dictionary="", value=value, work=0.0, seconds_per_sample=0.0))
        rows += [
            replace(
                row,
                variant=DIRECT,
                paper=PAPER.get((split, row.metric)) if row.method == "HyCOP" else None,
            )
            for row in found
        ]
    return [*rows, training_seconds(learned, rows[0])]


def _direct_unsplit(bench: Bench, seed: int) -> list[Row]:
    datasets = [bench.data(NAME, split, seed) for split in SPLITS]
    learned, metrics = bench.learned(NAME, seed), ("rel_l2", *STATISTICS)
    return unsplit_rows(bench, learned, seed, datasets, metrics=metrics, variant=DIRECT)


def _attractor(bench: Bench, seed: int) -> list[Row]:
    rows: list[Row] = []
    samples = min(bench.samples, LONG_SAMPLES)
    model = _trained_on_segments(bench, seed)
    solvers = _solvers(model)
    limiting = Composed(splitting(LIMIT_SCHEME).with_substeps(LIMIT_SUBSTEPS), model.dictionary, model.model.refinement)
    for split in ("id", "ood-w"):
        data = _long_data(samples, split, seed, TIMES)
        truth, setting = data.states[:, 1:], data.setting
        start = Query(data.states[:, 0], setting, np.full(samples, SEGMENT))
        again = perturbed_truth(start.u0, setting, np.tile(TIMES, (samples, 1)), seed, PERTURBATION["attractor"])
        bottom = rolled(limiting, start)
        floor = {name: attractor_statistic(name, bottom.states, truth, setting) for name in STATISTICS}
        row = partial(_row, data, floor)
        for name in STATISTICS:
            rows.append(row(PERTURBED, name, attractor_statistic(name, again, truth, setting)))
            rows.append(row(LIMIT, name, floor[name]))
        for method, solver in solvers.items():
            run = rolled(solver, start)
            cost = {"work": run.work, "seconds_per_sample": run.seconds / samples}
            for name in STATISTICS:
                value = attractor_statistic(name, run.states, truth, setting)
                rows.append(row(method, name, value, **cost))
            rows.append(row(method, "longest step", run.longest, **cost))
    return rows


def _solvers(model: HyCOP) -> dict[str, Composing]:
    """The model, its static program if there is one, and the classical opponent of its gate."""
    static = model.model.static()
    solvers: dict[str, Composing] = {"HyCOP": model}
    solvers |= {} if static is None else {"static": HyCOP.of(static)}
    return {**solvers, CLASSICAL: classical_alone(model.model)}


def _row(data: Dataset, floor: Mapping[str, float], method: str, name: str, value: float, **cost: float) -> Row:
    return Row.of(
        data,
        method=method,
        dictionary="" if method == PERTURBED else DICTIONARY,
        variant=ATTRACTOR,
        time=HORIZON,
        metric=name,
        value=value,
        truth=data.reference if name in floor else "",
        limit=floor.get(name, 0.0),
        **cost,
    )


def figures(bench: Bench, rows: Sequence[Row]) -> Mapping[str, Figure]:
    """The paper's four: in the training range, and with a wider domain, a longer time, or both."""
    model = bench.learned(NAME, 0).model
    return {f"ks_{split}": _figure(model, split) for split in SPLITS}


def _figure(model: HyCOP, split: str) -> Figure:
    times = np.linspace(0.0, HORIZONS[split], FRAMES + 1)[1:]
    data = _long_data(SHOWN, split, 0, times)
    query = data.query
    states = model.solve(query).states.reshape(SHOWN, FRAMES, -1)
    truth = data.states[:, 1:, 0]
    length = float(data.setting.grid.lengths[0, 0])
    figure = new_figure(9, 6.5)
    figure.suptitle(f"Kuramoto–Sivashinsky, {split}: W = {length / (2 * np.pi):.1f}, T = {times[-1]:g}", fontsize=11)
    halves: Any = figure.subfigures(2, 1)
    panels = halves[0].subplots(1, 3, sharey=True)
    bound = float(np.abs(truth[0]).max())
    for axes, (title, u) in zip(
        panels, {"truth": truth[0], "HyCOP": states[0], "HyCOP − truth": states[0] - truth[0]}.items(), strict=True
    ):
        box = (0.0, length, 0.0, float(times[-1]))
        image = axes.imshow(u, origin="lower", extent=box, aspect="auto", cmap="RdBu_r", vmin=-bound, vmax=bound)
        axes.set(title=title, xlabel="x")
    panels[0].set_ylabel("t")
    halves[0].colorbar(image, ax=panels)
    left, right = halves[1].subplots(1, 2)
    late = times > 0.1 * times[-1]
    edges = np.linspace(-1.2, 1.2, 61) * float(np.abs(truth).max())
    for index, (label, u) in enumerate({"truth": truth, "HyCOP": states}.items()):
        style = {"color": COLOURS[index], "label": label, "linestyle": "-" if index == 0 else "--"}
        energy = (np.abs(np.fft.rfft(u[:, late], axis=2, norm="forward")) ** 2).mean(axis=(0, 1))
        left.semilogy(np.arange(1, energy.size - 1), energy[1:-1], **style)  # a Nyquist mode stands still
        density, _ = np.histogram(u[:, late], edges, density=True)
        right.semilogy(0.5 * (edges[1:] + edges[:-1]), np.where(density > 0, density, np.nan), **style)
    left.set(title="energy spectrum", xlabel="mode", ylabel="mean of |û|²")
    right.set(title="distribution of states", xlabel="u", ylabel="density")
    left.legend(fontsize=8)
    return figure


TABLE = Table(
    "ks",
    "Kuramoto–Sivashinsky: errors, spectra and state statistics (ks1d)",
    {"direct": _direct, "attractor": _attractor, "direct unsplit": _direct_unsplit},
    figures,
    samples=200,
)
