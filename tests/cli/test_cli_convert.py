"""`oxiseq convert`: events between formats."""

from __future__ import annotations

from pathlib import Path

import pytest
from cli_files import EVENTS, STREAM, oxiseq, query, write

import oxiseq as package

NAMES = [
    "out.nq",
    "out.trig",
    "out.nt",
    "out.ttl",
    "out.ndjsonld",
    "out.nq.gz",
    "out.trig.gz",
    "out.ttl.gz",
    "out.arrow",
    "out.parquet",
]


@pytest.mark.parametrize("name", NAMES)
def test_every_format_holds_the_same_events(folder: Path, name: str) -> None:
    result = oxiseq("convert", folder / "payments.nq", folder / name)
    assert result.exit_code == 0, result.stderr
    assert "4 events" in result.stderr
    back = oxiseq("convert", folder / name, folder / "back.nq")
    assert "4 events" in back.stderr
    matches = package.run(query(), streams={STREAM: folder / "back.nq"})
    assert [m["second"].value for m in matches] == ["40", "600"]


def test_formats_may_be_named(folder: Path) -> None:
    write(folder, "events.data", EVENTS)
    result = oxiseq("convert", folder / "events.data", folder / "events.table", "--from", "nquads", "--to", "arrow")
    assert result.exit_code == 0, result.stderr
    assert (folder / "events.table").read_bytes().startswith(b"ARROW1")


def test_a_malformed_line_stops_or_is_skipped(folder: Path) -> None:
    bad = write(folder, "bad.nq", "nonsense\n" + EVENTS)
    stopped = oxiseq("convert", bad, folder / "out.arrow")
    assert stopped.exit_code == 1
    assert f"error: {bad}:1: " in stopped.stderr
    assert not (folder / "out.arrow").exists()
    skipped = oxiseq("convert", bad, folder / "out.arrow", "--on-error", "skip")
    assert skipped.exit_code == 0
    assert "4 events" in skipped.stderr
    assert "1 skipped" in skipped.stderr
    assert f"skipped: {bad}:1: " in skipped.stderr


def test_an_unknown_ending_and_a_missing_file(folder: Path) -> None:
    unknown = oxiseq("convert", folder / "payments.nq", folder / "out.xyz")
    assert unknown.exit_code == 1
    assert "unknown ending .xyz" in unknown.stderr
    missing = oxiseq("convert", folder / "no.nq", folder / "out.arrow")
    assert missing.exit_code == 1
    assert "there is no such file" in missing.stderr


def test_another_time_predicate_is_read_and_written(folder: Path) -> None:
    other = "urn:at"
    path = write(folder, "other.nq", EVENTS.replace("http://www.w3.org/ns/prov#generatedAtTime", other))
    oxiseq("convert", path, folder / "out.nq", "--time-predicate", f"<{other}>")
    assert (folder / "out.nq").read_text().count(f"<{other}>") == 4


def test_quiet_says_nothing(folder: Path) -> None:
    assert oxiseq("convert", folder / "payments.nq", folder / "out.arrow", "-q").stderr == ""
