"""What a report is about: a model, the folder of its run, and queries with truth by which it is judged."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from hycop.data import Dataset, load
from hycop.diagnosis.case import Case
from hycop.errors import HyCOPError, InvalidInputError, LostSampleError
from hycop.evaluation import errors_of
from hycop.files import read_text
from hycop.grid import Array
from hycop.model import Answer, Model
from hycop.problems import Problem, problem_of
from hycop.report.blocks import counted
from hycop.report.plan import MOST, Plan, planned
from hycop.storage import ModelError
from hycop.surrogate import HyCOP
from hycop.training.checkpoint import DATA, HISTORY

FRONT = "front.json"
"""The file that makes a folder one of a Pareto front."""

TRAINED = ("train", "trajectory")
"""Splits from which the queries of training are drawn."""

LARGEST_FILE = 64 * 2**20
"""Bytes of a history or front that are read."""

Tell = Callable[[str, float], None]
"""Told what is being done, and the finished fraction."""


@dataclass(frozen=True, eq=False)
class Judged:
    """Queries with truth and the model's answers. ``label`` says which they are, ``remarks`` what was left out and why.
    ``drawn`` ones can be drawn again at other times, since a sample depends on its seed and split alone."""

    label: str
    case: Case
    drawn: Problem | None = None
    remarks: tuple[str, ...] = ()

    @classmethod
    def of(cls, label: str, surrogate: HyCOP, data: Dataset, most: int, remarks: Sequence[str] = ()) -> Judged:
        """Queries of a dataset. Samples whose answer becomes NaN are left out, as long as most remain."""
        kept = np.arange(data.samples)
        frames, lost = data.times.shape[1] - 1, []
        while True:
            try:
                case = Case.of_data(surrogate, data.take(kept), most)
                break
            except LostSampleError as error:
                place = error.sample // frames
                lost.append(str(error.at(int(kept[place]))))
                if 2 * len(lost) >= data.samples:
                    raise
                kept = np.delete(kept, place)
        if lost:
            remarks = (*remarks, f"{counted(len(lost), 'query')} of {data.samples} cannot be answered: {lost[0]}.")
        return cls(label, replace(case, sample=kept[case.sample], source=data), remarks=tuple(remarks))

    @cached_property
    def answer(self) -> Answer:
        return HyCOP.of(self.case.model).answer(self.case.query)

    @cached_property
    def errors(self) -> Array:
        """Relative error of each answer, in the metric that the model was trained with."""
        case = self.case
        return errors_of(case.model.record.config.metric, case.answers, case.truth, case.query)

    @cached_property
    def dataset(self) -> Dataset:
        """The queries as a dataset with one later time each."""
        case, source = self.case, self.case.source
        return Dataset(
            source.problem,
            source.split,
            np.stack([case.query.u0, case.truth], axis=1),
            np.stack([np.zeros(case.batch), case.query.time], axis=1),
            case.query.setting,
            source.seed,
            source.reference,
            source.reference_error,
            source.version,
        )

    def ranked(self) -> dict[str, int]:
        """The queries with the smallest, the middle and the largest error."""
        order = np.argsort(self.errors, kind="stable")
        return {"best": int(order[0]), "median": int(order[(order.size - 1) // 2]), "worst": int(order[-1])}


@dataclass(frozen=True, eq=False)
class Subject:
    """A model and what is known about it. ``judged`` are its queries with truth, those like training first; where there
    are none, ``untested`` says why. ``given`` is the folder as the user named it, and ``folder`` that of the model,
    which is another for a front."""

    surrogate: HyCOP
    problem: Problem | None
    judged: Sequence[Judged]
    untested: str = ""
    given: Path | None = None
    folder: Path | None = None
    front: Sequence[Mapping[str, Any]] = ()
    trained_on: Dataset | None = None
    data_file: str = ""
    timing: dict[str, float] = field(default_factory=dict)

    @property
    def model(self) -> Model:
        return self.surrogate.model

    @property
    def main(self) -> Judged:
        """The queries that most sections are about."""
        if not self.judged:
            raise InvalidInputError(self.untested)
        return self.judged[0]

    @property
    def history(self) -> list[dict[str, Any]]:
        """The steps of training, as the run noted them."""
        if self.folder is None:
            raise InvalidInputError("the model was given without the folder of its run, which holds the history")
        path = self.folder / HISTORY
        if not path.is_file():
            raise InvalidInputError(f"{path} is not there: the folder holds the model alone, without its run")
        lines = read_text(path, LARGEST_FILE).splitlines()
        try:
            return [json.loads(line) for line in lines if line.strip()]
        except ValueError:
            raise InvalidInputError(f"{path} is damaged: one of its lines is not JSON") from None

    @property
    def drawn(self) -> bool:
        """Whether the model was trained on queries that were drawn from a shipped problem."""
        data, problem, record = self.trained_on, self.problem, self.model.record
        if problem is None or data is None:
            return problem is not None
        config = record.config
        asked = (record.seed, config.samples, tuple(config.shape or problem.shape))
        return data.split in TRAINED and (data.seed, data.samples, data.setting.grid.shape) == asked


def located(run: Path) -> tuple[Path, list[Mapping[str, Any]]]:
    """The folder of the model, and the points of its front: of a front the most accurate model is reported."""
    path = run / FRONT
    if (run / "model.json").exists() or not path.is_file():
        if not run.is_dir():
            raise ModelError(
                f"{run}: there is no such folder; give one that 'hycop train' or 'hycop baseline' has written"
            )
        return run, []
    try:
        points = json.loads(read_text(path, LARGEST_FILE))["front"]
        names = [str(point["folder"]) for point in points]
        points = [{**_answering(point), **point} for point in points]
        best = run / names[int(np.argmin([float(point["error"]) for point in points]))]
    except (ValueError, KeyError, TypeError, IndexError):
        raise ModelError(f"{path}: is not what 'hycop train --pareto' writes; give the folder of one model") from None
    if best.parent != run:
        raise ModelError(f"{path}: names a folder outside of {run}; give the folder of one model")
    return best, points


def _answering(point: Mapping[str, Any]) -> dict[str, Any]:
    """Work and error of the programs that a point writes: older fronts only say those of both kinds."""
    kind = "learned" if point["kept"] else "classical"
    return {key: point.get(f"{kind}_{key}") for key in ("work", "error")}


def kept_data(folders: Sequence[Path], name: str) -> Dataset | None:
    """Data that a run has kept in one of its folders."""
    found = next((folder / name for folder in folders if (folder / name).is_file()), None)
    return None if found is None else load(found)


def subject_of(
    run: Path | HyCOP,
    data: Dataset | None,
    samples: int | None,
    seed: int,
    data_file: str,
    tell: Tell,
    kept_in: Path | None = None,
) -> Subject:
    """Loads a run and finds queries with truth for it: those of ``data``, else drawn from its problem, else those that
    the run has held out. ``kept_in`` is the folder of the run of a model that is given itself."""
    given = kept_in if isinstance(run, HyCOP) else run
    folder, front = (None, []) if given is None else located(given)
    surrogate = run if isinstance(run, HyCOP) else HyCOP.load(folder or run)
    problem = problem_of(surrogate.model.equation)
    folders = [each for each in (folder, given) if each is not None]
    about: dict[str, Any] = {
        "given": given,
        "folder": folder,
        "front": front,
        "trained_on": kept_data(folders, DATA[0]),
        "data_file": data_file,
    }
    subject = Subject(surrogate, problem, [], **about)
    if data is not None:
        judged = [Judged.of(f"of {data_file or 'the given data'}", surrogate, data, samples or MOST)]
        return Subject(surrogate, problem, judged, **about)
    judged, why = _drawn(subject, samples, seed, tell) if subject.drawn else ([], "")
    if not judged and (held_out := kept_data(folders, DATA[1])) is not None:
        judged = [Judged.of("held out from training", surrogate, held_out, samples or MOST)]
    why = why or "no data with a truth are at hand: give some with --data FILE"
    return Subject(surrogate, problem, judged, "" if judged else why, **about)


def _drawn(subject: Subject, samples: int | None, seed: int, tell: Tell) -> tuple[list[Judged], str]:
    """Fresh queries of the problem, like those of training and beyond them, and why there are none."""
    problem, model = subject.problem, subject.model
    assert problem is not None
    own, boundary = model.record.config.shape, model.box.boundary
    found: list[Judged] = []
    labels = {"id": "like training (id)", "ood": "beyond training (ood)"}
    for place, split in enumerate(each for each in labels if each in problem.splits):
        tell(f"truth of {problem.name}/{split}", 0.02 + 0.15 * place)
        try:
            plan = (
                Plan(samples, tuple(own or problem.shape)) if samples else planned(problem, split, seed, own, boundary)
            )
            # where the problem itself estimates the error of few truths, each takes minutes
            estimated = min(2, plan.count) if problem.estimated > 2 else 0
            data = problem.sample(plan.count, split, seed, shape=plan.shape, boundary=boundary, estimated=estimated)
        except HyCOPError as error:
            if not found and split == "id":
                return [], f"the truth cannot be computed: {error}"
            continue
        try:
            remarks = (plan.remark,) if plan.remark else ()
            judged = Judged.of(labels[split], subject.surrogate, data, plan.count, remarks)
        except HyCOPError as error:
            if not found and split == "id":
                return [], f"the model cannot answer queries of its own problem: {error}"
            continue
        found.append(replace(judged, drawn=problem))
    return found, ""
