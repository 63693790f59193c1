"""What would find nothing and say nothing: variables that are no column, times in another unit, data twice."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

import oxiseq
from oxiseq.cli import main
from oxiseq.engine.errors import EventError, KbError
from oxiseq.kb_loader import load
from oxiseq.kb_loader.sources import find_sources
from oxiseq.kb_loader.tables import Mapping, check_columns
from oxiseq.logs import arrange
from oxiseq.logs.reading import Meaning

HEAD = "PREFIX : <http://e/>\n"
MAPPING = HEAD + "CONSTRUCT { ?s :speed ?speed } WHERE { BIND(IRI(CONCAT(STR(:), ?truk)) AS ?s) }"
QUERY = (
    HEAD
    + """SELECT ?a ?b WITHIN 1 HOUR FROM STREAM S <http://e/s> WHERE { SEQ(A; B)
  DEFINE GPM A ON S { ?t :speed ?a } DEFINE GPM B ON S { ?t :speed ?b } }"""
)
CEQL = "VOCAB <http://e/> SELECT * FROM S WHERE T AS a ; T AS b"
SECONDS = 1_763_632_860


def run(*arguments: object) -> tuple[int, str]:
    done = CliRunner().invoke(main, [str(argument) for argument in arguments])
    return done.exit_code, done.output


# --- columns ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("t.csv", "time,truck,speed\n1,a,5\n"),
        ("t.tsv", "time\ttruck\tspeed\n1\ta\t5\n"),
        ("t.jsonl", '{"time": 1, "truck": "a"}\n{"time": 2, "truck": "a", "speed": 5}\n'),
        ("t.json", '[{"time": 1, "truck": "a", "speed": 5}]'),
    ],
)
def test_a_variable_that_is_no_column_is_refused_with_the_columns(name: str, text: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(text)
    (tmp_path / "m.rq").write_text(MAPPING)
    told = r"m\.rq: \?truk is no column .*; columns: \?truck, \?time, \?speed$"
    with pytest.raises(KbError, match=told):
        load(tmp_path / name, tmp_path / "kb", mapping=tmp_path / "m.rq")
    assert not (tmp_path / "kb").exists()
    with pytest.raises(KbError, match=told):
        arrange(tmp_path / name, tmp_path / "out", meaning=Meaning(mapping=Mapping.of_file(tmp_path / "m.rq")))
    code, output = run("load", tmp_path / name, "--mapping", tmp_path / "m.rq", "--location", tmp_path / "kb")
    assert code == 1 and "columns: ?truck, ?time, ?speed" in output


def test_of_parquet_members_of_structs_are_columns(tmp_path: Path) -> None:
    pq.write_table(pa.table({"truck": [{"id": "a", "at": {"x": 1}}], "speed": [5]}), tmp_path / "t.parquet")
    sources = find_sources([tmp_path])
    check_columns(Mapping("CONSTRUCT { ?truck_id <a:b> ?truck_at_x } WHERE {}"), sources)
    with pytest.raises(KbError, match=r"columns: \?truck_id, \?truck_at_x, \?speed"):
        check_columns(Mapping("CONSTRUCT { ?truck <a:b> 1 } WHERE {}".replace("?truck", "?truck_i")), sources)


def test_what_the_mapping_binds_and_what_some_tables_have_is_no_fault(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("id,name\n1,x\n")
    (tmp_path / "b.csv").write_text("id,rare\n2,y\n")
    rows = [{"id": i} for i in range(6_000)]
    (tmp_path / "c.jsonl").write_text("".join(json.dumps(row) + "\n" for row in [*rows, {"late": 1}]))
    (tmp_path / "empty.csv").write_text("")
    sources = find_sources([tmp_path])
    for where in (
        'BIND(STR(?id) AS ?x) BIND(CONCAT(?x, "?no") AS ?y) FILTER(!BOUND(?rare) || ?late > 1) # ?nothing',
        "VALUES ?x { 1 2 } VALUES (?y ?z) { (1 2) (3 4) } FILTER(?z = ?id)",
        "{ SELECT (STR(1) AS ?x) {} } BIND(<a:?u> as ?y)",
    ):
        check_columns(Mapping(f"CONSTRUCT {{ ?id <a:b> ?x , ?y }} WHERE {{ {where}\n}}"), sources)
    with pytest.raises(KbError, match=r"\?nme is no column .*: \?name, "):
        check_columns(Mapping("CONSTRUCT { ?id <a:b> ?nme } WHERE { VALUES ?x { 1 } FILTER(?x = 1) }"), sources)
    (tmp_path / "none").mkdir()
    (tmp_path / "none" / "e.csv").write_text("")
    check_columns(Mapping("CONSTRUCT { ?id <a:b> ?nme } WHERE {}"), find_sources([tmp_path / "none"]))


# --- units ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("unit", "factor"), [("s", 1), ("ms", 1_000), ("ns", 1_000_000_000)])
def test_times_in_another_unit_are_refused_with_the_option(unit: str, factor: int, tmp_path: Path) -> None:
    times = [(SECONDS + i) * factor for i in range(3)]
    (tmp_path / "m.rq").write_text(MAPPING.replace("truk", "truck"))
    (tmp_path / "t.csv").write_text("time,type,truck,speed\n" + "".join(f"{t},T,a,{i}\n" for i, t in enumerate(times)))
    table = pa.table({"time": times, "type": ["T"] * 3, "truck": ["a"] * 3, "speed": [1, 2, 3]})
    pq.write_table(table, tmp_path / "t.parquet")
    (tmp_path / "q.ceql").write_text(CEQL)
    told = f"2025-11-20T10:01:00Z in .*--time-unit {unit} "
    for name in ("t.csv", "t.parquet"):
        for given in (
            ["run", tmp_path / "q.ceql", "-s", f"S={tmp_path / name}"],
            ["import", tmp_path / name, "-m", tmp_path / "m.rq", "-o", tmp_path / name[2:]],
        ):
            code, output = run(*given)
            assert code == 1 and f"--time-unit {unit} " in output and "2025-11-20T10:01:00Z" in output
            assert run(*given, "--time-unit", unit)[0] == 0
        with pytest.raises(EventError, match=told):
            oxiseq.run(CEQL, {"S": tmp_path / name}, language="ceql").to_arrow()
        assert (tmp_path / name[2:] / "20251120T100000Z.parquet").exists()
    with pytest.raises(EventError, match=told):
        oxiseq.run(CEQL, {"S": table}, language="ceql").to_arrow()
    readings = [(unit, SECONDS * 1_000_000)] + [("us", times[0])] * (unit != "ns")  # beyond the year 9999
    for as_given, first in readings:
        found = oxiseq.run(CEQL, {"S": table}, language="ceql", time_unit=as_given)  # type: ignore[call-overload]
        step = factor if as_given == "us" else 1_000_000
        assert {match.at_us for match in found} == {first + step, first + 2 * step}


def test_made_up_times_are_taken_as_they_are(tmp_path: Path) -> None:
    real = SECONDS * 1_000_000
    for times in ([0, 1, 2], [0, SECONDS], [5, 10**15], [SECONDS, SECONDS * 1_000], [-SECONDS, 0], [real, real]):
        table = pa.table({"time": times, "type": ["T"] * len(times)})
        assert oxiseq.run(CEQL, {"S": table}, language="ceql").to_arrow().num_rows >= 0
        (tmp_path / "t.csv").write_text("time,truck,speed\n" + "".join(f"{t},a,1\n" for t in times))
        done = arrange(
            tmp_path / "t.csv",
            tmp_path / f"out{times[-1]}",
            meaning=Meaning(mapping=Mapping(MAPPING.replace("truk", "truck"))),
        )
        assert (done.events, done.bad) == (len(times), 0)


def test_a_time_beyond_all_units_is_told() -> None:
    table = pa.table({"time": [2**60, 0], "type": ["T", "T"]})
    with pytest.raises(EventError, match="beyond 64-bit microseconds, in seconds"):
        oxiseq.run(CEQL, {"S": table}, language="ceql", time_unit="s").to_arrow()


# --- late events, and no events ---------------------------------------------------------------------


def test_a_folder_that_is_written_twice_is_told(tmp_path: Path) -> None:
    rows = "".join(f"2026-11-20T10:00:{i:02}Z,a,{i}\n" for i in range(50))
    (tmp_path / "t.csv").write_text("time,truck,speed\n" + rows)
    (tmp_path / "m.rq").write_text(MAPPING.replace("truk", "truck"))
    (tmp_path / "q.spaseq").write_text(QUERY)
    assert run("import", tmp_path / "t.csv", "-m", tmp_path / "m.rq", "-o", tmp_path / "out")[0] == 0
    (table,) = (tmp_path / "out").iterdir()
    code, output = run("run", tmp_path / "q.spaseq", "-s", f"S={tmp_path / 'out'}", "-f", "csv")
    assert code == 0 and "warning" not in output
    (tmp_path / "out" / "again.parquet").write_bytes(table.read_bytes())
    code, output = run("run", tmp_path / "q.spaseq", "-s", f"S={tmp_path / 'out'}", "-f", "csv")
    assert code == 0 and f"{table.name} and again.parquet of " in output and "count twice" in output
    assert "warning" not in run("run", tmp_path / "q.spaseq", "-s", f"S={tmp_path / 'out'}", "-f", "csv", "-q")[1]


def test_a_stream_without_events_is_told(tmp_path: Path) -> None:
    (tmp_path / "q.spaseq").write_text(QUERY)
    (tmp_path / "e.nq").write_text("")
    code, output = run("run", tmp_path / "q.spaseq", "-s", f"S={tmp_path / 'e.nq'}", "-f", "csv")
    assert code == 0 and f"note: there is no event in {tmp_path / 'e.nq'}" in output


# --- sources of which nothing comes -----------------------------------------------------------------


def sources_of_nothing(folder: Path) -> Path:
    """A folder of a table with a row, and three of which nothing comes; and the mapping."""
    folder.mkdir()
    head = "time,truck,speed\n"
    for name, text in {
        "a-full": head + "2026-11-20T10:00:00Z,a,1\n",
        "b-head": head,
        "c-empty": "",
        "d-unmapped": head + "2026-11-20T10:00:01Z,b,-1\n",
    }.items():
        (folder / f"{name}.csv").write_text(text)
    mapping = folder.parent / "m.rq"
    mapping.write_text(MAPPING.replace("truk", "truck").replace("AS ?s)", "AS ?s) FILTER(?truck != 'b')"))
    return mapping


@pytest.mark.parametrize(("command", "where", "what"), [("load", "--location", "statement"), ("import", "-o", "event")])
def test_sources_of_which_nothing_comes_are_told(command: str, where: str, what: str, tmp_path: Path) -> None:
    mapping = sources_of_nothing(tmp_path / "in")
    given = [command, tmp_path / "in", "-m", mapping, where]
    code, output = run(*given, tmp_path / "out")
    notes = [line for line in output.splitlines() if line.startswith("note: no")]
    assert code == 0 and len(notes) == 3
    for name, note in zip(["b-head", "c-empty", "d-unmapped"], notes, strict=True):
        assert note.startswith(f"note: no {what} came of {tmp_path / 'in' / name}.csv: it has no rows, all are bad,")
    assert "note" not in run(*given, tmp_path / "quiet", "-q")[1]
    for number in range(4):
        (tmp_path / "in" / f"e{number}.csv").write_text("")
    assert f"note: no {what} came of 2 more sources" in run(*given, tmp_path / "again")[1]


def test_rdf_files_of_which_nothing_comes_are_told(tmp_path: Path) -> None:
    for name, text in {"a.nt": "", "b.ttl": "# nothing", "c.nq": "<a:b> <a:b> <a:b> .\n"}.items():
        (tmp_path / name).write_text(text)
    report = load(tmp_path, tmp_path / "kb")
    assert (report.read, report.without) == (1, [tmp_path / "a.nt", tmp_path / "b.ttl"])
    done = arrange(tmp_path / "c.nq", tmp_path / "out")
    assert done.without == (tmp_path / "c.nq",)
