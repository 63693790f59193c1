"""When the streams of a replay end, every window that holds an event still closes, and the tick at which the last of
them has become empty is reported, as a live store reports it (semantics.md 4)."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from profiles import drawn

import oxiseq
from oxiseq.testing import run_file

S = "http://e/S"
SECOND = 1_000_000
EVENTS = [(1, "<http://e/a> <http://e/p> 1 ."), (4, "<http://e/a> <http://e/p> 4 .")]
P = "PREFIX : <http://e/> SELECT ?o "
WINDOWS = {
    "rspql": P + "FROM NAMED WINDOW :w ON <http://e/S> {} WHERE {{ WINDOW :w {{ ?s :p ?o }} }}",
    "spectra": P + "FROM STREAM <http://e/S> {} WHERE {{ ?s :p ?o }}",
    "rsepql": P + "FROM NAMED <http://e/S> WIN {} AS :w WHERE {{ WINDOW :w {{ ?s :p ?o }} }}",
}
MATCHES = """PREFIX : <http://e/> SELECT ?o FROM NAMED <http://e/S> WIN {} AS :w EVENT ON :w {{ ?s :p ?o }} AS E
WHERE {{ MATCH {{ E }} }}"""

CASE = """
[[case]]
language = "rspql"
stream_operator = "RSTREAM"
text = '''{text}'''
events = '''
{events}
'''
expect = 6
[[case.after]]
time = 5
expect = 3
"""


def answers(text: str, language: str, report: str, **more: Any) -> list[tuple[int, str]]:
    """(instant, ?o)."""
    found = oxiseq.run(text, {S: EVENTS}, language=language, stream_operator=report, **more)
    return sorted((a.at_us, a["o"].value) for a in found)


@pytest.mark.parametrize("language", [*WINDOWS])
def test_each_close_of_a_window_that_holds_an_event_is_reported(language: str) -> None:
    text = WINDOWS[language].format("[RANGE 6 SLIDE 2]") + " REPORT ON WINDOW CLOSE"
    assert answers(text, language, "RSTREAM") == [
        (2, "1"),
        (4, "1"),
        (4, "4"),
        (6, "1"),
        (6, "4"),
        (8, "4"),
    ]
    assert answers(text, language, "ISTREAM") == [(2, "1"), (4, "4")]
    assert answers(text, language, "DSTREAM") == [(8, "1"), (10, "4")]


def test_closes_of_event_patterns() -> None:
    text = MATCHES.format("[RANGE 6 SLIDE 2]") + " REPORT ON WINDOW CLOSE"
    assert answers(text, "rsepql", "RSTREAM")[-3:] == [(6, "1"), (6, "4"), (8, "4")]
    assert answers(text, "rsepql", "RSTREAM", consumption="RECENT") == [(2, "1"), (4, "4")]


@pytest.mark.parametrize("language", [*WINDOWS])
def test_each_tick_of_every_is_reported_up_to_the_last_close(language: str) -> None:
    text = WINDOWS[language].format("[RANGE 6 SLIDE 2]") + " REPORT EVERY 4"
    assert answers(text, language, "RSTREAM") == [(4, "1"), (4, "4"), (8, "4")]


def test_a_tick_sees_a_window_of_rsepql_until_the_next_one_closes() -> None:
    """At 14 the window is still the one that closed at 10."""
    text = WINDOWS["rsepql"].format("[RANGE 10 SLIDE 10]") + " REPORT EVERY 7"
    assert answers(text, "rsepql", "RSTREAM") == [(14, "1"), (14, "4")]


@pytest.mark.parametrize("window", ["[LND 0]", "[ID]", "[INTERVAL 0 3]"])
def test_a_window_that_never_closes_is_answered_once_more_after_the_last_event(window: str) -> None:
    text = WINDOWS["rsepql"].format(window) + " REPORT EVERY 3"
    assert {at for at, _ in answers(text, "rsepql", "RSTREAM")} == {3, 6}


def test_a_landmark_within_a_range_closes() -> None:
    text = WINDOWS["rsepql"].format("[LND 2][RANGE 6 SLIDE 2]") + " REPORT ON WINDOW CLOSE"
    assert answers(text, "rsepql", "RSTREAM") == [(4, "4"), (6, "4"), (8, "4")]


@pytest.mark.parametrize("language", [*WINDOWS])
def test_what_the_last_window_held_ends_at_the_tick_at_which_it_is_empty(language: str) -> None:
    """s1@0, s1@5, s2@20 and ten seconds: DSTREAM takes s2 back at 30."""
    text = WINDOWS[language].format("[RANGE 10 SECONDS SLIDE 1 SECONDS]").replace("?o", "?s", 1)
    events = [(at * SECOND, f"<http://e/s{name}> <http://e/p> 1 .") for at, name in [(0, 1), (5, 1), (20, 2)]]
    found = oxiseq.run(text + " REPORT EVERY 1 SECONDS", {S: events}, language=language, stream_operator="DSTREAM")  # type: ignore[call-overload]
    told = [(a.at_us // SECOND, a["s"].value) for a in found]
    assert told == [(15, "http://e/s1"), (30, "http://e/s2")]


def test_mappings_end_at_the_tick_at_which_their_window_is_empty() -> None:
    text = MATCHES.format("[RANGE 6 SLIDE 2]") + " REPORT EVERY 1"
    assert answers(text, "rsepql", "DSTREAM") == [(8, "1"), (10, "4")] == lived(text, "rsepql", "DSTREAM", [1, 4])


@pytest.mark.parametrize("report", ["RSTREAM", "ISTREAM", "DSTREAM"])
def test_a_window_that_has_become_empty_is_counted_once(report: str) -> None:
    text = "SELECT (COUNT(*) AS ?o) FROM STREAM <http://e/S> [RANGE 4 SLIDE 2] WHERE { ?s ?p ?x }"
    text += " REPORT ON WINDOW CLOSE"
    expected = {
        "RSTREAM": [(2, "1"), (4, "2"), (6, "1"), (8, "0")],
        "ISTREAM": [(2, "1"), (4, "2"), (6, "1"), (8, "0")],
        "DSTREAM": [(4, "1"), (6, "2"), (8, "1")],
    }[report]
    assert answers(text, "rspql", report) == expected == lived(text, "rspql", report, [1, 4])


def lived(text: str, language: str, report: str, times: Iterable[int]) -> list[tuple[int, str]]:
    """What a store tells whose clock goes on."""
    store = oxiseq.Store()
    query = store.register(text, language=language, stream_operator=report)  # type: ignore[call-overload]
    for time in times:
        store.stream(S).push(f"<http://e/a> <http://e/p> {time} .", time)
    store.advance(10_000)
    return sorted((a.at_us, a["o"].value) for a in query.poll("0s"))


@drawn(40)
@given(
    st.sampled_from([*WINDOWS]),
    st.lists(st.integers(0, 40), min_size=1, max_size=6, unique=True).map(sorted),
    st.integers(1, 20),
    st.integers(1, 8),
    st.sampled_from(["ON WINDOW CLOSE", "EVERY 3", "EVERY 7"]),
    st.sampled_from(["RSTREAM", "ISTREAM", "DSTREAM"]),
)
def test_a_replay_reports_what_a_store_does_whose_clock_goes_on(
    language: str, times: list[int], size: int, slide: int, when: str, report: str
) -> None:
    text = WINDOWS[language].format(f"[RANGE {size} SLIDE {slide}]") + f" REPORT {when}"
    events = [(time, f"<http://e/a> <http://e/p> {time} .") for time in times]
    found = oxiseq.run(text, {S: events}, language=language, stream_operator=report)  # type: ignore[call-overload]
    assert sorted((a.at_us, a["o"].value) for a in found) == lived(text, language, report, times)


def test_why_sees_the_later_closes() -> None:
    """Only at 14 the window holds anything."""
    text = WINDOWS["rsepql"].format("[RANGE 10 SLIDE 10]") + " REPORT EVERY 7"
    why = oxiseq.Query(text, "rsepql").why({S: EVENTS}, stream_operator="RSTREAM")
    assert (why.found, why.at) == (2, 14)


def test_compare_compares_the_later_closes() -> None:
    text = WINDOWS["rspql"].replace("SELECT", "REGISTER RSTREAM <http://e/o> AS SELECT") + " REPORT ON WINDOW CLOSE"
    wide, narrow = text.format("[RANGE 6 SLIDE 2]"), text.format("[RANGE 4 SLIDE 2]")
    found = oxiseq.Query(narrow, "rspql").compare(wide, {S: EVENTS})
    assert (len(found.gained), len(found.lost), found.kept) == (2, 0, 4)


def test_pattern_tests_see_the_later_closes(tmp_path: Path) -> None:
    text = WINDOWS["rspql"].format("[RANGE 6 SLIDE 2]") + " REPORT ON WINDOW CLOSE"
    file = tmp_path / "closes.oxitest.toml"
    events = "\n".join(f"{time} {{ {graph} }}" for time, graph in EVENTS)
    file.write_text(CASE.format(text=text, events=events), encoding="utf-8")
    (result,) = run_file(file)
    assert result.passed, result.failures
