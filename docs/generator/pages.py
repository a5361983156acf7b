"""Templates to pages: ``{{ … }}`` becomes a number, a table, or the pictures of a table.

| in a template | becomes |
|---|---|
| ``{{ number FILE; method=HyCOP; … }}`` | the value of the only row that fits; ``as=%`` for per cent |
| ``{{ ratio FILE; … / … }}`` | the quotient of two values; ``FILE;`` may stand in front of the second too |
| ``{{ table FILE; … ; lines=split,method; columns=metric }}`` | those rows as a table |
| ``{{ everything FILE }}`` | all rows, a table for each problem and measure |
| ``{{ benchmarks FILE }}`` | the rows of a benchmark |
| ``{{ figures PATTERN; alt=text }}`` | the pictures in ``results/`` whose names match |
| ``{{ made FILE }}`` | the command and the versions behind a file |
| ``{{ pages }}`` | the list of the pages of results |
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from math import nan
from pathlib import Path
from typing import Any

from docs.generator.numbers import PageError, chosen, printed, the_one
from docs.generator.tables import benchmarks, everything, pivot

Results = Mapping[str, Mapping[str, Any]]

OPTIONS = ("lines", "columns", "extras", "digits", "field", "as")
GROUPS: Mapping[str, tuple[str, ...]] = {
    "Accuracy on the paper's problems": ("fixed-time", "1d", "trajectory", "ns", "ks"),
    "What learning adds": ("schemes", "learner", "features", "es", "interpretation", "dictionary"),
    "Transfer without retraining": ("dambreak", "resolution", "robustness", "zero-shot"),
    "Networks, missing physics and error bars": ("regime-b", "regime-b-residual", "naming", "estimates"),
    "Cost and speed": ("cost", "frontier", "gas", "training", "benchmarks"),
    "Coverage": ("coverage", "own"),
}
NOTICE = "<!-- Made by 'python -m docs.generator' from results/*.json: edit {} instead. -->\n"


def rendered(text: str, results: Results, pictures: list[str], titles: Mapping[str, str]) -> str:
    """A template with everything in double braces filled in."""
    makers: Mapping[str, Callable[[str], str]] = {
        "number": lambda rest: _number(rest, results),
        "ratio": lambda rest: _ratio(rest, results),
        "table": lambda rest: _table(rest, results),
        "everything": lambda rest: everything(_rows(rest, results)[0]),
        "benchmarks": lambda rest: benchmarks(_rows(rest, results)[0]),
        "figures": lambda rest: _figures(rest, pictures),
        "made": lambda rest: _made(rest.strip(), results),
        "pages": lambda rest: _pages(titles),
    }

    def fill(match: re.Match[str]) -> str:
        kind, _, rest = match[1].strip().partition(" ")
        if kind not in makers:
            raise PageError(f"{{{{ {kind} … }}}}: unknown; there are {', '.join(makers)}")
        try:
            return makers[kind](rest)
        except PageError as error:
            raise PageError(f"{{{{ {match[1].strip()} }}}}: {error}") from None

    return re.sub(r"\{\{(.*?)\}\}", fill, text, flags=re.DOTALL)


def _parts(text: str) -> tuple[list[str], dict[str, str]]:
    """What stands between semicolons: bare words, and fields with their values."""
    words, fields = [], {}
    for part in filter(None, (each.strip() for each in text.split(";"))):
        name, sign, value = part.partition("=")
        if sign:
            fields[name.strip()] = value.strip()
        else:
            words.append(part)
    return words, fields


def _rows(text: str, results: Results) -> tuple[list[Mapping[str, Any]], dict[str, str]]:
    """The rows of the named file, and the fields."""
    words, fields = _parts(text)
    if len(words) != 1 or words[0] not in results:
        raise PageError(f"name one file of results/, not {' '.join(words) or 'none'}")
    return list(results[words[0]]["rows"]), fields


def _value(text: str, results: Results) -> tuple[float, dict[str, str]]:
    """The number of the only row that fits, and how to print it."""
    rows, fields = _rows(text, results)
    options = {name: fields.pop(name) for name in OPTIONS if name in fields}
    name = options.get("field", "value")
    value = the_one(rows, fields)[name]
    if value is None and name == "value":  # JSON has no NaN
        value = nan
    if value is None:
        raise PageError("that row has no number")
    return float(value), options


def _shown(value: float, options: Mapping[str, str]) -> str:
    return f"{value:.0%}" if options.get("as") == "%" else printed(value, int(options.get("digits", 2)))


def _number(text: str, results: Results) -> str:
    return _shown(*_value(text, results))


def _ratio(text: str, results: Results) -> str:
    first, sign, second = text.partition(" / ")
    if not sign:
        raise PageError("write two choices of rows with ' / ' between them")
    if not _parts(second)[0]:
        second = f"{_parts(first)[0][0]}; {second}"
    above, options = _value(first, results)
    return _shown(above / _value(second, results)[0], options)


def _table(text: str, results: Results) -> str:
    rows, fields = _rows(text, results)
    options = {name: fields.pop(name) for name in OPTIONS if name in fields}
    found = chosen(rows, fields)
    if not found:
        raise PageError("no row fits")

    def listed(name: str, default: str) -> list[str]:
        return [each.strip() for each in options.get(name, default).split(",") if each.strip()]

    lines, columns = listed("lines", "problem,variant,method"), listed("columns", "split")
    return pivot(found, lines, columns, listed("extras", ""), int(options.get("digits", 2)))


def _figures(text: str, pictures: list[str]) -> str:
    words, fields = _parts(text)
    patterns = " ".join(words).split()
    found = [name for name in pictures if any(Path(name).match(pattern) for pattern in patterns)]
    alt = fields.get("alt", "Figure")
    return "\n\n".join(f"![{alt} ({Path(name).stem.replace('_', ' ')})](../../results/{name})" for name in found)


def _made(name: str, results: Results) -> str:
    meta = results[name]["meta"]
    versions = meta.get("versions", {"python": meta.get("python", ""), **meta.get("packages", {})})
    told = ", ".join(f"{package} {version}" for package, version in versions.items() if version)
    cores = meta.get("machine", meta).get("cores")
    # how a run was kept is of no use to whoever repeats it
    command = re.sub(r" --(keep|json|figures) \S+| --part .*", "", meta["command"])
    return f"`{command}` → `results/{name}.json` ({told}; {cores} cores)."


def _pages(titles: Mapping[str, str]) -> str:
    known = {name for names in GROUPS.values() for name in names}
    groups = {**GROUPS, "More": tuple(name for name in titles if name not in known)}
    out = []
    for group, names in groups.items():
        there = [name for name in names if name in titles]
        if there:
            listed = "\n".join(f"- [{titles[name]}]({name}.md)" for name in there)
            hidden = "\n".join(there)
            out.append(f"## {group}\n\n{listed}\n\n```{{toctree}}\n:hidden:\n:caption: {group}\n\n{hidden}\n```")
    return "\n\n".join(out)


def default_template(name: str) -> str:
    """The page of a file for which nobody has written a template."""
    return f"# Table {name}\n\n{{{{ made {name} }}}}\n\n## Every number\n\n{{{{ everything {name} }}}}\n"


def title_of(template: str) -> str:
    """The text of the first heading."""
    return next(line for line in template.splitlines() if line.startswith("# ")).removeprefix("# ")


def all_pages(templates: Path, results: Results, pictures: list[str]) -> dict[str, str]:
    """Every generated page by its path in the repository. A template of results needs its file."""
    texts = {str(path.relative_to(templates)): path.read_text(encoding="utf-8") for path in templates.rglob("*.md")}
    for name in results:
        texts.setdefault(f"docs/results/{name}.md", default_template(name))
    titles = {}
    for path, text in sorted(texts.items()):
        stem = Path(path).stem
        if path.startswith("docs/results/") and stem != "index":
            if stem in results:
                titles[stem] = title_of(text)
            else:
                del texts[path]
    out = {}
    for path, text in texts.items():
        try:
            out[path] = NOTICE.format(f"docs/templates/{path}") + rendered(text, results, pictures, titles)
        except PageError as error:
            raise PageError(f"docs/templates/{path}: {error}") from None
    return out
