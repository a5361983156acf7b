"""``python -m docs.generator`` writes the pages that show results, ``--check`` only says which of them are old."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from docs.generator.numbers import PageError, read_results
from docs.generator.pages import NOTICE, all_pages

ROOT = Path(__file__).parents[2]


def stale(root: Path, pages: dict[str, str]) -> list[str]:
    """Pages that are missing or differ from what the results say, and generated ones without results."""
    old = [path for path, text in pages.items() if not (root / path).exists() or _read(root / path) != text]
    mark = NOTICE.partition(":")[0]
    there = [path for path in (root / "docs" / "results").glob("*.md") if _read(path).startswith(mark)]
    return [*old, *(name for path in there if (name := path.relative_to(root).as_posix()) not in pages)]


def _read(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m docs.generator", description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; exit code 1 if a page is old")
    check = parser.parse_args().check
    pictures = sorted(path.name for path in (ROOT / "results").glob("*.png"))
    try:
        pages = all_pages(ROOT / "docs" / "templates", read_results(ROOT / "results"), pictures)
    except PageError as error:
        print(error, file=sys.stderr)
        return 2
    old = stale(ROOT, pages)
    if check:
        for path in old:
            print(f"{path} is older than results/ or its template: run 'make pages'", file=sys.stderr)
        return 1 if old else 0
    for path in old:
        target = ROOT / path
        if path in pages:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(pages[path], encoding="utf-8")
            print(f"wrote {path}")
        else:
            target.unlink()
            print(f"removed {path}, which has no results")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
