"""Facts about the time of a match, worked out by hand from semantics.md 2.6a."""

from __future__ import annotations

from typing import Any

import pytest

from oxiseq.grammar.parser import parse
from reference.evaluate import evaluate
from reference.facts import answer, query_text


def told(seq: str, events: str, *, tail: str = "", **more: Any) -> list[str]:
    """The results in their order: `at end A10 B20,30`. Open streams with `open_end`."""
    asked = {name: more.pop(name) for name in ("start", "lateness", "open_end") if name in more}
    rows = answer(query_text(seq, **more) + tail, events, **asked).rows
    shown = [
        [f"{name}{','.join(str(t) for _, t in found)}" for name, found in sorted(row.events.items())] for row in rows
    ]
    return [" ".join([str(row.at), str(row.end), *each]) for row, each in zip(rows, shown, strict=True)]


def within(micros: int, sliding: bool = True) -> str:
    return f"WITHIN PT0.{micros:06}S{' SLIDING' if sliding else ''}"


def after(micros: int) -> str:
    return f"WITHIN PT0.{micros:06}S"


def test_nothing_trails() -> None:
    assert told("N!; A; B WITHIN PT0.000030S", "a b@20 b@30", window=within(50)) == ["20 20 A10 B20"]


def test_the_bound_is_inclusive() -> None:
    assert told(f"A; N! {after(5)}", "a@10 n@15 a@20 n@26") == ["25 20 A20"]


def test_the_window_ends_before_the_bound() -> None:
    assert told(f"A; B; N! {after(50)}", "a@10 b@30", window=within(40)) == ["50 30 A10 B30"]
    events = "a@10 a@65 n@70"  # the window of 60 ends before 70
    assert told(f"A; N! {after(50)}", events, window=within(60, False)) == ["60 10 A10", "69 65 A65"]


def test_a_group_ends_within_its_bound() -> None:
    assert told(f"A; (B; C)! {after(20)}", "a@10 b@15 c@30") == []
    assert told(f"A; (B; C)! {after(20)}", "a@10 b@15 c@31") == ["30 10 A10"]


def test_the_greatest_of_the_deadlines() -> None:
    seq = f"A; N! {after(3)}; M! {after(8)}"
    assert told(seq, "a@10 n@14 a@30 m@38") == ["18 10 A10"]


def test_windows_of_instants() -> None:
    assert told("A; N!", "a@10 b@12 b@17", window="WITHIN 2 EVENTS SLIDING") == ["17 10 A10"]
    assert told("A; N!", "a@10 b@12 n@17", window="WITHIN 2 EVENTS SLIDING") == []
    assert told("A; N!", "a@10 b@12 n@17", window="WITHIN 2 EVENTS") == ["12 10 A10"]
    bounded = f"A; N! {after(4)}"
    assert told(bounded, "a@10 b@12 b@17", window="WITHIN 3 EVENTS SLIDING") == ["14 10 A10"]
    assert told(bounded, "a@10 b@12 b@13", window="WITHIN 2 EVENTS SLIDING") == ["13 10 A10"]


def test_the_end_decides_windows_that_are_not_full() -> None:
    events = "a@10 b@12 2:b@15 ^@19"
    assert told("A; N!", events, window="WITHIN 5 EVENTS SLIDING") == ["19 10 A10"]
    assert told("A; N!", events, window="WITHIN 5 EVENTS") == ["19 10 A10"]
    bounded = f"A; N! {after(40)}"
    assert told(bounded, events, window="WITHIN 5 EVENTS") == ["50 10 A10"]


def test_instants_of_the_partition() -> None:
    bodies = {"A": "?a :kind :a ; :k ?k", "N": "?n :kind :n ; :k ?k"}
    events = "a1@10 b2@11 a2@12 n1@13 b1@14 n2@16 a2@17"
    window = "WITHIN 1 EVENTS SLIDING PARTITION BY ?k"
    assert told("A; N!", "a1@10 n2@11 a1@12 n1@13", window=window, bodies=bodies) == ["12 10 A10"]
    assert told("A; N!", events, window=window, bodies=bodies) == ["17 17 A17"]


def test_open_streams_decide_what_the_watermark_has_passed() -> None:
    seq = f"A; N! {after(5)}"
    assert told(seq, "a@10 a@12 b@15", open_end=True) == []  # of two streams the second has not begun
    assert told(seq, "a@10 a@12 b@15 2:b@90", open_end=True) == []  # 15 may still get a graph
    assert told(seq, "a@10 a@12 b@16 2:b@90", open_end=True) == ["15 10 A10"]
    assert told(seq, "a@10 a@12 ^@18 2:b@90", open_end=True) == ["15 10 A10", "17 12 A12"]
    assert told(seq, "a@10 b@18 2:b@90", open_end=True, lateness=2) == ["15 10 A10"]
    assert told(seq, "a@10 b@18 2:b@90", open_end=True, lateness=3) == []
    assert told("A; N!", "a@10 ^@90 2:^@90", open_end=True, window="WITHIN 2 EVENTS") == []


def test_what_is_before_a_punctuation_is_late() -> None:
    found = answer(query_text("A"), "a@10 ^@20 a@19 a@20", lateness=50)
    assert (found.late, [row.end for row in found.rows]) == (1, [10, 20])


def test_compared_matches_are_decided_together() -> None:
    events, window = "a@10 a@13 b@14", within(20)
    assert told("A : B; N!", events, window=window) == ["30 14 A10 B14", "33 14 A13 B14"]
    for select in ("SELECT LAST *", "SELECT NEXT *"):
        first = "A13" if "LAST" in select else "A10"
        assert told("A : B; N!", events, window=window, select=select) == [f"33 14 {first} B14"]
    both = ["33 14 A10 B14", "33 14 A13 B14"]
    assert told("A : B; N!", events, window=window, select="SELECT MAX *") == both
    assert told("A : B; N!", events, window=window, tail=" LIMIT 1") == both  # which one is free
    assert told("A : B; N!", events, window=window, tail=" ORDER BY ?ka") == both


def test_what_a_filter_behind_seq_drops_is_not_waited_for() -> None:
    text = query_text("A : B; N!", window=within(20), select="SELECT NEXT *")
    filtered = text.replace("N!)", "N!) FILTER(?ka < 5)")
    assert [row.at for row in answer(filtered, "a1@10 a9@13 b@14").rows] == [30]
    assert [row.at for row in answer(text, "a1@10 a9@13 b@14").rows] == [33]


def test_each_partition_for_itself() -> None:
    bodies = {"A": "?a :kind :a ; :k ?k", "B": "?b :kind :b ; :k ?k", "N": "?n :kind :n ; :k ?k"}
    window = f"{within(20)} PARTITION BY ?k"
    events = "a1@10 a1@12 a2@13 b1&b2@14"
    found = told("A : B; N!", events, window=window, bodies=bodies, select="SELECT LAST *")
    assert found == ["32 14 A12 B14", "33 14 A13 B14"]


def test_the_order_of_matches() -> None:
    assert told("A : B", "a@10 a@11 b@20 b@30") == [
        "20 20 A10 B20",
        "20 20 A11 B20",
        "30 30 A10 B30",
        "30 30 A11 B30",
    ]
    assert told("A:+ : B", "a@10 a@11 a@12 b@20") == [  # a prefix would be first
        "20 20 A10,11,12 B20",
        "20 20 A10,11 B20",
        "20 20 A10,12 B20",
        "20 20 A10 B20",
        "20 20 A11,12 B20",
        "20 20 A11 B20",
        "20 20 A12 B20",
    ]
    assert told("A? ; B", "a@10 b@10") == ["10 10 B10"]
    assert told("A | B", "a&b@10") == ["10 10 B10", "10 10 A10"]  # of A no event is before one
    rows = answer(query_text("A", select="SELECT ?ka"), "a3&a1&a2@10").rows
    assert [t.value for row in rows for t in row.bindings.values()] == ["1", "2", "3"]


def test_simultaneous_events_are_in_the_order_of_from_stream() -> None:
    text = query_text("A : B", second="B").replace(" : B)", " | B)")
    assert [list(row.events) for row in answer(text, "2:b@10 a@10").rows] == [["A"], ["B"]]


def test_reports_wait_for_what_is_not_decided() -> None:
    seq, select = f"A; N! {after(5)}", "SELECT (COUNT(*) AS ?n)"

    def rows(events: str, tail: str, **more: Any) -> list[tuple[float, int, str]]:
        found = answer(query_text(seq, select=select, **more) + tail, events).rows
        return [(row.at, row.end, *(t.value for t in row.bindings.values())) for row in found]

    change = " REPORT ON CONTENT CHANGE"
    assert rows("a@10 a@12 a@16 n@19", change) == [(15, 10, "1"), (17, 12, "2")]
    assert rows("a@10 a@11 n@16", change) == [(15, 10, "1")]  # the one of 11 is refuted
    every = " REPORT EVERY PT0.000004S"
    assert rows("a@10 a@16 b@24", every) == [(15, 14, "1"), (21, 18, "2"), (22, 22, "2"), (26, 26, "2")]
    tumbling = {"window": within(8, False)}
    assert rows("a@10 a@16 b@24", "", **tumbling) == [(17, 17, "2"), (25, 25, "0")]
    assert rows("a@10 b@12 n@17", "", window="WITHIN 3 EVENTS") == [(17, 17, "1")]


def test_ticks_go_as_far_as_the_streams_have_come() -> None:
    text = query_text("A", select="SELECT (COUNT(*) AS ?n)", window=within(8, False)) + " REPORT EVERY PT0.000005S"
    for punctuation, ends in (("", [15, 20]), (" ^@24 2:^@24", [15, 20, 25]), (" ^@26 2:^@26", [15, 20, 25, 30])):
        assert [row.end for row in answer(text, "a@10 a@12" + punctuation).rows] == ends
        told = [row.end for row in answer(text, "a@10 a@12" + punctuation, open_end=True).rows]
        assert told == [end for end in ends if punctuation and end < int(punctuation[-2:])]


def test_a_window_of_instants_that_the_end_closes() -> None:
    """Its time is its last instant; it is told behind the punctuation that has been passed on before."""
    text = query_text("A", select="SELECT (COUNT(*) AS ?n)", window="WITHIN 3 EVENTS")
    assert [(row.at, row.end) for row in answer(text, "a@10 a@12 ^@40").rows] == [(40, 12)]


def test_reports_of_one_end() -> None:
    text = query_text("A : B; N!", select="SELECT (COUNT(*) AS ?n)", window=within(20))
    text += " GROUP BY (ENDTIME() AS ?end) REPORT ON CONTENT CHANGE"
    assert [(row.at, row.end) for row in answer(text, "a@10 b@12 a@15 b@16").rows] == [(30, 12), (35, 16)]


def test_rows_of_a_report_are_in_the_order_of_their_keys() -> None:
    text = query_text("A", select="SELECT ?ka (COUNT(*) AS ?n)", window=within(90, False)) + " GROUP BY ?ka"
    assert [[t.value for t in row.bindings.values()] for row in answer(text, "a3 a1 a2 a3").rows] == [
        ["1", "1"],
        ["2", "1"],
        ["3", "2"],
    ]


def test_rows_with_another_at_are_distinct() -> None:
    assert told("A : B; N!", "a@10 a@13 b@14", window=within(20), select="SELECT DISTINCT ?kb") == [
        "30 14 A10 B14",
        "33 14 A13 B14",
    ]


@pytest.mark.parametrize("open_end", [False, True])
def test_a_reader_of_results(open_end: bool) -> None:
    """No result comes late, though the match that ends last is decided first; the reader's absences are decided."""
    bodies = {name: f"?{name.lower()} :kind :{name.lower()} ; :k ?k" for name in "ABN"}
    select = "CONSTRUCT { ?a :kind :x ; :k ?k } INTO STREAM <http://e/s1>"
    first = query_text("A; B; N!", window=within(10), select=select, bodies=bodies)
    alerts = answer(first, "a1@0 a2@5 b2@6 b1@9 ^@30 2:^@40", open_end=open_end)
    assert [(row.start, row.end, row.at) for row in alerts.rows] == [(0, 9, 10), (5, 6, 15)]
    assert [time for time, _ in alerts.written()] == [10, 15, 30]
    reader = query_text(f"X; Y! {after(14)}").replace("FROM STREAM S2 <http://e/s2>", "")
    found = evaluate(parse(reader), {"http://e/s1": alerts.written()}, open_end=open_end)
    assert found.late == 0
    assert [(row.at, row.end) for row in found.rows] == [(24, 10), (29, 15)]
