"""Predicates on the way from CEQL to SPAseq: attributes become variables; and what cannot hold without them.

The places of a formula's types, each with the FILTER conditions on the events there.

`X[P]` is about every event of X, so P goes to each place whose events X holds. OR is about all events of a variable
at once; only where its conditions are about one place that holds at most one event is it a condition on that event.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from typing import Final

from pyoxigraph import Variable

from oxiseq.grammar.algebra import Call, Expression
from oxiseq.grammar.ceql.joins import Join, decided
from oxiseq.grammar.ceql_algebra import (
    AllOf,
    AnyOf,
    Condition,
    EventType,
    Filtered,
    Formula,
    Holds,
    Iterated,
    Named,
    atomic,
    joins_in,
    subformulas,
)
from oxiseq.grammar.records import dataclass
from oxiseq.grammar.translating.translation import refused

# --- ceql expressions --------------------------------------------------------------------------------


JOINED: Final = "?"
"""The call of a variable of SPAseq, among variables that are attributes."""


@dataclass
class Names:
    """Names that are taken."""

    taken: set[str] = field(default_factory=set)

    def fresh(self, wanted: str) -> str:
        """`wanted`, with a number if it is taken."""
        name, number = wanted, 1
        while name in self.taken:
            number += 1
            name = f"{wanted}{number}"
        self.taken.add(name)
        return name


def renamed(expression: Expression, values: dict[Variable, Variable]) -> Expression:
    """With other variables."""
    match expression:
        case Variable():
            return values.get(expression, expression)
        case Call("?", (variable,)):
            return variable
        case Call(name, args):
            return Call(name, tuple(renamed(a, values) for a in args))
        case _:
            return expression


def needs(expression: Expression, joined: Variable) -> bool:
    """Whether a predicate cannot hold without this variable of SPAseq."""
    own = dict.fromkeys(own_attributes(expression), Variable("0"))
    return joined in needed_by(renamed(expression, own), True)


def own_attributes(expression: Expression) -> frozenset[Variable]:
    """The attributes of the event itself."""
    match expression:
        case Variable():
            return frozenset([expression])
        case Call(name, args) if name != JOINED:
            return frozenset(v for each in args for v in own_attributes(each))
        case _:
            return frozenset()


def needed_by(expression: Expression, truth: bool) -> frozenset[Variable]:
    """The variables without which `expression` cannot be `truth`: unbound they make it an error or the contrary."""
    match expression:
        case Call("!", (inner,)):
            return needed_by(inner, not truth)
        case Call("&&" | "||" as name, args):
            return _merged([needed_by(a, truth) for a in args], every=(name == "&&") is truth)
        case _:
            return _errors(expression)


def _errors(expression: Expression) -> frozenset[Variable]:
    """The variables without which `expression` is an error."""
    match expression:
        case Variable():
            return frozenset([expression])
        case Call(name, args) if name != JOINED:
            return _merged([_errors(a) for a in args], every=name not in ("&&", "||"))
        case _:
            return frozenset()


def _merged(sets: Sequence[Iterable[Variable]], every: bool) -> frozenset[Variable]:
    """Those of all operands, or those that all have."""
    first, *rest = (frozenset(s) for s in sets)
    return first.union(*rest) if every else first.intersection(*rest)


# --- ceql places -------------------------------------------------------------------------------------


@dataclass
class Place:
    """A type in a formula. While it is built: what the part of the formula that was read so far says."""

    what: EventType
    called: str
    """What its GPM is called after: the name that AS gives to it alone, else the type."""
    names: set[str]
    """The variables that hold its events."""
    iterated: bool = False
    asked: list[Expression] = field(default_factory=list)
    """For each event at this place; the variables are attributes, `Call(JOINED, (v,))` is a variable of SPAseq."""
    told: list[tuple[Variable, Variable, bool]] = field(default_factory=list)
    """Attributes that later events are compared with, the variable of SPAseq that each is, and whether no match can be
    without it."""


def places_of(formula: Formula, text: str, names: Names) -> list[Place]:
    """The places, left to right. `names`: of variables. Raises `QueryError` for an OR that is about more than one
    event."""
    if isinstance(formula, EventType):
        return [Place(formula, formula.name, {formula.name})]
    found = [place for inner in subformulas(formula) for place in places_of(inner, text, names)]
    match formula:
        case Named(inner, name):
            for place in found:
                place.names.add(name)
                if isinstance(inner, EventType):
                    place.called = name
        case Iterated():
            for place in found:
                place.iterated = True
        case Filtered(inner, condition):
            _ask(condition, inner, found, text, names)
    return found


def _ask(condition: Condition, formula: Formula, places: list[Place], text: str, names: Names) -> None:
    match condition:
        case Holds(name, predicate):
            if any(joins_in(predicate)):
                name, predicate = _joined(decided(condition, formula), places, names)
            for place in places:
                if name in place.names:
                    place.asked.append(predicate)
        case AllOf(conditions):
            for each in conditions:
                _ask(each, formula, places, text, names)
        case AnyOf():
            asked = {test.name for test in atomic(condition)}
            held = {name: [p for p in places if name in p.names] for name in asked}
            (one, *others) = held.values()
            if len(one) != 1 or one[0].iterated or any(len(o) != 1 or o[0] is not one[0] for o in others):
                hint = "SPAseq matches each event on its own: write OR inside the brackets of one variable"
                raise refused("this OR concerns several events", condition.span, text, hint)
            one[0].asked.append(_predicate(condition))


def _joined(join: Join, places: list[Place], names: Names) -> tuple[str, Expression]:
    """The events of a join, and its predicate with variables of SPAseq for attributes of others, which their
    places name."""
    told: dict[tuple[str, Variable], Variable] = {}
    for of, attribute, _ in joins_in(join.predicate):
        if (of, attribute) not in told:
            told[of, attribute] = Variable(names.fresh(f"{of}_{attribute.value}"))
    predicate = _with_variables(join.predicate, told)
    for (of, attribute), variable in told.items():
        for place in places:
            if of in place.names:
                place.told.append((attribute, variable, join.always and needs(predicate, variable)))
    return join.name, predicate


def _with_variables(expression: Expression, told: Mapping[tuple[str, Variable], Variable]) -> Expression:
    match expression:
        case Call(".", (Variable(value=of), Variable() as attribute)):
            return Call(JOINED, (told[of, attribute],))
        case Call(called, args):
            return Call(called, tuple(_with_variables(each, told) for each in args))
    return expression


def _predicate(condition: Condition) -> Expression:
    """A condition on one event as one expression."""
    if isinstance(condition, Holds):
        return condition.predicate
    first, *rest = (_predicate(c) for c in condition.conditions)
    for each in rest:
        first = Call("&&" if isinstance(condition, AllOf) else "||", (first, each))
    return first
