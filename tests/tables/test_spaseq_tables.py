"""SPAseq over tables answers what it answers over the graphs that the rows stand for (semantics.md 3)."""

from __future__ import annotations

import gzip
import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import Dice

import oxiseq
from oxiseq.engine.errors import EventError, OxiseqError
from oxiseq.engine.events.row_graphs import row_graphs
from oxiseq.engine.events.tuples import Naming, read_rows
from oxiseq.languages.registry import language_named
from oxiseq.options import Options

V = "http://e/v#"
MOMENT = datetime(2026, 1, 1, tzinfo=UTC)
COLUMNS: dict[str, tuple[pa.DataType, list[Any]]] = {
    "integers": (pa.int64(), [1, 2, 3, -1, 2**53 + 1, 2**63 - 1, -(2**63)]),
    "small": (pa.int8(), [1, 2, 3]),
    "unsigned": (pa.uint64(), [1, 2, 2**64 - 1]),
    "doubles": (pa.float64(), [1.0, 2.0, 2.5, -0.0, 0.0, 1e20, 1e-7, 5e-324, math.nan, math.inf, -math.inf]),
    "floats": (pa.float32(), [1.0, 2.5, 0.1, 1e20, math.nan, math.inf]),
    "decimals": (pa.decimal128(10, 3), [Decimal("1.000"), Decimal("2.5")]),
    "texts": (pa.string(), ["x", "y", 'a "quoted" text\n', "", "ä"]),
    "codes": (pa.dictionary(pa.int32(), pa.string()), ["x", "y", "1"]),
    "truth": (pa.bool_(), [True, False]),
    "moments": (pa.timestamp("ms", "UTC"), [MOMENT, MOMENT + timedelta(seconds=1)]),
    "days": (pa.date32(), [date(2026, 1, 1), date(2026, 1, 2)]),
}
QUERIES = [
    "SEQ(A ; B) DEFINE GPM A ON S { ?a a :A ; :k ?k ; :v ?v } DEFINE GPM B ON S { ?b a :B ; :k ?k ; :v ?w }",
    "SEQ(A : B) DEFINE GPM A ON S { ?a a :A ; :v ?v } DEFINE GPM B ON S { ?b :v ?w . FILTER(?w >= ?v) }",
    "SEQ(A , B) DEFINE GPM A ON S { ?a :v ?v . FILTER(?v > 1) } DEFINE GPM B ON S { ?b :k ?k . OPTIONAL { ?b :v ?w } }",
    "SEQ(A ; B:+ ; C) DEFINE GPM A ON S { ?a a :A } DEFINE GPM B ON S { ?b :v ?v } "
    "DEFINE GPM C ON S { ?c a :B ; :k ?k }",
    "SEQ(A ; N! ; B) DEFINE GPM A ON S { ?a a :A ; :k ?k } DEFINE GPM N ON S { ?n :k ?k ; :v 2 } "
    "DEFINE GPM B ON S { ?b a :B ; :k ?k }",
    "SEQ(A & B) DEFINE GPM A ON S { ?a :k ?k } DEFINE GPM B ON T { ?b :k ?k }",
    "SEQ(A) DEFINE GPM A ON S { ?a ?p ?v }",
    "SEQ(A) DEFINE GPM A ON S { ?a :k|:v ?v }",
    "SEQ(A) DEFINE GPM A ON S { ?a !:k ?v }",
    "SEQ(A) DEFINE GPM A ON S { ?a :k ?k . FILTER NOT EXISTS { ?a :v ?v } }",
    "SEQ(A) DEFINE GPM A ON S { ?a a <urn:other:A> ; :k ?k }",
]


def table(dice: Dice, name: str) -> pa.Table:
    """Some rows with a type, a key and a value of any kind of column; anything but the time may be missing."""
    count = dice.between(0, 8)
    times: list[int] = []
    for _ in range(count):
        times.append((times[-1] if times else 10**15) + dice.pick([0, 1, 1, 3]))
    columns: dict[str, pa.Array] = {"time": pa.array(times, pa.int64())}
    if not dice.chance(10):
        types = [dice.pick(["A", "B", None, V + "A", "urn:other:A"]) for _ in range(count)]
        columns["type"] = pa.array(types, pa.string())
    for name in ("k", "v", "unasked"):
        if dice.chance(90):
            kind, values = COLUMNS[dice.pick(sorted(COLUMNS))]
            columns[name] = pa.array([None if dice.chance(15) else dice.pick(values) for _ in range(count)], kind)
    return pa.table(columns)


def graphs(rows: pa.Table) -> list[tuple[int, Any]]:
    return [pair for batch in read_rows(rows, Naming(typed=False)) for pair in row_graphs(batch, V)]


def told(found: oxiseq.Matches) -> list[Any]:
    """All that matches say; blank nodes are named otherwise in each run."""
    shown = []
    for match in found:
        row = {name: "_" if str(term).startswith("_:") else str(term) for name, term in match.items()}
        shown.append((match.at_us, row, match.events))
    return shown


@given(st.integers(0, 2**62))
def test_tables_answer_as_their_graphs_do(seed: int) -> None:
    dice = Dice(seed)
    clauses = dice.pick(["", "WITHIN 3 EVENTS SLIDING", "WITHIN 0.000002 SECONDS", "PARTITION BY ?k"])
    select = dice.pick(["*", "NEXT *", "DISTINCT *"])
    where = dice.pick(QUERIES)
    if "PARTITION" in clauses and where not in (QUERIES[0], QUERIES[4]):
        clauses = ""
    text = f"PREFIX : <{V}> SELECT {select} {clauses} FROM STREAM S <{V}S> FROM STREAM T <{V}T> WHERE {{ {where} }}"
    tables = {name: table(dice, name) for name in ("S", "T")}
    by_rows = oxiseq.run(text, tables)
    by_graphs = oxiseq.run(text, {name: graphs(rows) for name, rows in tables.items()})
    assert told(by_rows) == told(by_graphs)
    assert by_rows.events == by_graphs.events


TEXT = (
    f"PREFIX : <{V}> SELECT ?k ?v FROM STREAM S <{V}S> WHERE {{ SEQ(A ; B) "
    "DEFINE GPM A ON S { ?a a :A ; :k ?k } DEFINE GPM B ON S { ?b a :B ; :k ?k ; :v ?v } }"
)
ROWS = pa.table(
    {"time": [1, 2, 3], "type": ["A", "B", "B"], "k": ["x", "x", "y"], "v": [1, 2, 3], "x": [[1], [2], [3]]}
)


def parquet(rows: pa.Table, folder: Path) -> Path:
    pa.parquet.write_table(rows, folder / "rows.parquet")
    return folder / "rows.parquet"


def feather(rows: pa.Table, folder: Path) -> Path:
    with pa.ipc.new_file(str(folder / "rows.arrow"), rows.schema) as file:
        file.write_table(rows)
    return folder / "rows.arrow"


def csv(rows: pa.Table, folder: Path) -> Path:
    with gzip.open(folder / "rows.csv.gz", "wb") as file:
        pa.csv.write_csv(rows.drop_columns("x"), file)
    return folder / "rows.csv.gz"


@pytest.mark.parametrize("written", [parquet, feather, csv])
def test_files_of_tables(written: Callable[[pa.Table, Path], Path], tmp_path: Path) -> None:
    (match,) = oxiseq.run(TEXT, {"S": written(ROWS, tmp_path)})
    assert str(match["v"]) == '"2"^^<http://www.w3.org/2001/XMLSchema#integer>'


def test_data_frames() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"when": [1, 2], "is": ["A", "B"], "k": ["x", "x"], "v": [1.5, 2.5]})
    (match,) = oxiseq.run(TEXT, {"S": frame}, time_column="when", type_column="is", time_unit="s")
    assert match.at_us == 2_000_000


def test_late_rows_come_back_whole() -> None:
    rows = ROWS.drop_columns("x").take([1, 0]).append_column("unasked", pa.array(["b", "a"]))
    (late,) = oxiseq.run(TEXT, {"S": rows.to_reader()}, late="ignore").late_events()
    assert late.time_us == 1
    assert {triple.predicate.value.removeprefix(V) for triple in late.graph} >= {"k", "v", "unasked"}


def test_why_reads_tables() -> None:
    assert "1 match" in str(oxiseq.Query(TEXT).why({"S": ROWS}))


def test_what_no_table_can_be() -> None:
    no_prefix = TEXT.replace(":k", f"<{V}k>").replace(":v", f"<{V}v>").replace(":A", f"<{V}A>").replace(":B", f"<{V}B>")
    with pytest.raises(OxiseqError, match=r"PREFIX : <\.\.\.>"):
        oxiseq.run(no_prefix.replace(f"PREFIX : <{V}>", ""), {"S": ROWS})
    with pytest.raises(EventError, match="'k' holds list"):
        oxiseq.run(TEXT, {"S": ROWS.drop_columns("k").rename_columns(["time", "type", "v", "k"])})
    with pytest.raises(EventError, match="two columns are called 'k'"):
        oxiseq.run(TEXT, {"S": ROWS.rename_columns(["time", "type", "k", "k", "x"])})
    with pytest.raises(EventError, match="the type of an event"):
        oxiseq.run(TEXT, {"S": ROWS.set_column(1, "type", pa.array(["A", "no IRI", "B"]))})
    with pytest.raises(EventError, match="names of types are text"):
        oxiseq.run(TEXT, {"S": ROWS.set_column(1, "type", pa.array([1, 2, 3]))})
    with pytest.raises(EventError, match="no column 'time'"):
        oxiseq.run(TEXT, {"S": ROWS.drop_columns("time")})


def test_two_threads_read_tables_of_two_schemas() -> None:
    """Where the time is, is remembered from one table to the next."""
    tables = [
        pa.table({"type": ["A", "A"], "time": pa.array([1, 2], pa.int64())}),
        pa.table({"time": pa.array([10, 20], pa.timestamp("us")), "x": [1.0, 2.0], "type": ["A", "A"]}),
    ]

    def times(number: int) -> set[tuple[int, ...]]:
        return {tuple(rows.time.tolist()) for _ in range(300) for rows in read_rows(tables[number])}

    with ThreadPoolExecutor(2) as pool:
        assert [*pool.map(times, (0, 1))] == [{(1, 2)}, {(10, 20)}]


def test_values_that_have_gone_by_leave_the_dictionary() -> None:
    """Of 200,000 distinct numbers only those stay that the window may still hold."""
    query = oxiseq.Query(TEXT.replace("FROM STREAM", "WITHIN 100 EVENTS SLIDING FROM STREAM", 1))
    driver = language_named("spaseq").driver(query.algebra, None, Options())
    count = 200_000
    numbers = pa.array(range(count), pa.int64())
    rows = pa.table({"time": numbers, "type": pa.array(["A"] * count), "k": numbers})
    driver.attach("S", rows.to_batches(max_chunksize=10_000))
    assert not sum(len(batch) for batch in driver.batches())
    driver.terms.collect()
    assert driver.terms.live < 70_000


@pytest.mark.parametrize("ending", [".csv", ".csv.gz"])
def test_a_column_of_csv_with_zeros_before_its_numbers_is_text(ending: str, tmp_path: Path) -> None:
    text = "time,type,code,n,x\n01,A,007,10,0.5\n02,A,010,20,-0.5\n03,B,,30,\n"
    content = text.encode() if ending == ".csv" else gzip.compress(text.encode())
    (tmp_path / f"t{ending}").write_bytes(content)
    pattern = "?e :code ?c ; :n ?n ; :x ?x"
    query = f"PREFIX : <{V}> SELECT * FROM STREAM S <urn:s> WHERE {{ SEQ(A) DEFINE GPM A ON S {{ {pattern} }} }}"
    found = oxiseq.run(query, {"S": tmp_path / f"t{ending}"})
    assert [(m.at_us, m["c"].value, m["n"].value, float(m["x"].value)) for m in found] == [
        (1, "007", "10", 0.5),
        (2, "010", "20", -0.5),
    ]
    assert {m["c"].datatype.value.rpartition("#")[2] for m in found} == {"string"}
    assert {m["n"].datatype.value.rpartition("#")[2] for m in found} == {"integer"}
