"""What `oxiseq run` writes is read back."""

from __future__ import annotations

import csv
import gzip
import io
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from cli_files import EX, STREAM, XSD, event, oxiseq, query, write
from corpus_cases import Case, load_cases
from pyoxigraph import Literal, NamedNode, QueryResultsFormat, QuerySolutions, parse_query_results

import oxiseq as package
from oxiseq.grammar import load
from oxiseq.languages.registry import language_named
from oxiseq.options import Options

FORMATS = ["table", "json", "csv", "tsv", "arrow", "parquet"]
ODD = ['"a, \\"b\\"\\tc\\nd"', '"été"@fr', f'"007"^^<{XSD}integer>', f'"x"^^<{EX}type>', f"<{EX}iri,1>", "_:b", '""']
"""Objects of events whose texts are hard to write."""
EVERYTHING = query(
    "SELECT ?s ?o ?none", seq="A; N?", gpms=("DEFINE GPM A ON S { ?s :says ?o } DEFINE GPM N ON S { ?s :never ?none }")
)


@pytest.fixture
def odd(tmp_path: Path) -> Path:
    """everything.spaseq and odd.nq: one event per odd object; ?none is never bound."""
    write(tmp_path, "everything.spaseq", EVERYTHING)
    write(tmp_path, "odd.nq", "".join(event(f"e{i}", i, [f"<{EX}s> <{EX}says> {o}"]) for i, o in enumerate(ODD)))
    return tmp_path


def run(folder: Path, name: str, events: str, *arguments: object) -> bytes:
    """Standard output."""
    result = oxiseq("run", folder / f"{name}.spaseq", "-s", folder / events, *arguments)
    assert result.exit_code == 0, result.stderr
    return result.stdout_bytes


def test_json_and_tsv_are_read_back_by_a_sparql_client(odd: Path) -> None:
    read = {}
    for name, format_ in (("json", QueryResultsFormat.JSON), ("tsv", QueryResultsFormat.TSV)):
        solutions = parse_query_results(run(odd, "everything", "odd.nq", "--format", name), format_)
        assert isinstance(solutions, QuerySolutions)
        assert [v.value for v in solutions.variables] == ["s", "o", "none"]
        rows = [(row["o"], row["none"]) for row in solutions]
        assert all(none is None for _, none in rows)
        read[name] = [o for o, _ in rows]
    for found in read.values():
        assert found[0] == Literal('a, "b"\tc\nd')
        assert found[1] == Literal("été", language="fr")
        assert found[2] == Literal("7", datatype=NamedNode(f"{XSD}integer"))
        assert found[3] == Literal("x", datatype=NamedNode(f"{EX}type"))
        assert found[4] == NamedNode(f"{EX}iri,1")
        assert found[6] == Literal("")


def test_csv_is_read_back(odd: Path) -> None:
    text = run(odd, "everything", "odd.nq", "--format", "csv").decode()
    assert text.count("\r\n") == 1 + len(ODD)
    header, *rows = csv.reader(io.StringIO(text, newline=""))
    assert header == ["s", "o", "none"]
    assert [row[1] for row in rows[:5]] == ['a, "b"\tc\nd', "été", "7", "x", f"{EX}iri,1"]
    assert rows[5][1].startswith("_:")
    assert rows[6] == [f"{EX}s", "", ""]


def test_a_table_is_one_line_per_match_with_its_time(odd: Path) -> None:
    header, rule, *rows = run(odd, "everything", "odd.nq").decode().splitlines()
    assert header.split() == ["at", "?s", "?o", "?none"]
    assert set(rule) == {"-", " "}
    assert len(rows) == len(ODD)
    assert rows[0].split(maxsplit=2) == ["2024-05-01T10:00:00Z", ":s", 'a, "b"\\tc\\nd']


def test_arrow_on_stdout_is_a_stream_and_in_a_file_a_file(folder: Path) -> None:
    out = folder / "out.arrow"
    run(folder, "jumps", "payments.nq", "--output", out)
    streamed = pa.ipc.open_stream(run(folder, "jumps", "payments.nq", "--format", "arrow")).read_all()
    filed = pa.ipc.open_file(out).read_all()
    assert streamed.equals(filed)
    assert filed.column("second").to_pylist() == [40, 600]
    assert filed.column("at").to_pylist()[0].isoformat() == "2024-05-01T10:02:00+00:00"
    assert [len(x) for x in filed.column("events_A").to_pylist()] == [1, 1]


def test_parquet(folder: Path) -> None:
    out = folder / "out.parquet"
    run(folder, "jumps", "payments.nq", "--output", out)
    assert pq.read_table(out).column("first").to_pylist() == [3, 50]
    piped = run(folder, "jumps", "payments.nq", "--format", "parquet")
    assert pq.read_table(io.BytesIO(piped)).num_rows == 2


def test_the_graphs_of_construct_are_events_again(folder: Path) -> None:
    out = folder / "jumped.nq"
    run(folder, "bigger", "payments.nq", "--output", out)
    jumped = "DEFINE GPM J ON S { ?who :jumped ?amount . ?node :of ?who }"
    text = query("SELECT ?who ?amount ?node", seq="J", gpms=jumped)
    matches = package.run(text, streams={STREAM: out})
    assert [(m["who"], m["amount"].value) for m in matches] == [
        (NamedNode(f"{EX}ann"), "40"),
        (NamedNode(f"{EX}bob"), "600"),
    ]
    assert [m.at.minute for m in matches] == [2, 3]
    assert matches[0]["node"] != matches[1]["node"]


def test_nquads_of_rows_is_refused(folder: Path) -> None:
    result = oxiseq("run", folder / "jumps.spaseq", "-s", folder / "payments.nq", "--format", "nquads")
    assert result.exit_code == 1
    assert "nquads needs a CONSTRUCT query" in result.stderr


@pytest.mark.parametrize(("events", "answer"), [("payments.nq", True), ("empty.nq", False)])
def test_ask_answers_true_or_false(folder: Path, events: str, answer: bool) -> None:
    write(folder, "empty.nq", "")
    for format_ in ("table", "csv", "tsv"):
        assert run(folder, "ask", events, "--format", format_).decode() == f"{answer}\n".lower()
    assert json.loads(run(folder, "ask", events, "--format", "json"))["boolean"] is answer


@pytest.mark.parametrize("format_", FORMATS)
def test_no_matches_are_written_in_every_format(folder: Path, format_: str) -> None:
    write(folder, "empty.nq", "")
    out = run(folder, "jumps", "empty.nq", "--format", format_)
    match format_:
        case "json":
            assert json.loads(out)["results"]["bindings"] == []
        case "arrow":
            assert pa.ipc.open_stream(out).read_all().num_rows == 0
        case "parquet":
            assert pq.read_table(io.BytesIO(out)).num_rows == 0
        case "table":
            assert len(out.splitlines()) == 2
        case _:
            assert len(out.splitlines()) == 1


def test_the_format_is_told_by_the_output_name(folder: Path) -> None:
    run(folder, "jumps", "payments.nq", "-o", folder / "out.tsv")
    assert (folder / "out.tsv").read_text().startswith("?who\t?first\t?second\n")
    run(folder, "jumps", "payments.nq", "-o", folder / "out.csv.gz")
    assert gzip.decompress((folder / "out.csv.gz").read_bytes()).startswith(b"who,first,second\r\n")
    unknown = oxiseq("run", folder / "jumps.spaseq", "-s", folder / "payments.nq", "-o", folder / "out.xlsx")
    assert unknown.exit_code == 1
    assert "the ending .xlsx does not name a format" in unknown.stderr


def test_an_output_is_left_alone_when_the_run_fails(folder: Path) -> None:
    out = folder / "out.csv"
    out.write_text("before")
    bad = write(folder, "bad.nq", "nonsense\n")
    result = oxiseq("run", folder / "jumps.spaseq", "-s", bad, "-o", out)
    assert result.exit_code == 1
    assert out.read_text() == "before"
    assert [p.name for p in folder.iterdir() if "part" in p.name] == []


def test_all_formats_have_the_matches_of_the_python_api(folder: Path) -> None:
    expected = package.run(query(), streams={STREAM: folder / "payments.nq"})
    written = json.loads(run(folder, "jumps", "payments.nq", "--format", "json"))
    assert written == json.loads(expected.write(format="json"))
    arrow = pa.ipc.open_stream(run(folder, "jumps", "payments.nq", "--format", "arrow")).read_all()
    assert arrow.equals(expected.to_arrow())


@pytest.mark.parametrize("case", load_cases(), ids=lambda c: c.name)
def test_matches_that_are_written_as_they_come_are_in_order_of_end_time(case: Case) -> None:
    driver = language_named("spaseq").driver(load(case.query), case.kb, Options(origin=case.start))
    for name, events in case.streams.items():
        driver.attach(name, events)
    times = [time for batch in driver.batches() for time in batch.time.tolist()]
    assert times == sorted(times) or not driver.shape.in_order
