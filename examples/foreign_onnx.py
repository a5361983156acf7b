"""A PyTorch network as a primitive, through ONNX: train it, export it, and compose it with textbook solvers.

python examples/foreign_onnx.py          needs torch, onnx and pip install 'hycop[onnx]'
"""

import tempfile
from importlib.util import find_spec
from pathlib import Path

import numpy as np

import hycop
from hycop.primitives import OnnxNetwork
from hycop.primitives.examples import scalar_example


def exported(path: Path) -> None:
    """Trains u + a·N(u, a) with a = r·duration on the logistic equation, pointwise, and writes it as ONNX."""
    import torch

    class Reaction(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layers = torch.nn.Sequential(torch.nn.Linear(2, 32), torch.nn.Tanh(), torch.nn.Linear(32, 1))

        def forward(self, u: torch.Tensor, duration: torch.Tensor, r: torch.Tensor) -> torch.Tensor:
            growth = (duration * r).reshape(-1, 1, 1, 1)
            inputs = torch.stack([u, growth.expand_as(u)], dim=-1)
            return u + growth * self.layers(inputs)[..., 0]  # the identity at zero duration

    torch.manual_seed(0)
    network, one = Reaction(), torch.ones(64)
    optimizer = torch.optim.Adam(network.parameters(), lr=1e-2)
    for _ in range(400):
        u, a = torch.rand(64, 1, 8, 8), 0.5 * torch.rand(64)
        growth = torch.exp(a).reshape(-1, 1, 1, 1)
        truth = u * growth / (1 + u * (growth - 1))
        loss = (((network(u, a, one) - truth) / a.reshape(-1, 1, 1, 1).clamp(min=0.01)) ** 2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    axes = {"u": {0: "batch", 2: "x", 3: "y"}, "duration": {0: "batch"}, "r": {0: "batch"}}
    example = (torch.rand(1, 1, 8, 8), torch.ones(1), torch.ones(1))
    torch.onnx.export(network, example, path, input_names=["u", "duration", "r"], dynamic_axes=axes, dynamo=False)


def main() -> None:
    missing = [name for name in ("torch", "onnx", "onnxruntime") if find_spec(name) is None]
    if missing:
        print(f"{', '.join(missing)} is not installed: nothing to run")
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "reaction.onnx")
        exported(path)
        # the first input is the state; the others, in order, are these numbers
        primitive = OnnxNetwork.from_file(path, arguments=("duration", "r"), advances={"reaction"})
        primitive = primitive.with_example(lambda seed: scalar_example(seed, (), {"r": 0.8}))
        primitive = primitive.calibrated(file=Path(folder, "work.json"))
    print(hycop.check_primitive(primitive))
    problem = hycop.problem("adr2d")
    data = problem.sample(4, split="id", seed=0)
    dictionary = problem.dictionary.swapping("reaction", primitive)
    programs = hycop.splitting("strang").programs(data.query, dictionary)
    states = hycop.run(programs, dictionary, data.query)
    errors = hycop.metrics.rel_l2(states, data.truth, data.query.setting)
    print(f"Strang splitting with a network for the reaction: error {np.mean(errors):.3g}")


if __name__ == "__main__":
    main()
