"""A closure in a model: its primitive, its process in the equation, and the policy that starts with it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from hycop.corrections import Correction
from hycop.data import Dataset
from hycop.diagnosis import Missing, MissingTerm
from hycop.diagnosis.missing import equations
from hycop.dictionary import Dictionary
from hycop.errors import IncompatibleError
from hycop.model import Model
from hycop.pde import Coefficient, Equation
from hycop.policy import Allotment
from hycop.primitive import Primitive
from hycop.primitives import PRIMITIVES
from hycop.primitives.learned import NeuralClosure
from hycop.primitives.symbolic import SymbolicTerms
from hycop.problems import PROBLEMS
from hycop.query import Channel
from hycop.terms import Term

CLOSURE = "closure"
"""Name of the primitive and of its process."""


def closure_name(model: Model) -> str:
    """A name that neither the dictionary nor the equation has."""
    taken = {*model.dictionary, *model.equation.processes}
    names = [CLOSURE, *(f"{CLOSURE} {number}" for number in range(2, 100))]
    return next(name for name in names if name not in taken)


def symbolic_closure(terms: Sequence[MissingTerm], channels: Sequence[Channel], process: str) -> Primitive:
    """The primitive of some named terms: data, or the registered primitive whose whole process is missing."""
    whole = [term for term in terms if term.channel is None]
    if whole:
        if len(terms) > 1:
            raise IncompatibleError(
                f"{whole[0].term} is a primitive of its own: add it to the dictionary, then name what is left"
            )
        return PRIMITIVES[whole[0].term]()
    named = [(term, term.channel) for term in terms if term.channel is not None]
    _check_well_posed(terms, [channel.name for channel in channels])
    return SymbolicTerms(
        state=tuple(channel.name for channel in channels),
        targets=tuple(channel for _, channel in named),
        terms=tuple(term.term for term, _ in named),
        amounts=tuple(term.coefficient for term, _ in named),
        process=process,
        normals=tuple(channel.normal for channel in channels),
    )


def _check_well_posed(terms: Sequence[MissingTerm], channels: Sequence[str]) -> None:
    """Refuses diffusion of the wrong sign, which has no solution of its own."""
    for term in terms:
        parsed = Term.parse(term.term, channels)
        if term.channel is None or not parsed.scales_diagonally(term.channel):
            continue
        order = len(parsed.factors[0].derivative)
        if order and term.coefficient * (1 if order % 4 == 2 else -1) < 0:
            raise IncompatibleError(
                f"{term.coefficient:.3g} {term.term} is ill-posed as a process of its own; if a coefficient of the "
                "model is off, correct it with --coefficients"
            )


def enriched_equation(equation: Equation, closure: Primitive, data: Dataset, model: Model) -> Equation:
    """The equation with the process of a closure and the coefficients that the data have. A policy sees what it has
    seen before."""
    (process,) = closure.advances - frozenset(equation.processes) or {CLOSURE}
    terms = closure.parsed if isinstance(closure, SymbolicTerms) else ()
    more = {
        name: Coefficient("rate" if _is_rate(name, terms) else "other")
        for name in data.setting.params
        if name not in equation.coefficients
    }
    view = model.scope.view
    return replace(
        equation.with_process(process, more),
        name=data.problem if data.problem in PROBLEMS else equation.name,
        features=view.features.names,
        gain_features=view.gain_features.names or equation.gain_features,
        unit_rate=equation.unit_rate + _fastest(closure),
        formula=" ".join([equation.formula, *_formula(closure)]).strip(),
    )


def _is_rate(name: str, terms: Sequence[Term]) -> bool:
    scaled = [term for term in terms if name in term.coefficients]
    return bool(scaled) and all(term.pointwise for term in scaled)


def _fastest(closure: Primitive) -> float:
    """e-foldings per unit of time: of a network its Lipschitz constant, of terms without derivatives and coefficients
    those for states of order one."""
    if isinstance(closure, NeuralClosure):
        return closure.lipschitz
    if not isinstance(closure, SymbolicTerms):
        return 0.0
    rates = dict.fromkeys(closure.state, 0.0)
    for target, term, amount in zip(closure.targets, closure.parsed, closure.amounts, strict=True):
        if term.pointwise and term.degree and not term.coefficients:
            rates[target] = max(rates[target], abs(amount))
    return max(rates.values())


def _formula(closure: Primitive) -> list[str]:
    if isinstance(closure, NeuralClosure):
        return [f"+ R({', '.join([*closure.states, *closure.inputs])})"]
    if not isinstance(closure, SymbolicTerms):
        return [f"+ {type(closure).__name__}"]
    entries = zip(closure.targets, closure.terms, closure.amounts, strict=True)
    terms = [MissingTerm(target, term, amount, 1e-3 * abs(amount)) for target, term, amount in entries]
    if len(closure.state) == 1:
        return [str(term) for term in terms]
    return ["+ closure:", ", ".join(equations(terms, closure.state))]


def with_closure(model: Model, name: str, closure: Primitive, equation: Equation) -> Model:
    """The model with one more primitive, before training: what the policy has learned stays, and the closure runs as
    in a classical scheme."""
    dictionary = Dictionary({**model.dictionary, name: closure})
    budget = model.record.config.budget
    allotment = Allotment.of(dictionary, equation.processes, budget, len(model.scope.view.gain_features.names))
    policy, theta = model.policy.adding(model.theta, name, allotment)
    return replace(model, dictionary=dictionary, equation=equation, policy=policy, theta=theta, static_theta=None)


def combined(model: Model, missing: Missing) -> dict[str, Correction]:
    """The corrections of a model and those that were named on top of them."""
    found = dict(model.corrections)
    for each in missing.corrections:
        found[each.name] = each.after(found[each.name]) if each.name in found else each
    return found
