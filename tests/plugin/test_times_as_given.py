"""Matches tell times alike, whatever the caller gave: `at`, `start`, `end` as aware datetimes, `..._us` as ints."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone, tzinfo
from typing import Any

import pytest

import oxiseq
from oxiseq.engine.events.time import to_datetime, to_microseconds

S = "http://e/S"
SEQUENCE = f"""PREFIX : <http://e/>
SELECT * FROM NAMED <{S}> WIN [RANGE PT10S SLIDE PT1S] AS :w
EVENT ON :w {{ ?a :p ?b }} AS E1 EVENT ON :w {{ ?a :p ?c }} AS E2 WHERE {{ MATCH {{ E1 SEQ E2 }} }}"""
INTERVALS = "PREFIX : <http://e/> SELECT * WHERE { { ?a :p ?b } SEQ { ?a :p ?c } FILTER(?b < ?c) }"
SPASEQ = f"""PREFIX : <http://e/> SELECT ?b ?c FROM STREAM S <{S}>
WHERE {{ SEQ(A; B) DEFINE GPM A ON S {{ ?a :p ?b }} DEFINE GPM B ON S {{ ?a :p ?c }} }}"""
CEQL = "VOCAB <http://e/> SELECT * FROM S WHERE A AS x; B AS y"
GRAPHS = ["<http://e/x> <http://e/p> 1 .", "<http://e/x> <http://e/p> 2 ."]
TYPED = ["<http://e/x> a <http://e/A> .", "<http://e/y> a <http://e/B> ."]
ZONES = [UTC, None, timezone(timedelta(hours=2))]
TEXTS = {"spaseq": SPASEQ, "rsepql": SEQUENCE, "epsparql": INTERVALS, "ceql": CEQL}


def times(zone: tzinfo | None, number: bool) -> list[Any]:
    given = [datetime(2024, 5, 1, tzinfo=zone) + timedelta(seconds=n) for n in (0, 3)]
    return [to_microseconds(t) for t in given] if number else given


@pytest.mark.parametrize("language", TEXTS)
@pytest.mark.parametrize("zone", ZONES)
@pytest.mark.parametrize("number", [False, True])
def test_times_do_not_change_type_with_what_is_given(language: str, zone: tzinfo | None, number: bool) -> None:
    given = times(zone, number)
    events = zip(given, TYPED if language == "ceql" else GRAPHS, strict=True)  # an iterator: looked at once
    names: dict[str, Any] = {"stream_names": {"S": S}} if language == "ceql" else {}
    found = oxiseq.run(TEXTS[language], {S: events}, language=language, **names)
    (match,) = found
    first, last = (to_microseconds(t) for t in given)
    assert (match.at_us, match.start_us, match.end_us) == (last, first, last)
    assert (match.at, match.start, match.end) == tuple(map(to_datetime, (last, first, last)))
    assert {type(t) for t in (match.at_us, match.start_us, match.end_us)} == {int}
    assert match.at.tzinfo is UTC
    table = found.to_arrow().select(["at", "start", "end"])
    assert table.to_pylist() == [{"at": match.at, "start": match.start, "end": match.end}]
    assert "<svg" in found._repr_html_()


def test_intervals_that_are_given() -> None:
    starts = times(UTC, False)
    events = [(t, t + timedelta(seconds=1), graph) for t, graph in zip(starts, GRAPHS, strict=True)]
    (match,) = oxiseq.run(INTERVALS, {S: iter(events)}, language="epsparql")
    assert (match.start, match.end, match.at) == (starts[0], events[1][1], events[1][1])


def test_an_instant_that_is_asked_for_is_not_the_span() -> None:
    (answer,) = oxiseq.run(
        SEQUENCE, {S: zip([1, 2], GRAPHS, strict=True)}, language="rsepql", evaluation_times=[3_000_000]
    )
    assert (answer.at_us, answer.start_us, answer.end_us) == (3_000_000, 1, 2)


def test_rows_without_a_span() -> None:
    text = f"""SELECT ?b FROM NAMED WINDOW <http://e/w> ON <{S}> [RANGE PT1S STEP PT1S]
        WHERE {{ WINDOW <http://e/w> {{ ?a <http://e/p> ?b }} }}"""
    found = oxiseq.run(text, {S: [(1, GRAPHS[0])]}, language="rspql")
    assert found and (found[0].start, found[0].start_us) == (None, None)
    assert (found[0].end, found[0].end_us) == (found[0].at, found[0].at_us)
    assert found.to_arrow().column_names == ["at", "b"]
