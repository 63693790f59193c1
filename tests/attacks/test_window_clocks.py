"""Queries over windows whose clock ticks every microsecond, and a clock that is set far ahead: bounded, or refused."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

import oxiseq

S = "http://e/S"
YEAR = 365 * 86_400 * 1_000_000
TINY = "PREFIX : <http://e/> SELECT {} FROM NAMED WINDOW :w ON <http://e/S> [RANGE {} SLIDE PT0.000001S]"
TINY += " WHERE {{ WINDOW :w {{ ?s :p ?o }} }} REPORT ON WINDOW CLOSE"
EVERY = """PREFIX : <http://e/> SELECT ?o FROM NAMED <http://e/S> WIN [LND 0] AS :w EVENT ON :w { ?s :p ?o } AS E
WHERE { MATCH { E } } REPORT EVERY PT0.000001S"""
EVENTS = [(1, "<http://e/a> <http://e/p> 1 ."), (5, "<http://e/a> <http://e/p> 5 .")]


@pytest.fixture(autouse=True)
def _in_time() -> Iterator[None]:
    started = time.monotonic()
    yield
    assert time.monotonic() - started < 30


def told(text: str, report: str, language: str = "rspql") -> list[tuple[int, str]]:
    found = oxiseq.run(text, {S: EVENTS}, language=language, stream_operator=report)  # type: ignore[call-overload]
    return [(a.at_us, a["o"].value) for a in found]


def test_istream_and_dstream_skip_closes_at_which_nothing_changes() -> None:
    assert told(TINY.format("?o", "P365D"), "ISTREAM") == [(1, "1"), (5, "5")]
    assert told(TINY.format("?o", "P365D"), "DSTREAM") == [(YEAR + 1, "1"), (YEAR + 5, "5")]


def test_rstream_repeats_what_it_can_hold_and_refuses_more() -> None:
    found = told(TINY.format("?o", "PT0.1S"), "RSTREAM")
    assert len(found) == 200_000 and found[-1] == (100_004, "5")
    with pytest.raises(oxiseq.LimitError, match=r"RSTREAM repeats.*longer SLIDE or EVERY, or take ISTREAM"):
        told(TINY.format("?o", "P365D"), "RSTREAM")


def test_rows_that_are_none_are_not_told_again() -> None:
    assert told(TINY.format("?o", "P365D").replace(":p ?o", ":q ?o"), "RSTREAM") == []


def test_answers_that_change_by_themselves_are_refused() -> None:
    with pytest.raises(oxiseq.LimitError, match="the answer may be another"):
        told(TINY.format("?o (NOW() AS ?v)", "P365D"), "RSTREAM")
    assert told(TINY.format("?o (NOW() AS ?v)", "P365D"), "ISTREAM") == [(1, "1"), (5, "5")]


@pytest.mark.parametrize("function", ["RAND()", "STRUUID()", "BNODE()"])
def test_what_is_drawn_stays_as_long_as_its_row(function: str) -> None:
    text = TINY.format(f"?o ({function} AS ?v)", "PT0.000002S")
    found = [
        (a.at_us, a["o"].value, a["v"])
        for a in oxiseq.run(text, {S: EVENTS}, language="rspql", stream_operator="RSTREAM")
    ]
    assert [each[:2] for each in found] == [(1, "1"), (2, "1"), (5, "5"), (6, "5")]
    assert found[0][2] == found[1][2] != found[2][2] == found[3][2]


def test_answers_that_consume_items_are_asked_for_until_nothing_is_left() -> None:
    text = EVERY.replace("[LND 0]", "[RANGE P365D SLIDE 1]")
    assert told(text, "ISTREAM", "rsepql") == [(1, "1"), (5, "5")]
    consuming = text.replace("REPORT", "CONSUME RECENT REPORT")
    assert told(consuming, "ISTREAM", "rsepql") == told(consuming, "RSTREAM", "rsepql") == [(1, "1"), (5, "5")]
    assert told(consuming, "DSTREAM", "rsepql") == [(2, "1"), (6, "5")]
    last = consuming.replace("MATCH { E }", "MATCH { LAST(E) }").replace("EVERY PT0.000001S", "EVERY PT0.00001S")
    assert told(last, "RSTREAM", "rsepql") == [(10, "5"), (20, "1")]


def test_the_end_of_streams_does_not_wait_for_a_landmark() -> None:
    assert told(EVERY, "RSTREAM", "rsepql") == [*((t, "1") for t in (1, 2, 3, 4)), (5, "1"), (5, "5")]


def test_an_empty_stretch_between_events_is_skipped() -> None:
    events = [(1, EVENTS[0][1]), (YEAR, EVENTS[0][1])]
    text = TINY.format("(COUNT(*) AS ?n)", "PT0.000002S")
    found = oxiseq.run(text, {S: events}, language="rspql", stream_operator="RSTREAM")
    once = [(0, "1"), (1, "1"), (2, "0")]
    assert [(a.at_us, a["n"].value) for a in found] == [(begin + at, n) for begin in (1, YEAR) for at, n in once]


@pytest.mark.parametrize("report", ["ISTREAM", "DSTREAM", "RSTREAM"])
def test_a_store_whose_clock_is_set_far_ahead(report: str) -> None:
    """The query that cannot be told says so, the other one goes on."""
    store = oxiseq.Store()
    attacked = store.register(EVERY, language="rsepql", stream_operator=report)  # type: ignore[call-overload]
    other = store.register("SELECT ?o FROM STREAM <http://e/S> [RANGE 10 SLIDE 1] WHERE { ?s ?p ?o }", language="rspql")
    stream = store.stream(S)
    for at, graph in EVENTS:
        stream.push(graph, at)
    store.advance(6)
    assert len(list(attacked.poll("0s"))) == {"ISTREAM": 2, "DSTREAM": 0, "RSTREAM": 6}[report]
    if report == "RSTREAM":
        with pytest.raises(oxiseq.LimitError, match="RSTREAM repeats"):
            store.advance(YEAR)
    else:
        store.advance(YEAR)
        stream.push("<http://e/a> <http://e/p> 9 .", YEAR + 1)
        store.advance(YEAR + 2)
        found = [(a.at_us, a["o"].value) for a in attacked.poll("0s")]
        assert found == ([(YEAR + 1, "9")] if report == "ISTREAM" else [])
    assert [a["o"].value for a in other.poll("0s")][:2] == ["1", "5"]
