"""Table 1 of the RSEP-QL paper: what other languages do, written in RSEP-QL.

| language | windows | sequence | consumption |
|---|---|---|---|
| EP-SPARQL, unrestricted | landmark | SEQ | unrestricted |
| EP-SPARQL, chronological | landmark | SEQ^c | chronological |
| EP-SPARQL, recent | landmark | SEQ^r | recent |
| C-SPARQL's timestamps | sliding | SEQ^n | unrestricted |

The other side is the other language, run by the engine too, and a plain loop for each over events in the order in
which they come.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple, TypeAlias

from hypothesis import given
from hypothesis import strategies as st
from profiles import drawn

import oxiseq

S = "http://e/S"
QUERY = """PREFIX : <http://e/>
SELECT *
FROM NAMED <http://e/S> WIN {window} AS :w
EVENT ON :w {{ ?x :p ?y }} AS E1
EVENT ON :w {{ ?y :q ?z }} AS E2
WHERE {{ MATCH {{ E1 {seq} E2 }} }}
CONSUME {consume}
REPORT ON CONTENT CHANGE"""


EP = """PREFIX : <http://e/>
SELECT * FROM STREAM <http://e/S>
WHERE {{ {{ ?x :p ?y }} SEQ {{ ?y :q ?z }} }}
CONSUME {consume}"""

C_SPARQL = """PREFIX : <http://e/>
SELECT ?x ?y ?z
FROM NAMED WINDOW :w ON <http://e/S> [RANGE {size} STEP 1]
WHERE {{
  WINDOW :w {{
    ?a :made :p ; :at ?first ; :of ?x ; :to ?y .
    ?b :made :q ; :at ?second ; :of ?y ; :to ?z .
    FILTER(?first < ?second)
    FILTER NOT EXISTS {{ ?later :made :p ; :at ?then FILTER(?then > ?first) }}
    FILTER NOT EXISTS {{ ?later :made :q ; :at ?then FILTER(?then > ?second) }}
  }}
}}
REPORT ON CONTENT CHANGE"""
"""C-SPARQL compares the timestamps of triples; here events say when they were made."""


class Event(NamedTuple):
    """A triple at a time; in these streams each has its own."""

    time: int
    subject: str
    predicate: str
    object: str


Pair: TypeAlias = tuple[int, int]
"""The times of the first and of the second event."""


@st.composite
def streams(draw: st.DrawFn) -> list[Event]:
    events = []
    for time in range(1, draw(st.integers(0, 9)) + 1):
        predicate = draw(st.sampled_from("pq"))
        node, other = draw(st.sampled_from("ab")), draw(st.sampled_from("cd"))
        events.append(Event(time, *((other, "p", node) if predicate == "p" else (node, "q", other))))
    return events


def answered(events: list[Event], window: str, seq: str, consume: str, report: str) -> list[tuple[int, int, int]]:
    """(instant, start, end) of each answer."""
    text = QUERY.format(window=window, seq=seq, consume=consume)
    graphs = [(e.time, f"<http://e/{e.subject}> <http://e/{e.predicate}> <http://e/{e.object}> .") for e in events]
    found = oxiseq.run(text, streams={S: graphs}, language="rsepql", stream_operator=report)
    return sorted((a.at_us, a.start_us or 0, a.end_us or 0) for a in found)


def by_ep_sparql(events: list[Event], consume: str) -> list[tuple[int, int, int]]:
    """The same of EP-SPARQL, that answers when the second event comes."""
    graphs = [(e.time, f"<http://e/{e.subject}> <http://e/{e.predicate}> <http://e/{e.object}> .") for e in events]
    found = oxiseq.run(EP.format(consume=consume), streams={S: graphs}, language="epsparql")
    return sorted((m.end_us, m.start_us, m.end_us) for m in found)


def pairs(events: Iterable[Event]) -> Iterator[tuple[Event, Event]]:
    """A sequence of both events, joined."""
    known = list(events)
    return (
        (a, b)
        for a in known
        for b in known
        if a.predicate == "p" and b.predicate == "q" and a.object == b.subject and a.time < b.time
    )


@drawn(50)
@given(streams())
def test_ep_sparql_unrestricted(events: list[Event]) -> None:
    """Each pair is told when its second event comes, whatever happens later."""
    expected = sorted((b.time, a.time, b.time) for a, b in pairs(events))
    assert answered(events, "[LND 0]", "SEQ", "UNRESTRICTED", "ISTREAM") == expected
    assert by_ep_sparql(events, "UNRESTRICTED") == expected


@drawn(50)
@given(streams())
def test_ep_sparql_chronological(events: list[Event]) -> None:
    """A second event takes the first of the first events that wait for it, and both are used up."""
    expected = list(using_up(events, min))
    assert answered(events, "[LND 0]", "SEQ^c", "CHRONOLOGICAL", "ISTREAM") == expected
    assert by_ep_sparql(events, "CHRONOLOGICAL") == expected


@drawn(50)
@given(streams())
def test_ep_sparql_recent(events: list[Event]) -> None:
    """It takes the last of them."""
    expected = list(using_up(events, max))
    assert answered(events, "[LND 0]", "SEQ^r", "RECENT", "ISTREAM") == expected
    assert by_ep_sparql(events, "RECENT") == expected


def using_up(events: list[Event], best: Callable[[list[Event]], Event]) -> Iterator[tuple[int, int, int]]:
    waiting: list[Event] = []
    for event in events:
        if event.predicate == "p":
            waiting.append(event)
        elif able := [a for a in waiting if a.object == event.subject]:
            taken = best(able)
            waiting.remove(taken)
            yield event.time, taken.time, event.time


@drawn(40)
@given(streams(), st.integers(1, 6))
def test_c_sparql_timestamps(events: list[Event], size: int) -> None:
    """C-SPARQL compares timestamps: of each pattern that of the latest in the window (Eq. 9)."""
    expected = []
    for now in (e.time for e in events):
        window = [e for e in events if now - size < e.time <= now]
        second = max((e.time for e in window if e.predicate == "q"), default=0)
        first = max((e.time for e in window if e.predicate == "p"), default=0)
        expected += [(now, a.time, b.time) for a, b in pairs(window) if (a.time, b.time) == (first, second)]
    assert answered(events, f"[RANGE {size} SLIDE 1]", "SEQ^n", "UNRESTRICTED", "RSTREAM") == sorted(expected)
    assert [at for at, *_ in sorted(expected)] == by_rsp_ql(events, size)


def by_rsp_ql(events: list[Event], size: int) -> list[int]:
    """The instants at which continuous SPARQL answers; one answer each, as in the window only the latest count."""
    graphs = [
        (
            e.time,
            f"_:e <http://e/made> <http://e/{e.predicate}> ; <http://e/at> {e.time} ;"
            f" <http://e/of> <http://e/{e.subject}> ; <http://e/to> <http://e/{e.object}> .",
        )
        for e in events
    ]
    found = oxiseq.run(C_SPARQL.format(size=size), streams={S: graphs}, language="rspql", stream_operator="RSTREAM")
    return [a.at_us for a in found]


@given(streams())
def test_a_window_pattern_with_istream_is_what_events_have_brought(events: list[Event]) -> None:
    """A landmark window's new answers are those of the plain event pattern, where no triple comes twice."""
    first = list({(e.subject, e.predicate, e.object): e for e in reversed(events)}.values())
    first.sort()
    text = """PREFIX : <http://e/> SELECT * FROM NAMED <http://e/S> WIN [LND 0] AS :w
              {events} WHERE {{ {where} }} REPORT ON CONTENT CHANGE"""
    graphs = [(e.time, f"<http://e/{e.subject}> <http://e/{e.predicate}> <http://e/{e.object}> .") for e in first]

    def told(where: str, definition: str = "") -> list[tuple[int, str]]:
        query = text.format(events=definition, where=where)
        found = oxiseq.run(query, streams={S: graphs}, language="rsepql", stream_operator="ISTREAM")
        return sorted((a.at_us, str(sorted(map(str, a.values())))) for a in found)

    assert told("WINDOW :w { ?x :p ?y }") == told("MATCH { E }", "EVENT ON :w { ?x :p ?y } AS E")
