"""The references of the two languages on one question: a CEL formula written as SEQ, `;` as `:` and `:` as `,`.

Without AS and FILTER, and with events at different times, complex events are the matches' sets of events. An
event with the attribute belongs to a CEQL partition whatever its type, to an SPAseq one if some GPM binds
its value; so only events of the formula's types happen here.
"""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st
from loaded import load
from pyoxigraph import RdfFormat, parse
from reference.ceql import evaluate_ceql
from reference.evaluate import evaluate
from reference.tuples import tuple_events
from strategies import Dice

VOCAB = "http://e/v#"


@dataclass(frozen=True)
class Both:
    """A formula as CEL and as SEQ, with the types of SEQ's GPMs in their order."""

    cel: str
    seq: str
    types: tuple[str, ...]


def joined(dice: Dice, left: Both, right: Both) -> Both:
    cel, seq = dice.pick([(";", ":"), (";", ":"), (":", ",")])
    return Both(f"{left.cel} {cel} {right.cel}", f"{left.seq} {seq} {right.seq}", left.types + right.types)


def drawn(dice: Dice, depth: int, first: int) -> Both:
    """A formula whose GPMs are named from G`first` on."""
    kind = dice.pick(["event", "follows", "follows", "or", "plus"]) if depth else "event"
    if kind == "event":
        name = dice.pick(["A", "B"])
        return Both(name, f"G{first}", (name,))
    inner = drawn(dice, depth - 1, first)
    if kind == "plus":
        cel, seq = dice.pick([("+", ":+"), ("+", ":+"), (":+", ",+")])
        return Both(f"({inner.cel}){cel}", f"({inner.seq}){seq}", inner.types)
    other = drawn(dice, depth - 1, first + len(inner.types))
    if kind == "or":
        types = inner.types + other.types
        return Both(f"(({inner.cel}) OR ({other.cel}))", f"(({inner.seq}) | ({other.seq}))", types)
    both = joined(dice, inner, other)
    return Both(f"({both.cel})", f"({both.seq})", both.types)


@given(st.integers(0, 2**62))
def test_both_references_find_the_same(seed: int) -> None:
    dice = Dice(seed)
    both = joined(dice, drawn(dice, 2, 0), drawn(dice, 1, 4)) if dice.chance(70) else drawn(dice, 2, 0)
    names = [name for name in both.seq.replace("(", " ").replace(")", " ").split() if name.startswith("G")]
    partitioned, strategy = dice.chance(40), dice.pick(["", "", "NEXT ", "LAST ", "MAX "])
    size = dice.pick([1, 2, 3, 4])
    window = dice.pick(["", f"WITHIN {size} EVENTS", f"WITHIN 0.00000{size} SECONDS"])
    consume = dice.pick(["", "", "CONSUME BY ANY", "CONSUME BY PARTITION"])
    ceql = f"VOCAB <{VOCAB}> SELECT {strategy}* FROM S WHERE {both.cel} {window} {consume}"
    ceql += " PARTITION BY [k]" if partitioned else ""
    gpms = [
        f"DEFINE GPM {n} ON S {{ ?{n} a :{t} ; :k ?{'k' if partitioned else n + 'k'} }}"
        for n, t in zip(names, both.types, strict=True)
    ]
    spaseq = f"PREFIX : <{VOCAB}> SELECT {strategy}* {window and window + ' SLIDING'} {consume}"
    spaseq += " PARTITION BY ?k" if partitioned else ""
    spaseq += f" FROM STREAM S <{VOCAB}S> WHERE {{ SEQ({both.seq}) {' '.join(gpms)} }}"
    events, time = [], 0
    for _ in range(dice.between(3, 7)):
        time += dice.pick([1, 1, 2])
        graph = f"[] a <{VOCAB}{dice.pick(sorted(set(both.types)))}> ; <{VOCAB}k> {dice.pick(['1', '2'])} ."
        events.append((time, [q.triple for q in parse(graph.encode(), format=RdfFormat.TURTLE)]))
    complex_events = evaluate_ceql(load(ceql, "ceql"), tuple_events([events]))
    expected = {frozenset(events[p][0] for p in c.positions) for c in complex_events}
    rows = evaluate(load(spaseq), {f"{VOCAB}S": events}).rows
    assert {frozenset(t for found in r.events.values() for _, t in found) for r in rows} == expected
