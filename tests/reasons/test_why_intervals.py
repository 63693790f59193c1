"""What `why` counts of EP-SPARQL, against plain loops over small random streams."""

from __future__ import annotations

from itertools import product

from hypothesis import given
from hypothesis import strategies as st
from profiles import drawn
from pyoxigraph import Dataset, RdfFormat, parse

import oxiseq
from oxiseq.languages.reasons.report import Reason, Why

E = "http://example.org/"
PREFIX = f"PREFIX : <{E}>\n"
KB = f'<{E}a0> <{E}name> "Ann" <{E}kb> .'
TEXT = PREFIX + "SELECT ?a ?c { { ?a :p ?b } SEQ { ?b :q ?c } FILTER(?c > 2) }"
Triple = tuple[int, str, int, int]
"""Second, p or q, subject, object."""


def graph(triple: Triple) -> str:
    _, kind, s, o = triple
    return f"<{E}a{s}> <{E}p> <{E}b{o}> ." if kind == "p" else f"<{E}b{s}> <{E}q> {o} ."


def explained(triples: list[Triple], text: str = TEXT, **options: object) -> Why:
    streams = {f"{E}s": [(t[0] * 1_000_000, graph(t)) for t in sorted(triples)]}
    return oxiseq.Query(text, "epsparql").why(streams, KB, **options)  # type: ignore[arg-type]


def only(found: Why, kind: str) -> Reason:
    (reason,) = [r for r in found.reasons if r.kind == kind]
    return reason


TRIPLES = st.lists(
    st.tuples(st.integers(0, 6), st.sampled_from("pq"), st.integers(0, 1), st.integers(0, 3)), max_size=8
)


@drawn(25)
@given(TRIPLES)
def test_counts_are_those_of_plain_loops(triples: list[Triple]) -> None:
    found = explained(triples)
    first = {(t, a, b) for t, kind, a, b in triples if kind == "p"}
    second = {(t, b, c) for t, kind, b, c in triples if kind == "q"}
    pairs = [(x, y) for x, y in product(first, second) if x[2] == y[1]]
    rows = {(a, b, c, t, u) for (t, a, b), (u, _, c) in pairs if t < u}
    passed = {row for row in rows if row[2] > 2}
    sizes = [len(first), len(rows), len(passed)]
    reached = next((i for i, size in enumerate(sizes) if not size), 2)
    assert [stage.matches for stage in found.stages] == sizes
    assert found.found == len(passed) and (found.stopped is None) == bool(passed)
    told = {reason.kind: reason.matches for reason in found.reasons}
    if reached == 2:
        assert told.get("filter", 0) == len(rows) - len(passed)
    if reached == 1:
        assert told.get("order", 0) == len({(a, b, c, min(t, u), max(t, u)) for (t, a, b), (u, _, c) in pairs})
        others = {(a, b, d, c, t, u) for (t, a, b), (u, d, c) in product(first, second) if b != d and t < u}
        assert told.get("join", 0) == len(others)
    alone = [step.events for step in found.gpms[1].steps]
    assert alone == [len(first), len(second)]


def test_intervals_of_near_misses_the_shortest_first() -> None:
    day = "http://www.w3.org/2001/XMLSchema#dayTimeDuration"
    text = PREFIX + f'SELECT * {{ {{ ?a :p ?b }} SEQ {{ ?b :q ?c }} FILTER(getDURATION() < "PT2S"^^<{day}>) }}'
    near = only(explained([(1, "p", 0, 0), (9, "q", 0, 1), (4, "q", 0, 2)], text), "filter").nearest
    assert [n.events["row"] for n in near] == [(1_000_000, 4_000_000), (1_000_000, 9_000_000)]


def test_provenance_with_facts() -> None:
    text = PREFIX + "SELECT ?a ?n { { ?a :p ?b } SEQ { ?b :q ?c } GRAPH :kb { ?a :name ?n } }"
    found = explained([(1, "p", 0, 0), (2, "q", 0, 3), (3, "q", 1, 3)], text)
    (match,) = found.matches
    assert [(s.gpm, s.time) for s in match.events] == [("s", 1_000_000), ("s", 2_000_000)]
    assert [str(q.object) for q in match.facts] == ['"Ann"']
    assert len(Dataset(parse(found.to_prov(), RdfFormat.TRIG))) > 5
    missing = explained([(1, "p", 1, 0), (2, "q", 0, 3)], text)
    assert only(missing, "knowledge base").matches == 1
    assert [step.events for step in missing.gpms[1].steps] == [1, 1, 1]


def test_what_may_be_missing_or_has_no_time_stops_nothing() -> None:
    seen = [(2, "q", 0, 3)]
    found = explained(seen, PREFIX + "SELECT * { { ?a :p ?b } OPTIONALSEQ { ?b :q ?c } }")
    assert found.stopped is None
    assert [(s.text, s.matches) for s in found.stages] == [("?b :q ?c", 1), ("OPTIONALSEQ { ?a :p ?b }", 1)]
    kb = f"<{E}b0> <{E}kind> <{E}Thing> ."
    text = PREFIX + "SELECT * { ?b :kind ?k . ?b :q ?c }"
    streams = {f"{E}s": [(t[0], graph(t)) for t in seen]}
    known = oxiseq.Query(text, "epsparql").why(streams, kb)
    assert [s.matches for s in known.stages] == [0, 1] and known.stopped is None
    assert [str(q.object) for q in known.matches[0].facts] == [f"<{E}Thing>"]


def test_rules_tell_what_they_derive() -> None:
    rule = PREFIX + "CONSTRUCT { ?a :r ?c } { { ?a :p ?b } SEQ { ?b :q ?c } }"
    found = explained([(1, "p", 0, 0), (2, "q", 0, 3)], PREFIX + "SELECT * { ?a :r ?c . ?a :missing ?x }", rules=[rule])
    assert [(f.gpm, [s.events for s in f.steps]) for f in found.gpms[1:]] == [
        ("patterns, each alone", [1, 0]),
        ("rules", [1]),
    ]
    assert found.stopped == "?a :missing ?x" and only(found, "pattern").matches == 1


def test_optional_operators_and_intervals_of_events() -> None:
    text = PREFIX + "SELECT * { { ?a :p ?b } EQUALS { ?a :p ?d } UNION { ?b :q ?d } }"
    events = [(1, 3, graph((0, "p", 0, 0))), (2, 3, graph((0, "q", 0, 1)))]
    found = oxiseq.Query(text, "epsparql").why({f"{E}s": events})
    assert found.stopped is None and found.stages[-1].text.startswith("EQUALS")
    assert "no events" not in str(found) and found.found == 1
    assert oxiseq.Query(text, "epsparql").why({f"{E}s": []}).stopped == "?a :p ?b"
