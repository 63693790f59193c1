"""A trailing `N! WITHIN d` comes when the bound has passed: by a watermark, or by the clock, without a later event."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from live_events import EX, POWER, Batch, event
from live_services import eventually, live, push, rows

import oxiseq
from oxiseq.live import LiveSettings

QUERY = f"""PREFIX : <{EX}>
SELECT ?x WITHIN 1 HOUR SLIDING FROM STREAM P <{POWER}>
WHERE {{
  SEQ(A; N! WITHIN 300 MILLISECONDS)
  DEFINE GPM A ON P {{ ?x :watts ?w }}
  DEFINE GPM N ON P {{ ?x :seen ?y }}
}}
"""
UNBOUNDED = QUERY.replace("WITHIN 1 HOUR SLIDING ", "")
GROUP = UNBOUNDED.replace("N!", "(N; O)!").replace("\n}", "\n  DEFINE GPM O ON P { ?x :gone ?z }\n}")
"""A negated group in the place of N."""
WATTS = f'<{EX}h> <{EX}watts> "5"^^<http://www.w3.org/2001/XMLSchema#integer>'
SEEN = f"<{EX}h> <{EX}seen> <{EX}y>"


@pytest.mark.parametrize("text", [QUERY, UNBOUNDED, GROUP])
def test_by_a_watermark(text: str) -> None:
    store = oxiseq.Store()
    query = store.register(text)
    stream = store.stream(POWER)
    stream.push(f"{WATTS} .", time=1_000_000)
    stream.advance(1_300_000)
    assert list(query.poll("0s", idle=None)) == []
    stream.advance(1_300_001)
    assert [(m.end_us, m.at_us) for m in query.poll("0s", idle=None)] == [(1_000_000, 1_300_000)]


def test_a_negation_in_time_decides_too() -> None:
    store = oxiseq.Store()
    query = store.register(UNBOUNDED)
    stream = store.stream(POWER)
    stream.push(f"{WATTS} .", time=1_000_000)
    stream.push(f"{SEEN} .", time=1_300_000)
    stream.push(f"{WATTS} .", time=9_000_000)
    stream.advance(9_300_001)
    assert [(m.end_us, m.at_us) for m in query.poll("0s", idle=None)] == [(9_000_000, 9_300_000)]


def test_by_the_clock_while_somebody_waits_for_matches() -> None:
    store = oxiseq.Store()
    query = store.register(UNBOUNDED)
    begun = time.monotonic()
    store.stream(POWER).push(f"{WATTS} .", time=1_000_000)
    (match,) = [next(query.poll("30s", idle="50ms"))]
    assert (match.end_us, match.at_us) == (1_000_000, 1_300_000)
    assert time.monotonic() - begun >= 0.3
    assert query.state["aged"] == 0


def test_not_by_the_clock_where_no_idle_time_is_given() -> None:
    store = oxiseq.Store()
    query = store.register(UNBOUNDED)
    store.stream(POWER).push(f"{WATTS} .", time=1_000_000)
    assert list(query.poll("500ms", idle=None)) == []


@pytest.mark.parametrize("text", [UNBOUNDED, GROUP])
def test_by_the_clock_of_a_service(text: str, tmp_path: Path) -> None:
    with live(tmp_path, LiveSettings(idle=0.05)) as service:
        service.queries.register("silent", text)
        begun = time.monotonic()
        push(service, Batch(POWER, "1", event("e", 1_000_000, WATTS).encode()))
        eventually(lambda: bool(rows(service, "silent")))
        assert time.monotonic() - begun >= 0.3
        # what was decided stands in the log, so that a replay decides alike
        until = [e.time for e in service.journal.log.follow(0) if e.stream == POWER and e.count == 0]
        assert until == [1_000_001, 1_300_001]


def test_a_service_without_idle_leaves_time_to_the_streams(tmp_path: Path) -> None:
    with live(tmp_path, LiveSettings(idle=None)) as service:
        service.queries.register("silent", UNBOUNDED)
        push(service, Batch(POWER, "1", event("e", 1_000_000, WATTS).encode()))
        time.sleep(0.6)
        assert not rows(service, "silent")
        service.streams.advance(POWER, 1_300_001)
        eventually(lambda: bool(rows(service, "silent")))


@pytest.mark.parametrize("text", [UNBOUNDED, GROUP])
def test_a_restart_in_between_loses_nothing(text: str, tmp_path: Path) -> None:
    with live(tmp_path, LiveSettings(idle=None)) as service:
        service.queries.register("silent", text)
        push(service, Batch(POWER, "1", event("e", 1_000_000, WATTS).encode()))
    with live(tmp_path, LiveSettings(idle=0.05)) as service:
        eventually(lambda: bool(rows(service, "silent")))
        assert len(rows(service, "silent")) == 1
