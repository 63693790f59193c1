"""start, end and at of matches wherever they are shown (semantics.md 2.6a)."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import oxiseq
from oxiseq.engine.output.batch import MatchBatch
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.journal.lines import match_lines
from oxiseq.journal.rows import Heading, pack_matches, unpack_matches

SECOND = 1_000_000
P = "PREFIX : <http://e/> "
WHERE = "WHERE { SEQ(A; N!%s) DEFINE GPM A ON S { ?a :kind :a . ?a :key ?k } "
WHERE += "DEFINE GPM N ON S { ?n :kind :n . ?n :key ?k } }"
FROM = " FROM STREAM S <http://e/S> "
BOUND = P + "SELECT ?a (DETECTTIME() AS ?known)" + FROM + WHERE % " WITHIN 5 SECONDS"


def seen(time: int, kind: str, key: str = "k") -> tuple[int, str]:
    iri = f"<http://e/{kind}{time}>"
    return time * SECOND, f"{iri} <http://e/kind> <http://e/{kind}> . {iri} <http://e/key> <http://e/{key}> ."


def test_a_match_has_three_times() -> None:
    (match,) = found = oxiseq.run(BOUND, streams={"S": [seen(1, "a"), seen(9, "t")]})
    assert (match.start_us, match.end_us, match.at_us) == (SECOND, SECOND, 6 * SECOND)
    assert match["known"].value == "1970-01-01T00:00:06Z" and match.end < match.at
    again = pickle.loads(pickle.dumps(match))
    assert again == match and (again.end_us, again.at_us) == (SECOND, 6 * SECOND)
    table = found.to_arrow()
    assert table.column_names[:3] == ["at", "start", "end"]
    assert [table[name][0].value for name in ("at", "start", "end")] == [6 * SECOND, SECOND, SECOND]
    header, line = found.write(format="table").decode().splitlines()[::2]
    assert header.split()[:2] == ["at", "end"] and line.split()[:2] == ["1970-01-01T00:00:06Z", "1970-01-01T00:00:01Z"]


@pytest.mark.parametrize("limit", ["", " ORDER BY ?a LIMIT 1"])
def test_a_bound_counts_at_the_end_of_the_streams_beside_a_negation_without_one(limit: str) -> None:
    """The window of EVENTS is not full: only a later instant could tell of B, but time tells of N."""
    where = WHERE.replace("N!%s", "B!; N! WITHIN 4 SECONDS").replace("} }", "} DEFINE GPM B ON S { ?b :kind :b } }")
    text = P + "SELECT ?a WITHIN 3 EVENTS SLIDING" + FROM + where + limit
    (match,) = oxiseq.run(text, streams={"S": [seen(3, "a")]})
    assert (match.end_us, match.at_us) == (3 * SECOND, 7 * SECOND)


def test_a_row_of_a_group_is_decided_with_its_matches() -> None:
    text = P + "SELECT (COUNT(*) AS ?n) (DETECTTIME() AS ?known)" + FROM + WHERE % " WITHIN 5 SECONDS"
    every = text + " REPORT EVERY 4 SECONDS"
    events = [seen(1, "a", "x"), seen(2, "a", "y"), seen(3, "a", "z"), seen(5, "n", "y"), seen(20, "t")]
    found = oxiseq.run(every, streams={"S": events}, origin=0)
    shown = [(m["n"].value, m.end_us // SECOND, m.at_us // SECOND, m["known"].value[17:19]) for m in found]
    assert shown[:3] == [("2", 4, 8, "08"), ("2", 8, 8, "08"), ("2", 12, 12, "12")]
    assert found[0].start is None and found.to_arrow().column_names[:2] == ["at", "end"]


@pytest.mark.parametrize("size", [1, 2, 20])
def test_windows_of_a_partitions_events_close_with_their_last_instant(size: int) -> None:
    """Not with the partition's next one; a filter of a GPM takes no instant away."""
    text = P + "SELECT ?a ?k WITHIN 1 EVENTS SLIDING PARTITION BY ?k" + FROM
    text += (WHERE % "").replace("?a :key ?k }", "?a :key ?k } DEFINE GPM T ON S { ?t :key ?k FILTER(?t = :none) }")
    text = text.replace("SEQ(A; N!)", "SEQ(A; (N | T)!)")
    events = [seen(1, "a", "x"), seen(2, "a", "y"), seen(4, "t", "x"), seen(6, "n", "y"), seen(7, "t", "z")]
    store = oxiseq.Store()
    query = store.register(text)
    for low in range(0, len(events), size):
        store.stream("http://e/S").extend(events[low : low + size])
    store.advance(5 * SECOND)
    assert [(m["k"].value[-1], m.at_us // SECOND, m.end_us // SECOND) for m in query.matches()] == [("x", 4, 1)]


def test_distinct_drops_what_is_decided_together() -> None:
    text = P + "SELECT DISTINCT ?k WITHIN 10 SECONDS SLIDING" + FROM
    text += (
        (WHERE % "")
        .replace("SEQ(A; N!)", "SEQ(A : B; N!)")
        .replace("DEFINE GPM N", "DEFINE GPM B ON S { ?b :kind :b . ?b :key ?k } DEFINE GPM N")
    )
    events = [seen(0, "a"), seen(2, "a"), seen(3, "b")]
    assert [m.at_us // SECOND for m in oxiseq.run(text, streams={"S": events})] == [10, 12]


def test_what_an_earlier_version_has_stored_is_decided_at_its_end() -> None:
    terms = TermDictionary()
    heading = Heading(("a",), ((("A", "http://e/S"),),))
    ends = np.arange(3)
    batch = MatchBatch(np.array([5, 7]), np.zeros((2, 1), np.uint32), ends, np.zeros(2, np.int32), np.array([5, 7]))
    old = unpack_matches(pack_matches(batch, heading, terms), 1)
    assert old.at.tolist() == [5, 7] and b'"decided"' not in pack_matches(batch, heading, terms)
    later = MatchBatch(*(getattr(batch, name) for name in ("time", "values", "ends", "event_letter", "event_time")))
    later.decided = np.array([8, 9])
    new = unpack_matches(pack_matches(later, heading, terms), 1)
    assert (new.time.tolist(), new.at.tolist(), new.slice(1, 2).at.tolist()) == ([5, 7], [8, 9], [9])
    assert b'"at": "1970-01-01T00:00:00.000008Z", "start": "1970-01-01T00:00:00.000005Z"' in match_lines(new)[0]
