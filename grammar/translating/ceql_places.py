"""The places of a formula's types, each with what FILTER asks of the events that stand there.

`X[P]` is about every event of X, so P goes to each place whose events X holds. OR is about all events of a variable
at once; only where its conditions are about one place that holds at most one event is it a condition on that event.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from oxiseq.grammar.algebra import Call, Expression
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
    subformulas,
)
from oxiseq.grammar.translating.translation import refused


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
    """Of each event that stands here; the variables are attributes."""


def places_of(formula: Formula, text: str) -> list[Place]:
    """The places, left to right. Raises `QueryError` for an OR that is about more than one event."""
    if isinstance(formula, EventType):
        return [Place(formula, formula.name, {formula.name})]
    found = [place for inner in subformulas(formula) for place in places_of(inner, text)]
    match formula:
        case Named(inner, name):
            for place in found:
                place.names.add(name)
                if isinstance(inner, EventType):
                    place.called = name
        case Iterated():
            for place in found:
                place.iterated = True
        case Filtered(_, condition):
            _ask(condition, found, text)
    return found


def _ask(condition: Condition, places: list[Place], text: str) -> None:
    match condition:
        case Holds(name, predicate):
            for place in places:
                if name in place.names:
                    place.asked.append(predicate)
        case AllOf(conditions):
            for each in conditions:
                _ask(each, places, text)
        case AnyOf():
            names = {test.name for test in atomic(condition)}
            held = {name: [p for p in places if name in p.names] for name in names}
            (one, *others) = held.values()
            if len(one) != 1 or one[0].iterated or any(len(o) != 1 or o[0] is not one[0] for o in others):
                hint = "SPAseq asks each event by itself: write OR inside the brackets of one variable"
                raise refused("this OR is about several events", condition.span, text, hint)
            one[0].asked.append(_predicate(condition))


def _predicate(condition: Condition) -> Expression:
    """A condition on one event as one expression."""
    if isinstance(condition, Holds):
        return condition.predicate
    first, *rest = (_predicate(c) for c in condition.conditions)
    for each in rest:
        first = Call("&&" if isinstance(condition, AllOf) else "||", (first, each))
    return first
