"""Writes a report: finds out what a folder holds, makes the sections, and fills the template."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from importlib.resources import files
from pathlib import Path

from hycop.baselines import Monolith, is_baseline
from hycop.data import Dataset, load
from hycop.errors import HyCOPError, InvalidInputError, OutputError
from hycop.files import checked_output, replacing
from hycop.progress import describing
from hycop.report import accuracy, learned, origin
from hycop.report.blocks import Page, Section, number, percent, ratio, sentence
from hycop.report.causes import Causes
from hycop.report.monolithic import monolithic
from hycop.report.subject import Subject, Tell, subject_of
from hycop.storage.network import is_network
from hycop.surrogate import HyCOP
from hycop.version import __version__

FILE = "report.html"
TEMPLATE = "template.html"

Make = Callable[[Subject], Section]


def write_report(
    run: str | Path | HyCOP | Monolith,
    out: str | Path = FILE,
    *,
    data: Dataset | str | Path | None = None,
    data_name: str = "",
    folder: str | Path | None = None,
    samples: int | None = None,
    seed: int = 0,
    overwrite: bool = False,
    verbose: bool = True,
) -> Path:
    """Writes one self-contained HTML page about a run: what was learned, how well, and where not to trust it.

    ``run`` is the folder of a trained model, a Pareto front or a baseline, or a model itself, for which ``folder``
    is that of its run. It is judged by ``data`` with a truth, a dataset (``data_name`` says what to call it) or its
    file; without, by ``samples`` queries that are drawn from each split of its problem with ``seed``, or by those that
    the run has held out.
    """
    path = checked_output(out)
    if path.exists() and not overwrite:
        raise OutputError(f"{path}: exists already; choose another name, or replace it with overwrite (--overwrite)")
    if samples is not None and samples < 2:
        raise InvalidInputError(f"samples is {samples}: at least 2 are needed")
    with describing("report", enabled=verbose) as tell:
        page = page_of(run, data, samples, seed, tell, None if folder is None else Path(folder), data_name)
        tell("writing", 0.98)
        text = rendered(page)
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8")
    return path


def page_of(
    run: str | Path | HyCOP | Monolith,
    data: Dataset | str | Path | None,
    samples: int | None,
    seed: int,
    tell: Tell = lambda text, share: None,
    folder: Path | None = None,
    data_name: str = "",
) -> Page:
    """The page of a run as data."""
    given = run if isinstance(run, HyCOP | Monolith) else Path(run)
    file = str(data) if isinstance(data, str | Path) else data_name
    if isinstance(data, str | Path):
        data = load(data)
    options = "".join(
        f" --{name} {shlex.quote(str(value))}"
        for name, value in (("data", file), ("samples", samples), ("seed", seed))
        if value
    )
    tell("loading", 0.0)
    if isinstance(given, Monolith):
        return monolithic(given, data, samples, seed, file, options, tell)
    if isinstance(given, Path) and is_network(given):
        if not is_baseline(given):
            raise InvalidInputError(
                f"{given}: is a network that 'hycop pretrain' has made, a part of models; give a run"
            )
        return monolithic(given, data, samples, seed, file, options, tell)
    subject = subject_of(given, data, samples, seed, file, tell, folder)
    return _page(subject, options, tell)


def _page(subject: Subject, options: str, tell: Tell) -> Page:
    causes = Causes(subject)
    makers: Sequence[tuple[str, str, Make]] = (
        ("learned", "What was learned", learned.learned),
        ("gate", "The gate's decision", learned.gate),
        ("errors", "Errors at equal work", accuracy.errors),
        ("front", "Accuracy against cost", learned.front),
        ("programs", "Programs across the regime", learned.programs),
        ("queries", "Best, median and worst query", accuracy.queries),
        ("budget", "Where the error comes from", lambda _: causes.budget_section()),
        ("commutators", "Commutators", lambda _: causes.commutator_section()),
        ("trust", "Error estimates and trust", accuracy.trust),
        ("curve", "Learning curve", learned.curve),
        ("facts", "Data and versions", origin.facts),
        ("rebuild", "How to rebuild it", lambda each: origin.rebuild(each, options)),
    )
    sections = []
    for place, (key, title, make) in enumerate(makers):
        tell(title.lower(), 0.32 + 0.66 * place / len(makers))
        try:
            sections.append(make(subject))
        except HyCOPError as error:  # what cannot be shown is said, and the others are shown
            sections.append(Section(key, title, "", missing=f"{sentence(str(error))}."))
    equation = subject.model.equation
    where = "" if subject.given is None else f" · {subject.given}"
    subtitle = f"{equation.formula or ', '.join(equation.processes)}{where}"
    return Page(f"HyCOP for {equation.name}", subtitle, _figures(subject), sections, f"hycop {__version__}")


def _figures(subject: Subject) -> list[tuple[str, str]]:
    """Numbers of merit for the head of the page."""
    known, model = subject.timing, subject.model
    found = [(str(model.theta.size), "parameters of the policy")]
    if "error" in known:
        found.append((number(known["error"], 2), f"relative error on queries {subject.main.label}"))
        if "best" in known:
            said = ratio(known["error"], known["best"])
            word = "to" if said.startswith("equal") else "than"
            found.append((said.replace(" times", "×"), f"{word} the best classical scheme of no more work"))
        found.append((f"{number(1e3 * known['seconds'], 2)} ms", "per query on this machine"))
    if "covered" in known:
        found.append((percent(known["covered"]), "of the errors are below their estimate"))
    return found


def rendered(page: Page) -> str:
    """The page as HTML."""
    from jinja2 import Environment  # takes a while to import

    source = files("hycop.report").joinpath(TEMPLATE).read_text(encoding="utf-8")
    environment = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    return environment.from_string(source).render(page=page)
