"""How many entries joins try: it depends neither on the window nor on skew (windows.md, section 7)."""

from __future__ import annotations

import random

import numpy as np
import pytest
from window_cases import query_of
from window_run import WindowRun

from oxiseq.engine.events.batch import EventBatch
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.engine.terms.texts import parse_term
from oxiseq.engine.window import Window

TRIANGLE = "?x :p ?y . ?y :p ?z . ?z :p ?x"


def steps(body: str, window: int, edges: list[tuple[int, int]]) -> tuple[float, float]:
    """Entries tried, and rows found, per triple once the window is full."""
    terms = TermDictionary()
    query = query_of(body)
    run = WindowRun([query], terms, Window(window, counted=True), ["COME"])
    numbers, ends = np.unique(np.array(edges), return_inverse=True)
    nodes = terms.intern_all(parse_term(f"<http://e/{i}>") for i in numbers)
    p = np.full(len(edges), terms.constant(query.patterns[0].predicate), np.uint32)
    time = np.arange(len(edges))
    events = EventBatch(time, np.arange(len(edges) + 1), nodes[ends[:, 0]], p, nodes[ends[:, 1]])
    run.push(events.slice(0, window))
    before = run.tried
    rows = len(run.push(events.slice(window, len(edges))).new[0])
    measured = len(edges) - window
    return (run.tried - before) / measured, rows / measured


@pytest.mark.parametrize("window", [1_000, 30_000])
def test_hubs_do_not_make_triangles_dear(window: int) -> None:
    """Ten hubs with an end in every edge: a fixed order would walk a hub's edges."""
    dice = random.Random(1)
    edges = []
    for _ in range(window + 2_000):
        hub, other = dice.randrange(10), 10 + dice.randrange(100 * window)
        edges.append((hub, other) if dice.random() < 0.5 else (other, hub))
    tried, rows = steps(TRIANGLE, window, edges)
    assert rows < 0.01
    assert tried <= 4


def test_a_long_chain_that_ends_nowhere_is_not_walked() -> None:
    """All but the last link are there, a hundred times each."""
    body = "?a :p ?b . ?b :p ?c . ?c :q ?d"
    dice = random.Random(2)
    edges = [(dice.randrange(50), dice.randrange(50)) for _ in range(3_000)]
    tried, rows = steps(body, 2_000, edges)
    assert rows == 0
    assert tried <= 3
