"""Ask/tell optimisers on explicit, frozen state: they see only vectors, seeds and losses.

``state = optimizer.start(theta0, seed)``; then, as often as wanted, evaluate the rows of ``optimizer.ask(state)`` and
``state = optimizer.tell(state, losses)``. Lower is better. A state holds all that is needed to go on, as plain
numbers, so a run that was stored with ``to_arrays`` and restored goes on as if nothing had happened, to the bit.
Whoever evaluates members [a, b) makes them alone with ``ask_some``, and sums are not left to BLAS and its threads.
"""

from __future__ import annotations

from hycop.evolution.cma import CMA, CMAState
from hycop.evolution.levenberg_marquardt import LevenbergMarquardt, LMState, NormalEquations, normal_equations
from hycop.evolution.openes import OpenES, centred_ranks
from hycop.evolution.optimizer import NoFitnessError, Optimizer, State, noise

__all__ = [
    "CMA",
    "CMAState",
    "LMState",
    "LevenbergMarquardt",
    "NoFitnessError",
    "NormalEquations",
    "OpenES",
    "Optimizer",
    "State",
    "centred_ranks",
    "noise",
    "normal_equations",
]
