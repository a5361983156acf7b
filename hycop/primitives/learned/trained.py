"""What learned primitives share: a network as data, its weights, and the states that it was trained on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import numpy as np

from hycop.errors import IncompatibleError, InvalidInputError
from hycop.grid import BOUNDARIES, Array, Grid
from hycop.networks import Architecture
from hycop.query import Setting

if TYPE_CHECKING:
    from hycop.networks.module import Increment

Own = TypeVar("Own", bound="Trained")


class Trained:
    """A primitive with a trained network; ``architecture`` is that of the network as data, see ``hycop.networks``.

    ``states`` are the trained ranges of the channels, by name, and ``boundary`` the kind of each axis. The weights are
    its ``arrays()``; ``source`` says in an error where they come from.
    """

    architecture: Mapping[str, str | int]
    states: Mapping[str, tuple[float, float]]
    boundary: tuple[str, ...]
    weights: Mapping[str, Array]

    order: ClassVar[float | None] = None
    source: ClassVar[str]

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_module"}

    @property
    def plan(self) -> Architecture:
        return Architecture.of(self.architecture)

    @property
    def boundaries(self) -> frozenset[str]:
        """Those that it was trained with; all if it takes each cell by itself."""
        return BOUNDARIES if self.plan.kind.pointwise else frozenset(self.boundary)

    def arrays(self) -> Mapping[str, Array]:
        return self.weights

    def with_arrays(self: Own, arrays: Mapping[str, Array]) -> Own:
        """The same primitive with other weights, which must have the names and shapes of its architecture."""
        wanted = self.plan.shapes()  # says so if torch is missing
        from hycop.networks.module import check_shapes  # torch is imported when a network is used

        check_shapes({name: np.shape(array) for name, array in arrays.items()}, wanted)
        out = object.__new__(type(self))
        kept = {name: np.array(array, dtype=np.float32) for name, array in arrays.items()}
        for name, array in kept.items():
            if not np.isfinite(array).all():
                raise InvalidInputError(f"weights: array '{name}' has a NaN or infinite value; train the network again")
        out.__dict__.update({**self.__getstate__(), "weights": kept})
        return out

    def _parameters(self) -> int:
        return sum(array.size for array in self.weights.values())

    def _check_sizes(self, **sizes: int) -> None:
        for name, count in sizes.items():
            if self.plan[name] != count:
                raise InvalidInputError(
                    f"network {self.plan.family}: {name} is {self.plan[name]}, but there are {count}"
                )

    def _check_setting(self, setting: Setting) -> None:
        names = [channel.name for channel in setting.channels]
        if names != list(self.states) or setting.grid.axes != self.plan["axes"]:
            raise IncompatibleError(
                f"{self!r} was trained for {self.plan['axes']} axes and channels {', '.join(self.states)}: the query "
                f"has {setting.grid.axes} and {', '.join(names)}"
            )

    def _example_grid(self, batch: int) -> Grid:
        """A small box of length one."""
        return Grid.box((12, 15, 10)[: self.plan["axes"]], 1.0, self.boundary, batch)

    def _example_states(self, rng: np.random.Generator, grid: Grid) -> Array:
        """Smooth states within the trained range."""
        u = np.empty((grid.batch, len(self.states), *grid.shape))
        for channel, (low, high) in enumerate(self.states.values()):
            # cosines have no gradient at the ends, so they suit every boundary
            wave = sum(
                rng.uniform(-1, 1, (grid.batch,) + (1,) * grid.axes) * np.cos(2 * np.pi * (1 + axis // 2) * x)
                for axis, x in enumerate(grid.centres())
            )
            u[:, channel] = 0.5 * (low + high) + 0.2 * (high - low) * wave / grid.axes
        return u

    def _built(self) -> Increment:
        """The module with its weights, made once in each process."""
        if "_module" not in self.__dict__:
            if not self.weights:
                raise InvalidInputError(f"{self!r} has no weights; {self.source}, or give arrays")
            from hycop.networks.module import set_arrays

            module = self.plan.build()
            set_arrays(module, self.weights)
            object.__setattr__(self, "_module", module.eval())
        built: Increment = self.__dict__["_module"]
        return built
