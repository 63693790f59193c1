"""CEQL and the languages of windows over buckets: what has a key, why the rest has none, and that buckets together find
what one engine finds."""

from __future__ import annotations

import random
import sys
from collections import Counter
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import pytest
from bucketed import Buckets, Event, alone, blankless
from ceql_strategies import VOCAB, CeqlOptions, ceql_situations, with_order, with_totals
from hypothesis import assume, given
from hypothesis import strategies as st
from loaded import load
from profiles import drawn

from oxiseq.engine.plan.correlation import Correlation
from oxiseq.grammar import QueryError
from oxiseq.spark.order import Order
from oxiseq.spark.work import Work

sys.path.insert(0, str(Path(__file__).parent.parent / "rsp"))
from rsp_strategies import Setting, continuous, event_queries, kbs, streams

S, T = "http://e/S", "http://e/T"
PREFIX = "PREFIX : <http://e/>\n"


@cache
def work(text: str, language: str, buckets: int, kb: str | None = None, given: tuple[str, ...] = ()) -> Work:
    return Work(Order(text, kb, None, given, buckets, language=language))


def key_of(text: str, language: str) -> Correlation:
    return work(text, language, 1).correlation


def compare(text: str, language: str, events: Sequence[Event], kb: str, seed: int, buckets: int) -> int:
    """How many rows all have found."""
    dice = random.Random(seed)
    at_work = Work(Order(text, kb or None, None, tuple({e[0]: None for e in events}), buckets, language=language))
    bucketed = Buckets(at_work.order, dice, at_work if seed % 4 else None, ordered=True)
    rest, taken = list(events), list[Event]()
    while rest:
        size = dice.randint(1, len(rest))
        batch, rest = rest[:size], rest[size:]
        bucketed.micro_batch(batch, bucketed.watermark)
        taken += [e for e in batch if e[1] >= bucketed.watermark]
        bucketed.watermark = max(bucketed.watermark, max(e[1] for e in batch) - dice.choice([-2, 0, 1, 5]))
    bucketed.micro_batch([], bucketed.watermark, close=True)
    expected = alone(text, taken, kb or None, None, language)
    assert blankless(Counter(bucketed.rows)) == blankless(expected)
    return sum(expected.values())


# --- windows ----------------------------------------------------------------------------------------

WINDOW = f"FROM STREAM <{S}> [RANGE 5 SLIDE 2]"
NAMED = f"FROM NAMED WINDOW :w ON <{S}> [RANGE 5 SLIDE 1]\nFROM NAMED WINDOW :v ON <{T}> [RANGE 3 SLIDE 1]"
MATCHED = f"FROM NAMED <{S}> WIN [RANGE 6 SLIDE 1] AS :w\nFROM NAMED <{T}> WIN [RANGE 9 SLIDE 1] AS :v\n"
MATCHED += "EVENT ON :w { ?k :p ?x OPTIONAL { ?y :q ?z } } AS A\nEVENT ON :v { ?y :r ?k GRAPH :g { ?k :p ?n } } AS B"
KEYED = {
    "a pattern": f"SELECT * {WINDOW} WHERE {{ ?k :p ?x }}",
    "the key hidden": f"SELECT ?x {WINDOW} WHERE {{ ?k :p ?x . ?y :q ?k }}",
    "two windows": f"SELECT * {NAMED} WHERE {{ WINDOW :w {{ ?k :p ?x }} WINDOW :v {{ ?k :q ?y }} }}",
    "every window": f"SELECT ?k ?n {NAMED} WHERE {{ WINDOW ?n {{ ?k :p|^:q ?x }} }}",
    "parts": f"SELECT * {NAMED} WHERE {{ WINDOW :w {{ ?k :p ?x OPTIONAL {{ ?k :q ?y }} MINUS {{ ?k :r 1 }} }} "
    "FILTER NOT EXISTS { WINDOW :v { ?k :q ?x } } GRAPH :g { ?k ?kp ?n } }",
    "branches": f"SELECT ?k ?x {WINDOW} WHERE {{ {{ ?k :p ?x }} UNION {{ ?k :q ?y FILTER EXISTS {{ ?k :r ?z }} }} }}",
    "groups": f"SELECT ?k (COUNT(*) AS ?n) {WINDOW} WHERE {{ ?k :p ?x }} GROUP BY ?k HAVING(COUNT(*) > 1)",
    "a sub-query": f"SELECT * {WINDOW} WHERE {{ ?k :p ?x "
    "{ SELECT ?k (COUNT(?y) AS ?n) { ?k :q ?y } GROUP BY ?k } }",
    "distinct": f"SELECT DISTINCT ?k {WINDOW} WHERE {{ ?k :p ?x . ?k :q ?y }}",
    "graphs": f"CONSTRUCT {{ ?x :of ?k }} {WINDOW} WHERE {{ ?k :p ?x BIND(EXISTS {{ ?k :r ?z }} AS ?e) }}",
    "gone": f"REGISTER DSTREAM <http://e/o> AS SELECT ?k {WINDOW} WHERE {{ ?k :p ?x }}",
    "all": f"REGISTER RSTREAM <http://e/o> AS SELECT ?k {WINDOW} WHERE {{ ?k ?p ?x }} REPORT ON WINDOW CLOSE",
    "every 3": f"SELECT ?k {WINDOW} WHERE {{ ?k :p ?x FILTER NOT EXISTS {{ ?k :r ?z }} }} REPORT EVERY 3",
    "gone by 2": f"REGISTER DSTREAM <http://e/o> AS SELECT ?k {WINDOW} WHERE {{ ?k :p ?x }} REPORT EVERY 2",
    "events": f"SELECT * FROM STREAM <{S}> [RANGE 3 EVENTS SLIDE 2 EVENTS] WHERE {{ ?k :p ?x . ?k :q ?y }}",
    "knowledge": f"SELECT * {WINDOW} WHERE {{ GRAPH :g {{ ?k :p ?x }} OPTIONAL {{ ?k :q ?y }} }}",
}
MATCHES = {
    "a match": f"SELECT * {MATCHED} WHERE {{ MATCH {{ A SEQ B }} }}",
    "chosen": f"SELECT ?x {MATCHED} WHERE {{ MATCH {{ A SEQ^r B }} WINDOW :w {{ ?k :p ?u }} }}",
    "first of pairs": f"SELECT ?k ?x {MATCHED} WHERE {{ MATCH {{ A SEQ^c (A SEQ^c B) }} }} REPORT ON WINDOW CLOSE",
}
REFUSED = {
    f"SELECT * {WINDOW} WHERE {{ ?k :p ?x . ?z :q ?y }}": ("may be of another value of ?k", "?z :q ?y"),
    f"SELECT * {WINDOW} WHERE {{ ?k :p+ ?x }}": ("a path goes through triples of other values", "?k :p+ ?x"),
    f"SELECT * {WINDOW} WHERE {{ ?k :p ?x }} LIMIT 3": ("LIMIT and OFFSET count the rows", "LIMIT 3"),
    f"SELECT * {WINDOW} WHERE {{ ?k :p ?x }} ORDER BY ?k": ("ORDER BY sorts the rows", "ORDER BY"),
    f"ASK {WINDOW} WHERE {{ ?k :p ?x }}": ("ASK has one answer", "ASK"),
    f"SELECT (COUNT(*) AS ?n) {WINDOW} WHERE {{ ?k :p ?x }}": ("groups run over all values", "SELECT"),
    f"SELECT ?x (COUNT(*) AS ?n) {WINDOW} WHERE {{ ?k :p ?x . ?k :q ?y }} GROUP BY ?x": (
        "GROUP BY does not",
        "GROUP BY",
    ),
    f"SELECT (COUNT(*) AS ?n) {WINDOW} WHERE {{ ?k :p 1 }} GROUP BY ?k": ("compare rows that do not show ?k", "SELECT"),
    f"SELECT DISTINCT ?x {WINDOW} WHERE {{ ?k :p ?x . ?k :q ?y }}": ("compare rows that do not show ?k", "SELECT"),
    f"CONSTRUCT {{ :a :b ?x }} {WINDOW} WHERE {{ ?k :p ?x . ?k :q ?y }}": ("do not show ?k", "CONSTRUCT"),
    f"SELECT * {WINDOW} WHERE {{ ?k :p ?x OPTIONAL {{ ?y :q ?z }} }}": ("of another value of ?k", "?y :q ?z }"),
    f"SELECT * {WINDOW} WHERE {{ GRAPH :g {{ ?y :p ?n }} OPTIONAL {{ ?k :q ?x }} }}": ("of another value", "?k :q"),
    f"SELECT * {WINDOW} WHERE {{ ?k :p ?x {{ SELECT ?k {{ ?k :q ?y }} LIMIT 1 }} }}": (
        "LIMIT and OFFSET",
        "SELECT ?k {",
    ),
    f"SELECT * {WINDOW} WHERE {{ ?k :p ?x FILTER NOT EXISTS {{ ?z :q ?y }} }}": ("of another value of ?k", "?z :q"),
    f"SELECT * {WINDOW} WHERE {{ GRAPH :g {{ ?k :p ?x }} }}": ("none of its patterns is on a window", "{ GRAPH"),
    f"SELECT * {MATCHED} WHERE {{ MATCH {{ LAST(A) SEQ B }} }}": ("LAST chooses among the events", "LAST(A)"),
    f"SELECT * {MATCHED} WHERE {{ MATCH {{ A SEQ^n B }} }}": ("SEQ^n chooses", "A SEQ^n B"),
    f"SELECT * {MATCHED.replace('EVENT ON :w', 'FIRST ON :w')} WHERE {{ MATCH {{ A SEQ B }} }}": ("FIRST ON", "FIRST"),
    f"SELECT * {MATCHED.replace('?y :r ?k', '?y :r ?z')} WHERE {{ MATCH {{ A SEQ B }} }}": ("another value", "EVENT"),
    f"SELECT * {MATCHED} WHERE {{ MATCH {{ A SEQ B }} }} CONSUME RECENT": ("CONSUME uses up events", "CONSUME RECENT"),
}


def language_of(text: str) -> str:
    return "rsepql" if " WIN " in text else "rspql"


@pytest.mark.parametrize("text", [*KEYED.values(), *MATCHES.values()])
def test_these_have_a_key(text: str) -> None:
    found = key_of(PREFIX + text, language_of(text))
    assert [v.value for v in found.by] == ["k"], found.reason
    assert found.instants
    assert found.text() == "partitioned by ?k; every partition reads the times of all events"


@pytest.mark.parametrize(("text", "why"), REFUSED.items())
def test_these_have_none_and_it_is_said_where(text: str, why: tuple[str, str]) -> None:
    found = key_of(PREFIX + text, language_of(text))
    assert not found.by
    assert why[0] in found.reason
    assert found.span is not None
    assert (PREFIX + text)[found.span.start :].startswith(why[1])


@drawn(60)
@given(st.sampled_from([*KEYED.values(), *MATCHES.values()]), streams(blank=True), kbs(), st.integers(0, 1 << 40))
def test_windows_over_buckets(text: str, given_: dict[str, list[tuple[int, str]]], kb: str, seed: int) -> None:
    compare(PREFIX + text, language_of(text), events_of(given_, text, seed), kb, seed, 2 + seed % 2)


def events_of(given_: dict[str, list[tuple[int, str]]], text: str, seed: int) -> list[Event]:
    """Somewhat out of order."""
    dice = random.Random(seed)
    events = [(iri, *event) for iri, events in given_.items() if f"<{iri}>" in text for event in events]
    return sorted(events, key=lambda e: e[1] + dice.choice([0, 0, 0, 2]))


@drawn(40)
@given(st.one_of(continuous(), event_queries()), st.integers(0, 1 << 40))
def test_any_query_that_has_a_key(setting: Setting, seed: int) -> None:
    """What is accepted is right."""
    try:
        load(setting.text, setting.language)
    except QueryError:
        assume(False)
    assume(key_of(setting.text, setting.language).by)
    events = events_of(setting.streams, setting.text, seed)
    compare(setting.text, setting.language, events, setting.kb, seed, 2 + seed % 2)


# --- CEQL -------------------------------------------------------------------------------------------


@drawn(60)
@given(ceql_situations(CeqlOptions(falling_clocks=False, most=14)), st.integers(0, 1 << 40))
def test_partitions_of_complex_events_over_buckets(situation: object, seed: int) -> None:
    dice = random.Random(seed)
    if "LIMIT" not in situation.text and dice.random() < 0.5:
        situation = dice.choice([with_totals, with_order])(situation, seed)
    text = situation.text.replace("CONSUME BY ANY", "CONSUME BY PARTITION")
    if "PARTITION BY" not in text:
        lines = text.split("\n")
        place = next((i for i, line in enumerate(lines) if line.startswith(("WITHIN", "CONSUME", "LIMIT"))), len(lines))
        text = "\n".join([*lines[:place], f"PARTITION BY {dice.choice(['[k]', '[v]', '[k], [w]'])}", *lines[place:]])
    try:
        load(text, "ceql")
    except QueryError:
        assume(False)
    events = [(f"{VOCAB}{e.stream}", e.time, e.graph) for e in situation.events]
    compare(text, "ceql", events, "", seed, 2 + seed % 2)
