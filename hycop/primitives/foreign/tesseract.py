"""Tesseracts: https://github.com/pasteurlabs/tesseract-core."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from threading import Event
from typing import Any

from hycop.errors import InvalidInputError
from hycop.files import read_bytes
from hycop.grid import Array
from hycop.primitives.foreign.contract import Foreign, checked_limit, number, one_line
from hycop.primitives.foreign.isolated import call_isolated, close_isolated
from hycop.primitives.foreign.npy import BadAnswer, as_state
from hycop.primitives.foreign.process import Limits, checked_memory
from hycop.query import Setting

STATE = "state"
"""Stands for all channels together, (channel, *grid), in a mapping of fields."""

LARGEST = 2**24
"""Most bytes of a ``tesseract_api.py``."""

Fields = tuple[tuple[str, str], ...]


@dataclass(frozen=True, kw_only=True)
class TesseractSolver(Foreign):
    """A Tesseract as a primitive (extra ``tesseract``): its ``apply`` advances one sample.

    ``inputs`` says once what each field of its input schema is: ``state`` (channel, *grid), the name of a channel
    (*grid), or the name of an argument (``duration``, ``length_x``, a coefficient). ``outputs`` says the same of the
    fields that hold the new state; channels that none holds stay as they are. Dots lead into nested fields. Fields of
    the schema with a default may be left out.

    ``from_tesseract_api`` runs a ``tesseract_api.py`` in this process, or with a ``timeout`` (seconds for one sample)
    in processes of its own, which ``memory`` (bytes) limits. ``from_url`` asks one that is served, and waits
    ``timeout`` seconds for the network. ``sha256`` is the hash of the file, or of the schema that the service offers.
    """

    source: str
    inputs: Fields
    outputs: Fields = (("state", STATE),)
    timeout: float | None = None
    memory: int | None = None
    sha256: str = ""

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("inputs", "outputs"):
            object.__setattr__(self, name, _fields(name, getattr(self, name)))
        asked = tuple(meaning for _, meaning in self.inputs if meaning != STATE)
        object.__setattr__(self, "arguments", asked)
        checked_limit("timeout", self.timeout)
        checked_limit("memory", self.memory)
        checked_memory(self.memory)
        if self.memory is not None and (self.is_served or self.timeout is None):
            raise InvalidInputError("memory: only a process of its own can be limited; use a file and a timeout")
        if not self.is_served:
            object.__setattr__(self, "source", os.path.abspath(self.source))
        found = self._hash()
        if self.sha256 not in ("", found):
            raise InvalidInputError(f"{self.label} is not the one that was meant: its sha256 is {found}")
        object.__setattr__(self, "sha256", found)

    @classmethod
    def from_tesseract_api(cls, path: str | os.PathLike[str], **declared: Any) -> TesseractSolver:
        """The Tesseract of a ``tesseract_api.py``; ``declared`` are the fields of the class."""
        return cls(source=os.fspath(path), **declared)

    @classmethod
    def from_url(cls, url: str, **declared: Any) -> TesseractSolver:
        """The Tesseract that is served at an address, such as ``http://localhost:8000``."""
        if not _is_url(url):
            raise InvalidInputError(f"url is {url!r:.60}: give an address that begins with http:// or https://")
        return cls(source=url, **declared)

    @property
    def is_served(self) -> bool:
        return _is_url(self.source)

    @property
    def label(self) -> str:
        return f"Tesseract {self.source if self.is_served else Path(self.source).parent.name}"

    @property
    def threads(self) -> int:
        # in one process Tesseracts run one after the other
        return super().threads if self.is_served or self.timeout is not None else 1

    def _hash(self) -> str:
        if not self.is_served:
            return hashlib.sha256(read_bytes(self.source, LARGEST)).hexdigest()
        try:
            schema = _opened(os.getpid(), self.source, self.timeout, "").openapi_schema
        except InvalidInputError:
            raise
        except Exception as error:  # of the network, or of what answers there
            raise InvalidInputError(f"{self.label} does not answer ({one_line(error)}); is it served there?") from None
        return hashlib.sha256(json.dumps(schema, sort_keys=True).encode()).hexdigest()

    def prepare(self) -> None:
        if not self.is_served and self._hash() != self.sha256:
            raise InvalidInputError(f"{self.label} has changed since the primitive was made; make it again")

    def advance(self, u: Array, duration: float, setting: Setting, stop: Event) -> object:
        if self.is_served or self.timeout is None:
            return self.call(u, duration, setting)
        return call_isolated(self, u, duration, setting, Limits(self.timeout, self.memory), stop)

    def warm_up(self) -> None:
        _opened(os.getpid(), self.source, self.timeout, self.sha256)

    def call(self, u: Array, duration: float, setting: Setting) -> Array:
        tesseract = _opened(os.getpid(), self.source, self.timeout, self.sha256)
        places = {channel.name: index for index, channel in enumerate(setting.channels)}
        given: dict[str, Any] = {}
        for field, meaning in self.inputs:
            if meaning == STATE:
                value: object = u[0]
            elif meaning in places:
                value = u[0, places[meaning]]
            else:
                value = number(meaning, duration, setting)
            _put(given, field, value)
        answer = tesseract.apply(given)
        out = u.copy()  # channels that no output holds stay as they are
        for field, meaning in self.outputs:
            if meaning != STATE and meaning not in places:
                raise InvalidInputError(f"outputs: '{meaning}' is neither 'state' nor one of {', '.join(places)}")
            part = out[0] if meaning == STATE else out[0, places[meaning]]
            part[...] = as_state(_get(answer, field), part.shape)
        return out

    def close(self) -> None:
        """Ends the processes of a Tesseract with a timeout; the next call starts new ones."""
        close_isolated(self)


@lru_cache(maxsize=16)
def _opened(_process: int, source: str, timeout: float | None, sha256: str) -> Any:
    """The Tesseract, opened once in each process."""
    try:
        from tesseract_core import Tesseract
    except ImportError:
        raise InvalidInputError("TesseractSolver needs tesseract-core; run pip install 'hycop[tesseract]'") from None
    if _is_url(source):
        return Tesseract.from_url(source, timeout=timeout)
    return Tesseract.from_tesseract_api(source)


def _is_url(source: str) -> bool:
    return source.startswith(("http://", "https://"))


def _fields(name: str, value: object) -> Fields:
    """A mapping of fields as pairs, each once."""
    pairs = list(value.items()) if isinstance(value, Mapping) else value
    if not isinstance(pairs, list | tuple) or not pairs:
        raise InvalidInputError(f"{name} is {value!r:.60}: give a mapping, as {{'u': 'state', 'dt': 'duration'}}")
    for pair in pairs:
        if not (isinstance(pair, tuple) and len(pair) == 2 and all(isinstance(text, str) and text for text in pair)):
            raise InvalidInputError(f"{name}: {pair!r:.60} is not the name of a field and what it is")
    return tuple(pairs)


def _put(target: dict[str, Any], field: str, value: object) -> None:
    *outer, last = field.split(".")
    for name in outer:
        target = target.setdefault(name, {})
    target[last] = value


def _get(answer: Any, field: str) -> object:
    for name in field.split("."):
        with suppress(KeyError, TypeError):
            answer = answer[name]
            continue
        raise BadAnswer(f"gave no output field '{field}'")
    return answer
