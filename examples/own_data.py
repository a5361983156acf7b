"""Data of one's own: an HDF5 file from somebody's solver, to a dataset, to a model, to answers in a file.

python examples/own_data.py

The same works for arrays from npz, netCDF or anywhere else: what is needed are states (sample, time, channel, x[, y]),
their times, the lengths of the box and the coefficients by name. On the command line: hycop train ad1d --data mine.nc.
"""

import h5py
import numpy as np

import hycop


def somebody_writes(path: str, samples: int) -> None:
    """Advection–diffusion of a few waves on a periodic line, in the names of another code."""
    rng = np.random.default_rng(0)
    x, t = (np.arange(64) + 0.5) * 10 / 64, np.array([0.0, 0.25, 0.5, 1.0])
    speed, kappa = rng.uniform(0.5, 3.0, (samples, 1, 1)), rng.uniform(0.01, 0.5, (samples, 1, 1))
    u = np.full((samples, t.size, x.size), 0.5)
    for k in 2 * np.pi / 10 * np.arange(1, 6):
        a, b = rng.uniform(0, 0.1, (samples, 1, 1)), rng.uniform(0, 2 * np.pi, (samples, 1, 1))
        u += a * np.exp(-kappa * k**2 * t[:, None]) * np.sin(k * (x - speed * t[:, None]) + b)
    with h5py.File(path, "w") as file:
        file["concentration"], file["t"] = u, t
        file["speed"], file["kappa"] = speed[:, 0, 0], kappa[:, 0, 0]


def main() -> None:
    somebody_writes("theirs.h5", samples=120)
    with h5py.File("theirs.h5") as file:
        states = file["concentration"][:][:, :, None]  # (sample, time, channel, x)
        times = np.tile(file["t"][:], (len(states), 1))
        params = {"cx": file["speed"][:], "Dx": file["kappa"][:]}
    grid = hycop.Grid.box((64,), lengths=10.0, boundary="periodic", batch=len(states))
    setting = hycop.Setting(grid, (hycop.Channel("u"),), params)
    data = hycop.Dataset("ad1d", "train", states, times, setting, reference="theirs.h5")
    hycop.save(data, "mine.nc")  # and hycop.load("mine.nc"); .npz works too

    dictionary = hycop.problem("ad1d").dictionaries["upwind"]
    model = hycop.HyCOP(dictionary).fit(data, budget="gain", max_steps=4, tries=1, patterns=1)
    print(model.model.gate)
    model.save("model")

    model = hycop.HyCOP.load("model")
    answer = model.predict(data.states[:4, 0], {name: value[:4] for name, value in params.items()}, times=[0.1, 0.7])
    print(answer.shape, model.program(data.states[:1, 0], {"cx": 1.0, "Dx": 0.1}, t=0.7))


if __name__ == "__main__":
    main()
