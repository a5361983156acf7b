"""HyCOP: fast, readable surrogates of PDE solvers, composed from simple ones."""

from hycop import metrics
from hycop.conformance import check_primitive
from hycop.data import Dataset, load, save
from hycop.dictionary import Dictionary
from hycop.errors import HyCOPError
from hycop.evaluation import ByHand, Composed, Contender, DictionaryLimit, composed, evaluate, limit
from hycop.execution import measure, run, simplify, trace
from hycop.grid import Grid, restrict
from hycop.primitive import ALL_CHANNELS, EXACT, Primitive, Symbol
from hycop.primitives import find_primitive
from hycop.problems import Problem, problem
from hycop.program import Program, ProgramBatch, Step
from hycop.query import Channel, Query, Setting
from hycop.splitting import Scheme, splitting
from hycop.surrogate import HyCOP, UntrustedWarning
from hycop.transfer import swap
from hycop.version import __version__

__all__ = [
    "ALL_CHANNELS",
    "EXACT",
    "ByHand",
    "Channel",
    "Composed",
    "Contender",
    "Dataset",
    "Dictionary",
    "DictionaryLimit",
    "Grid",
    "HyCOP",
    "HyCOPError",
    "Primitive",
    "Problem",
    "Program",
    "ProgramBatch",
    "Query",
    "Scheme",
    "Setting",
    "Step",
    "Symbol",
    "UntrustedWarning",
    "__version__",
    "check_primitive",
    "composed",
    "evaluate",
    "find_primitive",
    "limit",
    "load",
    "measure",
    "metrics",
    "problem",
    "restrict",
    "run",
    "save",
    "simplify",
    "splitting",
    "swap",
    "trace",
]
