"""Matches as objects, tables, JSON and HTML; the answers of ASK, CONSTRUCT and DISTINCT."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pyoxigraph as ox
import pytest
from live_queries import PAYMENTS, E, S, paid, query

import oxiseq

XSD = "http://www.w3.org/2001/XMLSchema#"
TERMS = {
    "integer": "5",
    "odd integer": f'"005"^^<{XSD}integer>',
    "huge": "123456789012345678901234567890",
    "decimal": "2.50",
    "double": "1e3",
    "NaN": f'"NaN"^^<{XSD}double>',
    "boolean": "true",
    "string": '"a \\"b\\" \\\\ \\n <c> & é 🙂"',
    "language": '"chat"@fr-BE',
    "date": f'"2024-01-01T00:00:00Z"^^<{XSD}dateTime>',
    "iri": f"<{E}a?b=c&d>",
    "unknown": '"x"^^<http://e/type>',
}


def said(term: str, text: str = "") -> oxiseq.Matches:
    """One event with one object."""
    return oxiseq.run(text or query("SELECT ?first", "A"), streams={S: [(1, f"<{E}ann> <{E}paid> {term} .")]})


def optional(form: str = "SELECT ?who ?also") -> oxiseq.Matches:
    """Two payments, only the second with ?also."""
    events = [(1, paid(1)), (2, f"{paid(2)} <{E}ann> <{E}to> <{E}bob> .")]
    return oxiseq.run(query(form, "A", a="OPTIONAL { ?who :to ?also }"), streams={S: events})


# --- one match --------------------------------------------------------------------------------------


def test_a_match_has_time_bindings_and_events() -> None:
    first, second = oxiseq.run(query(), streams={S: PAYMENTS})
    assert first.at_us == 2
    assert first.at == datetime(1970, 1, 1, 0, 0, 0, 2, tzinfo=UTC)
    assert list(first) == ["who", "first", "second"]
    assert dict(first)["who"] == first["who"] == ox.NamedNode(E + "ann")
    assert first.events == {"A": ((S, 1),), "B": ((S, 2),)}
    assert second.events == {"A": ((S, 2),), "B": ((S, 3),)}
    assert "2" in repr(first) and "ann" in repr(first)


def test_the_events_of_a_repeat_are_in_order() -> None:
    found = oxiseq.run(query("SELECT ?first", "A; B{2}", b=""), streams={S: [*PAYMENTS, (4, paid(1))]})
    assert [m.events for m in found] == [
        {"A": ((S, 1),), "B": ((S, 2), (S, 3))},
        {"A": ((S, 2),), "B": ((S, 3), (S, 4))},
    ]


def test_an_unknown_variable_is_told_with_those_there_are() -> None:
    match = oxiseq.run(query(), streams={S: PAYMENTS})[0]
    with pytest.raises(KeyError, match=r"no variable 'x'; the query answers: who, first, second"):
        _ = match["x"]


def test_an_unbound_variable_is_not_there() -> None:
    without, with_ = optional()
    assert without.get("also") is None and "also" not in without and "also" in with_
    with pytest.raises(KeyError, match=r"\?also is unbound in this match: \.get\('also'\) is None"):
        _ = without["also"]
    assert with_["also"] == ox.NamedNode(E + "bob")


# --- all matches ------------------------------------------------------------------------------------


def test_matches_are_a_sequence() -> None:
    found = oxiseq.run(query(), streams={S: PAYMENTS})
    assert len(found) == 2 and found
    assert [m.at_us for m in found] == [m.at_us for m in found] == [2, 3]
    assert (found[0].at_us, found[1].at_us, found[-1].at_us) == (2, 3, 3)
    for beyond in (2, -3):
        with pytest.raises(IndexError):
            _ = found[beyond]
    assert (found.events, found.late) == (3, 0)
    assert repr(found) == "<Matches: 2 of (who, first, second)>"


def test_no_matches() -> None:
    found = oxiseq.run(query(), streams={S: []})
    assert len(found) == 0 and not found and list(found) == []
    assert found.to_arrow().num_rows == 0
    assert found.to_arrow().column_names == ["at", "start", "end", "who", "first", "second", "events_A", "events_B"]
    assert len(found.to_pandas()) == 0
    assert json.loads(found.write(format="json")) == {
        "head": {"vars": ["who", "first", "second"]},
        "results": {"bindings": []},
    }
    assert "0 matches" in found._repr_html_()


def test_equal_end_times_can_be_sorted_by_events() -> None:
    events = [(1, paid(1)), (2, paid(2)), (3, paid(3)), (4, paid(9))]
    found = oxiseq.run(query(sequence="A: B"), streams={S: events}).sorted()
    assert [[t for name in "AB" for _, t in m.events[name]] for m in found] == [
        [1, 2],
        [1, 3],
        [2, 3],
        [1, 4],
        [2, 4],
        [3, 4],
    ]


def test_a_slice_of_the_matches() -> None:
    found: Any = oxiseq.run(query(), streams={S: PAYMENTS})
    assert [m.at_us for m in found[1:]] == [3]


def test_the_last_day_of_the_year_9999_is_shown_and_the_next_is_refused() -> None:
    last, day = 253_402_300_799_999_999, 86_400_000_000
    found = oxiseq.run(query("SELECT ?first", "A"), streams={S: [(last, paid(1))]})
    assert "9999-12-31" in repr(found[0])
    assert "9999-12-31" in found._repr_html_()
    with pytest.raises(oxiseq.EventError, match="outside of the years 1 to 9999"):
        oxiseq.run(query("SELECT ?first", "A"), streams={S: [(last + day, paid(1))]}).to_arrow()


# --- tables -----------------------------------------------------------------------------------------


def test_columns_of_an_arrow_table() -> None:
    table = oxiseq.run(query(), streams={S: PAYMENTS}).to_arrow()
    assert table.column_names == ["at", "start", "end", "who", "first", "second", "events_A", "events_B"]
    assert table.schema.field("at").type == pa.timestamp("us", tz="UTC")
    assert table.column("second").to_pylist() == [40, 50]
    assert table.schema.field("second").type == pa.int64()
    assert table.column("who").to_pylist() == [E + "ann"] * 2
    assert [[t.microsecond for t in times] for times in table.column("events_A").to_pylist()] == [[1], [2]]


@pytest.mark.parametrize(
    ("terms", "kind", "values"),
    [
        (["1", "02"], pa.int64(), [1, 2]),
        (["1.5", "2e0"], pa.float64(), [1.5, 2.0]),
        (["1", '"a"@en'], pa.string(), ["1", "a"]),
        (["1", TERMS["huge"]], pa.string(), ["1", TERMS["huge"]]),
    ],
)
def test_type_of_a_column(terms: list[str], kind: pa.DataType, values: list[object]) -> None:
    events = [(i, f"<{E}ann> <{E}paid> {term} .") for i, term in enumerate(terms)]
    column = oxiseq.run(query("SELECT ?first", "A"), streams={S: events}).to_arrow().column("first")
    assert column.type == kind
    assert column.to_pylist() == values


def test_unbound_is_null() -> None:
    assert optional().to_arrow().column("also").to_pylist() == [None, E + "bob"]


def test_columns_with_the_names_of_ours() -> None:
    found = oxiseq.run(query("SELECT (?first AS ?at) (?first AS ?events_A)", "A"), streams={S: PAYMENTS})
    table = found.to_arrow()
    assert table.column_names == ["at", "start", "end", "at_", "events_A", "events_A_"]
    assert table.column(0).type == pa.timestamp("us", tz="UTC")


def test_a_pandas_frame() -> None:
    frame = oxiseq.run(query(), streams={S: PAYMENTS}).to_pandas()
    assert frame["second"].tolist() == [40, 50]
    assert str(frame["at"].dtype) == "datetime64[us, UTC]"


# --- SPARQL JSON ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", TERMS)
def test_terms_come_back_from_sparql_json(name: str) -> None:
    found = said(TERMS[name])
    parsed = ox.parse_query_results(found.write(format="json"), format=ox.QueryResultsFormat.JSON)
    assert isinstance(parsed, ox.QuerySolutions)
    assert [v.value for v in parsed.variables] == ["first"]
    assert [row["first"] for row in parsed] == [m["first"] for m in found]


def test_blank_nodes_and_unbound_in_sparql_json() -> None:
    read = json.loads(said("_:b").write(format="json"))["results"]["bindings"]
    assert [row["first"]["type"] for row in read] == ["bnode"]
    parsed = ox.parse_query_results(optional().write(format="json"), format=ox.QueryResultsFormat.JSON)
    assert isinstance(parsed, ox.QuerySolutions)
    assert [row["also"] for row in parsed] == [None, ox.NamedNode(E + "bob")]


# --- HTML -------------------------------------------------------------------------------------------


def test_html_is_escaped() -> None:
    shown = said('"<script>alert(1)</script> & \\"x\\""')._repr_html_()
    assert "<script>" not in shown
    assert "&lt;script&gt;alert(1)&lt;/script&gt; &amp;" in shown
    assert "<th>?first</th>" in shown and "1 matches" in shown


def test_html_shows_no_more_than_a_page() -> None:
    events = [(i, paid(i)) for i in range(250)]
    shown = oxiseq.run(query("SELECT ?first", "A"), streams={S: events})._repr_html_()
    assert "250 matches" in shown
    assert shown.count("<tr>") == 1 + 100


# --- ASK, CONSTRUCT, DISTINCT -----------------------------------------------------------------------


def test_ask() -> None:
    yes, no = oxiseq.run(query("ASK"), streams={S: PAYMENTS}), oxiseq.run(query("ASK"), streams={S: PAYMENTS[:1]})
    assert yes and not no
    assert json.loads(yes.write(format="json")) == {"head": {}, "boolean": True}
    assert json.loads(no.write(format="json")) == {"head": {}, "boolean": False}
    assert ox.parse_query_results(yes.write(format="json"), format=ox.QueryResultsFormat.JSON)
    assert yes.to_arrow().column_names == ["at", "start", "end", "events_A", "events_B"]


def test_construct_makes_fresh_blank_nodes_for_each_match() -> None:
    form = "CONSTRUCT { [] :who ?who ; :rise _:x . _:x :to ?second ; :at (ENDTIME()) }"
    first, second = (m.graph for m in oxiseq.run(query(form), streams={S: PAYMENTS}))
    assert len(first) == len(second) == 4
    subjects = [{t.subject for t in graph} for graph in (first, second)]
    assert all(len(s) == 2 and all(isinstance(n, ox.BlankNode) for n in s) for s in subjects)
    assert not subjects[0] & subjects[1]
    (rise,) = [t for t in first if t.predicate.value == E + "rise"]
    assert {t.predicate.value for t in first if t.subject == rise.object} == {E + "to", E + "at"}
    (at,) = [t.object for t in first if t.predicate.value == E + "at"]
    assert at == ox.Literal("1970-01-01T00:00:00.000002Z", datatype=ox.NamedNode(XSD + "dateTime"))


def test_construct_leaves_out_triples_that_are_none() -> None:
    """Unbound, or a literal as subject; a triple that two lines make stands once."""
    form = "CONSTRUCT { ?who :to ?also . ?first :of ?who . ?who :seen true . ?who :seen true }"
    without, with_ = optional(form)
    assert [t.predicate.value for t in without.graph] == [E + "seen"]
    assert [t.predicate.value for t in with_.graph] == [E + "to", E + "seen"]


def test_the_graph_of_a_match_reads_the_same_twice() -> None:
    (match,) = said("1", query("CONSTRUCT { [] :who ?who }", "A"))
    assert match.graph == match.graph


def test_select_has_no_graph() -> None:
    assert oxiseq.run(query(), streams={S: PAYMENTS})[0].graph == ()


def test_distinct_is_per_end_time_and_row() -> None:
    events = [(1, paid(1)), (2, paid(2)), (3, paid(9)), (4, paid(9))]
    every = oxiseq.run(query("SELECT ?second", "A: B"), streams={S: events})
    distinct = oxiseq.run(query("SELECT DISTINCT ?second", "A: B"), streams={S: events})
    assert [m.at_us for m in every] == [2, 3, 3, 4, 4]
    assert [m.at_us for m in distinct] == [2, 3, 4]
