"""A short way to write CEQL and its events, for tests of one fact each.

`"a1 b2/x c@25"` are three events of the types A, B, C: the number is the attribute v, `/` gives k (else none),
`@` the time in seconds (else the event's number), `t` is the time as a number.
"""

from __future__ import annotations

from pyoxigraph import Literal, NamedNode

from oxiseq.grammar import load
from reference.ceql import ComplexEvent, evaluate_ceql
from reference.tuples import TupleEvent

VOCAB = "http://e/"
INTEGER = NamedNode("http://www.w3.org/2001/XMLSchema#integer")


def tuples(text: str) -> list[TupleEvent]:
    """The events, in their order."""
    events = []
    for number, token in enumerate(text.split()):
        body, _, at = token.partition("@")
        body, _, key = body.partition("/")
        time = int(at) if at else number
        values = {"v": body[1:], "t": str(time)}
        terms = {VOCAB + a: Literal(v, datatype=INTEGER) for a, v in values.items() if v}
        terms |= {VOCAB + "k": Literal(key)} if key else {}
        events.append(TupleEvent(number, time * 1_000_000, VOCAB + body[0].upper(), terms))
    return events


def answers(formula: str, events: str, select: str = "*") -> list[ComplexEvent]:
    query = load(f"VOCAB <{VOCAB}> SELECT {select} FROM S WHERE {formula}", "ceql")
    return evaluate_ceql(query, tuples(events))


def complex_events(formula: str, events: str, select: str = "*") -> list[str]:
    """As text, sorted: `0-4: 0 2 4`."""
    found = answers(formula, events, select)
    return sorted(f"{c.start}-{c.end}: {' '.join(map(str, sorted(c.positions)))}".rstrip() for c in found)
