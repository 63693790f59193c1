"""Times with more digits than microseconds, as .NET, Java and Go write them: an event's time is cut off at every door,
a literal in a triple keeps them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import oxiseq
from oxiseq.engine.events.cells import cell_terms
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.mappings.times import Clock, zone_of
from oxiseq.spark.decoding import Decoder

EX = "http://example.org/"
STREAM = f"{EX}power"
FINE = "2024-05-01T10:00:00.1234567Z"
FINEST = "2024-05-01T10:00:00.123456789123Z"
AT = 1_714_557_600_123_456
XSD = "http://www.w3.org/2001/XMLSchema#"
PROV = "http://www.w3.org/ns/prov#"
LITERAL = f'"{FINE}"^^<{XSD}dateTime>'
TRIPLE = f"<{EX}h> <{EX}seen> {LITERAL} ."
QUADS = f"<urn:g> <{PROV}generatedAtTime> {LITERAL} .\n<{EX}h> <{EX}seen> {LITERAL} <urn:g> .\n"
QUERY = (
    f"PREFIX : <{EX}> SELECT ?when FROM STREAM S <{STREAM}> WHERE {{ SEQ(A) DEFINE GPM A ON S {{ ?h :seen ?when }} }}"
)
CEQL = f"VOCAB <{EX}> SELECT * FROM S WHERE A AS x FILTER x[v > 0]"


def of_python(time: object, graph: str = TRIPLE) -> int:
    (match,) = oxiseq.run(QUERY, {"S": [(time, graph)]})
    assert match["when"].value == FINE
    return match.at_us


def of_file(folder: Path, name: str, text: str) -> int:
    (folder / name).write_text(text)
    (match,) = oxiseq.run(QUERY, {"S": str(folder / name)})
    assert match["when"].value == FINE
    return match.at_us


def of_table(table: object) -> int:
    (match,) = oxiseq.run(CEQL, {"S": table}, language="ceql")
    return match.at_us


def of_spark(rows: pa.RecordBatch) -> int:
    time: int = Decoder(TermDictionary()).decode(rows).time.item()
    return time


def parquet(folder: Path) -> str:
    table = pa.table({"time": pa.array([AT * 1000 + 789], pa.timestamp("ns", "UTC")), "type": ["A"], "v": [1]})
    pq.write_table(table, folder / "rows.parquet")
    return str(folder / "rows.parquet")


DOORS: dict[str, Callable[[Path], int]] = {
    "text": lambda folder: of_python(FINE),
    "more digits": lambda folder: of_python(FINEST),
    "a zone": lambda folder: of_python("2024-05-01T12:00:00.1234567+02:00"),
    "pandas.Timestamp": lambda folder: of_python(pd.Timestamp(FINEST[:-4] + "Z")),
    "N-Quads": lambda folder: of_file(folder, "events.nq", QUADS),
    "TriG": lambda folder: of_file(
        folder,
        "events.trig",
        f"<urn:g> <{PROV}generatedAtTime> {LITERAL} . <urn:g> {{ {TRIPLE} }}",
    ),
    "messages": lambda folder: of_file(
        folder, "log.nt", f'VERSION "1.2-messages"\n<urn:o> <{PROV}generatedAtTime> {LITERAL} .\n{TRIPLE}\n'
    ),
    "Arrow": lambda folder: of_table(
        pa.table({"time": pa.array([AT * 1000 + 789], pa.timestamp("ns")), "type": ["A"], "v": [1]})
    ),
    "pandas": lambda folder: of_table(pd.DataFrame({"time": pd.to_datetime([FINEST[:-4]]), "type": ["A"], "v": [1]})),
    "Parquet": lambda folder: of_table(parquet(folder)),
    "a mapping's text": lambda folder: int(Clock().read([[FINE]])[0][0]),
    "a mapping's text of a zone": lambda folder: int(
        Clock(zone=zone_of("Europe/Berlin")).read([["2024-05-01 12:00:00.1234567"]])[0][0]
    ),
    "a mapping's number": lambda folder: int(Clock("s").read([["1714557600.1234569"]])[0][0]),
    "Spark, graphs": lambda folder: of_spark(pa.RecordBatch.from_pylist([{"time": AT, "graph": TRIPLE}])),
    "Spark, events": lambda folder: of_spark(pa.RecordBatch.from_pylist([{"events": QUADS}])),
}


@pytest.mark.parametrize("door", DOORS)
def test_the_time_of_an_event_is_cut_off(door: str, tmp_path: Path) -> None:
    assert DOORS[door](tmp_path) == AT


def test_before_1970_digits_are_cut_off_too() -> None:
    """Downwards: the text is what is shortened."""
    before = {"time": pa.array([-1], pa.timestamp("ns")), "type": ["A"], "v": [1]}
    assert of_python("1969-12-31T23:59:59.9999999Z") == of_table(pa.table(before)) == -1


def test_a_timestamp_in_a_table_keeps_its_digits() -> None:
    seen = pa.array([AT * 1000 + 789, AT * 1000, -1], pa.timestamp("ns", "UTC"))
    texts = [term.value for term in cell_terms(seen)]
    assert texts == ["2024-05-01T10:00:00.123456789Z", "2024-05-01T10:00:00.123456Z", "1969-12-31T23:59:59.999999999Z"]
