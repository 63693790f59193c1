"""CEQL on the command line: `.ceql` files and `--language`, tables of tuples, every format, `explain`."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from cli_files import oxiseq, write

VOCAB = "http://example.org/stock#"
QUERY = f"""VOCAB <{VOCAB}>
SELECT x, y FROM Stock
WHERE SELL AS x; BUY+ AS y FILTER x[name = 'MSFT'] AND x[price > 100] AND y[price < 2.5e3]
PARTITION BY [name]
WITHIN 10 SECONDS
CONSUME BY ANY
"""
CSV = """time,type,name,price
2024-05-01T10:00:00Z,SELL,MSFT,101
2024-05-01T10:00:01Z,BUY,AAPL,7
2024-05-01T10:00:02Z,BUY,MSFT,
2024-05-01T10:00:03Z,BUY,MSFT,99.5
2024-05-01T10:01:00Z,BUY,MSFT,99
"""
FOUND = {"at": "2024-05-01T10:00:03Z", "first": "0", "last": "3", "positions": "0 3", "x": "0", "y": "3"}


@pytest.fixture(autouse=True)
def stocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    write(tmp_path, "sells.ceql", QUERY)
    write(tmp_path, "trades.csv", CSV)
    return tmp_path


def test_a_csv_file_is_a_stream() -> None:
    result = oxiseq("run", "sells.ceql", "--stream", "Stock=trades.csv", "-f", "json")
    assert result.exit_code == 0, result.stderr
    (match,) = json.loads(result.stdout)["results"]["bindings"]
    assert {name: term["value"] for name, term in match.items()} == FOUND
    assert [match[name]["datatype"].rpartition("#")[2] for name in ("at", "first")] == ["dateTime", "integer"]
    assert "5 events · 1 match · 0 late" in result.stderr


@pytest.mark.parametrize("ending", ["csv", "arrow", "parquet"])
def test_the_same_events_in_every_kind_of_file(stocks: Path, ending: str) -> None:
    table = pa.table(
        {
            "at": pa.array([0, 1, 2]),
            "kind": ["SELL", "BUY", "BUY"],
            "name": ["MSFT", "MSFT", "x"],
            "price": [101.5, 2, 3],
        }
    )
    path = stocks / f"events.{ending}"
    if ending == "parquet":
        pq.write_table(table, path)
    elif ending == "arrow":
        with pa.ipc.new_file(path, table.schema) as file:
            file.write_table(table)
    else:
        write(stocks, path.name, "at,kind,name,price\n0,SELL,MSFT,101.5\n1,BUY,MSFT,2\n2,BUY,x,3\n")
    columns = ["--type-column", "kind", "--time-column", "at"]
    result = oxiseq("run", "sells.ceql", "-s", path.name, "-f", "csv", *columns)
    assert result.exit_code == 0, result.stderr
    assert result.stdout == "at,first,last,positions,x,y\n1970-01-01T00:00:00.000001Z,0,1,0 1,0,1\n"


def test_rdf_events_are_a_stream_too(stocks: Path) -> None:
    lines = []
    for n, (kind, price) in enumerate([("SELL", 200), ("BUY", 5)]):
        at = '<http://www.w3.org/ns/prov#generatedAtTime> "2024-05-01T10:00:0'
        lines.append(f'<urn:e{n}> {at}{n}Z"^^<http://www.w3.org/2001/XMLSchema#dateTime> .')
        for p, o in [("name", '"MSFT"'), ("price", f'"{price}"^^<http://www.w3.org/2001/XMLSchema#integer>')]:
            lines.append(f"_:b{n} <{VOCAB}{p}> {o} <urn:e{n}> .")
        lines.append(f"_:b{n} <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> <{VOCAB}{kind}> <urn:e{n}> .")
    write(stocks, "trades.nq", "\n".join(lines) + "\n")
    result = oxiseq("run", "sells.ceql", "-s", "trades.nq", "-f", "tsv")
    header, row = result.stdout.splitlines()
    assert header == "?at\t?first\t?last\t?positions\t?x\t?y"
    assert [cell.partition("^^")[0] for cell in row.split("\t")] == [
        '"2024-05-01T10:00:01Z"',
        '"0"',
        '"1"',
        '"0 1"',
        '"0"',
        '"1"',
    ]


def test_tables_for_people_and_for_programs(stocks: Path) -> None:
    shown = oxiseq("run", "sells.ceql", "-s", "trades.csv", "--sort").stdout.splitlines()
    assert shown[0].split() == ["at", "first", "last", "positions", "x", "y"]
    assert shown[2].split() == ["2024-05-01T10:00:03Z", "0", "3", "0", "3", "0", "3"]
    assert oxiseq("run", "sells.ceql", "-s", "trades.csv", "-o", "found.parquet", "-q").stderr == ""
    oxiseq("run", "sells.ceql", "-s", "trades.csv", "-o", "found.arrow")
    with pa.ipc.open_file(str(stocks / "found.arrow")) as file:
        found = file.read_all()
    assert found == pq.read_table(stocks / "found.parquet")
    assert found.column_names == ["at", "start", "end", "first", "last", "positions", "x", "y", "events_x", "events_y"]
    assert found["positions"].to_pylist() == [[0, 3]]


def test_what_makes_no_sense_is_refused() -> None:
    result = oxiseq("run", "sells.ceql", "-s", "trades.csv", "-f", "nquads")
    assert result.exit_code == 1
    assert "nquads needs a CONSTRUCT query" in result.stderr
    result = oxiseq("run", "sells.ceql", "-s", "trades.csv", "--kb", "kb.ttl")
    assert result.exit_code != 0
    assert "kb.ttl" in result.stderr
    result = oxiseq("run", "sells.ceql", "-s", "X=no.csv")
    assert result.exit_code == 2
    assert "NAME=FILE with one of Stock" in " ".join(result.stderr.split())
    result = oxiseq("run", "sells.ceql", "-s", "trades.csv", "--type-column", "kind")
    assert result.exit_code == 1
    assert "trades.csv: no column 'kind' for the type; it has time, type, name, price" in result.stderr


def test_rows_of_a_file_are_sorted_so_none_is_late(stocks: Path) -> None:
    write(stocks, "late.csv", "time,type,name\n5,BUY,x\n4,SELL,MSFT\n")
    result = oxiseq("run", "sells.ceql", "-s", "late.csv", "--late", "late.nq")
    assert "2 events · 0 matches · 0 late" in result.stderr
    assert not (stocks / "late.nq").read_text()


def test_the_language_may_be_named(stocks: Path) -> None:
    write(stocks, "sells.txt", QUERY)
    assert oxiseq("check", "sells.txt").exit_code == 1
    assert oxiseq("check", "sells.txt", "--language", "ceql").exit_code == 0
    assert oxiseq("explain", "sells.txt", "-L", "ceql").exit_code == 0
    result = oxiseq("run", "sells.txt", "-L", "ceql", "-s", "trades.csv")
    assert "1 match" in result.stderr


def test_the_explanation_tells_the_automaton() -> None:
    text = oxiseq("explain", "sells.ceql").stdout
    for line in (
        "window: 10 SECONDS",
        "CONSUME BY: after a match all partial matches are discarded",
        "PARTITION BY [name]: an event is split by its values, all partitions share one run",
        f"  Stock <{VOCAB}Stock>",
        "  start\n    at any event → state 0",
        "  0: SELL[",
        "  state 0, after SELL[",
        ", held by x\n",
        "    at any later event (;) → state 1",
        "  1: BUY",
        "  state 1, after BUY",
        ", held by y, a match",
    ):
        assert line in text
    assert "SELL[name = 'MSFT' AND price > 100]" in text or 'SELL[name = "MSFT" AND price > 100]' in text
    assert "SELECT ALL" not in text and "strategy" not in text
    facts = json.loads(oxiseq("explain", "sells.ceql", "--json").stdout)
    later = {edge["source"]: edge["targets"] for edge in facts["edges"] if edge["op"] == ";"}
    assert later[0] == [1] and facts["atoms"][1]["type"] == "BUY"
    assert any(clause.startswith("CONSUME BY: after a match all ") for clause in facts["clauses"])
    dot = oxiseq("explain", "sells.ceql", "--dot").stdout
    assert 's0 -> s1 [label=";"];' in dot and 's1 -> s1 [label=";"];' in dot and "start -> s0;" in dot


def test_an_attribute_that_falls_too_far_is_told(stocks: Path) -> None:
    """What 4,096 events have left behind is forgotten; the last two events go back there."""
    rows = [f"{n},BUY,MSFT,{n}\n" for n in range(10_000)] + ["10000,BUY,MSFT,3\n", "10001,SELL,MSFT,4\n"]
    write(stocks, "falling.csv", "time,type,name,price\n" + "".join(rows))
    write(stocks, "q.ceql", f"VOCAB <{VOCAB}> SELECT * FROM Stock WHERE BUY; SELL WITHIN 2 [price]")
    result = oxiseq("run", "q.ceql", "-s", "Stock=falling.csv", "-f", "json")
    assert result.exit_code == 0, result.stderr
    starts = {int(m["first"]["value"]) for m in json.loads(result.stdout)["results"]["bindings"]}
    assert {10_000, 9_999} <= starts  # a window has no upper end: last - first is less than nothing
    assert not starts & {2, 3, 4}
    assert "2 behind what WITHIN still knew: matches may be missing there" in result.stderr
