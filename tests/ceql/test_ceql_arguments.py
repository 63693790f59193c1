"""`oxiseq.run` with CEQL: what may be given, what comes back, and what is said when something is wrong."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import oxiseq
from oxiseq.engine.events.tuples import BATCH_ROWS

VOCAB = "http://example.org/v#"
PAIR = f"VOCAB <{VOCAB}> SELECT * FROM S WHERE A AS x; B AS y FILTER y[v > 1]"
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def table(times: Any = (1, 2, 3), types: Any = ("A", "B", "B"), **columns: Any) -> pa.Table:
    return pa.table({"time": times, "type": types, **(columns or {"v": [1, 2, 3]})})


def spans(found: oxiseq.Matches) -> list[tuple[int, int]]:
    return [(m.positions.first, m.positions.last) for m in found]


def run(streams: Any, text: str = PAIR, **options: Any) -> oxiseq.Matches:
    return oxiseq.run(text, streams, language="ceql", **options)


# --- streams ----------------------------------------------------------------------------------------

FORMS = {
    "table": table(),
    "batch": table().to_batches()[0],
    "batches": table().to_batches(max_chunksize=1),
    "reader": table().to_reader(),
    "pandas": pd.DataFrame({"time": [1, 2, 3], "type": ["A", "B", "B"], "v": [1, 2, 3]}),
    "categories": pd.DataFrame({"time": [1, 2, 3], "type": pd.Categorical(["A", "B", "B"]), "v": [1.0, 2, 3]}),
    "chunks": pa.concat_tables([table()[:1], table()[1:]]),
    "dates": table([EPOCH + timedelta(microseconds=n) for n in (1, 2, 3)]),
    "nanoseconds": table(pa.array([1000, 2000, 3000], pa.timestamp("ns"))),
    "small numbers": table(pa.array([1, 2, 3], pa.uint8()), v=pa.array([1, 2, 3], pa.int8())),
    "another zone": table(pa.array([1, 2, 3], pa.timestamp("us", "Europe/Berlin"))),
    "no zone": table(pa.array([1, 2, 3], pa.timestamp("us"))),
    "IRIs": table(types=[f"{VOCAB}A", f"{VOCAB}B", f"{VOCAB}B"]),
}


@pytest.mark.parametrize("form", FORMS)
def test_forms_of_tables(form: str) -> None:
    found = run({"S": FORMS[form]})
    assert spans(found) == [(0, 1), (0, 2)] and [m.at_us for m in found] == [2, 3]


def test_a_stream_goes_by_its_name_or_its_iri() -> None:
    assert len(run({f"{VOCAB}S": table()})) == len(run({"S": table()})) == 2
    assert len(run({"urn:mine": table()}, stream_names={"S": "urn:mine"})) == 2
    assert run({"S": table()}, stream_names={"S": "urn:mine"})[0].events["y"] == (("urn:mine", 2),)


def test_days_and_csv_files(tmp_path: Path) -> None:
    """An empty field is missing, an empty text stands in quotes, `NA` is a text."""
    text = f"VOCAB <{VOCAB}> SELECT x FROM S WHERE A AS x FILTER x[{{}}]"
    path = tmp_path / "a.csv"
    path.write_text('time,type,k,v\n2024-05-01,A,,1\n2024-05-02,A,"",2.5\n2024-05-03,A,NA,\n', encoding="utf-8")
    found = {
        condition: [m.positions.first for m in run({"S": path}, text.format(condition))]
        for condition in ("k = ''", "k = 'NA'", "v > 0", "NOT v > 2", "k != 'x'")
    }
    assert found == {"k = ''": [1], "k = 'NA'": [2], "v > 0": [0, 1], "NOT v > 2": [0], "k != 'x'": [1, 2]}
    (match,) = run({"S": str(path)}, text.format("v = 1"))
    assert match.at == datetime(2024, 5, 1, tzinfo=UTC)


def test_simultaneous_events_stand_in_the_order_of_from() -> None:
    text = f"VOCAB <{VOCAB}> SELECT * FROM T, S WHERE A; B"
    first, second = table([1, 1, 2], ["A", "A", "B"]), table([1, 2, 2], ["B", "B", "A"])
    found = run({"S": second, "T": first}, text)
    assert sorted(spans(found)) == [(0, 2), (0, 3), (0, 4), (1, 2), (1, 3), (1, 4)]
    assert {m.events["B"][0] for m in found} == {(f"{VOCAB}S", 1), (f"{VOCAB}T", 2), (f"{VOCAB}S", 2)}


def test_long_tables_are_read_in_parts() -> None:
    count = 2 * BATCH_ROWS + 10
    types = np.full(count, "B")
    types[0], types[-1] = "A", "A"
    found = run({"S": table(np.arange(count), types, v=np.arange(count) % 3)}, PAIR + " WITHIN 20 SECONDS LIMIT 1")
    assert len(found) == sum(n % 3 == 2 for n in range(1, count - 1)) and found.events == count
    assert found[-1].positions.last > 2 * BATCH_ROWS and found[-1].events["A"] == ((f"{VOCAB}S", 0),)


def test_a_stream_without_events() -> None:
    assert not run({}) and not run({"S": []}) and not run({"S": table()[:0]})


# --- order and lateness -----------------------------------------------------------------------------


def test_rows_whose_time_falls_are_late() -> None:
    found = run({"S": table([2, 1, 3], v=[5, 1, 7], k=["x", None, "y"]).to_reader()}, late="ignore")
    assert found.late == 1 and spans(found) == [(0, 1)]
    (late,) = found.late_events()
    assert (late.stream, late.time_us) == (f"{VOCAB}S", 1)
    assert {str(t.predicate).rpartition("#")[2]: t.object.value for t in late.graph} == {
        "type>": f"{VOCAB}B",
        "v>": "1",
    }


def test_late_rows_may_have_columns_that_arrow_cannot_take_from() -> None:
    views = pa.array(["p", "q", None, "r", "s"], pa.string_view())
    found = run(
        {"S": table((3, 1, 2, 4, 1), ("A", "B", "C", "B", "C"), v=[1, 2, 3, 2, 3], k=views).to_reader()}, late="ignore"
    )
    assert spans(found) == [(0, 1)]
    values = [[t.object.value for t in late.graph if t.predicate.value == f"{VOCAB}k"] for late in found.late_events()]
    assert values == [["q"], [], ["s"]]


def test_lateness_lets_them_be_sorted() -> None:
    found = run({"S": table([2, 3, 1], ["B", "B", "A"]).to_reader()}, lateness=timedelta(microseconds=2))
    assert found.late == 0 and spans(found) == [(0, 2)]


def test_events_before_the_start_are_not_seen() -> None:
    assert spans(run({"S": table([1, 2, 3], ["A", "A", "B"])}, origin=2)) == [(0, 1)]


# --- answers ----------------------------------------------------------------------------------------


def test_matches_are_a_sequence() -> None:
    found = run({"S": table()})
    first, second = found
    assert len(found) == 2 and found and found[-1].positions.last == second.positions.last == 2
    assert spans(found[1:]) == [(0, 2)] and spans(found.sorted()) == [(0, 1), (0, 2)]
    assert first.positions.all == (0, 1) and first.positions.by == {"A": (0,), "x": (0,), "B": (1,), "y": (1,)}
    assert first.events["y"] == ((f"{VOCAB}S", 2),) and first.at == EPOCH + timedelta(microseconds=2)
    assert found.variables == ("A", "x", "B", "y") and repr(found) == "<Matches: 2 of (A, x, B, y)>"
    assert repr(first) == "<Match 1970-01-01T00:00:00.000002Z [0, 1] A=[0] x=[0] B=[1] y=[1]>"
    assert "<td>0 2</td>" in found._repr_html_()
    with pytest.raises(KeyError, match="no variable 'z'; the query answers: no terms"):
        first["z"]
    with pytest.raises(KeyError, match=r"'y' holds events: \.events\['y'\]"):
        first["y"]


def test_columns_of_the_answer() -> None:
    found = run({"S": table()}, PAIR.replace("SELECT *", "SELECT y, A")).to_arrow()
    assert found.column_names == ["at", "start", "end", "first", "last", "positions", "y", "A", "events_y", "events_A"]
    assert found["y"].to_pylist() == [[1], [2]] and found["positions"].to_pylist() == [[0, 1], [0, 2]]
    assert found["events_y"].to_pylist()[0] == [EPOCH + timedelta(microseconds=2)]
    assert run({"S": table()}).to_pandas()["last"].tolist() == [1, 2]


def test_an_answer_without_variables_keeps_its_interval() -> None:
    found = run({"S": table()}, PAIR.replace("SELECT *", "SELECT z").replace("x; B", "x; (B OR (C AS z))"))
    assert [m.positions for m in found] == [(0, 1, (), {}), (0, 2, (), {})]
    assert [(m.events, m.start, m.at_us) for m in found] == [({}, None, 2), ({}, None, 3)]


# --- what is wrong ----------------------------------------------------------------------------------

WRONG: dict[str, tuple[Any, str]] = {
    "no type": (pa.table({"time": [1], "v": [1]}), "the table: no column 'type' for the type; it has time, v"),
    "no time": (pa.table({"type": ["A"]}), "no column 'time' for the time"),
    "two times": (
        pa.Table.from_arrays([pa.array([1])] * 2 + [pa.array(["A"])], ["time", "time", "type"]),
        "two columns are called 'time'",
    ),
    "a null time": (table([1, None, 3]), "an event without a time: a null in the column 'time'"),
    "a time that is text": (
        table(["1", "2", "3"]),
        "the column 'time': not a valid time: .*; 2024-05-01T10:00:00Z,",
    ),
    "far away": (table(pa.array([1, 2, 2**64 - 1], pa.uint64())), "the column 'time'"),
    "types that are numbers": (table(types=[1, 2, 3]), "the column 'type' holds int64; the names of types are text"),
    "lists": (table(v=[[1], [2], [3]]), "the column 'v' holds list<.*>, which is no attribute of an event"),
    "a mixture": (pd.DataFrame({"time": [1, 2], "type": ["A", "B"], "v": [1, "x"]}), "mixed types: .*column v"),
}


@pytest.mark.parametrize("what", WRONG)
def test_what_is_wrong_with_a_table_is_said(what: str) -> None:
    given, message = WRONG[what]
    with pytest.raises(oxiseq.EventError, match=message):
        run({"S": given})


def test_columns_that_nothing_asks_for_may_be_anything() -> None:
    assert len(run({"S": table(v=[1, 2, 3], z=[[1], [2], [3]])})) == 2


def test_a_column_that_is_not_there_is_an_attribute_that_is_missing() -> None:
    assert not run({"S": table(w=[1, 2, 3])})


def test_a_file_that_is_no_table(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    with pytest.raises(oxiseq.EventError, match=r"a.csv: there is no such file"):
        run({"S": path})
    path.write_text("time,type\n1,A,3\n", encoding="utf-8")
    with pytest.raises(oxiseq.EventError, match=r"a.csv: not a readable table: "):
        run({"S": path})


def test_what_else_may_be_wrong() -> None:
    with pytest.warns(UserWarning, match=f"reads no stream 'X': .*; the query reads S <{VOCAB}S>"):
        assert len(run({"X": table()})) == 0
    with pytest.raises(oxiseq.OxiseqError, match="given twice"):
        run({"S": table(), f"{VOCAB}S": table()})
    with pytest.raises(oxiseq.OxiseqError, match=r"a\.ttl"):
        run({"S": table()}, kb="a.ttl")
    with pytest.raises(oxiseq.OxiseqError, match="lateness=-1us is out of range"):
        run({"S": table()}, lateness="-1us")
    with pytest.raises(oxiseq.QueryError, match="no VOCAB"):
        run({"S": table()}, "SELECT * FROM S WHERE A")
    with pytest.raises(oxiseq.OxiseqError, match="the language 'sql' is not known; known: spaseq, ceql"):
        oxiseq.run(PAIR, {}, language="sql")  # type: ignore[call-overload]  # the wrong argument is the point
    with pytest.raises(oxiseq.OxiseqError, match="stream_names is for CEQL"):
        oxiseq.run(
            "SELECT * FROM STREAM S <urn:s> WHERE { SEQ(A) DEFINE GPM A ON S { ?s ?p ?o } }",
            {},
            stream_names={"S": "urn:x"},
        )  # type: ignore[call-overload]  # the same


def test_numbers_are_compared_exactly() -> None:
    """Beyond 2^53 an integer is not its double; with a double constant it is promoted."""
    text = f"VOCAB <{VOCAB}> SELECT x FROM S WHERE A AS x FILTER x[{{}}]"
    rows = table(
        types=["A", "A", "A"],
        v=[2**53, 2**53 + 1, None],
        d=[Decimal("0.1"), Decimal("0.3"), None],
        day=[date(2024, 1, 1), None, date(2025, 1, 1)],
    )
    found = {
        condition: [m.positions.first for m in run({"S": rows}, text.format(condition))]
        for condition in (
            "v = 9007199254740993",
            "v = 9007199254740993e0",
            "v > 9007199254740992",
            "d + 0.2 = 0.3",
            "d = 0.1",
            "day < '2024-06-01'^^<http://www.w3.org/2001/XMLSchema#date>",
        )
    }
    assert list(found.values()) == [[1], [0, 1], [1], [0], [0], [0]]
