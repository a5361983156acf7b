"""A PDE of one's own: Allen–Cahn, u_t = D u_xx + u − u³, from a primitive that exists and one that is new.

python examples/own_pde.py
"""

from dataclasses import dataclass

import numpy as np
from scipy.integrate import solve_ivp

import hycop


@dataclass(frozen=True)
class DoubleWell:
    """u_t = u − u³, exactly: u → u / √(u² + (1 − u²) e^{−2t})."""

    advances = frozenset({"double well"})
    order = hycop.EXACT

    def flow(self, u, duration, setting):
        fade = np.exp(-2 * duration).reshape((-1,) + (1,) * (u.ndim - 1))
        return u / np.sqrt(u**2 + (1 - u**2) * fade)

    def work(self, u, duration, setting):
        return np.full(setting.batch, float(u[0].size))


def truth(u0: np.ndarray, diffusivity: float, times: np.ndarray) -> np.ndarray:
    """Somebody's trusted solver, here SciPy's: states (time, x) on a periodic box of length one."""
    square = (2 * np.pi * np.fft.rfftfreq(u0.size, 1 / u0.size)) ** 2

    def rate(_: float, u: np.ndarray) -> np.ndarray:
        return np.fft.irfft(-diffusivity * square * np.fft.rfft(u), u0.size) + u - u**3

    return solve_ivp(rate, (0, times[-1]), u0, "BDF", t_eval=times, rtol=1e-7, atol=1e-9).y.T


def main() -> None:
    rng = np.random.default_rng(0)
    x = (np.arange(64) + 0.5) / 64
    diffusivity = 10.0 ** rng.uniform(-3, -2, 120)
    times = np.array([0.0, 0.5, 1.0])
    waves = sum(rng.normal(size=(120, 1)) * np.sin(2 * np.pi * (k * x + rng.random((120, 1)))) / k for k in (1, 2, 3))
    states = np.stack([truth(0.7 * np.tanh(u), D, times) for u, D in zip(waves, diffusivity, strict=True)])

    grid = hycop.Grid.box((64,), lengths=1.0, batch=120)
    setting = hycop.Setting(grid, (hycop.Channel("u"),), {"Dx": diffusivity})
    data = hycop.Dataset("allen-cahn", "train", states[:, :, None], np.tile(times, (120, 1)), setting)
    dictionary = hycop.Dictionary({"diffusion": hycop.primitives.SpectralDiffusion(), "double well": DoubleWell()})
    model = hycop.HyCOP(dictionary).fit(data.take(slice(0, 100)), max_steps=5, tries=2, patterns=1)
    print(model.model.gate)
    judge = data.take(slice(100, 120))
    answer = model.predict(judge.states[:, 0], judge.setting.params, times=[0.5, 1.0])
    print(model.program(judge.states[:1, 0], {"Dx": 0.005}, t=1.0))
    print("relative error", float(np.linalg.norm(answer - judge.states[:, 1:]) / np.linalg.norm(judge.states[:, 1:])))


if __name__ == "__main__":
    main()
