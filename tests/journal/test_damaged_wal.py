"""Bytes that are flipped in the write-ahead log: what is lost by that is told when the journal is opened."""

from __future__ import annotations

import logging
import os
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from journal_events import STREAM, blob

from oxiseq.journal import Journal, JournalError

EVENTS = 20


@pytest.fixture
def killed(tmp_path: Path) -> Iterator[Path]:
    """A journal whose process was killed: all of it is in the WAL."""
    folder = tmp_path / "killed"
    folder.mkdir()
    child = os.fork()
    if not child:
        journal = Journal(folder / "j", "normal")
        journal.streams.create(STREAM)
        journal.queries.register("q", "text")
        for number in range(EVENTS):
            journal.log.append(STREAM, blob([number]))
        os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(child, 0)
    yield folder / "j"


def opened(path: Path, folder: Path, at: int | None) -> tuple[str, int, int]:
    """A copy with a byte flipped: what is told of it, how many streams and events it has."""
    folder.mkdir()
    for file in path.parent.iterdir():
        shutil.copy(file, folder / file.name)
    if at is not None:
        wal = bytearray((folder / "j-wal").read_bytes())
        wal[at] ^= 0xFF
        (folder / "j-wal").write_bytes(wal)
    with Journal(folder / "j", "normal") as journal:
        streams = journal.streams.all()
        return journal.lost, len(streams), streams[0].next if streams else 0


def test_a_kill_alone_loses_nothing_and_nothing_is_said(tmp_path: Path, killed: Path) -> None:
    assert opened(killed, tmp_path / "copy", None) == ("", 1, EVENTS)


def test_whatever_is_lost_is_told(tmp_path: Path, killed: Path, caplog: pytest.LogCaptureFixture) -> None:
    size = (killed.parent / "j-wal").stat().st_size
    told = 0
    places = [*range(0, 32, 3), 32, 36, 40, 44, 48, 55, 100, *range(4000, size, size // 60), size - 4100, size - 1]
    for number, at in enumerate(places):
        caplog.clear()
        with caplog.at_level(logging.ERROR, "oxiseq.journal"):
            try:
                lost, streams, events = opened(killed, tmp_path / str(number), at)
            except JournalError:
                continue  # told, too
        if (streams, events) != (1, EVENTS):
            assert "are lost" in lost, (at, streams, events)
            assert lost.split(": ", 1)[1] in caplog.text
            told += 1
        assert not (lost and at is None)
    assert told > 20


def test_half_a_write_at_the_end_is_no_loss(tmp_path: Path, killed: Path) -> None:
    """A machine that dies while it writes leaves that behind: it had not been acknowledged."""
    wal = killed.parent / "j-wal"
    content = wal.read_bytes()
    page = int.from_bytes(content[8:12], "big")
    frame = 24 + page
    last = (len(content) - 32) // frame
    for cut in (1, 30, frame // 2, frame - 1):
        half = content[32 + (last - 1) * frame :][:cut]
        wal.write_bytes(content + half)
        assert opened(killed, tmp_path / str(cut), None) == ("", 1, EVENTS)


def test_an_older_log_behind_the_end_is_no_loss(tmp_path: Path) -> None:
    folder = tmp_path / "older"
    folder.mkdir()
    child = os.fork()
    if not child:
        journal = Journal(folder / "j", "normal")
        journal.streams.create(STREAM)
        for number in range(50):
            journal.log.append(STREAM, blob([number]))
        journal._writer._connection.execute("PRAGMA wal_checkpoint(RESTART)").fetchall()
        journal.log.append(STREAM, blob([50]))  # written over the first frames
        os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(child, 0)
    assert opened(folder / "j", tmp_path / "copy", None) == ("", 1, 51)
