"""Contenders, their rows, the limit of a dictionary, and opponents at equal work."""

from hycop.evaluation.comparison import SPLITTING, check_metrics, evaluate, evaluate_blocks
from hycop.evaluation.contender import ByHand, Composed, Composing, Contender, Solver, Timed, Writer, composed, timed
from hycop.evaluation.frame import frame
from hycop.evaluation.limits import LIMIT_SCHEME, DictionaryLimit, Limit, limit
from hycop.evaluation.opponents import EQUAL_WORK, Opponents, Rivals, errors_of
from hycop.evaluation.row import CURVE, LIMIT, Row, family, merged
from hycop.evaluation.unsplit import EQUAL_ERROR, Choice, Rung, UnsplitOpponents, ladder
from hycop.evaluation.variant import Variant

__all__ = [
    "CURVE",
    "EQUAL_ERROR",
    "EQUAL_WORK",
    "LIMIT",
    "LIMIT_SCHEME",
    "SPLITTING",
    "ByHand",
    "Choice",
    "Composed",
    "Composing",
    "Contender",
    "DictionaryLimit",
    "Limit",
    "Opponents",
    "Rivals",
    "Row",
    "Rung",
    "Solver",
    "Timed",
    "UnsplitOpponents",
    "Variant",
    "Writer",
    "check_metrics",
    "composed",
    "errors_of",
    "evaluate",
    "evaluate_blocks",
    "family",
    "frame",
    "ladder",
    "limit",
    "merged",
    "timed",
]
