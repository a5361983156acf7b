"""A primitive of one's own: add linear decay to advection–diffusion and run a program with it.

python examples/own_primitive.py                            run this example
hycop check examples/own_primitive.py:LinearDecay           prove the primitive
"""

from dataclasses import dataclass

import numpy as np

import hycop


@dataclass(frozen=True)
class LinearDecay:
    """Decay u_t = −k u: exact exponential. Parameter: ``k``."""

    advances = frozenset({"decay"})
    order = hycop.EXACT

    def flow(self, u, duration, setting):
        factor = np.exp(-setting.param("k") * duration)
        return u * factor.reshape((-1,) + (1,) * (u.ndim - 1))

    def work(self, u, duration, setting):
        return np.full(setting.batch, float(u[0].size))

    def example(self, seed):
        grid = hycop.Grid.box((8, 9), batch=3)
        u = np.random.default_rng(seed).random((3, 1, 8, 9))
        return u, hycop.Setting(grid, (hycop.Channel("u"),), {"k": [0.5, 1.0, 2.0]})


def main() -> None:
    print(hycop.check_primitive(LinearDecay()))
    data = hycop.problem("ad2d").sample(4, split="id", seed=0)
    dictionary = hycop.problem("ad2d").dictionary.adding("decay", LinearDecay())
    setting = hycop.Setting(data.setting.grid, data.setting.channels, {**data.setting.params, "k": 1.5})
    query = hycop.Query(data.query.u0, setting, data.query.time)
    programs = hycop.splitting("strang").programs(query, dictionary)
    states = hycop.run(programs, dictionary, query)
    # linear decay commutes with the rest, so the answer is known: the truth without it, times exp(−k T)
    truth = data.truth * np.exp(-1.5 * query.time).reshape(-1, 1, 1, 1)
    print(programs[0])
    print("largest error", float(np.abs(states - truth).max()))


if __name__ == "__main__":
    main()
