"""What `why` counts, against plain loops over small random streams."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import NamedTuple
from unittest.mock import patch
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st
from profiles import drawn
from pyoxigraph import Dataset, RdfFormat, parse

import oxiseq
from oxiseq.languages.reasons import read as working
from oxiseq.languages.reasons.report import Near, Why

EX = "http://example.org/"
WINDOW = 4
KB = "".join(f'<{EX}k{k}> <{EX}name> "n{k}" <{EX}kb> .\n' for k in (0, 1))


class Event(NamedTuple):
    """At second `time`: an event of a kind with a key and a value."""

    time: int
    kind: str
    key: int
    value: int

    @property
    def graph(self) -> str:
        node = f"<{EX}e{self.time}>"
        return f"{node} <{EX}kind> <{EX}{self.kind}> . {node} <{EX}k> <{EX}k{self.key}> . {node} <{EX}v> {self.value} ."


def text(op: str, negation: bool) -> str:
    seq = f"A{op} N!{op} B" if negation else f"A{op} B"
    return f"""
PREFIX : <{EX}>
SELECT ?a ?b WITHIN {WINDOW} SECONDS SLIDING
FROM STREAM S <{EX}s>
WHERE {{
  SEQ({seq})
  DEFINE GPM A ON S {{ ?a :kind :a . ?a :k ?k . ?a :v ?va FILTER(?va > 1 && ?va < 5)
                       GRAPH :kb {{ ?k :name ?name }} }}
  DEFINE GPM B ON S {{ ?b :kind :b . ?b :k ?k . ?b :v ?vb FILTER(?vb > 0) FILTER(?vb > ?va) }}
  DEFINE GPM N ON S {{ ?n :kind :n . ?n :k ?k }}
}}"""


def pairs(events: list[Event], op: str, negation: bool, dropped: str) -> int:
    """Matches of the query without one condition."""
    firsts = [e for e in events if e.kind == "a" and 1 < e.value < 5 and e.key in (0, 1)]

    def follows(a: Event, b: Event) -> bool:
        return (
            b.kind == "b"
            and b.time > a.time
            and (b.value > 0 or dropped == "own")
            and (b.value > a.value or dropped == "left")
            and (b.key == a.key or dropped == "join")
        )

    def stands(a: Event, b: Event) -> bool:
        between = [e for e in events if a.time < e.time < b.time]
        if not follows(a, b) or (b.time - a.time > WINDOW and dropped != "window"):
            return False
        if dropped != "contiguity" and ((op == "," and between) or (op == ";" and any(follows(a, e) for e in between))):
            return False
        return not negation or dropped == "negation" or all(e.kind != "n" or e.key != a.key for e in between)

    return sum(stands(a, b) for a, b in product(firsts, events))


EVENTS = st.lists(
    st.tuples(st.integers(1, 3), st.sampled_from("abn"), st.integers(0, 2), st.integers(0, 6)), max_size=14
)


def spaced(drawn: list[tuple[int, str, int, int]]) -> list[Event]:
    time, events = 0, []
    for gap, *rest in drawn:
        time += gap
        events.append(Event(time, *rest))  # type: ignore[arg-type]
    return events


def explained(events: list[Event], op: str, negation: bool) -> Why:
    return oxiseq.Query(text(op, negation)).why({"S": [(e.time * 1_000_000, e.graph) for e in events]}, KB)


@drawn(40)
@given(EVENTS, st.sampled_from([",", ";", ":"]), st.booleans(), st.sampled_from([2, working.STEP]))
def test_counts_are_those_of_plain_loops(
    drawn: list[tuple[int, str, int, int]], op: str, negation: bool, step: int
) -> None:
    events = spaced(drawn)
    with patch.object(working, "STEP", step):
        found = explained(events, op, negation)
    kept: list[Callable[[Event], bool]] = [
        lambda e: e.kind == "a",
        lambda e: True,
        lambda e: e.value > 1,
        lambda e: e.value < 5,
        lambda e: e.key < 2,
    ]
    left, steps = events, []
    for keep in kept:
        left = [e for e in left if keep(e)]
        steps.append(len(left))
    funnel = found.gpms[0]
    assert funnel.saw == len(events)
    assert [step.events for step in funnel.steps] == (steps if events else [])
    assert found.stages[0].matches == len(left)
    strict = pairs(events, op, negation, "")
    assert found.found == (strict if left else 0)
    if not left:
        return
    assert found.stages[-1].matches == strict
    assert (found.stopped is None) == bool(strict)
    told = {
        (r.kind, "left" if "?va" in r.condition else "own" if r.kind == "filter" else r.kind): r.matches
        for r in found.reasons
    }
    kinds = {
        "window": "window",
        "contiguity": "contiguity",
        "negation": "negation",
        "own": "filter",
        "left": "filter",
        "join": "join",
    }
    if op != ";":  # else what is left out also changes which event is the next
        for dropped, kind in kinds.items():
            possible = (dropped != "negation" or negation) and (dropped != "contiguity" or op == ",")
            more = pairs(events, op, negation, dropped) - strict if possible else 0
            assert told.get((kind, dropped if kind == "filter" else kind), 0) == more, dropped
    elif not strict:
        for dropped, kind in kinds.items():
            if dropped != "negation" or negation:
                expected = pairs(events, op, negation, dropped)
                assert told.get((kind, dropped if kind == "filter" else kind), 0) == expected, dropped


def seen(*events: tuple[int, str, int, int]) -> list[Event]:
    return [Event(*e) for e in events]


def only(found: Why, kind: str) -> Near:
    (reason,) = [r for r in found.reasons if r.kind == kind]
    return reason.nearest[0]


def test_nearest_misses_say_what_is_against_them() -> None:
    found = explained(seen((0, "a", 0, 2), (1, "n", 0, 0), (2, "b", 0, 4)), ";", True)
    assert found.stopped is not None and len(found.reasons) == 1
    near = only(found, "negation")
    assert near.events == {"A": (0,), "B": (2_000_000,)} and "1970-01-01T00:00:01Z" in near.words
    near = only(explained(seen((0, "a", 0, 2), (1, "b", 0, 1)), ";", False), "filter")
    assert {name: t.value for name, t in near.values.items() if t} == {"va": "2", "vb": "1"}
    near = only(explained(seen((0, "a", 0, 2), (9, "b", 0, 4)), ";", False), "window")
    assert near.words == "spans 9 s, limit 4 s"
    near = only(explained(seen((0, "a", 0, 2), (1, "n", 1, 0), (2, "b", 0, 4)), ",", False), "contiguity")
    assert near.words == "one instant comes before, 1970-01-01T00:00:01Z"
    near = only(explained(seen((0, "a", 0, 2), (1, "b", 1, 4)), ";", False), "join")
    assert sorted(str(t) for t in near.values.values()) == [f"<{EX}k0>", f"<{EX}k1>"]


def test_closer_values_come_before_shorter_matches() -> None:
    found = explained(seen((0, "a", 0, 4), (1, "b", 0, 1), (3, "b", 0, 4)), ":", False)
    (reason,) = [r for r in found.reasons if r.kind == "filter"]
    assert [near.events["B"] for near in reason.nearest] == [(3_000_000,), (1_000_000,)]


def test_events_that_a_filter_stops_are_told_by_closeness() -> None:
    found = explained(seen((0, "a", 0, 9), (1, "a", 0, 2), (2, "a", 0, 6), (3, "a", 0, 7), (4, "a", 0, 5)), ";", False)
    steps = {step.text: step for step in found.gpms[0].steps}
    assert [miss.time for miss in steps["?va < 5"].misses] == [4_000_000, 2_000_000, 3_000_000]


def test_the_knowledge_base_can_be_what_is_lacking() -> None:
    found = explained(seen((0, "a", 2, 2), (1, "b", 2, 4)), ";", False)
    assert found.stopped == "A"
    assert [(r.kind, r.matches) for r in found.reasons] == [("knowledge base", 1)]
    step = found.gpms[0].steps[-1]
    assert (step.kind, step.events) == ("kb", 0) and str(step.misses[0].values["k"]) == f"<{EX}k2>"


def test_a_range_leaves_out_all_else() -> None:
    events = [(e.time * 1_000_000, e.graph) for e in seen((0, "a", 0, 2), (1, "b", 0, 4), (3, "a", 0, 3))]
    found = oxiseq.Query(text(";", False)).why({"S": events}, KB, since=1_000_000, until=3_000_000)
    assert found.gpms[0].saw == 1 and found.found == 0 and found.stages[0].matches == 0


def test_late_events_are_not_seen() -> None:
    events = [(e.time * 1_000_000, e.graph) for e in seen((1, "b", 0, 4), (0, "a", 0, 2))]
    assert oxiseq.Query(text(";", False)).why({"S": iter(events)}, KB).late == 1
    found = oxiseq.Query(text(";", False)).why({"S": iter(events)}, KB, lateness="1s")
    assert found.late == 0 and found.found == 1


def test_facts_of_patterns_with_blank_nodes() -> None:
    nested = text(";", False).replace("?k :name ?name }", "?k :name ?name ; :in [ :name ?town ] }")
    kb = f'{KB}<{EX}k0> <{EX}in> _:t <{EX}kb> .\n_:t <{EX}name> "Ulm" <{EX}kb> .\n'
    events = seen((0, "a", 0, 2), (1, "b", 0, 4))
    (match,) = oxiseq.Query(nested).why({"S": [(e.time * 1_000_000, e.graph) for e in events]}, kb).matches
    said = [(fact.predicate.value.removeprefix(EX), str(fact.object)) for fact in match.facts]
    assert ("name", '"n0"') in said and ("name", '"Ulm"') in said
    (town,) = [fact.object for fact in match.facts if fact.predicate.value == f"{EX}in"]
    assert [fact.object.value for fact in match.facts if fact.subject == town] == ["Ulm"]


def test_provenance_as_prov_o() -> None:
    found = explained(seen((0, "a", 0, 2), (1, "b", 0, 4)), ";", False)
    (match,) = found.matches
    assert [(s.gpm, s.time) for s in match.events] == [("A", 0), ("B", 1_000_000)]
    assert [str(q.object) for q in match.facts] == ['"n0"']
    quads = Dataset(parse(found.to_prov(), RdfFormat.TRIG))
    derived = [q for q in quads if q.predicate.value.endswith("wasDerivedFrom")]
    assert len(derived) == 3  # two events and the knowledge base's graph
    assert sum(q.predicate.value == f"{EX}v" for q in quads) == 2


def test_a_trailing_negation_has_seen_something() -> None:
    same = [(e.time * 1_000_000, e.graph) for e in seen((0, "a", 0, 2), (2, "n", 0, 0))]
    found = oxiseq.Query(text(";", False).replace("?a ?b", "?a").replace("A; B", "A; N!")).why({"S": same}, KB)
    assert found.stopped == "A; N!" and [r.kind for r in found.reasons] == ["negation"]
    assert "00:00:02Z" in found.reasons[0].nearest[0].words


def test_it_is_of_the_api() -> None:
    found = explained(seen((0, "a", 0, 2)), ";", False)
    assert "A; B: 0 matches" in str(found)
    shown = ElementTree.fromstring(found._repr_html_())
    assert shown.findtext("p/b") == "0 matches"
    assert [row[2].findtext("code") for row in shown.findall("table")[1].findall("tr")] == ["A", "A; B"]
    assert "leaving out a single condition would not change that" in "".join(shown.itertext())
    assert found.to_json()["stages"][0] == {"text": "A", "matches": 1, "more": False}


BOUNDED = f"""
PREFIX : <{EX}>
SELECT ?a FROM STREAM S <{EX}s>
WHERE {{
  SEQ(A; B WITHIN 3 SECONDS; N! WITHIN 2 SECONDS)
  DEFINE GPM A ON S {{ ?a :kind :a }}
  DEFINE GPM B ON S {{ ?b :kind :b }}
  DEFINE GPM N ON S {{ ?n :kind :n }}
}}"""


def of_bounds(*events: tuple[int, str]) -> Why:
    given = [Event(time, kind, 0, 0) for time, kind in events]
    return oxiseq.Query(BOUNDED).why({f"{EX}s": [(e.time * 1_000_000, e.graph) for e in given]})


def test_a_bound_of_a_gap_is_a_reason() -> None:
    near = only(of_bounds((0, "a"), (5, "b")), "bound")
    assert near.words == "5 s after the event before"


def test_a_bounded_negation_is_a_reason_with_what_it_saw() -> None:
    near = only(of_bounds((0, "a"), (1, "b"), (3, "n"), (9, "n")), "negation")
    assert near.words == "there is one at 1970-01-01T00:00:03Z"


def test_a_match_with_bounds_is_found() -> None:
    found = of_bounds((0, "a"), (1, "b"), (4, "n"))
    assert found.stopped is None and found.found


CLAUSES = ["SELECT LAST", "SELECT NEXT", "SELECT MAX", "CONSUME BY ANY", "LIMIT 1", "SAMPLE 2"]


def clause_query(clause: str) -> str:
    """Every later B for an A: what a clause leaves out of several that end at once, or begin before."""
    select, consume, tail = "SELECT", "", ""
    if clause.startswith("SELECT"):
        select = clause
    elif clause.startswith("CONSUME"):
        consume = clause
    else:
        tail = clause
    return f"""PREFIX : <{EX}>
{select} ?va ?vb {consume}
FROM STREAM S <{EX}s>
WHERE {{
  SEQ(A : B)
  DEFINE GPM A ON S {{ ?a :kind :a ; :v ?va }}
  DEFINE GPM B ON S {{ ?b :kind :b ; :v ?vb }}
}} {tail}"""


@drawn(12)
@given(EVENTS, st.sampled_from(CLAUSES))
def test_what_a_clause_leaves_out(drawn: list[tuple[int, str, int, int]], clause: str) -> None:
    """As many as the query finds more without it; nothing else is left out where the query has matches."""
    given_events = [(e.time * 1_000_000, e.graph) for e in spaced(drawn)]
    run = [len(list(oxiseq.run(clause_query(each), {"S": given_events}))) for each in (clause, "")]
    found = oxiseq.Query(clause_query(clause)).why({"S": given_events})
    told = {reason.condition: reason.matches for reason in found.reasons if reason.kind in KINDS_OF_CLAUSES}
    assert found.found == (run[0] if run[1] else 0)
    assert told == ({clause: run[1] - run[0]} if run[1] > run[0] else {})


KINDS_OF_CLAUSES = {"strategy", "consumption", "limit", "sample"}


def test_what_only_the_kb_binds_may_be_asked_for_anywhere() -> None:
    """By PREV, by an aggregate over iterations, behind the sequence: all of it goes with the knowledge base."""
    query = f"""
PREFIX : <{EX}>
SELECT ?k WITHIN {WINDOW} SECONDS SLIDING FROM STREAM S <{EX}s>
WHERE {{
  SEQ(A;+)
  FILTER(SUM(?fact) > 1)
  DEFINE GPM A ON S {{ ?a :k ?k FILTER(?fact > PREV(?fact)) GRAPH :none {{ ?k :fact ?fact }} }}
}}"""
    found = oxiseq.Query(query).why({"S": [(0, Event(0, "a", 0, 1).graph)]}, KB)
    assert [reason.kind for reason in found.reasons] == ["knowledge base"]


def test_patterns_are_counted_whatever_the_partition_is() -> None:
    """A triple pattern by itself need not bind the partition's variable."""
    query = text(";", False).replace("WITHIN", "PARTITION BY ?k WITHIN", 1).replace("SELECT ?a ?b", "SELECT ?a ?b ?k")
    events = [(e.time * 1_000_000, e.graph) for e in seen((0, "a", 0, 2), (1, "b", 0, 4), (2, "n", 0, 0))]
    found = oxiseq.Query(query).why({"S": events}, KB)
    assert [[step.events for step in funnel.steps] for funnel in found.gpms[:2]] == [[1, 1, 1, 1, 1], [1, 1, 1]]
    assert found.found == 1


UNTIL = f"""
PREFIX : <{EX}>
SELECT * FROM STREAM S <{EX}s>
WHERE {{
  SEQ(A; B;+; C) UNTIL N | M
  DEFINE GPM A ON S {{ ?a :kind :a }}
  DEFINE GPM B ON S {{ ?b :kind :b }}
  DEFINE GPM C ON S {{ ?c :kind :c }}
  DEFINE GPM N ON S {{ ?n :kind :n FILTER(EVENTTIME() > TIMEOF(A)) }}
  DEFINE GPM M ON S {{ ?m :kind :m FILTER(COUNT(B) > 1) }}
}}"""


@pytest.mark.parametrize(
    ("kinds", "stopped", "seen"),
    [
        ("anbc", "A; B;+", [1]),
        ("abnbc", "A; B;+; C", [2]),
        ("abbncn", "A; B;+; C", [3]),
        ("ambbmc", None, [4]),  # b2 b3; m1 ends nothing before there is a B, nor m4 the run of b2 alone
        ("anbnc", "A; B;+", [1]),
    ],
)
def test_until_is_a_reason_with_what_it_saw(kinds: str, stopped: str | None, seen: list[int]) -> None:
    """Before a step, between iterations and behind them; not where its FILTER reads what is not bound yet."""
    given = [Event(time, kind, 0, 0) for time, kind in enumerate(kinds)]
    found = oxiseq.Query(UNTIL).why({f"{EX}s": [(e.time * 1_000_000, e.graph) for e in given]})
    assert found.stopped == stopped
    (reason,) = (each for each in found.reasons if each.kind == "negation")
    assert reason.condition == "UNTIL N | M"
    times = ", ".join(f"1970-01-01T00:00:0{time}Z" for time in seen)
    assert {each.words for each in reason.nearest} == {f"there is one at {times}"}


def test_what_until_leaves_out_of_several_matches() -> None:
    given = [Event(time, kind, 0, 0) for time, kind in enumerate("abcabnc")]
    found = oxiseq.Query(UNTIL).why({f"{EX}s": [(e.time * 1_000_000, e.graph) for e in given]})
    assert found.stopped is None and found.found == 1
    (reason,) = (each for each in found.reasons if each.kind == "negation")
    assert [each.events["A"] for each in reason.nearest] == [(3_000_000,), (0,)]
