"""Contenders, their rows, the limit of a dictionary, and opponents at equal work."""

from hycop.evaluation.comparison import SPLITTING, check_metrics, evaluate
from hycop.evaluation.contender import ByHand, Composed, Composing, Contender, Solver, Timed, Writer, composed, timed
from hycop.evaluation.limits import LIMIT_SCHEME, DictionaryLimit, Limit, limit
from hycop.evaluation.opponents import EQUAL_WORK, Opponents, errors_of
from hycop.evaluation.row import CURVE, LIMIT, Row, merged
from hycop.evaluation.variant import Variant

__all__ = [
    "CURVE",
    "EQUAL_WORK",
    "LIMIT",
    "LIMIT_SCHEME",
    "SPLITTING",
    "ByHand",
    "Composed",
    "Composing",
    "Contender",
    "DictionaryLimit",
    "Limit",
    "Opponents",
    "Row",
    "Solver",
    "Timed",
    "Variant",
    "Writer",
    "check_metrics",
    "composed",
    "errors_of",
    "evaluate",
    "limit",
    "merged",
    "timed",
]
