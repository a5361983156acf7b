"""What a table is: rows from a computation, figures of them; and the bench that keeps what is finished."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter
from typing import Any, Protocol

from hycop.data import Dataset, load, save
from hycop.dictionary import Dictionary
from hycop.evaluation import Row
from hycop.files import output_folder, write_json
from hycop.plots import Figure
from hycop.primitive import Primitive
from hycop.problems import problem
from hycop.surrogate import HyCOP
from hycop.training import TrainingConfig, configured
from hycop.version import __version__

Progress = Callable[[str, float], None]
"""Told what is being done, and the share of the whole that is finished."""


@dataclass(frozen=True)
class Learned:
    """A trained model, the seconds that training took, and the loss after every step of it."""

    model: HyCOP
    seconds: float
    history: Sequence[float]


@dataclass(frozen=True)
class Bench:
    """How much a table computes, and where it keeps finished parts, so that an interrupted table goes on from there.

    ``samples`` per split and seed; models are trained with ``preset``. Without a folder parts are kept in memory only.
    """

    samples: int
    seeds: int
    progress: Progress
    preset: str = "quick"
    folder: Path | None = None
    _datasets: dict[str, Dataset] = field(default_factory=dict, repr=False, compare=False)
    _models: dict[str, Learned] = field(default_factory=dict, repr=False, compare=False)

    def data(self, name: str, split: str, seed: int, samples: int | None = None, **options: Any) -> Dataset:
        """Queries of a problem with their truth."""
        count = self.samples if samples is None else samples
        key = _key(name, split, seed, count, options)
        if key not in self._datasets:
            file = None if self.folder is None else output_folder(self.folder) / f"{key}.nc"
            if file is not None and file.exists():
                self._datasets[key] = load(file)
            else:
                self._datasets[key] = problem(name).sample(count, split, seed, **options)
                if file is not None:
                    save(self._datasets[key], file)
        return self._datasets[key]

    def learned(
        self,
        name: str,
        seed: int,
        preset: str | None = None,
        adding: Mapping[str, Primitive] | None = None,
        **settings: Any,
    ) -> Learned:
        """A model of a problem, trained with the preset and the settings given, and with more primitives than the
        problem's own dictionary has, if some are to be added."""
        config = configured(preset or self.preset, {**problem(name).suited(preset or self.preset), **settings})
        more = dict(adding or {})
        key = _key(name, "model", seed, config.model_dump(), *([repr(more)] if more else []))
        if key not in self._models:
            folder = None if self.folder is None else self.folder / key
            self._models[key] = self._trained(name, seed, preset or self.preset, more, settings, config, folder)
        return self._models[key]

    def _trained(
        self,
        name: str,
        seed: int,
        preset: str,
        adding: Mapping[str, Primitive],
        settings: Mapping[str, Any],
        config: TrainingConfig,
        folder: Path | None,
    ) -> Learned:
        if folder is not None and (folder / "table.json").exists():
            known = json.loads((folder / "table.json").read_text(encoding="utf-8"))
            return Learned(HyCOP.load(folder, adding), known["seconds"], known["history"])
        train = self.data(name, _split(config), seed, config.samples, shape=config.shape)
        held_out = self.held_out(name, seed, config)
        history: list[float] = []  # of this process; the run folder has also what came before an interruption
        start = perf_counter()
        own = problem(name).named_dictionary(config.dictionary)
        model = HyCOP(Dictionary({**own, **adding})).fit(
            train,
            held_out,
            preset=preset,
            seed=seed,
            folder=folder,
            resume=folder is not None and folder.exists(),
            report=lambda entry: history.append(entry.loss),
            **settings,
        )
        seconds = perf_counter() - start
        if folder is not None:
            lines = (folder / "history.jsonl").read_text(encoding="utf-8").splitlines()
            history = [float(json.loads(line)["loss"]) for line in lines]
            model.save(folder, overwrite=True)
            write_json(folder / "table.json", {"seconds": seconds, "history": history})
        return Learned(model, seconds, history)

    def held_out(self, name: str, seed: int, config: TrainingConfig) -> Dataset:
        """The queries on which the gate of that model decides."""
        return self.data(name, _split(config), seed + 2**32, config.validation, shape=config.shape)

    def rows(self, key: Sequence[object], compute: Callable[[], list[Row]]) -> list[Row]:
        """The rows of one part of the table, computed unless they were kept."""
        if self.folder is None:
            return compute()
        file = output_folder(self.folder) / f"{_key('rows', *key, self.samples, self.preset)}.json"
        if file.exists():
            return [Row.from_json(row) for row in json.loads(file.read_text(encoding="utf-8"))]
        rows = compute()
        write_json(file, [row.to_json() for row in rows])
        return rows


def _split(config: TrainingConfig) -> str:
    return "trajectory" if config.horizon == "trajectory" else "train"


def _key(*parts: object) -> str:
    """A file name for a part: readable at its start, unique by the hash at its end."""
    text = json.dumps([__version__, *parts], sort_keys=True, default=str)
    return "-".join([*(str(part) for part in parts[:3]), hashlib.sha256(text.encode()).hexdigest()[:12]])


class Build(Protocol):
    def __call__(self, bench: Bench) -> list[Row]: ...


@dataclass(frozen=True)
class Table:
    """A named table; ``samples`` (per split and seed), ``preset`` and ``seeds`` are its own unless told otherwise."""

    name: str
    title: str
    samples: int
    build: Build
    figures: Callable[[Bench, Sequence[Row]], Mapping[str, Figure]]
    preset: str = "laptop"
    seeds: int = 3
