"""Backups while the journal is in use."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from journal_events import STREAM, blob, found, matches, read

from oxiseq.journal import Checkpoint, Journal, JournalError


def test_a_backup_is_a_journal_of_one_moment(journal: Journal, tmp_path: Path) -> None:
    journal.queries.register("q", "text")
    stop = threading.Event()
    written: list[int] = []

    def write() -> None:
        while not stop.is_set():
            offset = journal.log.append(STREAM, blob([len(written)])).first
            commit = Checkpoint("q", b"", {STREAM: offset + 1}, {"q": offset + 1})
            journal.checkpoints.commit(commit, found("q", offset + 1, [offset]))
            written.append(offset)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for number in range(5):
            before = len(written)
            journal.backup(tmp_path / f"copy{number}")
            with Journal(tmp_path / f"copy{number}") as copy:
                assert copy.verify() == []
                stored = read(copy)
                assert len(stored) >= before
                assert stored == [(i, i) for i in range(len(stored))]
                assert len(matches(copy, "q")) in (len(stored), len(stored) - 1)
    finally:
        stop.set()
        writer.join()
    assert len(written) > 0


def test_a_backup_takes_the_place_of_an_older_one_and_goes_on_as_a_journal(journal: Journal, tmp_path: Path) -> None:
    for i in range(2):
        journal.log.append(STREAM, blob([i]))
        journal.backup(tmp_path / "copy")
    with Journal(tmp_path / "copy") as copy:
        copy.log.append(STREAM, blob([7]))
        assert read(copy) == [(0, 0), (1, 1), (2, 7)]
    assert read(journal) == [(0, 0), (1, 1)]
    assert not list(tmp_path.glob("*.part*"))


def test_a_backup_onto_itself_is_refused(journal: Journal, path: Path) -> None:
    with pytest.raises(JournalError, match="itself"):
        journal.backup(path)


def test_a_backup_from_a_journal_opened_for_reading(journal: Journal, path: Path, tmp_path: Path) -> None:
    journal.log.append(STREAM, blob([1]))
    with Journal(path, read_only=True) as reader:
        reader.backup(tmp_path / "copy")
    with Journal(tmp_path / "copy", read_only=True) as copy:
        assert read(copy) == [(0, 1)]
