"""Time as an expression of the mapping: against Python, and what is refused."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mapped_rows import events_of, rows_of

import oxiseq
from oxiseq.engine.errors import EventError, LimitError
from oxiseq.mappings.declared import StreamMapping
from oxiseq.mappings.plan import MappingError
from oxiseq.mappings.rows import csv_table

FLAT: Final[dict[str, Any]] = {"subject": "http://e/{id}", "predicates": {"http://e/p": "temp"}}
TEN: Final = int(datetime(2024, 5, 1, 10, tzinfo=UTC).timestamp()) * 1_000_000
SECONDS: Final = TEN // 1_000_000


def flat(expression: Any, **more: Any) -> dict[str, Any]:
    return {**FLAT, "time": {"expression": expression}, **more}


@pytest.mark.parametrize(
    ("expression", "row", "more", "expected"),
    [
        ("?start + ?ms / 1000", {"start": SECONDS, "ms": 250}, {"unit": "s"}, TEN + 250_000),
        ("xsd:dateTime(CONCAT(?day, 'T', ?clock, ':00Z'))", {"day": "2024-05-01", "clock": "10:00"}, {}, TEN),
        ("CONCAT(?day, ' ', ?clock, ':00')", {"day": "2024-05-01", "clock": "12:00"}, {"zone": "Europe/Berlin"}, TEN),
        ("COALESCE(?ts, ?sent_at)", {"sent": {"at": SECONDS}}, {"unit": "s"}, TEN),
        ("IF(?unit = 'ms', ?t / 1000, ?t)", {"unit": "ms", "t": SECONDS * 1000}, {"unit": "s"}, TEN),
        ("?t * 1.0e0", {"t": SECONDS}, {"unit": "s"}, TEN),
        ("x:string(?t)", {"t": "2024-05-01T10:00:00Z"}, {"prefixes": {"x": "http://www.w3.org/2001/XMLSchema#"}}, TEN),
        ("?t # the sensor's own clock", {"t": TEN}, {"unit": "us"}, TEN),
    ],
)
def test_expressions(expression: str, row: dict[str, Any], more: dict[str, Any], expected: int) -> None:
    events, bad = rows_of([{"id": 1, "temp": 20, **row}], flat(expression, **more))
    assert ([time for time, _ in events], bad) == ([expected], [])


def test_a_construct_query_has_one_too() -> None:
    where = "BIND(IRI(CONCAT('http://e/', STR(?id))) AS ?s)"
    query = {"construct": f"CONSTRUCT {{ ?s <http://e/p> ?temp }} WHERE {{ {where} }}"}
    rows = [{"id": 1, "temp": 20, "day": "2024-05-01"}]
    plain, _ = rows_of(rows, {**query, "time": "day"})
    assert rows_of(rows, {**query, "time": {"expression": "STR(?day)"}})[0] == plain != []


CELLS: Final = st.one_of(st.none(), st.integers(-5, 5), st.just("x"))


@given(st.lists(st.tuples(CELLS, CELLS), max_size=12))
def test_rows_have_the_time_of_their_own_columns(cells: list[tuple[Any, Any]]) -> None:
    rows = [{"id": n, "temp": 1, "a": a, "b": b} for n, (a, b) in enumerate(cells)]
    events, bad = rows_of(rows, flat("?a * 10 + ?b", unit="s"))
    wanted = [a * 10 + b for a, b in cells if isinstance(a, int) and isinstance(b, int)]
    assert [time for time, _ in events] == [time * 1_000_000 for time in wanted]
    assert [(each.place, each.column, each.reason) for each in bad] == [
        (n, "a and b", "there is no time")
        for n, (a, b) in enumerate(cells, 1)
        if not (isinstance(a, int) and isinstance(b, int))
    ]


def test_more_rows_than_are_evaluated_together() -> None:
    rows = [{"id": n, "temp": 1, "t": n} for n in range(9_000)]
    events, bad = rows_of(rows, flat("?t + 1", unit="s"))
    assert ([time for time, _ in events], bad) == ([n * 1_000_000 for n in range(1, 9_001)], [])


@pytest.mark.parametrize(
    ("expression", "reason"),
    [
        ("?start +", "the expression ends too early\nline 1, column 9"),
        ("", "the expression ends too early"),
        ("?a + FOO(?b)", "no function FOO\nline 1, column 6"),
        ("\n?a ++ )", "line 2"),
        ("xsd:x(?a)", "is not supported"),
        ("1 + 1", "reads no column"),
        ("?a AS ?x) BIND(?b", "one expression is expected"),
        ("?a AS ?time) } #", "ends too early"),
        ("EXISTS { ?a ?b ?c }", "EXISTS"),
        ("CONCAT(" + ", ".join(["?a"] * 1001) + ")", "1,000 times as long"),
        ("?a" + " " * 9_000, "at most 8,192 characters"),
        (5, "is expected, not"),
        (None, "is expected, not"),
    ],
)
def test_what_is_no_expression(expression: Any, reason: str) -> None:
    with pytest.raises(MappingError) as caught:
        StreamMapping(flat(expression))
    assert reason in str(caught.value)


def test_times_beside_an_expression_are_refused() -> None:
    for time in ({"expression": "?a", "more": 1}, {}, {"column": "a"}):
        with pytest.raises(MappingError, match="is expected, not"):
            StreamMapping({**FLAT, "time": time})


def test_a_table_without_a_column_of_the_expression_is_refused() -> None:
    mapping = StreamMapping(flat("?day"))
    with pytest.raises(EventError, match="no column 'day'"):
        events_of(csv_table(b"id,temp,date\n1,2,3\n", mapping.key), mapping)


def test_two_columns_of_one_variable_are_refused() -> None:
    with pytest.raises(EventError, match="the same variable"):
        rows_of([{"id": 1, "temp": 1, "a.b": 1, "a_b": 1}], flat("?a_b"))


def test_numbers_that_seem_to_be_of_another_unit_are_refused() -> None:
    with pytest.raises(EventError, match="seconds"):
        rows_of([{"id": 1, "temp": 1, "t": SECONDS}], flat("?t + 0"))


@pytest.mark.parametrize("datatype", ["integer", "decimal", "double", "float"])
def test_a_text_that_is_called_a_number_spoils_its_own_row_alone(datatype: str) -> None:
    rows = [{"id": n, "temp": 1, "t": t} for n, t in enumerate(["abc", "17", "1" * 5_000])]
    events, bad = rows_of(rows, flat(f"STRDT(?t, xsd:{datatype})", unit="us"))
    assert [time for time, _ in events] == [17] and len(bad) == 2


def test_the_text_of_times_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("oxiseq.mappings.plan.MOST_TEXT", 1000)
    with pytest.raises(LimitError, match="characters"):
        rows_of([{"id": 1, "temp": 1, "t": "x" * 400}], flat("CONCAT(?t, ?t, ?t)"))


def test_an_expression_goes_with_its_stream() -> None:
    mapping = StreamMapping(flat("?t + 1", unit="s"))
    assert StreamMapping(mapping.as_data()) == mapping and mapping.columns == ("id", "temp", "t")
    stream = oxiseq.open().stream("http://e/S", mapping=mapping)
    stream.push({"id": 1, "temp": 1, "t": 1})
    with pytest.raises(EventError, match="time is given twice"):
        stream.push({"id": 1, "temp": 1, "t": 1}, 5)
    with pytest.raises(EventError, match="there is no time"):
        stream.push({"id": 1, "temp": 1, "t": "late"})
    assert stream.events == 1
