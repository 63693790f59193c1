"""Joins of CEQL: `y[price > x.price]` compares each event of y with the one event of x.

In the flow: algebra → **which event decides a join** → checks, translation to SPAseq, live keys. A join is decided
at the event that comes after the others that it names. So each of those must be one event, in every match, and come
before it; any other join is refused (`JoinError`), since it would need every event of x remembered.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from pyoxigraph import Variable

from oxiseq.grammar.algebra import Call, Expression
from oxiseq.grammar.ceql_algebra import (
    OTHER,
    Either,
    EventType,
    Filtered,
    Follows,
    Formula,
    Holds,
    Iterated,
    Named,
    joins_in,
    variables,
)
from oxiseq.grammar.records import dataclass

_MANY: Final = 2
"""As a number of events: more than one."""


@dataclass(frozen=True, slots=True)
class JoinError(Exception):
    """A join that is not decided at one event."""

    call: Call
    reason: str
    hint: str


@dataclass(frozen=True, slots=True)
class Join:
    """A join as it is evaluated on each event of `name`: in `predicate` variables are attributes of that event,
    `Call(OTHER, (x, price))` of the one event of x, which comes before it."""

    name: str
    predicate: Expression
    always: bool
    """Whether every match holds such an event."""


def decided(test: Holds, formula: Formula) -> Join:
    """Where a condition on `formula` is decided. Raises JoinError."""
    joins = list(joins_in(test.predicate))
    for of, attribute, call in joins:
        if of == test.name:
            reason = f"{of}.{attribute.value} is an attribute of the event itself"
            raise JoinError(call, reason, f"write {attribute.value}")
        if of not in variables(formula):
            known = ", ".join(variables(formula))
            raise JoinError(call, f"the formula before FILTER has no variable {of}", f"it has {known}")
    names = dict.fromkeys((test.name, *(of for of, _, _ in joins)))
    for name in names:
        if all(_before(formula, other, name) for other in names if other != name):
            low, high = _counts(formula)[name]
            if name == test.name or (low, high) == (1, 1):
                return Join(name, _seen_from(test.predicate, test.name, name), low > 0)
    raise _refusal(test, joins, formula)


def _refusal(test: Holds, joins: list[tuple[str, Variable, Call]], formula: Formula) -> JoinError:
    counts = _counts(formula)
    for of, attribute, call in joins:
        low, high = counts[of]
        if high >= _MANY:
            reason = f"{of} may hold several events, so {of}.{attribute.value} is not one value"
            return JoinError(call, reason, "compare with a variable that holds one event in each match")
        if low == 0:
            reason = f"{of} holds no event in some matches"
            return JoinError(call, reason, "compare with a variable that holds one event in each match")
    call = joins[0][2]
    if counts[test.name][1] >= _MANY:
        reason = f"{test.name} may hold several events and comes before {joins[0][0]}"
        return JoinError(
            call, reason, "a join is evaluated at the last of its events: swap its sides, or name one event"
        )
    names = ", ".join(dict.fromkeys((test.name, *(of for of, _, _ in joins))))
    reason = f"no event of {names} comes after the others"
    return JoinError(call, reason, "a join is evaluated at the last of its events")


def _before(formula: Formula, name: str, later: str) -> bool:
    """Whether `name` holds one event in each match, before all that `later` holds."""
    lefts = list(_lefts(formula, later, frozenset(), frozenset()))
    return bool(lefts) and _counts(formula).get(name, (0, 0))[1] == 1 and all(name in left for left in lefts)


def _lefts(formula: Formula, name: str, left: frozenset[str], held: frozenset[str]) -> Iterator[frozenset[str]]:
    """For each type whose events `name` holds: the variables that surely hold an event before it. `held`: by which its
    events are held."""
    match formula:
        case EventType(type_):
            if name == type_ or name in held:
                yield left
        case Named(inner, called):
            yield from _lefts(inner, name, left, held | {called})
        case Filtered(inner) | Iterated(inner):
            yield from _lefts(inner, name, left, held)
        case Either(formulas):
            for each in formulas:
                yield from _lefts(each, name, left, held)
        case Follows(first, rest):
            for each in (first, *(inner for _, inner in rest)):
                yield from _lefts(each, name, left, held)
                left |= {called for called, (low, _) in _counts(each).items() if low}


def _counts(formula: Formula) -> dict[str, tuple[int, int]]:
    """How many events each variable holds, at least and at most; _MANY: that many or more. "" is all of them."""
    match formula:
        case EventType(name):
            return {"": (1, 1), name: (1, 1)}
        case Named(inner, name):
            found = _counts(inner)
            return {**found, name: found[""]}
        case Filtered(inner):
            return _counts(inner)
        case Iterated(inner):
            return {name: (low, _MANY) for name, (low, _) in _counts(inner).items()}
        case Either(formulas):
            ways = [_counts(each) for each in formulas]
            names = dict.fromkeys(name for way in ways for name in way)
            return {
                name: (min(w.get(name, (0, 0))[0] for w in ways), max(w.get(name, (0, 0))[1] for w in ways))
                for name in names
            }
        case Follows(first, rest):
            steps = [_counts(each) for each in (first, *(inner for _, inner in rest))]
            names = dict.fromkeys(name for step in steps for name in step)
            return {name: (_sum(steps, name, 0), _sum(steps, name, 1)) for name in names}


def _sum(steps: list[dict[str, tuple[int, int]]], name: str, which: int) -> int:
    return min(_MANY, sum(step.get(name, (0, 0))[which] for step in steps))


def _seen_from(expression: Expression, own: str, name: str) -> Expression:
    """A predicate about events of `own` as one about those of `name`."""
    match expression:
        case Variable() if own != name:
            return Call(OTHER, (Variable(own), expression))
        case Call(".", (Variable(value=of), attribute)):
            return attribute if of == name else expression
        case Call(called, args):
            return Call(called, tuple(_seen_from(each, own, name) for each in args), span=expression.span)
    return expression
