"""The version of the code that numbers depend on: a hash of source files, so that kept parts of tables are never stale.

Comments, docstrings, formatting and functions that draw figures do not count.
"""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

PACKAGE = Path(__file__).parents[1]

TRUTH = ("channels", "data", "pde", "grid", "problems", "query", "references")
"""What the queries and their truth depend on."""

WITHOUT_NUMBERS = (
    "__init__",
    "__main__",
    "cli",
    "colours",
    "conformance",
    "errors",
    "executors",
    "experiments",
    "files",
    "inspection",
    "markup",
    "plot",
    "plots",
    "progress",
    "report",
    "storage",
    "studio",
    "version",
)
"""What no number depends on; the experiments count one by one."""

EXPERIMENTS = "hycop.experiments."
MACHINERY = frozenset({EXPERIMENTS + name for name in ("bench", "code", "paper", "table", "qualitative", "demo")})
"""Files of the experiments that compute no number of a table."""


@lru_cache(maxsize=1)
def truth_version() -> str:
    """The version of the code that makes datasets."""
    return _hashed(tuple(path for name in TRUTH for path in _files(PACKAGE / name)))


@lru_cache(maxsize=1)
def network_version() -> str:
    """The version of the code that trains and runs monolithic baselines, and makes what they learn from."""
    parts = (*TRUTH, "networks", "primitives/learned", "pretraining", "baselines/residual")
    return _hashed(tuple(path for name in parts for path in _files(PACKAGE / name)))


@lru_cache(maxsize=1)
def solver_version() -> str:
    """The version of the code that trains and runs models: all of the package that has to do with numbers."""
    parts = sorted(path for path in PACKAGE.iterdir() if path.stem not in WITHOUT_NUMBERS)
    return _hashed(tuple(path for part in parts for path in _files(part.with_suffix(""))))


@lru_cache(maxsize=64)
def experiment_version(module: str) -> str:
    """The version of the module of a part of a table, and of the other experiments that it imports.

    A module outside the experiments, such as that of a test, has none.
    """
    found: dict[str, Path] = {}
    waiting = [module]
    while waiting:
        name = waiting.pop()
        path = PACKAGE.parent / (name.replace(".", "/") + ".py")
        if name in found or name in MACHINERY or not name.startswith(EXPERIMENTS) or not path.exists():
            continue
        found[name] = path
        waiting += _imports(ast.parse(path.read_bytes()))
    return _hashed(tuple(found[name] for name in sorted(found)))


def _files(place: Path) -> list[Path]:
    """The source files of a package, or the one of a module; none of anything else."""
    module = place.with_suffix(".py")
    return sorted(place.rglob("*.py")) if place.is_dir() else [module] if module.exists() else []


def _imports(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def _hashed(paths: tuple[Path, ...]) -> str:
    out = hashlib.sha256()
    for path in paths:
        tree = ast.parse(path.read_bytes())
        out.update(f"{path.relative_to(PACKAGE)}\n{ast.dump(_Bare().visit(tree))}\n".encode())
    return out.hexdigest()


class _Bare(ast.NodeTransformer):
    """Takes out docstrings and functions that draw, or that show an object in a notebook."""

    def visit_Expr(self, node: ast.Expr) -> ast.AST | None:
        return None if isinstance(node.value, ast.Constant) and isinstance(node.value.value, str) else node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST | None:
        if node.name == "_repr_html_" or (node.returns is not None and "Figure" in ast.unparse(node.returns)):
            return None
        return self.generic_visit(node)
