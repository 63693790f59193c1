"""`oxiseq verify`: a folder that is whole, in use, half there, flipped, of another version."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from oxiseq.api.store import Store
from oxiseq.cli.app import main
from oxiseq.grammar.languages import STANDING
from oxiseq.journal import FILE_NAME, Journal
from oxiseq.live import LiveService, LiveSettings
from oxiseq.live.intake import read_graph
from oxiseq.live.verifying import verify

E = "http://e/"
S = f"{E}s"
TEXT = f"""SELECT ?x ?y WITHIN 1 HOUR FROM STREAM S <{S}>
WHERE {{ SEQ(A; B) DEFINE GPM A ON S {{ ?h <{E}v> ?x }} DEFINE GPM B ON S {{ ?h <{E}v> ?y FILTER(?y > ?x) }} }}"""
COUNT = 50


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a store, events, a query over streams and one over the store; the server has ended."""
    folder = tmp_path_factory.mktemp("whole") / "data"
    folder.mkdir()
    store = Store(str(folder))
    store.update("INSERT DATA { " + " ".join(f"<{E}{i}> <{E}p> {i} ." for i in range(2000)) + " }")
    with LiveService(store, folder, LiveSettings(idle=None), "normal") as service:
        service.queries.register("rises", TEXT)
        service.queries.register("all", f"SELECT ?s {{ ?s <{E}p> 5 }}", STANDING)
        for i in range(COUNT):
            body = f"<{E}h> <{E}v> {i % 7} .".encode()
            service.streams.push(S, lambda body=body, i=i: read_graph(body, "text/turtle", i), body, f"b{i}")  # type: ignore[misc]
    store.close()
    return folder


@pytest.fixture
def folder(made: Path, tmp_path: Path) -> Path:
    """A copy to damage."""
    return Path(shutil.copytree(made, tmp_path / "data"))


def run(folder: Path, *more: str) -> Result:
    return CliRunner().invoke(main, ["verify", str(folder), "-q", *more])


def sql(folder: Path, text: str, *given: object) -> None:
    with closing(sqlite3.connect(folder / FILE_NAME)) as connection, connection:
        assert connection.execute(text, given).rowcount


def test_a_whole_folder_is_told_as_what_it_holds(folder: Path) -> None:
    result = run(folder)
    assert result.exit_code == 0, result.output
    assert result.stdout.splitlines() == [
        "store: 2,000 triples",
        f"journal: {COUNT} events of 1 streams, {_matches(folder)} matches of 2 queries",
        "checkpoints: of 2 queries",
    ]
    assert json.loads(run(folder, "--json").stdout)["faults"] == []


def _matches(folder: Path) -> int:
    with closing(sqlite3.connect(folder / FILE_NAME)) as connection:
        found: int = connection.execute("SELECT sum(next - first) FROM query").fetchone()[0]
    return found


def test_a_server_at_work_is_left_alone(folder: Path) -> None:
    store = Store(str(folder))
    with LiveService(store, folder, LiveSettings(idle=None), "normal"):
        found = verify(folder)
        assert "store: in use by a server, not checked" in found.holds
        assert found.faults == ()
    store.close()


def flip(path: Path, place: int) -> None:
    raw = bytearray(path.read_bytes())
    raw[place] ^= 0xFF
    path.write_bytes(raw)


def _flip_blob(folder: Path, table: str, column: str, where: str) -> None:
    with closing(sqlite3.connect(folder / FILE_NAME)) as connection, connection:
        key, blob = connection.execute(f"SELECT rowid, {column} FROM {table} WHERE {where}").fetchone()
        changed = bytearray(blob)
        changed[len(changed) // 2] ^= 0xFF
        connection.execute(f"UPDATE {table} SET {column} = ? WHERE rowid = ?", (bytes(changed), key))


def _other_letter(folder: Path, within: bytes) -> None:
    """The last letter is another one wherever these bytes are in the file, as no SQL does it."""
    path = folder / FILE_NAME
    raw = path.read_bytes()
    assert within in raw
    path.write_bytes(raw.replace(within, within[:-1] + bytes([within[-1] ^ 1])))


def _settings(folder: Path) -> None:
    """A sink and a mapping, as they are stored."""
    with Journal(folder / FILE_NAME) as journal:
        journal.sinks.put("rises", "file", {"kind": "file", "path": "matches.jsonl"})
        journal.streams.create(S, mapping='{"unit": "seconds"}')
        assert journal.verify() == []


def _unlink(pattern: str) -> Callable[[Path], object]:
    return lambda folder: [path.unlink() for path in folder.glob(pattern)]


DAMAGES: dict[str, tuple[Callable[[Path], object], str, str, str]] = {
    "an event": (
        lambda folder: _flip_blob(folder, "entry", "data", "first = 20"),
        "journal",
        f"stream <{S}>, offset 20",
        "push them again under another key",
    ),
    "a match": (
        lambda folder: _flip_blob(folder, "match_batch", "data", "count > 0"),
        "journal",
        "query 'rises', match 1",
        "these matches are lost",
    ),
    "a checkpoint": (
        lambda folder: _flip_blob(folder, "checkpoint", "state", "owner = 'rises'"),
        "checkpoint",
        "of 'rises'",
        "which has all events that it has seen",
    ),
    "a checkpoint without its log": (
        lambda folder: (
            _flip_blob(folder, "checkpoint", "state", "owner = 'rises'"),
            sql(folder, "DELETE FROM entry WHERE first < 9"),
            sql(folder, "UPDATE stream SET first = 9"),
        ),
        "checkpoint",
        "of 'rises'",
        "a match may be missing or come twice",
    ),
    "an entry that is gone": (
        lambda folder: sql(folder, "DELETE FROM entry WHERE first = 20"),
        "journal",
        "offset 20 was expected",
        "push them again",
    ),
    "a query that no longer parses": (
        lambda folder: sql(folder, "UPDATE query SET text = 'SELECT' WHERE name = 'rises'"),
        "checkpoint",
        "of 'rises'",
        "register it again",
    ),
    "a letter of a query's text": (
        lambda folder: _other_letter(folder, b"?y > ?x"),
        "journal",
        "query 'rises': its text, its language or its options are not what was registered",
        "register it again",
    ),
    "a letter of a standing query's text": (
        lambda folder: _other_letter(folder, b"?s { ?s"),
        "journal",
        "query 'all': its text",
        "register it again",
    ),
    "an option of a query": (
        lambda folder: sql(folder, """UPDATE query SET options = json_set(options, '$.origin', 5)"""),
        "journal",
        "query 'rises': its text, its language or its options",
        "register it again",
    ),
    "a sink's settings": (
        lambda folder: (
            _settings(folder),
            sql(folder, "UPDATE sink SET config = replace(config, 'matches.jsonl', 'matches.jsonm')"),
        ),
        "journal",
        "sink 'file' of query 'rises': its settings are not what was stored",
        "store them again",
    ),
    "a mapping": (
        lambda folder: (
            _settings(folder),
            sql(folder, "UPDATE stream SET mapping = replace(mapping, 'seconds', 'minutes')"),
        ),
        "journal",
        f"stream <{S}>: its mapping is not what was stored",
        "store it again",
    ),
    "the head of the journal": (
        lambda folder: flip(folder / FILE_NAME, 3),
        "journal",
        "is not a readable journal",
        "restore a backup",
    ),
    "pages of the journal": (
        lambda folder: [flip(folder / FILE_NAME, place) for place in range(4096 * 3, 4096 * 12, 100)],
        "journal",
        "",
        "",
    ),
    "an empty journal": (
        lambda folder: (folder / FILE_NAME).write_bytes(b""),
        "journal",
        "the file is empty",
        "restore a backup",
    ),
    "no journal": (_unlink(FILE_NAME + "*"), "journal", "is missing", "restore a backup"),
    "another version": (
        lambda folder: _version(folder, 99),
        "journal",
        "is of version 99",
        "nothing is damaged",
    ),
    "an older version": (lambda folder: _version(folder, 1), "journal", "is of version 1", "nothing is damaged"),
    "another program's": (
        lambda folder: _pragma(folder, "application_id = 7"),
        "journal",
        "not a journal of oxiseq",
        "restore a backup",
    ),
    "CURRENT": (_unlink("CURRENT"), "store", "CURRENT is missing", "load it again"),
    "the manifest": (_unlink("MANIFEST-*"), "store", "", "load it again"),
    "half a load": (
        lambda folder: (folder / "oxiseq-loading.json").write_text("{}"),
        "store",
        "half loaded",
        "load it again",
    ),
}


def _pragma(folder: Path, text: str) -> None:
    with closing(sqlite3.connect(folder / FILE_NAME)) as connection:
        connection.execute(f"PRAGMA {text}")


def _version(folder: Path, number: int) -> None:
    _pragma(folder, f"user_version = {number}")


@pytest.mark.parametrize("name", DAMAGES)
def test_what_is_damaged_is_told_with_what_becomes_of_it(folder: Path, name: str) -> None:
    damage, part, what, then = DAMAGES[name]
    damage(folder)
    found = verify(folder)
    told = [fault for fault in found.faults if fault.part == part and what in fault.what and then in fault.then]
    assert told, found
    result = run(folder)
    assert result.exit_code == 1
    assert f"damaged {part}: " in result.stdout


def test_flipped_bytes_of_the_store_are_found(folder: Path) -> None:
    tables = sorted(folder.glob("*.sst"), key=lambda path: path.stat().st_size) or sorted(folder.glob("*.log"))
    for place in range(0, tables[-1].stat().st_size, 97):
        flip(tables[-1], place)
    found = verify(folder)
    lost = not any(line == "store: 2,000 triples" for line in found.holds)
    assert lost
    assert [fault.part for fault in found.faults] == ["store"]


def test_the_end_of_the_write_ahead_log_is_missed(folder: Path, tmp_path: Path) -> None:
    store = Store(str(folder))
    with LiveService(store, folder, LiveSettings(idle=None), "normal") as service:
        for i in range(COUNT, 2 * COUNT):
            body = f"<{E}h> <{E}v> 1 .".encode()
            service.streams.push(S, lambda body=body, i=i: read_graph(body, "text/turtle", i), body, None)  # type: ignore[misc]
        killed = tmp_path / "killed"
        killed.mkdir()
        for file in folder.glob(f"{FILE_NAME}*"):  # not the store's files: it merges them in the background
            shutil.copy(file, killed)
    store.close()
    wal = killed / f"{FILE_NAME}-wal"
    flip(wal, wal.stat().st_size // 2)
    assert any("write-ahead log is damaged" in fault.what for fault in verify(killed).faults)


def test_a_folder_without_anything(tmp_path: Path) -> None:
    found = verify(tmp_path)
    assert found.holds == ("store: none here",)
    assert [fault.part for fault in found.faults] == ["journal"]
    assert run(tmp_path / "none").exit_code == 2
