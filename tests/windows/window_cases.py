"""Random windows, queries and streams, small enough that triples repeat and matches come and go."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from matching.graph_patterns import ODD, PLAIN, parsed, random_bgp, random_condition
from pyoxigraph import BlankNode, NamedNode, Triple
from reference.windows import Graph, Match
from window_run import ConjunctiveQuery, Rows

from oxiseq.engine.events.batch import EventBatch
from oxiseq.engine.events.encode import encode_events
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.engine.window import Window
from oxiseq.grammar.algebra import Filter, Term, TriplePattern

E = "http://e/"
NODES = [NamedNode(E + name) for name in "abcd"]
PREDICATES = [NamedNode(E + name) for name in ("p", "p", "q", "q", "r", "a")]
SHAPES = (
    "?x :p ?y . ?x :q ?z .",
    "?x :p ?y . ?x :q ?z . ?x :r ?w .",
    "?x :p ?y . ?y :q ?z . ?z :p ?w .",
    "?x :p ?y . ?y :p ?z . ?z :p ?x .",
    "?x :p ?y . ?y :q ?z . ?z :r ?x .",
    "?x :p ?y . ?y :p ?x .",
    "?x :p ?y . ?z :q ?w .",
    "?x :p ?x . ?x :q ?y .",
    "?x :p ?x .",
    "?x :p :a . ?x :q ?y .",
    ":a :p ?x . ?x :q :b .",
    ":a :p :b . ?x :q ?y .",
    "?x ?p ?y . ?y ?p ?z .",
    "?x ?p ?y . ?x ?q ?y .",
    "?x ?x ?y . ?y :p ?x .",
    "?x :p _:n . _:n :q ?y .",
)


Events = tuple[tuple[int, tuple[Triple, ...]], ...]


@dataclass(frozen=True)
class Case:
    """Queries on one window, events in order of time, where to cut them into batches."""

    texts: tuple[str, ...]
    queries: tuple[ConjunctiveQuery, ...]
    window: Window
    events: Events
    cuts: tuple[int, ...]
    tiny: bool

    def batches(self, terms: TermDictionary) -> list[EventBatch]:
        """The events, instants whole."""
        ends = [0, *self.cuts, len(self.events)]
        return [encode_events(self.events[a:b], terms) for a, b in pairwise(ends) if a < b]


def random_case(dice: random.Random, most_events: int = 24, blank: bool = True) -> Case:
    """A case; `blank`: events may have blank nodes."""
    texts = tuple(_random_body(dice) for _ in range(dice.choice([1, 1, 2, 3])))
    events = _random_events(dice, dice.randint(3, most_events), any("FILTER" in text for text in texts), blank)
    counted = dice.random() < 0.5
    slide = dice.choice([1, 1, 1, 2, 3, 5])
    range_ = dice.choice([None, slide, slide, *range(1, 9)]) if dice.random() < 0.95 else 40
    starts = [i for i in range(1, len(events)) if events[i][0] != events[i - 1][0]]
    cuts = tuple(i for i in starts if dice.random() < dice.choice([0.0, 0.3, 1.0]))
    queries = tuple(query_of(text) for text in texts)
    return Case(texts, queries, Window(range_, slide, counted), events, cuts, dice.random() < 0.7)


def query_of(body: str) -> ConjunctiveQuery:
    """The triple patterns and filters of a group's text."""
    elements = parsed(body).pattern.elements
    return ConjunctiveQuery(
        tuple(e for e in elements if isinstance(e, TriplePattern)),
        tuple(e.condition for e in elements if isinstance(e, Filter)),
    )


def _random_body(dice: random.Random) -> str:
    body = dice.choice(SHAPES) if dice.random() < 0.7 else random_bgp(dice)
    names = sorted({word for word in body.split() if word[0] == "?"})
    filters = [random_condition(dice, names) for _ in range(dice.choice([0, 0, 1, 1, 2]))] if names else []
    return " ".join([body, *(f"FILTER({f})" for f in filters)])


def _random_events(dice: random.Random, count: int, odd: bool, blank: bool) -> Events:
    time, events = dice.choice([-5, 0, 1]), []
    objects = [*NODES, *NODES, *NODES[:1], *PLAIN[: dice.randint(0, 8)], *(ODD if odd and dice.random() < 0.3 else [])]
    subjects: list[NamedNode | BlankNode] = [*NODES, NamedNode(E + "p")]
    if blank and dice.random() < 0.2:
        subjects.append(BlankNode("x"))
        objects.append(BlankNode("x"))
    size = dice.choice([1, 2, 4])
    for _ in range(count):
        triples = [
            Triple(dice.choice(subjects), dice.choice(PREDICATES), dice.choice(objects))
            for _ in range(dice.randint(0, 2 * size))
        ]
        events.append((time, tuple(triples)))
        time += dice.choice([0, 1, 1, 1, 2, 4])
    return tuple(events)


def graphs(batch: EventBatch, terms: TermDictionary) -> list[tuple[int, Graph]]:
    """What the events hold, as terms."""
    triples = [tuple(map(terms.term, ids)) for ids in zip(*(column.tolist() for column in batch.ids), strict=True)]
    return [
        (int(time), frozenset(triples[low:high]))  # type: ignore[arg-type]
        for time, (low, high) in zip(batch.time, pairwise(batch.offset.tolist()), strict=True)
    ]


def decoded(rows: Rows, keys: Sequence[object], count: int, terms: TermDictionary) -> list[list[Match]]:
    """By instant the rows as mappings."""
    found: list[list[Match]] = [[] for _ in range(count)]
    assert rows.at.tolist() == sorted(rows.at.tolist())
    for at, values in zip(rows.at.tolist(), rows.values.tolist(), strict=True):
        mapping: list[tuple[object, Term]] = [(key, terms.term(i)) for key, i in zip(keys, values, strict=True)]  # type: ignore[misc]
        found[at].append(frozenset(mapping))  # type: ignore[arg-type]
    return found
