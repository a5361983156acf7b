"""The bench of the tables: makes datasets, models, networks and baselines, and keeps what is finished."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

from hycop.baselines import Monolith, find_baseline, is_baseline, load_baseline, train_baseline
from hycop.baselines.selftest import self_test
from hycop.baselines.training import baseline_settings, baseline_times
from hycop.data import Dataset, load, save
from hycop.dictionary import Dictionary
from hycop.evaluation import Row
from hycop.experiments.code import experiment_version, network_version, solver_version, truth_version
from hycop.files import output_folder, write_json
from hycop.pretraining import configured as network_settings
from hycop.pretraining import pretrain
from hycop.primitive import Primitive
from hycop.primitives.learned import NeuralOperator
from hycop.problems import PROBLEMS, find_problem
from hycop.progress import Progress
from hycop.storage.network import load_primitive
from hycop.surrogate import HyCOP
from hycop.training import TrainingConfig, configured
from hycop.version import __version__

COMPOSED: Mapping[str, Any] = {"unsplit": False}
"""Rows of HyCOP are compositions: solvers of the whole equation have rows of their own."""

Describe = Callable[[str, float], None]
"""Called with what is being done and the finished fraction of the whole."""


@dataclass(frozen=True)
class Learned:
    """A trained model, the CPU seconds that training took, the loss after every step of it, and its forward passes: how
    many programs it ran, each for one query (those since the last interruption)."""

    model: HyCOP
    seconds: float
    history: Sequence[float]
    passes: int = 0


@dataclass(frozen=True)
class Front:
    """Models for several amounts of work, with the CPU seconds and forward passes of all their trainings together."""

    models: Sequence[HyCOP]
    seconds: float
    passes: int


@dataclass(frozen=True)
class Bench:
    """How much a table computes, and the folder of its finished parts, from which an interrupted table goes on.

    ``samples`` are per split and seed; models are trained with ``preset``, monolithic baselines with
    ``baseline_preset``: a poorly trained opponent proves nothing. ``remark`` is called with notes for the
    reader of the table. Without a folder parts are kept in memory only. A kept part is found by its settings, the
    fingerprints of the primitives, and a hash of the source code that its numbers depend on (``experiments.code``).
    """

    samples: int
    seeds: int
    progress: Describe
    preset: str = "quick"
    folder: Path | None = None
    remark: Callable[[str], None] = lambda text: None
    baseline_preset: str = "laptop"
    _datasets: dict[str, Dataset] = field(default_factory=dict, repr=False, compare=False)
    _models: dict[str, Learned] = field(default_factory=dict, repr=False, compare=False)
    _networks: dict[str, tuple[NeuralOperator, float]] = field(default_factory=dict, repr=False, compare=False)
    _baselines: dict[str, Monolith] = field(default_factory=dict, repr=False, compare=False)

    def _code(self, version: Callable[[], str]) -> str:
        """The version of the code, for what is kept beyond this process."""
        return "" if self.folder is None else version()

    def data(self, name: str, split: str, seed: int, samples: int | None = None, **options: Any) -> Dataset:
        """Queries of a problem with their truth."""
        count = self.samples if samples is None else samples
        key = _key(name, split, seed, count, options, self._code(truth_version))
        if key not in self._datasets:
            file = None if self.folder is None else output_folder(self.folder) / f"{key}.nc"
            if file is not None and file.exists():
                self._datasets[key] = load(file)
            else:
                self._datasets[key] = find_problem(name).sample(count, split, seed, **options)
                if file is not None:
                    save(self._datasets[key], file)
        return self._datasets[key]

    def learned(
        self,
        name: str,
        seed: int,
        preset: str | None = None,
        adding: Mapping[str, Primitive] | None = None,
        using: Dictionary | None = None,
        **settings: Any,
    ) -> Learned:
        """A model of a problem, trained with the preset and the settings given. ``adding`` names primitives that its
        dictionary has beside the problem's own; ``using`` is another dictionary."""
        settings = {**COMPOSED, **settings}
        config = configured(preset or self.preset, {**find_problem(name).suited(preset or self.preset), **settings})
        more = dict(adding or {})
        own = find_problem(name).named_dictionary(config.dictionary) if using is None else using
        dictionary = Dictionary({**own, **more})
        key = _key(name, "model", seed, config.model_dump(), dictionary.fingerprint(), self._code(solver_version))
        if key not in self._models:
            folder = None if self.folder is None else self.folder / key
            if folder is not None and (folder / "table.json").exists():
                known = json.loads((folder / "table.json").read_text(encoding="utf-8"))
                model = HyCOP.load(folder, more)
                self._models[key] = Learned(model, known["seconds"], known["history"], known["passes"])
            else:
                choice = preset or self.preset
                self._models[key] = self._trained(name, seed, choice, dictionary, settings, config, folder)
        return self._models[key]

    def _trained(
        self,
        name: str,
        seed: int,
        preset: str,
        dictionary: Dictionary,
        settings: Mapping[str, Any],
        config: TrainingConfig,
        folder: Path | None,
    ) -> Learned:
        train = self.data(name, _split(config), seed, config.samples, shape=config.shape)
        held_out = self.held_out(name, seed, config)
        history: list[float] = []  # of this process; the run folder also has the steps before an interruption
        passes = 0

        def report(entry: Progress) -> None:
            nonlocal passes
            history.append(entry.loss)
            passes = entry.evaluations

        start = process_time()
        model = HyCOP(dictionary).fit(
            train,
            held_out,
            preset=preset,
            seed=seed,
            folder=folder,
            resume=folder is not None and folder.exists(),
            report=report,
            **settings,
        )
        seconds = process_time() - start
        if folder is not None:
            lines = (folder / "history.jsonl").read_text(encoding="utf-8").splitlines()
            history = [float(json.loads(line)["loss"]) for line in lines]
            model.save(folder, overwrite=True)
            write_json(folder / "table.json", {"seconds": seconds, "history": history, "passes": passes})
        return Learned(model, seconds, history, passes)

    def front(self, name: str, seed: int, points: int) -> Front:
        """Models of a problem for at most ``points`` amounts of work, trained with the preset. They are kept like a
        model, but an interrupted training begins again."""
        config = configured(self.preset, {**find_problem(name).suited(self.preset), **COMPOSED})
        dictionary = find_problem(name).named_dictionary(config.dictionary)
        settings = config.model_dump(), dictionary.fingerprint(), self._code(solver_version)
        key = _key(name, "front", seed, points, *settings)
        folder = None if self.folder is None else output_folder(self.folder) / key
        if folder is not None and (folder / "table.json").exists():
            known = json.loads((folder / "table.json").read_text(encoding="utf-8"))
            models = [HyCOP.load(folder / f"model{index}") for index in range(known["models"])]
            return Front(models, known["seconds"], known["passes"])
        train = self.data(name, _split(config), seed, config.samples, shape=config.shape)
        counts = [0]  # of the programs of each model; a smaller count begins another model

        def report(entry: Progress) -> None:
            if entry.evaluations < counts[-1]:
                counts.append(0)
            counts[-1] = entry.evaluations

        start = process_time()
        held_out = self.held_out(name, seed, config)
        models = HyCOP(dictionary).front(
            train, held_out, points=points, preset=self.preset, seed=seed, report=report, verbose=False, **COMPOSED
        )
        found = Front(models, process_time() - start, sum(counts))
        if folder is not None:
            for index, model in enumerate(models):
                model.save(folder / f"model{index}", overwrite=True)
            content = {"models": len(models), "seconds": found.seconds, "passes": found.passes}
            write_json(folder / "table.json", content)
        return found

    def network(self, problem: str, processes: Sequence[str], family: str, **settings: Any) -> NeuralOperator:
        """A network of seed 0 that advances processes of a problem, trained with the preset. It is kept like a model,
        and an interrupted training goes on."""
        return self._network(problem, processes, family, settings)[0]

    def network_seconds(self, problem: str, processes: Sequence[str], family: str, **settings: Any) -> float:
        """Seconds that the training of a network took."""
        return self._network(problem, processes, family, settings)[1]

    def _network(
        self, problem: str, processes: Sequence[str], family: str, settings: Mapping[str, Any]
    ) -> tuple[NeuralOperator, float]:
        config = network_settings(self.preset, family, settings)
        key = _key(problem, family, "+".join(sorted(processes)), config.model_dump(), self._code(solver_version))
        if key not in self._networks:
            folder = None if self.folder is None else output_folder(self.folder) / key
            if folder is not None and (folder / "table.json").exists():
                seconds = json.loads((folder / "table.json").read_text(encoding="utf-8"))["seconds"]
                self._networks[key] = load_primitive(folder), seconds
            else:
                start = perf_counter()
                made = pretrain(
                    find_problem(problem),
                    processes,
                    network=family,
                    preset=self.preset,
                    folder=folder,
                    resume=folder is not None and folder.exists(),
                    verbose=False,
                    **settings,
                )
                self._networks[key] = made, perf_counter() - start
                if folder is not None:
                    write_json(folder / "table.json", {"seconds": self._networks[key][1]})
        return self._networks[key]

    def baseline(self, problem: str, name: str, seed: int = 0) -> Monolith:
        """A monolithic baseline of a problem, trained with ``baseline_preset``. It is kept like a model, and an
        interrupted training goes on. All seeds learn from the same solutions."""
        chosen, task = find_baseline(name), find_problem(problem)
        config, count = baseline_settings(chosen, task, self.baseline_preset, {})
        key = _key(problem, chosen.name, seed, config.model_dump(), count, self._code(network_version))
        if key not in self._baselines:
            folder = None if self.folder is None else output_folder(self.folder) / key
            if folder is not None and is_baseline(folder):
                self._baselines[key] = load_baseline(folder)
            else:
                self._check_self_test(chosen.family)
                begin = None if chosen.begins_from is None else self.baseline(problem, chosen.begins_from, seed)
                times = baseline_times(chosen, task)
                data = self.data(problem, "train", 2**33, count, times=times, shape=config.shape, estimated=0)
                self._baselines[key] = train_baseline(
                    task,
                    chosen.name,
                    preset=self.baseline_preset,
                    seed=seed,
                    folder=folder,
                    resume=folder is not None and folder.exists(),
                    data=data,
                    begin=begin,
                    verbose=False,
                )
        return self._baselines[key]

    def _check_self_test(self, family: str) -> None:
        """Refuses a network that cannot learn what it should; what passed is kept."""
        file = (
            None
            if self.folder is None
            else self.folder / f"{_key('self-test', family, self._code(network_version))}.json"
        )
        if file is None or not file.exists():
            report = self_test(family)
            report.raise_if_failed()
            if file is not None:
                write_json(file, [check._asdict() for check in report])

    def held_out(self, name: str, seed: int, config: TrainingConfig) -> Dataset:
        """The queries on which the gate of that model decides."""
        return self.data(name, _split(config), seed + 2**32, config.validation, shape=config.shape)

    def rows(self, key: Sequence[object], compute: Callable[[], list[Row]], module: str) -> list[Row]:
        """The rows of one part of the table, which ``module`` computes unless they were kept."""
        if self.folder is None:
            return compute()
        # a part may compare any of the dictionaries
        known = {name: [parts.fingerprint() for parts in each.dictionaries.values()] for name, each in PROBLEMS.items()}
        code = solver_version(), experiment_version(module)
        file = output_folder(self.folder) / f"{_key('rows', *key, self.samples, self.preset, known, code)}.json"
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
