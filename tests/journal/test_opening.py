"""Opening: what is refused, and that the message names the file."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from journal_events import STREAM, blob, found, read

from oxiseq.engine.errors import OxiseqError
from oxiseq.journal import Checkpoint, DamagedError, Journal, JournalError, LockedError, VersionError, schema

HOLD = """
import sys
from oxiseq.journal import Journal
with Journal(sys.argv[1]) as journal:
    print("open", flush=True)
    sys.stdin.read()
"""


def test_a_second_writer_is_refused_until_the_first_is_gone(path: Path) -> None:
    with Journal(path), pytest.raises(LockedError, match=path.name):
        Journal(path)
    Journal(path).close()


def test_another_process_holds_the_file_until_it_dies(path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "open\n"
        with pytest.raises(LockedError, match="another process"):
            Journal(path)
        with Journal(path, read_only=True) as reader:
            assert reader.streams.all() == []
        child.kill()
        child.wait()
    Journal(path).close()


def test_a_file_locked_by_something_else_is_told(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Journal(path).close()
    monkeypatch.setattr("oxiseq.journal.journal.open_writer.__defaults__", (0.05,))
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("PRAGMA locking_mode = EXCLUSIVE")
        other.execute("BEGIN EXCLUSIVE")
        with pytest.raises(LockedError, match=f"{path.name}: is locked"):
            Journal(path)


@pytest.mark.parametrize("content", [b"no database, but some text " * 100, b"x", b"SQLite format 3\0" + b"\7" * 5000])
def test_a_file_that_is_no_database_is_refused_and_left_as_it_is(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    for read_only in (False, True):
        with pytest.raises(DamagedError, match=path.name):
            Journal(path, read_only=read_only)
    assert path.read_bytes() == content


def test_somebody_elses_database_is_refused(path: Path) -> None:
    with closing(sqlite3.connect(path)) as other:
        other.execute("CREATE TABLE stream (id)")
    with pytest.raises(DamagedError, match="not a journal"):
        Journal(path)


def test_a_newer_version_is_refused(path: Path) -> None:
    Journal(path).close()
    with closing(sqlite3.connect(path)) as other:
        other.execute("PRAGMA user_version = 99")
    for read_only in (False, True):
        with pytest.raises(VersionError, match=f"version 99; this program knows versions up to {schema.VERSION}"):
            Journal(path, read_only=read_only)


def test_an_older_version_is_brought_up_to_date_by_who_writes(path: Path) -> None:
    with closing(sqlite3.connect(path)) as other:
        other.executescript(f"{schema._TABLES} PRAGMA user_version = 1; PRAGMA application_id = {schema.APPLICATION};")
    with pytest.raises(VersionError, match=r"version 1; opened for writing"):
        Journal(path, read_only=True)
    with Journal(path) as journal:
        journal.queries.register("q", "text")
        assert journal.queries.set_state("q", "failed", "why").error == "why"
    with Journal(path, read_only=True) as journal:
        assert journal.queries.get("q").error == "why"
        assert journal.verify() == []


def test_options_of_version_3_have_their_names_of_now(path: Path) -> None:
    old = {
        "plain": {},
        "windows": {"start": 5, "instants": [1, 2], "report": "RSTREAM"},
        "tuples": {"lateness": 5_000_000, "streamNames": {"S": "urn:s"}, "rules": []},
        "bounded": {"stateBudget": {"records": 3}, "onBudget": "reset"},
        "unbounded": {"stateBudget": {}},
    }
    new = {
        "plain": {},
        "windows": {"origin": 5, "evaluation_times": [1, 2], "stream_operator": "RSTREAM"},
        "tuples": {"lateness": "5000000us", "stream_names": {"S": "urn:s"}, "rules": []},
        "bounded": {"max_state_records": 3, "max_state_bytes": 0, "on_state_limit": "drop"},
        "unbounded": {"max_state_records": 0, "max_state_bytes": 0},
    }
    with Journal(path) as journal:
        for name, options in old.items():
            journal.queries.register(name, "text", options=options)
    with closing(sqlite3.connect(path)) as other:
        other.executescript("PRAGMA user_version = 3; DROP TABLE sink; ALTER TABLE stream DROP COLUMN mapping;")
        other.executescript("DROP TABLE session; ALTER TABLE stream DROP COLUMN checksum;")
        other.executescript("ALTER TABLE query DROP COLUMN checksum; ALTER TABLE query DROP COLUMN omitted;")
    for _ in range(2):  # once: what is new stays
        with Journal(path) as journal:
            assert {record.name: dict(record.options) for record in journal.queries.all()} == new


@pytest.mark.parametrize("version", [7, 8])
def test_options_of_earlier_versions_have_their_new_names(path: Path, version: int) -> None:
    """For who reads, too; a damaged one stays damaged."""
    old = {"report": "RSTREAM", "at": [1, 2], "state_records": 3, "state_bytes": 0, "on_budget": "reset", "rules": []}
    new = {"stream_operator": "RSTREAM", "evaluation_times": [1, 2], "max_state_records": 3, "max_state_bytes": 0}
    new |= {"on_state_limit": "drop", "rules": []}
    with Journal(path) as journal:
        for name in ("q", "damaged"):
            journal.queries.register(name, "text", options=old)
        for name in ("plain", "no-json"):
            journal.queries.register(name, "text")
    with closing(sqlite3.connect(path)) as other:
        if version == 7:
            for table in ("query", "sink", "stream"):
                other.execute(f"ALTER TABLE {table} DROP COLUMN checksum")
            other.execute("ALTER TABLE query DROP COLUMN omitted")
        else:
            other.execute("UPDATE query SET options = replace(options, '3', '4') WHERE name = 'damaged'")
            other.execute("UPDATE query SET options = '{' WHERE name = 'no-json'")
        other.execute(f"PRAGMA user_version = {version}")
        other.commit()
    for read_only in (True, False, True):
        with Journal(path, read_only=read_only) as journal:
            assert dict(journal.queries.get("q").options) == new
            assert dict(journal.queries.get("plain").options) == {}
            names = ("damaged", "no-json") if version == 8 else ()
            assert [fault.split("'")[1] for fault in journal.verify()] == [*names]


def test_what_version_7_holds_gets_its_checksums(path: Path) -> None:
    with Journal(path) as journal:
        journal.streams.create(STREAM, mapping="{}")
        journal.queries.register("q", "text", options={"rules": []})
        journal.queries.register("gone", "text")
        journal.queries.delete("gone")
        journal.sinks.put("q", "s", {"kind": "file"})
    with closing(sqlite3.connect(path)) as other:
        for table in ("query", "sink", "stream"):
            other.execute(f"ALTER TABLE {table} DROP COLUMN checksum")
        other.executescript("ALTER TABLE query DROP COLUMN omitted; PRAGMA user_version = 7;")
    for read_only in (True, False):
        with Journal(path, read_only=read_only) as journal:
            assert journal.verify() == []
            assert journal.queries.get("q").omitted is None and journal.streams.get(STREAM).mapping == "{}"
            assert [(row.query, row.name) for row in journal.sinks.all()] == [("q", "s")]
    with closing(sqlite3.connect(path)) as other, other:
        other.execute("UPDATE query SET text = 'Text' WHERE name = 'q'")
        other.execute("UPDATE sink SET config = '{}'")
        other.execute("UPDATE stream SET mapping = ''")
    with Journal(path) as journal:
        assert len(journal.verify()) == 3


def test_a_page_overwritten_is_found(path: Path) -> None:
    with Journal(path) as journal:
        journal.streams.create(STREAM)
        for i in range(150):
            journal.log.append(STREAM, blob(range(i * 100, i * 100 + 100)))
    with path.open("r+b") as file:
        size = path.stat().st_size
        for place in range(4096 * 40, size - 4096, 4096):
            file.seek(place)
            file.write(b"\x5a" * 512)
    with Journal(path) as journal:
        assert journal.verify()
        with pytest.raises(DamagedError):
            read(journal)


def test_a_blob_changed_in_the_file_is_found(path: Path) -> None:
    with Journal(path) as journal:
        journal.streams.create(STREAM)
        journal.log.append(STREAM, blob(range(100)))
    with closing(sqlite3.connect(path)) as other:
        data = bytearray(other.execute("SELECT data FROM entry").fetchone()[0])
        data[-3] ^= 1
        other.execute("UPDATE entry SET data = ?", (bytes(data),))
        other.commit()
    with Journal(path) as journal:
        assert [fault for fault in journal.verify() if "checksum" in fault and STREAM in fault]
        with pytest.raises(DamagedError, match="checksum"):
            read(journal)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ("DELETE FROM entry WHERE first = 2", "offset 2 was expected"),
        ("UPDATE stream SET next = 9", "instead of 9"),
        ("UPDATE entry SET count = 3 WHERE first = 4", "not those of the blob"),
        ("DELETE FROM match_batch WHERE first = 1", "match 1 was expected"),
        ("UPDATE checkpoint_offset SET next = 99", "not in the log"),
        ("UPDATE checkpoint_match SET last = 99", "not stored"),
    ],
)
def test_verify_tells_what_does_not_fit_together(path: Path, change: str, told: str) -> None:
    with Journal(path) as journal:
        journal.streams.create(STREAM)
        journal.queries.register("q", "text")
        for i in range(3):
            journal.log.append(STREAM, blob([i, i + 1]))
            journal.matches.append(found("q", i + 1, [i]))
        journal.checkpoints.commit(Checkpoint("q", b"", {STREAM: 3}, {"q": 2}))
        assert journal.verify() == []
    with closing(sqlite3.connect(path)) as other:
        other.execute(change)
        other.commit()
    with Journal(path) as journal:
        assert [fault for fault in journal.verify() if told in fault]


def test_a_missing_folder_or_journal_is_told(path: Path) -> None:
    with pytest.raises(JournalError, match="folder does not exist"):
        Journal(path / "deeper" / "journal")
    with pytest.raises(JournalError, match="there is no journal"):
        Journal(path, read_only=True)
    path.touch()
    with pytest.raises(JournalError, match="the file is empty"):
        Journal(path, read_only=True)
    with pytest.raises(OxiseqError, match="durability"):
        Journal(path, "sometimes")  # type: ignore[arg-type]  # as who has no types may


def test_for_reading_only_nothing_is_written(path: Path) -> None:
    with Journal(path) as journal:
        journal.streams.create(STREAM)
    with Journal(path, read_only=True) as reader, pytest.raises(JournalError, match="reading only"):
        reader.log.append(STREAM, blob([1]))


def test_a_closed_journal_says_so(path: Path) -> None:
    journal = Journal(path)
    journal.streams.create(STREAM)
    journal.close()
    journal.close()
    for work in (lambda: journal.log.append(STREAM, blob([1])), journal.streams.all):
        with pytest.raises(JournalError, match="closed"):
            work()
