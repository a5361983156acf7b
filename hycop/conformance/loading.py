"""Finding a primitive, or a module, by the place of its code."""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import cast

from hycop.errors import HyCOPError, InvalidInputError, UnknownNameError
from hycop.primitive import Primitive

REQUIRED = ("advances", "order", "flow", "work")
"""What an object must have to be a primitive."""


@contextmanager
def _importing_from(folder: str) -> Iterator[None]:
    """Lets code that lies in a folder be imported, as if Python had been started there."""
    sys.path.insert(0, folder)
    try:
        yield
    finally:
        sys.path.remove(folder)


def _module_from_file(file: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"_hycop_file_{file.stem}", file)
    if spec is None or spec.loader is None:
        raise InvalidInputError(f"{file}: is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look up the module of the class they make
    spec.loader.exec_module(module)
    return module


def load_module(place: str) -> ModuleType:
    """The module ``package.module`` or ``path/to/file.py``; what goes wrong in it is one line."""
    is_file = place.endswith(".py")
    file = Path(place)
    if is_file and not file.is_file():
        raise InvalidInputError(f"{place}: there is no such file; give module:Name or path/to/file.py:Name")
    importlib.invalidate_caches()
    try:
        with _importing_from(str(file.resolve().parent) if is_file else os.getcwd()):
            return _module_from_file(file) if is_file else importlib.import_module(place)
    except HyCOPError as error:
        raise InvalidInputError(f"{place}: {error}") from error
    except (Exception, SystemExit) as error:
        if isinstance(error, ModuleNotFoundError) and error.name and f"{place}.".startswith(f"{error.name}."):
            raise InvalidInputError(
                f"there is no module '{error.name}'; work in the folder that holds it, or give a path/to/file.py:Name"
            ) from None
        reason = " ".join(f"{type(error).__name__}: {error}".split())
        raise InvalidInputError(f"{place}: importing it raised {reason}") from error


def lacks(thing: object) -> list[str]:
    """The parts of a primitive that something does not have."""
    return [part for part in REQUIRED if not hasattr(thing, part)]


def load_primitive(target: str) -> Primitive:
    """The primitive at ``module:Name`` or ``path/to/file.py:Name``: an instance, or a class that needs no arguments.

    >>> load_primitive("hycop.primitives:UpwindAdvection")
    UpwindAdvection(cfl=0.9)
    """
    place, _, name = target.rpartition(":")
    if not place or not name:
        raise InvalidInputError(
            f"'{target}' does not say where: give module:Name, path/to/file.py:Name or a network folder"
        )
    module = load_module(place)
    if not hasattr(module, name):
        held = vars(module)  # a lazy module imports the rest on request
        known = [key for key in dir(module) if key[:1] != "_" and not (key in held and lacks(held[key]))]
        raise UnknownNameError("primitive", name, known, f"(in {place})")
    found = getattr(module, name)
    if isinstance(found, type) and not lacks(found):
        try:
            found = found()
        except Exception as error:
            reason = " ".join(f"{type(error).__name__}: {error}".split())
            raise InvalidInputError(
                f"{target}: cannot be made without arguments ({reason}); name an instance of it instead"
            ) from error
    missing = lacks(found)
    if missing:
        kind = found.__name__ if isinstance(found, type) else type(found).__name__
        raise InvalidInputError(f"{target}: {kind} is not a primitive, it lacks {', '.join(missing)}")
    return cast(Primitive, found)
