"""No room: a clear error, reading goes on, and writing works again when there is room."""

from __future__ import annotations

import random
import shutil
import sqlite3
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from journal_events import STREAM, Clock, found, matches, read

from oxiseq.engine.events.encode import encode_events
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.journal import Appends, Checkpoint, FullError, Journal, JournalError, Retention, pack_events

BIG = 40_000


def big(number: int, size: int = BIG) -> bytes:
    """An event with some text that cannot be compressed."""
    terms = TermDictionary()
    text = random.Random(number).randbytes(size // 2).hex()
    return pack_events(encode_events([(number, f'<http://e/a> <http://e/p> "{text}" .')], terms), terms)


def fill(journal: Journal) -> int:
    """Append until there is no room; how many were taken."""
    for number in range(10_000):
        try:
            journal.log.append(STREAM, big(number), str(number))
        except FullError as error:
            assert str(journal.path) in str(error)
            return number
    raise AssertionError("there is room without end")


@pytest.fixture
def tight(path: Path, clock: Clock) -> Iterator[Journal]:
    """A journal that may have a megabyte."""
    with Journal(path, "normal", max_size=1 << 20, clock=clock) as journal:
        journal.streams.create(STREAM)
        journal.queries.register("q", "text")
        yield journal
        assert journal.verify() == []


def test_a_full_journal_refuses_writes_and_can_be_read(tight: Journal) -> None:
    taken = fill(tight)
    assert taken > 10
    for _ in range(3):
        with pytest.raises(FullError):
            tight.log.append(STREAM, big(-1))
    assert read(tight) == [(i, i) for i in range(taken)]
    assert tight.log.append(STREAM, big(0), "0").repeated


def test_writing_works_again_when_there_is_room(tight: Journal) -> None:
    taken = fill(tight)
    tight.streams.create(STREAM, Retention(count=3))
    assert tight.retain() == taken - 3
    assert tight.log.append(STREAM, big(taken), "after").first == taken
    assert read(tight) == [(i, i) for i in range(taken - 3, taken + 1)]


def test_what_holds_the_log_is_brought_forward_when_it_is_full(tight: Journal) -> None:
    tight.checkpoints.commit(Checkpoint("q", b"1", {STREAM: 0}, {"q": 1}), found("q", 1, [5]))
    taken = fill(tight)
    tight.streams.create(STREAM, Retention(count=3))
    assert tight.retain() == 0  # the checkpoint still needs it all
    tight.checkpoints.commit(Checkpoint("q", bytes(20_000), {STREAM: taken}, {"q": 2}), found("q", 2, [6]))
    assert tight.retain() == taken - 3
    assert tight.log.append(STREAM, big(taken), "after").first == taken


def test_a_small_write_finds_room_where_a_large_one_does_not(tight: Journal) -> None:
    with pytest.raises(FullError):
        tight.log.append(STREAM, big(1, 4 << 20), "large")
    assert tight.log.append(STREAM, big(1, 100), "small").first == 0
    assert not tight.log.append(STREAM, big(2, 100), "large").repeated


def test_a_checkpoint_without_room_leaves_the_one_before(tight: Journal) -> None:
    tight.checkpoints.commit(Checkpoint("q", b"1", {STREAM: 0}, {"q": 1}), found("q", 1, [5]))
    with pytest.raises(FullError):
        tight.checkpoints.commit(Checkpoint("q", bytes(4 << 20), {STREAM: 0}, {"q": 2}), found("q", 2, [6]))
    latest = tight.checkpoints.latest("q")
    assert latest is not None
    assert (latest.state, matches(tight, "q")) == (b"1", [(1, 5)])


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 24 megabytes; skipped where mounting is not allowed."""
    folder = tmp_path / "disk"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=24m", "tmpfs", str(folder)]
    if shutil.which("mount") is None or subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("no disk can be mounted here")
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)


def test_a_full_disk(disk: Path, clock: Clock) -> None:
    with Journal(disk / "j", clock=clock, keep_free=12 << 20) as journal:
        journal.streams.create(STREAM)
        taken = fill(journal)
        assert taken > 100
        assert [t for _, t in read(journal)] == list(range(taken))
        assert journal.verify() == []
        journal.streams.create(STREAM)  # nothing new
        with pytest.raises(FullError, match="bytes are free"):
            journal.log.append(STREAM, big(taken), "after")


def test_retention_makes_room_on_a_full_disk_again_and_again(disk: Path, clock: Clock) -> None:
    with Journal(disk / "j", clock=clock, keep_free=12 << 20) as journal:
        journal.streams.create(STREAM, Retention(time=10))
        taken = fill(journal)
        for _ in range(4):
            clock.now += 11
            journal.retain()
            for _ in range(20):
                assert journal.log.append(STREAM, big(taken), f"more {taken}").first == taken
                taken += 1
            assert [t for _, t in read(journal)] == list(range(taken - 20, taken))
    with Journal(disk / "j") as journal:
        assert journal.verify() == []


def test_a_disk_that_somebody_else_has_filled(disk: Path, clock: Clock) -> None:
    with Journal(disk / "j", clock=clock, keep_free=0) as journal:
        journal.streams.create(STREAM)
        for number in range(10):
            journal.log.append(STREAM, big(number))
        ballast = disk / "ballast"
        with ballast.open("wb", buffering=0) as file:
            try:
                while file.write(bytes(1 << 16)):
                    pass
            except OSError:
                pass
        with pytest.raises(FullError):
            for number in range(100):
                journal.log.append(STREAM, big(10 + number), f"b{number}")
        kept = read(journal)
        assert [t for _, t in kept] == list(range(len(kept)))
        ballast.unlink()
        assert journal.log.append(STREAM, big(len(kept)), "after").first == len(kept)
        assert journal.verify() == []


@pytest.mark.parametrize("error", [OSError(5, "Input/output error"), sqlite3.OperationalError("disk I/O error")])
def test_a_disk_that_does_not_tell_its_room_is_an_error_and_writing_goes_on_after_it(
    journal: Journal, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def fails(*_: object) -> int:
        raise error

    append, done = Appends.of(STREAM, big(1, 100)), threading.Semaphore(0)
    with monkeypatch.context() as patch:
        patch.setattr("oxiseq.options.room.disk_usage", fails)
        under_way = [journal.log.submit(append, done.release) for _ in range(5)]
        assert all(done.acquire(timeout=20) for _ in under_way)
        for each in under_way:
            with pytest.raises(JournalError, match=str(error).partition("] ")[2] or str(error)):
                each.result()
        with pytest.raises(JournalError):
            journal.log.store(append)
    after = journal.log.submit(append, done.release)
    assert done.acquire(timeout=20)
    assert after.result().first == 0
