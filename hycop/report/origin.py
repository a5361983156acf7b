"""Sections about where a model comes from: data, versions, and the commands that make it again."""

from __future__ import annotations

import shlex
from pathlib import Path

from hycop.files import provenance
from hycop.model import Record
from hycop.problems import Problem
from hycop.report.blocks import Block, Code, Facts, Section, Text, counted, number
from hycop.report.subject import Subject
from hycop.training import PRESETS, configured

UNCHANGING = ("checkpoint_every",)
"""Settings that do not change a result."""


def facts(subject: Subject) -> Section:
    model, record = subject.model, subject.model.record
    entries = []
    data = subject.trained_on
    if data is not None:
        cells = " × ".join(map(str, data.setting.grid.shape))
        made = f", seed {data.seed}" if data.seed >= 0 else ""
        entries.append(
            (
                "Trained on",
                f"{counted(data.samples, 'sample')} of {data.problem} ({data.split}{made}) on {cells} cells, truth by "
                f"{data.reference}",
            )
        )
    for judged in subject.judged:
        source = judged.case.source
        cells = " × ".join(map(str, source.setting.grid.shape))
        known = source.reference_error
        sure = "of unknown accuracy" if known is None else f"accurate to about {number(known, 2)}"
        seed = f", seed {source.seed}" if source.seed >= 0 else ""
        entries.append(
            (
                f"Judged by queries {judged.label}",
                f"{judged.case.batch} of {source.problem} ({source.split}{seed}) on {cells} cells, truth {sure} by "
                f"{source.reference}",
            )
        )
    versions = provenance("")["versions"]
    assert isinstance(versions, dict)
    entries += [
        ("Hash of the training data", record.data_hash),
        ("Seed", str(record.seed)),
        ("Loss at the end of training", number(record.metrics.get("train_loss"))),
        ("Held-out error", number(record.metrics.get("held_out_error"))),
        (
            "Programs run on",
            "the grid of the query" if model.refinement == 1 else f"a grid {model.refinement} times finer",
        ),
        ("Versions here", ", ".join(f"{name} {each}" for name, each in versions.items())),
    ]
    lead = "Which data and versions this report is made from, so that its numbers can be checked."
    return Section("facts", "Data and versions", lead, [Facts(entries)])


def rebuild(subject: Subject, options: str) -> Section:
    """The commands that train the model and write this report. ``options`` are those of the report."""
    lead = "The commands that train this model again and write this report; the same seed gives the same bits."
    place = subject.given or Path("RUN")
    lines, blocks = [], list[Block]()
    if subject.drawn and subject.problem is not None:
        pareto = " --pareto" if subject.front else ""
        lines.append(f"hycop train {subject.problem.name} --out {shlex.quote(str(place))}{_settings(subject)}{pareto}")
    else:
        kept = place / "train.nc"
        copy = f", a copy of which is {kept}" if kept.is_file() else ""
        blocks.append(
            Text(
                f"This model was trained on data of its owner{copy}; in Python, "
                "hycop.HyCOP(dictionary, equation).fit(hycop.load(file), held_out, seed=…) trains it again."
            )
        )
    lines.append(f"hycop report {shlex.quote(str(place))}{options}")
    blocks.append(Code("\n".join(lines), "Commands"))
    if subject.model.record.changes:
        changed = "After training it was changed, as 'What was learned' lists: repeat that with 'hycop swap' or"
        blocks.append(Text(f"{changed} 'hycop enrich'."))
    if not lines[0].startswith("hycop train"):
        blocks.append(Text(f"Settings of its training: {_listed(subject.model.record)}."))
    return Section("rebuild", "How to rebuild it", lead, blocks)


def _settings(subject: Subject) -> str:
    """The preset that needs the fewest settings over it, with these, the seed and the dictionary."""
    record, problem = subject.model.record, subject.problem
    assert problem is not None
    preset, changes = min(((name, _over(record, problem, name)) for name in PRESETS), key=lambda entry: len(entry[1]))
    if subject.front:  # a front chooses the work of its models itself
        changes.pop("max_work", None)
    pairs = "".join(f" --set {shlex.quote(f'{key}={value}')}" for key, value in changes.items())
    return f" --preset {preset}{pairs} --seed {record.seed}"


def _over(record: Record, problem: Problem, preset: str) -> dict[str, str]:
    """Settings of a run that are not those of a preset, as they are typed."""
    ours = record.config.model_dump()
    theirs = configured(preset, problem.suited(preset)).model_dump()
    changed = {key: value for key, value in ours.items() if value != theirs[key] and key not in UNCHANGING}
    return {
        key: "x".join(map(str, value)) if key == "shape" and value else _typed(value) for key, value in changed.items()
    }


def _typed(value: object) -> str:
    return "null" if value is None else str(value)


def _listed(record: Record) -> str:
    base = configured("quick").model_dump()
    changed = {key: value for key, value in record.config.model_dump().items() if value != base[key]}
    return ", ".join(f"{key} = {_typed(value)}" for key, value in changed.items()) or "those of preset quick"
