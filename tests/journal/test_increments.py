"""Backups of what is new, put together again: the journal of that moment, whatever happened between."""

from __future__ import annotations

import hashlib
import json
import sqlite3
import zipfile
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from journal_events import OTHER, STREAM, Clock, blob, found, matches, read

from oxiseq.journal import Checkpoint, ConflictError, DamagedError, Journal, JournalError, Quarantined, Retention
from oxiseq.journal.archive import unpack
from oxiseq.journal.increments import _sum, mark_from, mark_of, write_full, write_increment
from oxiseq.journal.restoring import restore, resumed


def content(path: Path) -> dict[str, list[tuple[object, ...]]]:
    """All rows of all tables; ids that mean nothing, and batch ids that are forgotten later, left out."""
    with closing(sqlite3.connect(path)) as connection:
        tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        rows = {table: connection.execute(f"SELECT * FROM {table}").fetchall() for table in tables}
    for table in ("match_batch", "receipt"):
        rows[table] = [row[1:] for row in rows[table]]
    return {table: sorted(given, key=repr) for table, given in rows.items()}


@dataclass
class Chain:
    """A journal and its backups."""

    journal: Journal
    folder: Path
    files: list[Path] = field(default_factory=list)

    def back_up(self) -> Path:
        target = self.folder / f"{len(self.files)}.backup"
        if self.files:
            write_increment(self.journal.path, mark_of(self.files[-1]), target)
        else:
            write_full(self.journal, target)
        self.files.append(target)
        return target

    def restored(self) -> Path:
        folder = self.folder / f"restored{len(self.files)}"
        restore(self.files, folder)
        return folder / "journal.oxiseq"


class Doer:
    """What a server does with its journal, by small numbers."""

    def __init__(self, journal: Journal, clock: Clock) -> None:
        self.journal, self.clock = journal, clock
        self.batches = 0

    def push(self, stream: str, batch_id: bool) -> None:
        if stream not in {each.iri for each in self.journal.streams.all()}:
            self.journal.streams.create(stream, Retention(count=3))
        self.batches += 1
        key = (f"b{self.batches % 5}", bytes(16)) if batch_id else (None, None)
        self.clock.now += 1000
        with suppress(ConflictError):
            self.journal.log.append(stream, blob([self.batches, self.batches + 1]), *key)

    def act(self, number: int) -> None:
        journal = self.journal
        queries = {each.name: each for each in journal.queries.all()}
        streams = {each.iri: each for each in journal.streams.all()}
        name = "q" if number % 2 else "p"
        match number // 2:
            case 0 | 1:
                self.push(STREAM if number % 2 else OTHER, number // 2 == 0)
            case 2:
                if name not in queries:
                    journal.queries.register(name, "text", streams=tuple(streams))
            case 3 if name in queries:
                journal.matches.append(found(name, queries[name].next, [1, 2]))
            case 4 if name in queries:
                offsets = {iri: each.next for iri, each in streams.items()}
                self.clock.now += 1
                last = journal.matches.last(name)
                journal.checkpoints.commit(
                    Checkpoint(
                        name, b"state%d" % self.clock.now, offsets, {name: last}, position=journal.log.position()
                    )
                )
            case 5 if name in queries:
                journal.queries.delete(name)
            case 6:
                self.clock.now += 25 * 3_600_000_000 if number % 2 else 10
                journal.retain()
            case 7:
                for iri in streams:
                    with suppress(ConflictError):
                        journal.streams.delete(iri)
            case 8 if name in queries:
                journal.matches.begin_anew(name, b"anew")
            case 9 if streams:
                journal.log.advance(next(iter(streams)), self.clock.now)
            case 10 if name in queries:
                journal.quarantine.add([Quarantined(name, 1, STREAM, 0, 1, "reason")])
            case _:
                pass


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(parts=st.lists(st.lists(st.integers(0, 21), max_size=8), min_size=1, max_size=5))
def test_what_is_restored_is_the_journal_of_that_moment(
    parts: list[list[int]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder, clock = tmp_path_factory.mktemp("chain"), Clock()
    with Journal(folder / "journal.oxiseq", "normal", clock=clock) as journal:
        chain, doer = Chain(journal, folder), Doer(journal, clock)
        for part in parts:
            for number in part:
                doer.act(number)
            chain.back_up()
            restored = content(chain.restored())
            now = content(journal.path)
            assert set(now.pop("receipt")) <= set(restored.pop("receipt"))  # they are forgotten later there
            assert restored == now
            with Journal(chain.folder / f"restored{len(chain.files)}" / "journal.oxiseq") as again:
                assert again.verify() == []


def test_ids_go_on_and_batches_are_known_again(journal: Journal, tmp_path: Path) -> None:
    chain = Chain(journal, tmp_path)
    journal.log.append(STREAM, blob([1]), "one", bytes(16))
    chain.back_up()
    journal.queries.register("q", "text")
    journal.log.append(STREAM, blob([2]), "two", bytes(16))
    journal.matches.append(found("q", 1, [2]))
    chain.back_up()
    journal.log.append(STREAM, blob([3]), "three", bytes(16))  # lost
    path = chain.restored()
    stood = resumed(path)[STREAM]
    assert (stood.next, stood.last) == (2, 1_000_000)
    assert resumed(journal.path) == {}
    with Journal(path) as again:
        assert again.log.append(STREAM, blob([2]), "two", bytes(16)).repeated
        assert again.log.append(STREAM, blob([3]), "three", bytes(16)).first == 2
        again.matches.append(found("q", 2, [3]))
        assert read(again) == [(0, 1), (1, 2), (2, 3)]
        assert [number for number, _ in matches(again, "q")] == [1, 2]


def test_only_what_is_new_is_taken(journal: Journal, tmp_path: Path) -> None:
    chain = Chain(journal, tmp_path)
    journal.queries.register("q", "text")
    journal.checkpoints.commit(Checkpoint("q", bytes(1 << 20), {}, {"q": 0}))
    for i in range(200):
        journal.log.append(STREAM, blob(range(i * 100, i * 100 + 100)))
    whole = chain.back_up().stat().st_size
    journal.log.append(STREAM, blob([1_000_000]))
    assert chain.back_up().stat().st_size < 80_000 < whole
    unpack(chain.files[1], tmp_path / "increment")
    with closing(sqlite3.connect(tmp_path / "increment")) as increment:
        counts = [increment.execute(f"SELECT count(*) FROM {name}").fetchone() for name in ("entry", "checkpoint")]
    assert counts == [(1,), (0,)]


def test_a_chain_with_a_gap_or_of_another_journal_is_refused(journal: Journal, tmp_path: Path, clock: Clock) -> None:
    chain = Chain(journal, tmp_path)
    for i in range(4):
        journal.log.append(STREAM, blob([i]))
        chain.back_up()
    first, second, third, fourth = chain.files
    for wrong in ([first, third], [first, second, second], [first, fourth, third], [first, second, third, first]):
        with pytest.raises((ConflictError, DamagedError)):
            restore(wrong, tmp_path / "to")
        assert not any((tmp_path / "to").iterdir())
    for wrong in ([second], [tmp_path / "none"], [tmp_path]):
        with pytest.raises(JournalError):
            restore(wrong, tmp_path / "to")
    with Journal(tmp_path / "other.oxiseq", clock=clock) as other:
        other.streams.create(STREAM)
        for i in range(9):
            other.log.append(STREAM, blob([7 + i]))
        with pytest.raises(ConflictError, match="is not the journal that the last backup was made from"):
            write_increment(other.path, mark_of(first), tmp_path / "x")
    ahead = replace(mark_of(fourth), entry=5)
    with pytest.raises(ConflictError, match="is not the journal that the last backup was made from"):
        write_increment(journal.path, ahead, tmp_path / "y")
    with pytest.raises(ConflictError, match="the backup is of version 3"):
        write_increment(journal.path, replace(ahead, version=3), tmp_path / "z")
    with pytest.raises(JournalError, match="there is a journal already"):
        restore(chain.files, tmp_path)


def test_each_flipped_byte_of_an_archive_is_found_and_nothing_is_written(journal: Journal, tmp_path: Path) -> None:
    """Wherever it is: in the head, the manifest, a row, unused space, the directory of the ZIP file, the checksum."""
    chain = Chain(journal, tmp_path)
    journal.queries.register("q", "SELECT a text of which no byte may change")
    chain.back_up()
    journal.log.append(STREAM, blob(range(500)))
    chain.back_up()
    for target in chain.files:
        whole = target.read_bytes()
        text = whole.find(b"no byte may change")
        places = {*range(40), *range(0, len(whole), 997), *range(len(whole) - 400, len(whole), 3), text}
        for place in sorted(places - {-1}):
            raw = bytearray(whole)
            raw[place] ^= 1 << place % 8
            target.write_bytes(raw)
            with pytest.raises(DamagedError):
                restore(chain.files, tmp_path / "to")
        target.write_bytes(whole)
    assert not (tmp_path / "to").exists()
    restore(chain.files, tmp_path / "to")


def test_an_archive_that_is_cut_off_or_goes_on_is_found(journal: Journal, tmp_path: Path) -> None:
    chain = Chain(journal, tmp_path)
    chain.back_up()
    journal.log.append(STREAM, blob(range(500)))
    target = chain.back_up()
    whole = target.read_bytes()
    cuts = [0, 1, 10, 64, 71, 4096, 6000, len(whole) - 64, len(whole) - 1]
    for raw in [*(whole[:cut] for cut in cuts), whole + b"0", whole + whole, whole[1:], b"\n" * 100]:
        target.write_bytes(raw)
        with pytest.raises(JournalError):
            restore(chain.files, tmp_path / "to")
    assert not (tmp_path / "to").exists()


def test_an_archive_is_a_zip_file_whose_manifest_has_checksums(journal: Journal, tmp_path: Path) -> None:
    chain = Chain(journal, tmp_path)
    journal.log.append(STREAM, blob([1]))
    chain.back_up()
    journal.log.append(STREAM, blob([2]))
    chain.back_up()
    for target, name in zip(chain.files, ("journal.sqlite", "increment.sqlite"), strict=True):
        with zipfile.ZipFile(target) as archive:
            manifest = json.loads(archive.read("manifest.json"))
            assert archive.namelist() == ["manifest.json", name]
            content = archive.read(name)
            assert archive.testzip() is None
        assert manifest["members"] == {name: {"size": len(content), "sha256": hashlib.sha256(content).hexdigest()}}
        assert mark_from(manifest["marks"]["until"]) == mark_of(target)
        assert content.startswith(b"SQLite format 3\0")


def older(chain: Chain, tmp_path: Path) -> list[Path]:
    """The same backups as an earlier version wrote them: the SQLite files, the increment with a digest of its rows."""
    files = []
    for number, each in enumerate(chain.files):
        files.append(tmp_path / f"older{number}")
        unpack(each, files[-1])
        if number:
            with closing(sqlite3.connect(":memory:")) as connection:
                connection.execute("ATTACH ? AS more", (str(files[-1]),))
                connection.execute("UPDATE more.increment SET digest = ?", (_sum(connection),))
                connection.commit()
    return files


def test_older_backups_are_restored_and_those_that_can_be_seen_to_be_damaged_are_not(
    journal: Journal, tmp_path: Path
) -> None:
    chain = Chain(journal, tmp_path)
    journal.queries.register("q", "text")
    journal.log.append(STREAM, blob(range(500)))
    chain.back_up()
    journal.log.append(STREAM, blob(range(500)))
    chain.back_up()
    full, increment = older(chain, tmp_path)
    restore([full, increment], tmp_path / "whole")
    restore([full, chain.files[1]], tmp_path / "mixed")  # a chain goes on after an update
    with closing(sqlite3.connect(increment)) as other:  # of a version that knew no checksums
        copied = [name for (name,) in other.execute("SELECT name FROM sqlite_master WHERE name LIKE '%query%'")]
        for table in copied:
            other.execute(f"ALTER TABLE {table} DROP COLUMN checksum")
            other.execute(f"ALTER TABLE {table} DROP COLUMN omitted")
        other.execute("UPDATE increment SET digest = ''")
        other.commit()
    restore([full, increment], tmp_path / "before")
    for name in ("mixed", "before"):
        with Journal(tmp_path / name / "journal.oxiseq", read_only=True) as restored:
            assert restored.verify() == [] and restored.queries.get("q").text == "text"
    assert content(tmp_path / "whole" / "journal.oxiseq") == content(journal.path)
    assert content(tmp_path / "mixed" / "journal.oxiseq") == content(journal.path)
    raw = bytearray(full.read_bytes())
    with closing(sqlite3.connect(full)) as connection:
        (data,) = connection.execute("SELECT data FROM entry").fetchone()
    raw[bytes(raw).index(data[-40:]) + 30] ^= 1
    full.write_bytes(raw)
    with pytest.raises(DamagedError, match="offset 0"):
        restore([full, increment], tmp_path / "to")
    full.write_bytes(raw[:-1])
    with pytest.raises(DamagedError):
        restore([full, increment], tmp_path / "to")
    assert not (tmp_path / "to").exists()


@pytest.mark.parametrize("place", [0, 30, 100, 2000, 5000, -10])
def test_flipped_bytes_of_an_older_increment_are_found_or_harmless(
    journal: Journal, tmp_path: Path, place: int
) -> None:
    chain = Chain(journal, tmp_path)
    chain.back_up()
    journal.log.append(STREAM, blob(range(500)))
    chain.back_up()
    files = older(chain, tmp_path)
    raw = bytearray(files[1].read_bytes())
    raw[place] ^= 0xFF
    files[1].write_bytes(raw)
    try:
        restore(files, tmp_path / "to")
    except JournalError:
        assert not (tmp_path / "to" / "journal.oxiseq").exists()
        return
    assert content(tmp_path / "to" / "journal.oxiseq") == content(journal.path)


@pytest.mark.parametrize("cut", [0, 10, 4096, 6000])
def test_half_of_an_older_increment_is_refused(journal: Journal, tmp_path: Path, cut: int) -> None:
    chain = Chain(journal, tmp_path)
    chain.back_up()
    journal.log.append(STREAM, blob(range(500)))
    chain.back_up()
    files = older(chain, tmp_path)
    files[1].write_bytes(files[1].read_bytes()[:cut])
    with pytest.raises(JournalError):
        restore(files, tmp_path / "to")
    assert not (tmp_path / "to" / "journal.oxiseq").exists()


@pytest.mark.parametrize("text", ["", "{}", "[]", "null", '{"version": 4}', "\0"])
def test_a_mark_that_is_none_is_told(text: str) -> None:
    with pytest.raises(DamagedError, match="the mark of a backup cannot be read"):
        mark_from(text)


def test_a_mark_is_read_as_it_was_written(journal: Journal, tmp_path: Path) -> None:
    chain: Callable[[], Path] = Chain(journal, tmp_path).back_up
    mark = mark_of(chain())
    assert mark_from(mark.to_json()) == mark
