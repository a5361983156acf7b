"""Physics-informed neural operator: the FNO, then as much training again with the residual of the equation in the loss.

The residual is the source paper's: central differences of the end state on the training grid, with u_t taken as
(u(T) − u₀)/T. The exact solution does not make it zero, because u_t at T is not that mean.
"""

from __future__ import annotations

from hycop.baselines.baseline import Baseline

BASELINE = Baseline(
    "pino",
    "PINO",
    "fno",
    "fixed",
    "Li et al.: Physics-informed neural operator for learning partial differential equations, ACM/IMS JDS 2024",
    residual=0.01,
    begins_from="fno",
)
