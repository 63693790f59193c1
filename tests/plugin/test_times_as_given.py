"""Answers over windows and of EP-SPARQL tell times as the caller gave his: integers or datetimes."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone, tzinfo
from pathlib import Path

import pytest

import oxiseq
from oxiseq.engine.events.time import to_microseconds
from oxiseq.times import Clock

S = "http://e/S"
SEQUENCE = f"""PREFIX : <http://e/>
SELECT * FROM NAMED <{S}> WIN [RANGE PT10S SLIDE PT1S] AS :w
EVENT ON :w {{ ?a :p ?b }} AS E1 EVENT ON :w {{ ?a :p ?c }} AS E2 WHERE {{ MATCH {{ E1 SEQ E2 }} }}"""
INTERVALS = "PREFIX : <http://e/> SELECT * WHERE { { ?a :p ?b } SEQ { ?a :p ?c } FILTER(?b < ?c) }"
GRAPHS = ["<http://e/x> <http://e/p> 1 .", "<http://e/x> <http://e/p> 2 ."]
ZONES = [UTC, None, timezone(timedelta(hours=2))]


COUNTED = SEQUENCE.replace("RANGE PT10S SLIDE PT1S", "RANGE 10 SLIDE 1")


def begin(zone: tzinfo | None) -> datetime:
    return datetime(2024, 5, 1, tzinfo=zone)


@pytest.mark.parametrize("zone", ZONES)
def test_datetimes_of_windows(zone: tzinfo | None) -> None:
    times = [begin(zone), begin(zone).replace(second=3)]
    told = begin(zone).replace(second=5)
    events = zip(times, GRAPHS, strict=True)  # an iterator: looked at once
    found = oxiseq.run(SEQUENCE, {S: events}, language="rsepql", instants=iter([told]))
    (answer,) = found
    assert (answer.at, answer.start, answer.end) == (told, *times)
    assert answer.datetime == (told.replace(tzinfo=UTC) if zone is None else told)
    assert answer.time == to_microseconds(told)
    assert found.events == 2
    assert "<svg" in found._repr_html_()


@pytest.mark.parametrize("zone", ZONES)
def test_datetimes_of_intervals(zone: tzinfo | None) -> None:
    starts = [begin(zone), begin(zone).replace(second=3)]
    events = [(t, t + timedelta(seconds=1), graph) for t, graph in zip(starts, GRAPHS, strict=True)]
    found = oxiseq.run(INTERVALS, {S: iter(events)}, language="epsparql")
    (match,) = found
    assert (match.start, match.end) == (starts[0], starts[1] + timedelta(seconds=1))
    assert (match.time, match.hull[1]) == (to_microseconds(events[1][1]), to_microseconds(events[1][1]))
    assert "<svg" in found._repr_html_()


def test_integers() -> None:
    (answer,) = oxiseq.run(COUNTED, {S: zip([1, 2], GRAPHS, strict=True)}, language="rsepql", instants=[3])
    assert (answer.at, answer.start, answer.end) == (3, 1, 2)
    (match,) = oxiseq.run(INTERVALS, {S: zip([1, 2], GRAPHS, strict=True)}, language="epsparql")
    assert (match.start, match.end) == (1, 2)


def test_instants_of_a_stream_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "events.trig"
    at = "<http://www.w3.org/ns/prov#generatedAtTime>"
    lines = [f"<http://e/g{i}> {{ {g} }}\n<http://e/g{i}> {at} {i} .\n" for i, g in enumerate(GRAPHS)]
    file.write_text("".join(lines), "utf-8")
    epoch = datetime(1970, 1, 1, tzinfo=UTC)
    (answer,) = oxiseq.run(SEQUENCE, {S: file}, language="rsepql", instants=[epoch.replace(second=1)])
    assert (answer.at, answer.start) == (epoch.replace(second=1), epoch)
    (answer,) = oxiseq.run(COUNTED, {S: file}, language="rsepql", instants=[1])
    assert (answer.at, answer.start, answer.end) == (1, 0, 1)


def test_a_time_that_no_datetime_can_tell() -> None:
    with pytest.raises(OverflowError):
        Clock.UTC.of(2**62)
    assert Clock.MICROSECONDS.of(2**62) == 2**62
