"""The whole answer against pyoxigraph's on the window's merged graph."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st
from matching.graph_patterns import PREFIXES
from profiles import drawn
from pyoxigraph import Quad, QuerySolutions, Store, Variable
from reference.windows import Graph, sliding
from window_cases import Match, decoded, graphs, random_case
from window_run import WindowRun

from oxiseq.engine.terms.dictionary import TermDictionary


@drawn(20)
@given(st.integers(0, 2**62))
def test_all_rows_are_the_stores_answer(seed: int) -> None:
    """Without filters: tests/matching/test_oxigraph.py says where the store decides them otherwise."""
    case = random_case(random.Random(seed), most_events=10)
    bodies = [text.split("FILTER")[0] for text in case.texts]
    terms, window = TermDictionary(), case.window
    run = WindowRun([replace(query, filters=()) for query in case.queries], terms, window)
    batches = case.batches(terms)
    events = [event for batch in batches for event in graphs(batch, terms)]
    instants = list(sliding(events, window.range, window.slide, window.counted))
    seen = 0
    for batch in batches:
        answers = run.push(batch)
        by_query = [
            decoded(rows, keys, len(answers.time), terms) for keys, rows in zip(run.keys, answers.all, strict=True)
        ]
        for i in range(len(answers.time)):
            low = instants[seen].low
            together = [event for instant in instants[: seen + 1] for event in instant.events]
            store = Store()
            for clock, graph in together:
                if low is None or clock > low:
                    fill(store, graph)
            for number, body in enumerate(bodies):
                named = Counter(
                    frozenset((v, t) for v, t in match if isinstance(v, Variable)) for match in by_query[number][i]
                )
                assert named == asked(store, body), body
            seen += 1


def fill(store: Store, graph: Graph) -> None:
    """Put a graph's triples in."""
    store.extend(Quad(s, p, o) for s, p, o in graph)  # type: ignore[arg-type]


def asked(store: Store, body: str) -> Counter[Match]:
    """The store's answer as a bag."""
    found = store.query(f"{PREFIXES} SELECT * {{ {body} }}")
    assert isinstance(found, QuerySolutions)
    return Counter(frozenset((v, row[v]) for v in found.variables) for row in found)  # type: ignore[misc]
