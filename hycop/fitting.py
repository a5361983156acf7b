"""A training run from its data to its model: what all models of a front share."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path

from hycop.dictionary import Dictionary
from hycop.executors import Executor
from hycop.model import Box, Model, Record
from hycop.progress import training_bar
from hycop.scope import Scope
from hycop.training import Progress, Report, Start, Task, TrainingConfig, configured, train
from hycop.training.checkpoint import claimed
from hycop.training.source import Source, keep


@dataclass(frozen=True)
class Run:
    """What all models of one training run share."""

    source: Source
    dictionary: Dictionary
    seed: int
    where: str | Path | None
    resume: bool
    force: bool
    executor: Executor | None

    @property
    def folder(self) -> Path | None:
        return None if self.where is None else Path(self.where)

    @contextmanager
    def prepared(
        self, preset: str, settings: Mapping[str, object], report: Report | None, verbose: bool
    ) -> Iterator[tuple[Task, TrainingConfig, Report]]:
        """The task with its data, in a folder that is ours alone, while progress is shown."""
        config = configured(preset, {**self.source.suited(preset), **settings})
        with (
            training_bar("data", verbose) as show,
            nullcontext() if self.folder is None else claimed(self.folder, self.resume),
        ):
            kept = self.folder if self.resume else None
            task = self.source.task(self.dictionary, config, self.seed, kept, self.force)
            if self.folder is not None:
                keep(task, self.folder, self.force)
            yield task, config, show if report is None else _both(show, report)

    def learned(
        self, task: Task, config: TrainingConfig, report: Report, folder: Path | None, start: Start | None = None
    ) -> Model:
        done = train(
            task,
            config,
            self.seed,
            folder=folder,
            resume=self.resume,
            force=self.force,
            executor=self.executor,
            report=report,
            start=start,
        )
        grid = task.train.setting.grid
        model = Model(
            equation=task.equation,
            dictionary=done.dictionary,
            policy=done.policy,
            theta=done.theta,
            scope=Scope.of(task.equation, task.view, [data.query for data in (task.train, task.held_out)]),
            gate=done.gate,
            box=Box(tuple(grid.lengths[0].tolist()), grid.boundary),
            record=Record(
                config,
                self.seed,
                done.data_hash,
                {"train_loss": done.loss, "held_out_error": done.gate.error},
            ),
            refinement=done.refinement,
            static_theta=done.static_theta,
            economical=True,
        )
        kept = replace(model, trained=model.answered(task.train), held_out=model.answered(task.held_out))
        return kept.calibrated(task.held_out)


def _both(show: Report, listener: Report) -> Report:
    def report(entry: Progress) -> None:
        show(entry)
        listener(entry)

    return report
