"""The reference of the public API: every name that ``hycop`` exports, in groups."""

from __future__ import annotations

import inspect

import hycop

GROUPS = {
    "Surrogates": ("HyCOP", "Answer", "answers", "swap", "UntrustedWarning"),
    "Programs": ("Program", "Step", "ProgramBatch", "run", "measure", "trace", "simplify"),
    "Classical schemes": ("Scheme", "splitting"),
    "Queries and grids": ("Query", "Setting", "Channel", "Grid", "restrict"),
    "Equations and problems": ("Equation", "Coefficient", "Problem", "problem"),
    "Primitives and dictionaries": (
        "Dictionary",
        "Primitive",
        "Symbol",
        "check_primitive",
        "find_primitive",
        "fingerprint",
        "load_primitive",
        "pretrain",
    ),
    "Data": ("Dataset", "load", "save"),
    "Diagnosis and enrichment": ("diagnose", "Diagnosis", "name_missing", "enrich"),
    "Evaluation": ("evaluate", "Contender", "Composed", "ByHand", "composed", "limit", "DictionaryLimit"),
    "Baselines": ("train_baseline", "load_baseline"),
    "Pictures and pages": ("plot", "frame", "write_report", "explore"),
    "Metrics": ("metrics",),
    "Errors": ("HyCOPError",),
}
CONSTANTS = ("EXACT", "ALL_CHANNELS", "__version__")


def directive(name: str) -> str:
    """How autodoc shows a public name. It is shown where readers import it from, not where it is defined."""
    value = getattr(hycop, name)
    if inspect.ismodule(value):
        return f".. automodule:: {value.__name__}\n   :members:\n"
    if inspect.isclass(value):
        return f".. autoclass:: hycop.{name}\n   :members:\n"
    return f".. autofunction:: hycop.{name}\n" if callable(value) else f".. autodata:: hycop.{name}\n"


def api_page() -> str:
    """All groups; names that belong to none come last."""
    known = {name for names in GROUPS.values() for name in names} | set(CONSTANTS)
    others = tuple(name for name in hycop.__all__ if name not in known and not inspect.ismodule(getattr(hycop, name)))
    groups = {**GROUPS, "Others": others, "Constants": CONSTANTS}
    out = []
    for title, names in groups.items():
        there = [name for name in names if name in hycop.__all__]
        if there:
            body = "\n".join(directive(name) for name in there)
            out.append(f"## {title}\n\n```{{eval-rst}}\n{body}\n```")
    return "\n\n".join(out)
