"""What `why` counts of queries over windows, against plain loops over small random streams."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st
from profiles import drawn
from pyoxigraph import Dataset, NamedNode, RdfFormat, parse

import oxiseq
from oxiseq.languages.reasons.report import Reason, Why

E = "http://example.org/"
RANGE = 3
KB = f'<{E}a0> <{E}name> "Ann" <{E}kb> .\n<{E}a2> <{E}name> "Bob" <{E}kb> .'
PREFIX = f"PREFIX : <{E}>\n"
TEXT = f"""{PREFIX}SELECT ?a ?c ?n FROM NAMED WINDOW :w ON :s [RANGE {RANGE} STEP 1]
WHERE {{ WINDOW :w {{ ?a :p ?b . ?b :q ?c FILTER(?c > 2) }} GRAPH :kb {{ ?a :name ?n }} }}"""


class P(NamedTuple):
    a: int
    b: int
    kind: str = "p"


class Q(NamedTuple):
    b: int
    c: int
    kind: str = "q"


class Event(NamedTuple):
    time: int
    triples: tuple[P | Q, ...]

    @property
    def graph(self) -> str:
        return "".join(
            f"<{E}a{t.a}> <{E}p> <{E}b{t.b}> ." if isinstance(t, P) else f"<{E}b{t.b}> <{E}q> {t.c} ."
            for t in self.triples
        )


class Rows(NamedTuple):
    """Of the four parts of WHERE, sets of bindings."""

    p: set[tuple[int, ...]]
    joined: set[tuple[int, ...]]
    passed: set[tuple[int, ...]]
    named: set[tuple[int, ...]]


NAMES = {0, 2}


def rows_of(triples: set[P | Q]) -> Rows:
    p = {t for t in triples if isinstance(t, P)}
    joined = {(x.a, x.b, y.c) for x, y in product(p, triples) if isinstance(y, Q) and x.b == y.b}
    passed = {row for row in joined if row[2] > 2}
    return Rows({(t.a, t.b) for t in p}, joined, passed, {row for row in passed if row[0] in NAMES})


def content(events: Sequence[Event], at: int, size: int) -> set[P | Q]:
    return {t for e in events for t in e.triples if at - size < e.time <= at}


def spaced(drawn: list[tuple[int, tuple[P | Q, ...]]]) -> list[Event]:
    time, events = 10, []
    for gap, triples in drawn:
        time += gap
        events.append(Event(time, triples))
    return events


TRIPLES = st.one_of(
    st.builds(P, st.integers(0, 2), st.integers(0, 1), st.just("p")),
    st.builds(Q, st.integers(0, 1), st.integers(0, 4), st.just("q")),
)
EVENTS = st.lists(
    st.tuples(st.integers(1, 2), st.lists(TRIPLES, min_size=1, max_size=2).map(tuple)), min_size=1, max_size=7
).map(spaced)


def explained(events: Sequence[Event], text: str = TEXT, language: str = "rspql", **options: object) -> Why:
    streams = {f"{E}s": [(e.time, e.graph) for e in events]}
    return oxiseq.Query(text, language).why(streams, KB, **options)  # type: ignore[arg-type]


@drawn(15)
@given(EVENTS)
def test_counts_are_those_of_plain_loops(events: list[Event]) -> None:
    found = explained(events)
    at = {e.time: rows_of(content(events, e.time, RANGE)) for e in events}

    def score(time: int) -> tuple[object, ...]:
        sizes = [len(each) for each in at[time]]
        length = next((i for i, size in enumerate(sizes) if not size), 4)
        return length == 4, length, 0 if length in (0, 4) else sizes[length - 1], time

    assert found.at == max(at, key=score)
    rows = at[found.at]
    assert [s.matches for s in found.stages] == [*map(len, rows), len(rows.named)]
    stopped = next((i for i, each in enumerate(rows) if not each), None)
    assert found.stopped == (None if stopped is None else found.stages[stopped].text)
    window, kb = found.gpms
    held = content(events, found.at, RANGE)
    assert window.saw == sum(found.at - RANGE < e.time <= found.at for e in events)
    assert [s.events for s in window.steps] == [len(held), len(rows.p), len(held) - len(rows.p)]
    assert [s.events for s in kb.steps] == [2]
    told = {reason.kind: reason.matches for reason in found.reasons}
    assert told == {kind: number for kind, number in expected(events, found.at, rows, stopped) if number}
    answers = oxiseq.run(TEXT, {f"{E}s": [(e.time, e.graph) for e in events]}, KB, language="rspql")
    assert found.found == len(answers)


def expected(events: Sequence[Event], at: int, rows: Rows, stopped: int | None) -> Iterator[tuple[str, int]]:
    """How many more rows there would be, by kind of condition."""
    ever = rows_of(content(events, at, 10**6))
    if stopped == 0:
        yield "window", len(ever.p)
    elif stopped == 1:
        others = {(p, q) for p in rows.p for q in content(events, at, RANGE) if isinstance(q, Q) and q.b != p[1]}
        yield from (("join", len(others)), ("pattern", len(rows.p)), ("window", len(ever.joined)))
    elif stopped == 2:
        yield "filter", len(rows.joined)
    else:
        yield "join", sum(name != row[0] for row in rows.passed for name in NAMES)
        yield "knowledge base", len(rows.passed) - len(rows.named)


def seen(*events: tuple[int, tuple[P | Q, ...]]) -> list[Event]:
    return [Event(*e) for e in events]


def only(found: Why, kind: str) -> Reason:
    (reason,) = [r for r in found.reasons if r.kind == kind]
    return reason


def test_nearest_misses_have_values_and_events() -> None:
    found = explained(seen((11, (P(0, 0), Q(0, -5))), (12, (Q(0, 2), Q(0, 0)))))
    near = only(found, "filter").nearest
    assert [n.values["c"].value for n in near if n.values["c"] is not None] == ["2", "0", "-5"]
    assert near[0].events == {"w": (11, 12)}
    late = explained(seen((11, (P(0, 0),)), (19, (Q(0, 4),))), evaluation_times=[19])
    assert late.stopped == "WINDOW :w { ?a :p ?b }"
    assert only(late, "window").nearest[0].events == {"w": (11,)}
    nobody = only(explained(seen((11, (P(1, 0), Q(0, 4))))), "knowledge base")
    assert nobody.nearest[0].values == {"a": NamedNode(f"{E}a1")}
    text = TEXT.replace("?b :q ?c", "?b :q 3").replace("FILTER(?c > 2)", "")
    constant = only(explained(seen((11, (P(0, 0), Q(0, 4)))), text), "constant")
    assert (constant.condition, str(constant.nearest[0].values["object"])[1:2]) == ("3", "4")


def test_answers_tell_their_events_and_facts() -> None:
    found = explained(seen((11, (P(0, 0),)), (12, (Q(0, 4), Q(1, 4)))))
    (match,) = found.matches
    assert [(s.gpm, s.time, len(s.graph)) for s in match.events] == [("w", 11, 1), ("w", 12, 2)]
    assert [str(q.object) for q in match.facts] == ['"Ann"']
    assert str(match.bindings["n"]) == '"Ann"'
    quads = Dataset(parse(found.to_prov(), RdfFormat.TRIG))
    assert sum(q.predicate.value.endswith("wasDerivedFrom") for q in quads) == 3


def test_aggregates_rest_on_all_their_rows() -> None:
    text = f"""{PREFIX}SELECT ?b (COUNT(*) AS ?n) FROM STREAM :s [RANGE 9 SLIDE 1]
        WHERE {{ ?b :q ?c }} GROUP BY ?b HAVING(COUNT(*) > LEAST)"""
    events = seen((11, (Q(0, 1),)), (12, (Q(0, 2),)), (13, (Q(1, 2),)))
    found = explained(events, text.replace("LEAST", "1"), "spectra")
    assert [s.time for s in found.matches[0].events] == [11, 12]
    none = explained(events, text.replace("LEAST", "2"), "spectra")
    assert none.stopped == "the answer, after GROUP BY and HAVING" and none.stages[0].matches == 3


def test_event_patterns_part_by_part() -> None:
    text = f"""{PREFIX}SELECT * FROM NAMED :s WIN [RANGE 9 SLIDE 1] AS :w
        EVENT ON :w {{ ?a :p ?b }} AS E1 EVENT ON :w {{ ?b :q ?c }} AS E2
        WHERE {{ MATCH {{ E1 SEQ E2 }} GRAPH :kb {{ ?a :name ?n }} }}"""
    against = explained(seen((11, (Q(0, 1),)), (12, (P(0, 0),))), text, "rsepql")
    assert [(s.text, s.matches) for s in against.stages[:2]] == [("MATCH { E1 }", 1), ("MATCH { E1 SEQ E2 }", 0)]
    assert only(against, "order").nearest[0].events == {"E1": (12,), "E2": (11,)}
    found = explained(seen((11, (P(0, 0),)), (12, (Q(0, 1),))), text, "rsepql")
    assert [(s.gpm, s.time) for s in found.matches[0].events] == [("E1", 11), ("E2", 12)]
    assert [step.text for step in found.gpms[1].steps] == ["mapping of E1", "mapping of E2"]


def test_consumption_is_told() -> None:
    text = f"""{PREFIX}SELECT * FROM NAMED :s WIN [RANGE 9 SLIDE 1] AS :w
        EVENT ON :w {{ ?a :p ?b }} AS E1 EVENT ON :w {{ ?b :q ?c }} AS E2 WHERE {{ MATCH {{ E1 SEQ E2 }} }}"""
    events = seen((11, (P(0, 0),)), (12, (Q(0, 1),)), (13, (Q(0, 2),)))
    loose = explained(events, text, "rsepql").found
    found = explained(events, text, "rsepql", consumption="CHRONOLOGICAL")
    assert only(found, "consumption").matches == loose - found.found > 0


@pytest.mark.parametrize(
    "where",
    [
        "?a :p ?b OPTIONAL { ?b :q ?c } FILTER(BOUND(?c) && ?c > 3 || NOT EXISTS { ?a :r ?b })",
        "{ ?a :p ?b } UNION { ?b :q ?a } MINUS { ?a :p :b0 }",
        "?a :p/:q ?c BIND(?c + 1 AS ?d) VALUES ?c { 4 }",
        "{ SELECT ?b (COUNT(*) AS ?n) { ?a :p ?b } GROUP BY ?b } ?b :q ?n",
    ],
)
def test_any_where_can_be_told_of(where: str) -> None:
    text = f"{PREFIX}SELECT * FROM STREAM :s [RANGE 9 SLIDE 1] WHERE {{ {where} }}"
    found = explained(seen((11, (P(0, 0),)), (12, (Q(0, 1), P(1, 1)))), text, "spectra")
    assert found.stages[-1].matches == len(found.matches) or found.stages[-1].matches > 3
    assert "WHERE, part by part, at 1970" in str(found) and found.to_json()["language"] == "spectra"


def test_nothing_has_come() -> None:
    found = explained([])
    assert found.at is None and found.stopped == "WINDOW :w { ?a :p ?b }"
    assert "no events" in str(found)


def test_periods_and_spans() -> None:
    text = TEXT.replace("STEP 1", "STEP 2")
    assert explained(seen((11, (P(0, 0), Q(0, 4)))), text.replace("SELECT", "REGISTER RSTREAM :o AS SELECT")).at == 11
    found = explained(seen((11, (P(0, 0),)), (12, (Q(0, 4),))), since=12)
    assert found.gpms[0].saw == 1 and found.stopped == "WINDOW :w { ?a :p ?b }"


def test_what_comes_later_is_not_looked_at() -> None:
    found = explained(seen((11, (P(0, 0),)), (19, (Q(0, 4),)), (25, (P(0, 0),))), evaluation_times=[19])
    assert only(found, "window").nearest[0].events == {"w": (11,)}
