"""Networks as ONNX files."""

from __future__ import annotations

import hashlib
import os
import time
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from threading import Event, Lock, Thread
from typing import Any, ClassVar

import numpy as np

from hycop.errors import InvalidInputError
from hycop.files import read_bytes
from hycop.grid import Array
from hycop.primitives.foreign.contract import Foreign, checked_limit, one_line
from hycop.primitives.foreign.npy import BadAnswer, Stopped
from hycop.primitives.foreign.process import LONGEST_WAIT
from hycop.query import Setting

LARGEST = 2**31
"""Most bytes of an ONNX file: its format, protobuf, allows no more."""

MOST_SESSIONS = 16
"""Networks that are kept ready to run."""

_SILENT = 4  # errors come as exceptions; onnxruntime need not print them too

DTYPES = {"tensor(float)": np.float32, "tensor(double)": np.float64, "tensor(float16)": np.float16}
"""The types that inputs may have."""


@dataclass(frozen=True, kw_only=True, eq=False)
class OnnxNetwork(Foreign):
    """A network of any framework as an ONNX graph, run by onnxruntime on the CPU (extra ``onnx``).

    The first input of the graph is the state (1, channel, *grid), or (channel, *grid) if it has one axis less. The
    other inputs, in order, are the numbers that ``arguments`` names, each of one element. The first output is the new
    state. Samples run one by one with one thread each, in parallel over samples, so results do not depend on the batch.

    ``model`` holds the bytes of the file: a model folder stores them, and other processes get them with the primitive.
    An ONNX graph is data. It cannot run code, and one that refers to other files is refused. ``timeout`` is in seconds
    and for one sample. ``OnnxNetwork.from_file("net.onnx", advances={"reaction"}, arguments=("duration", "r"))``.
    """

    model: Array = field(repr=False)
    timeout: float = 60.0
    sha256: str = field(default="", init=False)

    runs_code: ClassVar[bool] = False

    def __post_init__(self) -> None:
        super().__post_init__()
        checked_limit("timeout", self.timeout)
        content = np.asarray(self.model)
        if content.dtype != np.uint8 or content.ndim != 1:
            raise InvalidInputError("model: give the bytes of an ONNX file as uint8, or use OnnxNetwork.from_file")
        content = content.copy()
        content.setflags(write=False)
        object.__setattr__(self, "model", content)
        object.__setattr__(self, "sha256", hashlib.sha256(content).hexdigest())

    @classmethod
    def from_file(cls, path: str | os.PathLike[str], **declared: Any) -> OnnxNetwork:
        """The network in a file; ``declared`` are the fields of the class. A file that cannot be run is refused."""
        content = read_bytes(path, LARGEST)
        out = cls(model=np.frombuffer(content, dtype=np.uint8), **declared)
        try:
            out.prepare()
        except InvalidInputError as error:
            raise InvalidInputError(f"{Path(path)}: {error}") from None
        return out

    def arrays(self) -> Mapping[str, Array]:
        return {"model": self.model}

    def with_arrays(self, arrays: Mapping[str, Array]) -> OnnxNetwork:
        return replace(self, model=arrays["model"]).with_example(self.example)

    @property
    def label(self) -> str:
        return "ONNX network"

    def prepare(self) -> None:
        inputs = self._session().get_inputs()
        if len(inputs) != 1 + len(self.arguments):
            names = ", ".join(one.name for one in inputs)
            raise InvalidInputError(
                f"the ONNX graph has the inputs {names}; arguments must name one number for each after the first, and "
                f"names {', '.join(self.arguments) or 'none'}"
            )
        for one in inputs:
            if one.type not in DTYPES:
                raise InvalidInputError(f"input '{one.name}' of the ONNX graph is {one.type}; use {', '.join(DTYPES)}")

    def _session(self) -> Any:
        return _SESSIONS.get(self.sha256, self.model)

    def advance(self, u: Array, duration: float, setting: Setting, stop: Event) -> object:
        session = self._session()
        first, *others = session.get_inputs()
        alone = len(first.shape) == u.ndim - 1
        feeds = {first.name: (u[0] if alone else u).astype(DTYPES[first.type])}
        for one, value in zip(others, self.numbers(duration, setting), strict=True):
            feeds[one.name] = np.full((1,) * len(one.shape), value, dtype=DTYPES[one.type])
        answer = self._run(session, feeds, stop)
        return answer[None] if alone and isinstance(answer, np.ndarray) else answer

    def _run(self, session: Any, feeds: dict[str, Array], stop: Event) -> object:
        options = _onnxruntime().RunOptions()
        options.log_severity_level = _SILENT
        name = session.get_outputs()[0].name
        with _SESSIONS.watchdog().watching(options, time.monotonic() + self.timeout, stop):
            try:
                return session.run([name], feeds, options)[0]
            except Exception as error:
                if options.terminate and stop.is_set():
                    raise Stopped from None
                if options.terminate:
                    raise BadAnswer(f"gave no answer within {self.timeout:g} s; is timeout too short?") from None
                raise BadAnswer(f"failed ({one_line(error)})") from None


def _onnxruntime() -> Any:
    # it reports its use to its makers, and leaves a file in the temporary folder, unless it is told not to
    os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
    try:
        import onnxruntime
    except ImportError:
        raise InvalidInputError("OnnxNetwork needs onnxruntime; run pip install 'hycop[onnx]'") from None
    return onnxruntime


class _Watchdog(Thread):
    """Asks onnxruntime to end runs that are too late or no longer wanted; one thread serves all of them."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.runs: dict[int, tuple[Any, float, Event]] = {}
        self.wanted = Event()
        self.start()

    def run(self) -> None:
        while True:
            self.wanted.wait()
            self.wanted.clear()
            while self.runs:
                for options, deadline, stop in list(self.runs.values()):
                    if stop.is_set() or time.monotonic() > deadline:
                        options.terminate = True
                time.sleep(LONGEST_WAIT)

    @contextmanager
    def watching(self, options: Any, deadline: float, stop: Event) -> Iterator[None]:
        self.runs[id(options)] = options, deadline, stop
        self.wanted.set()
        try:
            yield
        finally:
            del self.runs[id(options)]


class _Sessions:
    """The networks that are ready to run in this process, by their hash."""

    def __init__(self) -> None:
        self.lock = Lock()
        self.ready: OrderedDict[tuple[int, str], Any] = OrderedDict()
        self.watchdogs: dict[int, _Watchdog] = {}

    def watchdog(self) -> _Watchdog:
        with self.lock:
            if os.getpid() not in self.watchdogs:  # a fork has no threads but its first
                self.watchdogs[os.getpid()] = _Watchdog()
            return self.watchdogs[os.getpid()]

    def get(self, sha256: str, model: Array) -> Any:
        key = os.getpid(), sha256
        with self.lock:
            if key not in self.ready:
                self.ready[key] = _loaded(model.tobytes())
                while len(self.ready) > MOST_SESSIONS:
                    self.ready.popitem(last=False)
            self.ready.move_to_end(key)
            return self.ready[key]


_SESSIONS = _Sessions()


def _loaded(content: bytes) -> Any:
    """A session from bytes, so without a folder in which it could look for other files, on one thread."""
    runtime = _onnxruntime()
    options = runtime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.execution_mode = runtime.ExecutionMode.ORT_SEQUENTIAL
    options.use_deterministic_compute = True
    options.log_severity_level = _SILENT
    try:
        return runtime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
    except Exception as error:  # the bytes may be anything
        raise InvalidInputError(f"is not an ONNX graph that can be run ({one_line(error)})") from None
