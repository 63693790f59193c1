"""`oxiseq mapping try`, and `oxiseq import` with a mapping as a stream has one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

from click.testing import CliRunner, Result

from oxiseq.cli import main

FLAT: Final = {
    "subject": "http://e/{id}",
    "predicates": {"http://e/t": {"column": "temp", "datatype": "xsd:double"}},
    "time": ["day", "clock"],
    "zone": "+02:00",
}


def _files(folder: Path) -> tuple[str, str]:
    (folder / "m.json").write_text(json.dumps(FLAT))
    (folder / "a.csv").write_text("id,temp,day,clock\n1,20.5,2024-05-01,12:00:00\n2,21,2024-05-01,12:00:01\n")
    return str(folder / "a.csv"), str(folder / "m.json")


def test_try_shows_the_first_events(tmp_path: Path) -> None:
    file, mapping = _files(tmp_path)
    done = CliRunner().invoke(main, ["mapping", "try", file, "-m", mapping, "-n", "1"])
    assert (done.exit_code, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [
        "# 2024-05-01T10:00:00Z",
        '<http://e/1> <http://e/t> "20.5"^^<http://www.w3.org/2001/XMLSchema#double> .',
    ]


def test_try_names_what_is_no_column_and_what_is_wrong(tmp_path: Path) -> None:
    file, _ = _files(tmp_path)
    (tmp_path / "q.rq").write_text("CONSTRUCT { <urn:s> <urn:p> ?tmp ; <urn:q> ?id } WHERE { }")
    done = CliRunner().invoke(main, ["mapping", "try", file, "-m", str(tmp_path / "q.rq")])
    assert done.exit_code == 1
    assert "no column 'tmp'; did you mean 'temp'?" in done.stderr
    assert "no column 'time'" in done.stderr
    assert "left out: row or line 2: time: there is no time" in done.stderr
    assert "not read: temp, day, clock" in done.stderr


def test_try_refuses_what_is_no_table_or_mapping(tmp_path: Path) -> None:
    file, mapping = _files(tmp_path)
    (tmp_path / "a.nq").write_text("")
    for given in ([str(tmp_path / "a.nq"), "-m", mapping], [file, "-m", "nothing.json"], [file, "-m", file]):
        done = CliRunner().invoke(main, ["mapping", "try", *given])
        assert done.exit_code != 0 and "Traceback" not in done.output


def test_events_take_the_mapping(tmp_path: Path) -> None:
    file, mapping = _files(tmp_path)
    done = CliRunner().invoke(main, ["import", file, "-m", mapping, "-o", str(tmp_path / "out"), "--quiet"])
    assert done.exit_code == 0, done.output
    assert [p.name for p in (tmp_path / "out").iterdir()] == ["20240501T100000Z.parquet"]


def test_contexts_are_fetched_when_that_is_asked_for(tmp_path: Path) -> None:
    known = {"contexts": {"https://example.org/c.jsonld": {"@context": {"id": "@id"}}}}

    def fetch(text: str) -> Result:
        (tmp_path / "wanted.json").write_text(text)
        return CliRunner().invoke(main, ["mapping", "fetch", str(tmp_path / "wanted.json")])

    printed = fetch(json.dumps(known))
    assert printed.exit_code == 0 and json.loads(printed.stdout) == known
    for text, said in (
        ('{"contexts": {"urn:c": null}}', "'urn:c' is no http address"),
        ("[", "cannot be read"),
        ("[]", "mapping"),
        ("5", "mapping"),
    ):
        refused = fetch(text)
        assert refused.exit_code == 1 and said in refused.stderr, refused.stderr
