"""`oxiseq import`: dirty logs of several kinds become one folder that the engine replays in order."""

from __future__ import annotations

import json
from datetime import timedelta
from importlib import import_module
from pathlib import Path

import pytest
from click.testing import CliRunner

import oxiseq
from oxiseq.cli import main
from oxiseq.engine.errors import EventError
from oxiseq.engine.events.open import write_events
from oxiseq.kb_loader.tables import Mapping
from oxiseq.logs import arrange
from oxiseq.logs.reading import Meaning

PREFIX = "PREFIX : <http://e/>\n"
MAPPING = (
    PREFIX
    + """CONSTRUCT { ?house :watts ?number }
WHERE { BIND(IRI(CONCAT("http://e/", ?name)) AS ?house)
        BIND(<http://www.w3.org/2001/XMLSchema#integer>(?watts) AS ?number) }"""
)
RISES = (
    PREFIX
    + """SELECT ?h ?a ?b FROM STREAM S <http://e/s> WHERE { SEQ(A; B)
  DEFINE GPM A ON S { ?h :watts ?a } DEFINE GPM B ON S { ?h :watts ?b FILTER(?b > ?a) } }"""
)
DATED = "<http://www.w3.org/ns/prov#generatedAtTime>"
DATE_TIME = "<http://www.w3.org/2001/XMLSchema#dateTime>"


def write_logs(folder: Path) -> None:
    """Ten readings of two houses in three files, in no order; three rows are bad."""
    folder.mkdir()
    (folder / "a.csv").write_text(
        "time,name,watts\n2026-11-20T10:30:00Z,ann,5\n2026-11-20 10:10:00,bob,7\nnever,bob,9\n"
        "2026-11-20T10:40:00Z,ann\n2026-11-20T11:20:00Z,bob,8\n"
    )
    rows = [
        {"time": 1763632860000000 + i * 60_000_000 + 365 * 86_400_000_000, "name": "ann", "watts": str(i)}
        for i in range(4)
    ]
    (folder / "b.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "c.nq").write_text(
        f'<http://e/bob> <http://e/watts> 1 <urn:1> .\n<urn:1> {DATED} "2026-11-20T10:00:00Z"^^{DATE_TIME} .\n'
        f'<http://e/bob> <http://e/watts> "2"^^<http://www.w3.org/2001/XMLSchema#integer> <urn:2> .\n'
        f'<urn:2> {DATED} "2026-11-20T10:00:01Z"^^{DATE_TIME} .\n'
    )


def found(folder: Path) -> list[tuple[str, ...]]:
    return [tuple(str(m[v]) for v in "hab") for m in oxiseq.run(RISES, {"S": folder})]


def test_dirty_logs_become_tables_in_order(tmp_path: Path) -> None:
    write_logs(tmp_path / "logs")
    done = arrange(tmp_path / "logs", tmp_path / "out", meaning=Meaning(mapping=Mapping(MAPPING)))
    assert (done.events, done.late) == (8, 0)
    names = [p.name for p in sorted((tmp_path / "out").iterdir())]
    assert names == ["20261120T100000Z.parquet", "20261120T110000Z.parquet"]
    assert done.files == 2
    bob, integer = "<http://e/bob>", "^^<http://www.w3.org/2001/XMLSchema#integer>"
    assert (bob, f'"2"{integer}', f'"7"{integer}') in found(tmp_path / "out")
    assert (bob, f'"7"{integer}', f'"8"{integer}') in found(tmp_path / "out")
    assert done.quarantine is not None
    told = [json.loads(line) for f in sorted(done.quarantine.rglob("*.jsonl")) for line in f.read_text().splitlines()]
    assert len(told) == done.bad
    reasons = " ".join(f"{Path(t['file']).name} {t['reason']} {t['text']}" for t in told)
    for said in ("a.csv not a valid time", "never, bob, 9", "2 columns, 3 expected", "c.nq"):
        assert said in reasons


def test_a_log_goes_on_behind_what_is_there(tmp_path: Path) -> None:
    write_logs(tmp_path / "logs")
    meaning = Meaning(mapping=Mapping(MAPPING))
    arrange(tmp_path / "logs" / "b.jsonl", tmp_path / "out", meaning=meaning, every=timedelta(minutes=10))
    more = tmp_path / "more.csv"
    more.write_text("time,name,watts\n2026-11-20T10:00:00Z,ann,1\n2026-11-20T12:00:00Z,ann,99\n")
    done = arrange(more, tmp_path / "out", meaning=meaning, every=timedelta(minutes=10))
    assert (done.events, done.late, done.bad) == (1, 1, 0)
    assert len(list((tmp_path / "out").iterdir())) == 2


def test_a_run_that_is_interrupted_leaves_no_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_logs(tmp_path / "logs")
    meaning = Meaning(mapping=Mapping(MAPPING))
    written = []

    def interrupted(batches: object, terms: object, path: Path) -> int:
        written.append(path)
        if len(written) == 2:
            raise KeyboardInterrupt
        return int(write_events(batches, terms, path))  # type: ignore[arg-type]

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(import_module("oxiseq.logs.arrange"), "write_events", interrupted)
        arrange(tmp_path / "logs", tmp_path / "logs" / "out", meaning=meaning)
    assert list((tmp_path / "logs" / "out").iterdir()) == []
    done = arrange(tmp_path / "logs", tmp_path / "logs" / "out", meaning=meaning)
    assert (done.events, done.late, done.files) == (8, 0, 2)
    again = arrange(tmp_path / "logs", tmp_path / "logs" / "out", meaning=meaning)  # its own tables are no sources
    assert (again.events, again.late) == (0, 8)


def test_the_command_and_its_errors(tmp_path: Path) -> None:
    write_logs(tmp_path / "logs")
    (tmp_path / "m.rq").write_text(MAPPING)
    asked = ["import", str(tmp_path / "logs"), "-o", str(tmp_path / "out"), "--mapping", str(tmp_path / "m.rq")]
    done = CliRunner().invoke(main, [*asked, "--to", "arrow", "--every", "1h"])
    assert done.exit_code == 0, done.output
    assert "8 events · 2 files · 0 late" in done.output
    query = tmp_path / "q.spaseq"
    query.write_text(RISES)
    shown = CliRunner().invoke(main, ["run", str(query), "-s", f"S={tmp_path / 'out'}", "-f", "csv"])
    assert shown.exit_code == 0, shown.output
    assert shown.output.count("http://e/") == len(found(tmp_path / "out")) > 5
    assert CliRunner().invoke(main, asked[:4]).exit_code == 1
    with pytest.raises(EventError, match="no column 'at' for the time"):
        arrange(tmp_path / "logs" / "a.csv", tmp_path / "other", meaning=Meaning("at", Mapping(MAPPING)))
    (tmp_path / "empty").mkdir()
    with pytest.raises(EventError, match="the folder holds no event table"):
        oxiseq.run(RISES, {"S": tmp_path / "empty"})
