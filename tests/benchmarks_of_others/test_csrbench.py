"""CSRBench's seven queries. Its point is when windows end and what is told then: `csrbench` says what is from where.

All seven are told on window close with RSTREAM, as C-SPARQL and SPARQLstream do, and once more as CQELS reads them; all
incrementally.
"""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from answered import lived, replayed
from asked_again import Row, answers
from csrbench import HUMIDITY, NAMES, SECOND, SENS, STREAM, TEMPERATURE, Reading, query, stream
from hypothesis import given
from hypothesis import strategies as st
from profiles import drawn

import oxiseq

READINGS = (
    Reading(0, "C1190", TEMPERATURE, 90),
    Reading(1, "C0837", TEMPERATURE, 85),
    Reading(4, "C1192", TEMPERATURE, 95),
    Reading(4, "C1190", HUMIDITY, 40),
    Reading(5, "C0837", TEMPERATURE, 81),
    Reading(6, "C0837", TEMPERATURE, 79),
    Reading(6, "C1190", TEMPERATURE, 76),
    Reading(7, "C0837", TEMPERATURE, 78),
    Reading(8, "C1192", HUMIDITY, 25),
    Reading(9, "C1190", HUMIDITY, 24),
    Reading(10, "C1192", TEMPERATURE, 88),
    Reading(11, "C1190", HUMIDITY, 48),
    Reading(12, "C1190", HUMIDITY, 30),
    Reading(13, "C0837", TEMPERATURE, 70),
    Reading(26, "C1192", TEMPERATURE, 82),
    Reading(27, "C1190", TEMPERATURE, 80),
)

CLOSED = {
    "q1": {0: ["C1190@0"], 10: ["C0837@1", "C0837@5", "C1192@10", "C1192@4"], 30: ["C1192@26"]},
    "q2": {0: ["C1190@0"], 1: ["C0837@1"], 4: ["C1192@4"], 5: ["C0837@5"], 10: ["C1192@10"], 26: ["C1192@26"]},
    "q3": {4: ["C1190@4 40"], 8: ["C1192@8 25"], 12: ["C1190@11 48", "C1190@12 30"]},
    "q4": {0: ["90"], 4: ["90"], 8: ["81"], 12: ["88"], 16: ["0"], 20: ["0"], 28: ["82"], 32: ["0"]},
    "q5": {
        0: ["C1190@0"],
        1: ["C0837@1", "C1190@0"],
        2: ["C0837@1", "C1190@0"],
        3: ["C0837@1", "C1190@0"],
        4: ["C0837@1", "C1190@0", "C1192@4"],
        5: ["C0837@1", "C0837@5", "C1192@4"],
        **{second: ["C0837@5", "C1192@4"] for second in (6, 7, 8)},
        9: ["C0837@5"],
        **{second: ["C1192@10"] for second in range(10, 15)},
        **{second: ["C1192@26"] for second in range(26, 31)},
    },
    "q6": {5: ["C0837@1 C0837@5 85"], 10: ["C0837@6 C0837@7 79"]},
    "q7": {10: ["C0837@6", "C0837@7", "C1192@10"], 30: ["C1192@26"]},
}
"""Name → second of the close → rows, found by hand."""
CHANGED = {
    "q1": {0: ["C1190@0"], 1: ["C0837@1"], 4: ["C1192@4"], 5: ["C0837@5"], 10: ["C1192@10"], 26: ["C1192@26"]},
    "q3": {4: ["C1190@4 40"], 8: ["C1192@8 25"], 11: ["C1190@11 48"], 12: ["C1190@12 30"]},
    "q4": {0: ["90"], 1: ["85"], 4: ["90"], 5: ["81"], 9: ["0"], 10: ["88"], 13: ["0"], 26: ["82"]},
    "q6": {5: ["C0837@1 C0837@5 85"], 7: ["C0837@6 C0837@7 79"]},
    "q7": {6: ["C0837@6"], 7: ["C0837@7"], 10: ["C1192@10"], 27: ["C1192@26"]},
}
"""The same at content change with ISTREAM, as CQELS does."""


def short(rows: Sequence[tuple[int, Row]], unit: int = SECOND) -> dict[int, list[str]]:
    """Instant → its rows: a reading as SENSOR@SECOND, a number as it is; sensors stand in the readings already."""
    found: dict[int, list[str]] = {}
    for at, row in rows:
        words = [_word(term) for name, term in row if name != "sensor"]
        found.setdefault(at // unit, []).append(" ".join(words))
    return {at: sorted(each) for at, each in found.items()}


def _word(term: str) -> str:
    if term.startswith(f"<{SENS}Observation_"):
        _, _, sensor, second, _ = term.strip("<>").split("_")
        return f"{sensor}@{second}"
    return term.split('"')[1]


def close_of(name: str, later: int = 0, readings: Sequence[Reading] = READINGS) -> dict[int, list[str]]:
    return short(replayed(query(name), stream(readings, later)))


@pytest.mark.parametrize("name", CLOSED)
def test_told_when_windows_close(name: str) -> None:
    assert close_of(name) == CLOSED[name]


@pytest.mark.parametrize("name", CLOSED)
def test_nothing_is_asked_again(name: str) -> None:
    for more in ((), ("ISTREAM", "")):
        assert "no query is repeated\n" in str(oxiseq.Query(query(name, *more), "rspql").explain())


@pytest.mark.parametrize("name", CHANGED)
def test_told_when_it_is_new(name: str) -> None:
    assert short(replayed(query(name, "ISTREAM", ""), stream(READINGS))) == CHANGED[name]


def test_a_reading_at_the_end_is_in_the_window_that_closes() -> None:
    """Windows are (o, c]. Stamped a microsecond later, readings are where [o, c) of the benchmark's oracle has them."""
    edges = [Reading(second, "C1190", TEMPERATURE, 90) for second in (0, 5, 10, 20)]
    assert close_of("q1", 0, edges) == {0: ["C1190@0"], 10: ["C1190@10", "C1190@5"], 20: ["C1190@20"]}
    assert close_of("q1", 1, edges) == {10: ["C1190@0", "C1190@5"], 20: ["C1190@10"], 30: ["C1190@20"]}


def test_a_sliding_window_is_told_while_it_fills() -> None:
    """From the first close at or after the first reading, not only from the first window that is five seconds old."""
    edges = [Reading(7, "C1190", TEMPERATURE, 90)]
    assert close_of("q5", 0, edges) == {second: ["C1190@7"] for second in range(7, 12)}


@pytest.mark.parametrize(
    ("begins", "closes"),
    [
        (0, {0: ["C1190@0"], 10: ["C0837@1", "C0837@5", "C1192@10", "C1192@4"], 30: ["C1192@26"]}),
        (3, {3: ["C0837@1", "C1190@0"], 13: ["C0837@5", "C1192@10", "C1192@4"], 33: ["C1192@26"]}),
        (6, {6: ["C0837@1", "C0837@5", "C1190@0", "C1192@4"], 16: ["C1192@10"], 26: ["C1192@26"]}),
    ],
)
def test_windows_of_another_t0(begins: int, closes: dict[int, list[str]]) -> None:
    """Windows are counted from 1970. Those that begin at t0 are had by taking t0 from all times."""
    found = close_of("q1", -begins * SECOND)
    assert {at + begins: rows for at, rows in found.items()} == closes


def test_of_empty_windows_only_the_first_is_told() -> None:
    """A mean of nothing is 0 in SPARQL, and it is told of a window with readings none of which is hot, at 24 here.
    Of windows without any reading the benchmark's engines tell nothing; here it is told once that one has become
    empty, at 8 and at 28."""
    ends = [Reading(1, "C1190", TEMPERATURE, 90), Reading(22, "C1190", TEMPERATURE, 60)]
    assert close_of("q4", 0, ends) == {4: ["90"], 8: ["0"], 24: ["0"], 28: ["0"]}
    assert [close_of(name, 0, ends) for name in ("q1", "q5")] == [
        {10: ["C1190@1"]},
        {second: ["C1190@1"] for second in range(1, 6)},
    ]


def test_readings_of_one_second_are_one_event() -> None:
    """As the oracle has a graph for each second: a self-join finds both in the smallest window."""
    both = [Reading(3, "C1190", TEMPERATURE, 77), Reading(3, "C1190", TEMPERATURE, 78)]
    assert close_of("q6", 0, both) == {5: ["C1190@3 C1190@3 78"]}


def test_no_readings_no_answers() -> None:
    for name in NAMES:
        assert replayed(query(name), {STREAM: []}) == []


@pytest.mark.parametrize("name", NAMES)
def test_told_live_as_in_a_replay(name: str) -> None:
    assert short(lived(query(name), stream(READINGS), None, 60 * SECOND)) == CLOSED[name]


@pytest.mark.parametrize("name", NAMES)
def test_query_is_explained(name: str) -> None:
    assert f"<{STREAM}>" in str(oxiseq.Query(query(name), "rspql").explain())


readings = st.lists(
    st.builds(
        Reading,
        st.integers(0, 30),
        st.sampled_from(["C1190", "C0837", "C1192"]),
        st.sampled_from([TEMPERATURE, TEMPERATURE, HUMIDITY]),
        st.sampled_from([24, 30, 49, 74, 78, 80, 81, 90]),
    ),
    max_size=12,
    unique=True,
)


@drawn(60)
@given(
    st.sampled_from(NAMES),
    st.sampled_from(["RSTREAM", "ISTREAM", "DSTREAM"]),
    st.sampled_from(["REPORT ON WINDOW CLOSE", "REPORT EVERY 2 SECONDS", ""]),
    st.integers(-8, 8).map(SECOND.__mul__),
    st.sampled_from([0, 1]),
    readings,
)
def test_answers_are_those_of_plain_code(
    name: str, report: str, when: str, begins: int, edge: int, given: list[Reading]
) -> None:
    """Any readings, any t0, both kinds of edges."""
    text, events = query(name, report, when), stream(given, edge - begins)
    assert replayed(text, events) == answers(text, events)
