"""What `why` counts of CEQL, against plain loops over small random streams."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from typing import NamedTuple

import pyarrow as pa
import pytest
from ceql_strategies import CeqlSituation, ceql_situations
from hypothesis import given
from hypothesis import strategies as st
from profiles import drawn
from pyoxigraph import Dataset, RdfFormat, parse

import oxiseq
from oxiseq.languages.reasons.report import Reason, Why

V = "http://example.org/"
TYPES = ("A", "B", "C")
LEAST = {"A": 1, "B": 2, "C": 0}
"""FILTER asks for a v that is larger."""


class Event(NamedTuple):
    time: int
    type: str
    v: int
    k: int

    @property
    def graph(self) -> str:
        return f"_:e a <{V}{self.type}> ; <{V}v> {self.v} ; <{V}k> {self.k} ."


class Query(NamedTuple):
    """`A op B op C FILTER ... [WITHIN 4 SECONDS] [PARTITION BY [k]]`."""

    ops: tuple[str, str]
    window: bool
    partition: bool

    @property
    def text(self) -> str:
        clauses = " PARTITION BY [k]" * self.partition + " WITHIN 4 SECONDS" * self.window
        tests = " AND ".join(f"{t.lower()}[v > {LEAST[t]}]" for t in TYPES)
        steps = f"A AS a {self.ops[0]} B AS b {self.ops[1]} C AS c"
        return f"VOCAB <{V}> SELECT * FROM S WHERE {steps} FILTER {tests}{clauses}"


def completing(events: Sequence[Event], query: Query, length: int, dropped: str = "") -> set[int]:
    """The numbers of the events that complete the first `length` steps, without one condition of the last step."""
    found = set()
    split = query.partition and dropped != "partition"
    for chosen in product(range(len(events)), repeat=length):
        match = [events[i] for i in chosen]
        last = match[-1]
        streams = [[i for i, e in enumerate(events) if not split or e.k == last.k]]
        if any(i not in streams[0] for i in chosen):
            continue
        places = [streams[0].index(i) for i in chosen]
        ops = [
            ":" if op == ":" and not (dropped == "contiguity" and n == length - 2) else ";"
            for n, op in enumerate(query.ops[: length - 1])
        ]
        in_order = all(b > a and (op == ";" or b == a + 1) for a, b, op in zip(places, places[1:], ops, strict=False))
        typed = [e.type for e in match] == list(TYPES[:length])
        passed = typed and all(e.v > LEAST[e.type] or (dropped == "filter" and e is last) for e in match)
        short = not query.window or dropped == "window" or last.time - match[0].time <= 4
        if in_order and passed and short:
            found.add(chosen[-1])
    return found


def spaced(drawn: list[tuple[int, str, int, int]]) -> list[Event]:
    time, events = 0, []
    for gap, kind, v, k in drawn:
        time += gap
        events.append(Event(time, kind, v, k))
    return events


EVENTS = st.lists(
    st.tuples(st.integers(0, 2), st.sampled_from("AABBCD"), st.integers(0, 3), st.integers(0, 1)), max_size=9
).map(spaced)
OPS = st.sampled_from([";", ":"])
QUERIES = st.builds(Query, st.tuples(OPS, OPS), st.booleans(), st.booleans())


def explained(events: Sequence[Event], text: str) -> Why:
    return oxiseq.Query(text, "ceql").why({"S": [(e.time * 1_000_000, e.graph) for e in events]})


@drawn(25)
@given(EVENTS, QUERIES)
def test_counts_are_those_of_plain_loops(events: list[Event], query: Query) -> None:
    found = explained(events, query.text)
    for name, funnel in zip(TYPES, found.gpms, strict=True):
        mine = [e for e in events if e.type == name]
        assert (funnel.saw, [step.events for step in funnel.steps]) == (
            len(events),
            [len(mine), sum(e.v > LEAST[name] for e in mine)],
        )
    strict = [completing(events, query, n + 1) for n in range(3)]
    reached = next((n for n, ends in enumerate(strict) if not ends), 3)
    assert [stage.matches for stage in found.stages] == [len(ends) for ends in strict]
    assert found.stopped == (None if reached == 3 else ["A AS a", "B AS b", "C AS c"][reached])
    at = min(reached, 2)
    told = {reason.kind: reason.matches for reason in found.reasons}
    for dropped in ("window", "contiguity", "partition", "filter"):
        more = completing(events, query, at + 1, dropped) - strict[at]
        assert told.get(dropped, 0) == len(more), dropped


@drawn(25)
@given(ceql_situations())
def test_any_query_can_be_told_of(situation: CeqlSituation) -> None:
    """What is found is what `run` finds, and the automaton ends where all complex events end."""
    streams = {name: [(e.time, e.graph) for e in situation.events if e.stream == name] for name in situation.streams}
    found = oxiseq.Query(situation.text, "ceql").why(streams)
    assert found.found == len(oxiseq.run(situation.text, streams, language="ceql"))
    lines = [line for line in situation.text.split("\n") if not line.startswith(("CONSUME", "LIMIT"))]
    everything = "\n".join(lines)
    for strategy in ("ALL", "NEXT", "LAST", "MAX"):
        everything = everything.replace(f"SELECT {strategy} ", "SELECT ")
    assert (found.stopped is None) == bool(len(oxiseq.run(everything, streams, language="ceql")))
    assert str(found).startswith(f"{found.found:,} match")
    assert len(found.matches) == min(found.found, 3)
    for match, complex_event in zip(found.matches, oxiseq.run(situation.text, streams, language="ceql"), strict=False):
        assert {s.number for s in match.events} == set(complex_event.positions.all)


def seen(*events: tuple[int, str, int, int]) -> list[Event]:
    return [Event(*e) for e in events]


def only(found: Why, kind: str) -> Reason:
    (reason,) = [r for r in found.reasons if r.kind == kind]
    return reason


def words(found: Why, kind: str) -> Iterator[str]:
    yield from (near.words for near in only(found, kind).nearest)


def test_nearest_misses_say_what_is_against_them() -> None:
    plain = Query((":", ";"), True, False).text
    found = explained(seen((0, "A", 2, 0), (1, "D", 0, 0), (2, "B", 3, 0)), plain)
    assert found.stopped == "B AS b"
    assert [*words(found, "contiguity")] == ["an event comes between, at 1970-01-01T00:00:01Z"]
    found = explained(seen((0, "A", 2, 0), (9, "B", 3, 0)), plain)
    assert [*words(found, "window")] == ["spans 9 s, limit 4 s"]
    found = explained(seen((0, "A", 2, 0), (1, "B", 3, 1)), Query((";", ";"), False, True).text)
    assert [*words(found, "partition")] == ["[k] is 0, 1"]
    found = explained(seen((0, "A", -9, 0), (1, "A", 0, 0), (2, "A", -4, 0), (3, "A", -2, 0)), plain)
    assert [miss.values["v"].value for miss in found.gpms[0].steps[1].misses] == ["0", "-2", "-4"]  # type: ignore[union-attr]
    near = only(found, "filter").nearest[0]
    assert near.values["v"] is not None and near.events == {"a": (0,)}
    assert "with v = -9" in str(found)


def test_windows_of_an_attribute_and_of_events() -> None:
    text = f"VOCAB <{V}> SELECT * FROM S WHERE A ; B WITHIN {{}}"
    events = seen((0, "A", 1, 0), (1, "D", 0, 0), (2, "B", 7, 0))
    assert [*words(explained(events, text.format("5 [v]")), "window")] == ["v goes from 1 to 7, limit 5"]
    assert [*words(explained(events, text.format("1 EVENTS")), "window")] == ["spans 2 events after the first, limit 1"]


@pytest.mark.parametrize(
    ("select", "clause", "kind", "told"),
    [
        ("NEXT ", "", "strategy", "SELECT NEXT"),
        ("", "CONSUME BY ANY", "consumption", "CONSUME BY ANY"),
        ("", "LIMIT 1", "limit", "LIMIT 1"),
        ("STRICT ", "", "strategy", "STRICT"),
    ],
)
def test_what_clauses_leave_out(select: str, clause: str, kind: str, told: str) -> None:
    text = f"VOCAB <{V}> SELECT {select}* FROM S WHERE A ; B {clause}"
    events = seen((0, "A", 1, 0), (1, "A", 1, 0), (2, "B", 1, 0), (3, "D", 1, 0), (4, "B", 1, 0))
    reason = only(explained(events, text), kind)
    assert (reason.condition, reason.matches > 0) == (told, True)


def test_alternatives_and_iterations_are_places_of_their_own() -> None:
    found = explained(seen((0, "A", 1, 0), (1, "B", 1, 0)), f"VOCAB <{V}> SELECT * FROM S WHERE A ; (B OR C)+ ; A")
    assert [(stage.text, stage.matches) for stage in found.stages] == [("A", 1), ("B", 1), ("C", 0), ("A (place 4)", 0)]
    assert found.stopped == "C | A (place 4)"


def test_tables_are_told_of_as_rdf_is() -> None:
    table = pa.table({"time": [0, 1_000_000], "type": ["A", "B"], "v": [2, 1], "k": [0, 0]})
    text = Query((";", ";"), True, False).text
    rdf = explained(seen((0, "A", 2, 0), (1, "B", 1, 0)), text)
    assert oxiseq.Query(text, "ceql").why({"S": table}).to_json() == rdf.to_json()


def test_provenance_as_prov_o() -> None:
    text = f"VOCAB <{V}> SELECT a, b FROM S WHERE A AS a ; B AS b"
    found = explained(seen((0, "A", 1, 0), (0, "B", 7, 0)), text)
    (match,) = found.matches
    assert [(s.gpm, s.time, s.number) for s in match.events] == [("a", 0, 0), ("b", 0, 1)]
    quads = Dataset(parse(found.to_prov(), RdfFormat.TRIG))
    assert len({q.object for q in quads if q.predicate.value.endswith("wasDerivedFrom")}) == 2
    assert sum(q.predicate.value == f"{V}v" for q in quads) == 2


def test_events_of_a_span_late_ones_aside() -> None:
    events = [(e.time * 1_000_000, e.graph) for e in seen((5, "A", 2, 0), (3, "B", 3, 0), (6, "B", 3, 0))]
    text = Query((";", ";"), False, False).text
    found = oxiseq.Query(text, "ceql").why({"S": iter(events)})
    assert (found.late, found.gpms[0].saw) == (1, 2)
    assert oxiseq.Query(text, "ceql").why({"S": events}).late == 0
    assert oxiseq.Query(text, "ceql").why({"S": events}, since=6_000_000).gpms[0].saw == 1
    with pytest.warns(UserWarning, match="reads no stream"):
        assert oxiseq.Query(text, "ceql").why({"T": events}).gpms[0].saw == 0


def test_of_aggregates_the_complex_events_are_told() -> None:
    events = seen((0, "A", 1, 0), (1, "A", 1, 0), (2, "B", 1, 0), (3, "B", 1, 0))
    found = explained(events, f"VOCAB <{V}> SELECT COUNT(*) AS n FROM S WHERE A+; B HAVING COUNT(*) > 3")
    assert (found.found, found.stopped) == (6, None)
    (note,) = found.notes
    assert note.startswith("complex events end at 2 events, of which HAVING COUNT(*) > 3 leaves 0;")
