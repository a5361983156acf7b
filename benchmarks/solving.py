"""Answers of trained models against Exponax at equal error, and against the inference of an FNO.

Both sides are asked for the same queries of split ``id``, 64 at a time or one. HyCOP's seconds are those of
``model.answer``, with everything that it does for a query; its opponent is given its coefficients.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
import scipy.fft

from benchmarks.equal_error import Match, fastest, match, mean_error
from benchmarks.exponax_solvers import STEPS, Exponax
from benchmarks.measure import Ratio, compared, interleaved, needed
from benchmarks.models import data, trained
from hycop.data import Dataset
from hycop.grid import Array
from hycop.networks import Architecture
from hycop.surrogate import HyCOP

SAMPLES = 64
GOALS = {"adr2d": (6.0, 2.0), "burgers1d": (1.5, 1.0), "ks1d": (1.5, 1.0)}
"""How many times as fast as its opponent HyCOP should be, in a batch and alone."""

EQUATIONS = {"adr2d": "adr", "burgers1d": "burgers", "ks1d": "ks"}
OPTIONS = {"burgers1d": ("--set", "dictionary=spectral", "--set", "refinement=1")}
"""Of the dictionaries of a problem the one that answers fastest at the error of the goal, where it is not the first."""

TRANSFORMS = 1.3
"""How many times as long as the bare transforms of the method an answer may take where the goal above is missed."""


def _families(name: str, most: int) -> dict[str, list[Exponax]]:
    """The opponents of each row. Fronts of Burgers' equation and wide domains of Kuramoto–Sivashinsky need a finer grid
    than the query's; advection–diffusion–reaction does not, and has no aliases to speak of."""
    make, levels = partial(Exponax, EQUATIONS[name]), tuple(steps for steps in STEPS if steps <= most)
    if name == "adr2d":
        second, fourth = (make(order, 1, None, levels) for order in (2, 4))
        return {"ETDRK2": [second], "the faster of ETDRK2 and ETDRK4": [second, fourth]}
    grids = ((1, None), (2, 2 / 3), (2, None))
    return {"the fastest of its methods": [make(order, *grid, levels) for order in (2, 4) for grid in grids]}


def measure(
    name: str,
    batches: Sequence[int] = (SAMPLES, 1),
    rounds: int = 15,
    options: Sequence[str] = (),
    most: int = STEPS[-1],
) -> list[Ratio]:
    """Rows of one problem; ``options`` are more of those of training, ``most`` the most steps of the opponent."""
    needed("exponax", "pip install -c constraints.txt -e '.[bench]'")
    judged, model = data(name, "id", max(batches)), trained(name, (*OPTIONS.get(name, ()), *options)).model
    error = mean_error(model.answer(judged.query).states, judged)
    found: list[Ratio] = []
    for index, (which, families) in enumerate(_families(name, most).items()):
        matches = [match(family, judged, error) for family in families]
        for batch in batches:
            chosen = fastest(matches, judged.query.take(slice(0, batch)))
            goal = GOALS[name][batch == 1] if not index else 1.0
            found += _rows(name, batch, which, model, judged, error, chosen, goal, rounds if batch > 1 else 10 * rounds)
    return found


def _rows(
    name: str,
    batch: int,
    which: str,
    model: HyCOP,
    judged: Dataset,
    error: float,
    chosen: Match,
    goal: float,
    rounds: int,
) -> list[Ratio]:
    query = judged.query.take(slice(0, batch))
    ours, theirs, bare = "HyCOP", f"Exponax, {which}", "bare transforms"
    calls: dict[str, Callable[[], object]] = {ours: lambda: model.answer(query).states, **chosen.calls(query)}
    if name != "adr2d":
        calls[bare] = bare_transforms(chosen, query.u0)
    seconds = interleaved(calls, rounds, pause=0.0)
    seconds[theirs] = chosen.at_equal_error(seconds)
    where = f"{name}, {batch} {'query' if batch == 1 else 'queries'}"
    row = partial(compared, f"{name}-answer", seconds=seconds, ours=ours, queries=batch, detail=chosen.told())
    out = [row(f"{where}: {theirs} / HyCOP", theirs=theirs, goal=goal, errors=(error, chosen.error))]
    if bare in calls:
        told = f"HyCOP / the bare transforms of that method, {where}; an alternative to the goal above"
        out.append(row(told, theirs=bare, goal=TRANSFORMS, at_least=False))
    return out


def bare_transforms(chosen: Match, u0: Array) -> Callable[[], object]:
    """The transforms that the method at equal error cannot do without, by SciPy: a pair for every stage of a step."""
    family = chosen.family
    assert isinstance(family, Exponax)
    steps = chosen.coarse ** (1 - chosen.weight) * chosen.fine**chosen.weight
    pairs = max(1, round(steps * family.order))
    fine = np.repeat(u0, family.finer, axis=-1)

    def call() -> object:
        u = fine
        for _ in range(pairs):
            u = scipy.fft.irfft(scipy.fft.rfft(u), n=fine.shape[-1], overwrite_x=True)
        return u

    return call


def measure_fno(batches: Sequence[int] = (SAMPLES, 1), rounds: int = 21, options: Sequence[str] = ()) -> list[Ratio]:
    """One forward pass of an FNO of PDEBench's size in single precision: what it takes does not depend on its
    weights."""
    torch = needed("torch", "pip install -c constraints.txt -e '.[learned]'")
    needed("neuralop", "pip install -c constraints.txt -e '.[learned]'")
    torch.set_num_threads(1)
    model, judged = trained("adr2d", options).model, data("adr2d", "id", max(batches))
    sizes = {"family": "fno", "axes": 2, "channels": 1, "numbers": 5, "timed": 5}
    network = Architecture.of(sizes).build().eval()
    found = []
    for batch in batches:
        query = judged.query.take(slice(0, batch))
        u = torch.as_tensor(query.u0, dtype=torch.float32)
        numbers = torch.zeros((batch, 5))
        with torch.inference_mode():
            calls = {"HyCOP": lambda: model.answer(query).states, "FNO": lambda: network(u, numbers)}  # noqa: B023
            seconds = interleaved(calls, rounds, pause=0.0)
        what = f"adr2d, {batch} {'query' if batch == 1 else 'queries'}: forward pass of an FNO / HyCOP"
        found.append(compared("fno", what, seconds, "HyCOP", "FNO", 1.0, queries=batch, detail="single precision"))
    return found
