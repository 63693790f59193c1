"""CEQL by definition: the valuations of a formula as sets, then windows, strategies, consumption (semantics.md 3;
CORE, PVLDB 2022, Figure 2).

    partitions → ⟦φ⟧ on each substream → WITHIN → projection → ([i, j], D) → strategy, CONSUME BY

LIMIT is not applied: `choose.is_choice` judges an answer. Nothing is clever here; streams must be short.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from pyoxigraph import Variable

from oxiseq.grammar.algebra import Call, Expression, Term, Window
from oxiseq.grammar.ceql_algebra import (
    AllOf,
    AnyOf,
    AttributeWindow,
    CeqlQuery,
    Condition,
    Either,
    EventType,
    Filtered,
    Follows,
    Formula,
    Holds,
    Iterated,
    Named,
    joins_in,
)
from reference.choose import Candidate, answered
from reference.tuples import TupleEvent
from reference.values import ExpressionError, arithmetic, holds, less_or_equal

Held: TypeAlias = frozenset[tuple[str, int]]
"""Which variable holds which position: (X, p) for p in V(X)."""


@dataclass(frozen=True)
class Valuation:
    """V: an interval and what each variable holds, counted in a substream."""

    start: int
    end: int
    held: Held


@dataclass(frozen=True)
class ComplexEvent:
    """([start, end], D) in positions of all streams; the end's time; the partition; the valuations that give it."""

    start: int
    end: int
    positions: frozenset[int]
    time: int
    partition: tuple[Term, ...]
    valuations: frozenset[Held]


def evaluate_ceql(query: CeqlQuery, events: Sequence[TupleEvent]) -> list[ComplexEvent]:
    """The complex events of a checked query on events in order, by end; LIMIT aside."""
    assert query.vocab is not None
    candidates = [
        candidate
        for value, mine in substreams(query, events).items()
        for candidate in _complex_events(query, mine, value)
    ]
    return [c.what for c in answered(candidates, query.selection, query.consumption)]


def substreams(query: CeqlQuery, events: Sequence[TupleEvent]) -> dict[tuple[Term, ...], list[TupleEvent]]:
    """The partitions; an event that lacks an attribute is in none."""
    by = query.partition.by if query.partition is not None else ()
    found: dict[tuple[Term, ...], list[TupleEvent]] = {}
    for event in events:
        values = event.attributes(query.vocab or "")
        if set(by) <= values.keys():
            found.setdefault(tuple(values[a] for a in by), []).append(event)
    return found


def _complex_events(
    query: CeqlQuery, events: list[TupleEvent], partition: tuple[Term, ...]
) -> list[Candidate[ComplexEvent]]:
    kept = {c.name for c in query.columns} if query.columns is not None else None
    found: dict[tuple[int, int, frozenset[int]], set[Held]] = {}
    for v in valuations(query.formula, events, query.vocab or ""):
        if within(query, events, v):
            held = frozenset(pair for pair in v.held if kept is None or pair[0] in kept)
            found.setdefault((v.start, v.end, positions(held)), set()).add(held)
    return [
        Candidate(
            events[i].position,
            events[j].position,
            d,
            partition,
            ComplexEvent(
                events[i].position,
                events[j].position,
                frozenset(events[p].position for p in d),
                events[j].time,
                partition,
                frozenset(frozenset((x, events[p].position) for x, p in held) for held in all_held),
            ),
        )
        for (i, j, d), all_held in found.items()
    ]


# --- ⟦φ⟧ -------------------------------------------------------------------------------------------


def valuations(formula: Formula, events: Sequence[TupleEvent], vocab: str) -> set[Valuation]:
    """⟦φ⟧ on a substream."""
    match formula:
        case EventType(name):
            return {Valuation(i, i, frozenset([(name, i)])) for i, e in enumerate(events) if e.type == vocab + name}
        case Named(inner, name):
            return {
                Valuation(v.start, v.end, v.held | {(name, p) for p in positions(v.held)})
                for v in valuations(inner, events, vocab)
            }
        case Filtered(inner, condition):
            return {v for v in valuations(inner, events, vocab) if satisfies(v, condition, events, vocab)}
        case Either(formulas):
            return {v for f in formulas for v in valuations(f, events, vocab)}
        case Follows(first, rest):
            found = valuations(first, events, vocab)
            for contiguous, inner in rest:
                found = after(found, valuations(inner, events, vocab), contiguous)
            return found
        case Iterated(inner, contiguous):
            once = valuations(inner, events, vocab)
            found = once
            while True:
                more = found | after(found, once, contiguous)
                if more == found:
                    return found
                found = more


def after(first: set[Valuation], second: set[Valuation], contiguous: bool) -> set[Valuation]:
    """⟦φ1 ; φ2⟧, or ⟦φ1 : φ2⟧."""
    return {
        Valuation(a.start, b.end, a.held | b.held)
        for a in first
        for b in second
        if (a.end + 1 == b.start if contiguous else a.end < b.start)
    }


def positions(held: Held) -> frozenset[int]:
    """D: all positions that some variable holds."""
    return frozenset(p for _, p in held)


def satisfies(v: Valuation, condition: Condition, events: Sequence[TupleEvent], vocab: str) -> bool:
    """θ: X[P] asks P of every event that X holds, so nothing where X holds none."""
    match condition:
        case Holds(name, predicate):
            return all(_asked(predicate, p, v, events, vocab) for x, p in v.held if x == name)
        case AllOf(conditions):
            return all(satisfies(v, c, events, vocab) for c in conditions)
        case AnyOf(conditions):
            return any(satisfies(v, c, events, vocab) for c in conditions)


def _asked(predicate: Expression, p: int, v: Valuation, events: Sequence[TupleEvent], vocab: str) -> bool:
    """P of the event at p; `y.price` is the price of the only event that y holds, and unbound without one."""
    values = dict(events[p].attributes(vocab))
    for of, attribute, _ in joins_in(predicate):
        held = [other for y, other in v.held if y == of]
        found = events[held[0]].attributes(vocab).get(attribute) if len(held) == 1 else None
        if found is not None:
            values[_joined(of, attribute)] = found
    return holds(_with_joins(predicate), values)


def _joined(of: str, attribute: Variable) -> Variable:
    return Variable(f"{of}_of_{attribute.value}")


def _with_joins(expression: Expression) -> Expression:
    match expression:
        case Call(".", (Variable(value=of), Variable() as attribute)):
            return _joined(of, attribute)
        case Call(name, args):
            return Call(name, tuple(_with_joins(each) for each in args))
    return expression


def within(query: CeqlQuery, events: Sequence[TupleEvent], v: Valuation) -> bool:
    """last − first ≤ d, in microseconds, in events of the substream or in the attribute's values."""
    match query.window:
        case None:
            return True
        case Window(size, True):
            return v.end - v.start <= size
        case Window(size):
            return events[v.end].time - events[v.start].time <= size
        case AttributeWindow(limit, attribute):
            ends = [events[p].attributes(query.vocab or "").get(attribute) for p in (v.start, v.end)]
            if ends[0] is None or ends[1] is None:
                return False
            try:
                return less_or_equal(arithmetic("-", ends[1], ends[0]), limit)
            except ExpressionError:
                return False
