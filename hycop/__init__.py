"""HyCOP: fast, readable surrogates of PDE solvers, composed from simple ones."""

from hycop import metrics
from hycop.baselines import load_baseline, train_baseline
from hycop.conformance import check_primitive
from hycop.data import Dataset, load, save
from hycop.diagnosis import Diagnosis, diagnose, name_missing
from hycop.dictionary import Dictionary
from hycop.enrichment import enrich
from hycop.equation import Coefficient, Equation
from hycop.errors import HyCOPError
from hycop.evaluation import ByHand, Composed, Contender, DictionaryLimit, composed, evaluate, limit
from hycop.execution import measure, run, simplify, trace
from hycop.grid import Grid, restrict
from hycop.inspection import answers
from hycop.model import Answer
from hycop.pretraining import pretrain
from hycop.primitive import ALL_CHANNELS, EXACT, Primitive, Symbol, fingerprint
from hycop.primitives import find_primitive
from hycop.problems import Problem
from hycop.problems import find_problem as problem
from hycop.program import Program, ProgramBatch, Step
from hycop.query import Channel, Query, Setting
from hycop.schemes import Scheme, splitting
from hycop.storage import load_primitive
from hycop.studio import explore
from hycop.surrogate import HyCOP, UntrustedWarning
from hycop.transfer import swap
from hycop.version import __version__

__all__ = [
    "ALL_CHANNELS",
    "EXACT",
    "Answer",
    "ByHand",
    "Channel",
    "Coefficient",
    "Composed",
    "Contender",
    "Dataset",
    "Diagnosis",
    "Dictionary",
    "DictionaryLimit",
    "Equation",
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
    "answers",
    "check_primitive",
    "composed",
    "diagnose",
    "enrich",
    "evaluate",
    "explore",
    "find_primitive",
    "fingerprint",
    "limit",
    "load",
    "load_baseline",
    "load_primitive",
    "measure",
    "metrics",
    "name_missing",
    "pretrain",
    "problem",
    "restrict",
    "run",
    "save",
    "simplify",
    "splitting",
    "swap",
    "trace",
    "train_baseline",
]


def __dir__() -> list[str]:
    return __all__
