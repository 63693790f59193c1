"""The newest entries are read from memory, and are the same as those of the file; groups of the committing thread."""

from __future__ import annotations

import sqlite3
import threading
from contextlib import closing
from pathlib import Path

import pytest
from journal_events import STREAM, blob

from oxiseq.journal import (
    Appended,
    Appending,
    Appends,
    ConflictError,
    Entry,
    FullError,
    Journal,
    JournalError,
    UnknownError,
    recent,
)

OTHER = "http://example.org/other"


def stored(journal: Journal) -> list[Entry]:
    """As a process that begins now reads them."""
    with closing(sqlite3.connect(journal.path)) as connection:
        rows = connection.execute(
            "SELECT iri, e.first, count, max_time, data, e.id FROM entry e JOIN stream s ON s.id = stream ORDER BY e.id"
        )
        return [Entry(*row) for row in rows]


def submitted(journal: Journal, *appends: Appends) -> list[Appending]:
    """All put on the list before the first is committed; returns when they are done."""
    left = threading.Semaphore(0)
    with journal._writer._busy:  # the thread waits for the connection
        under_way = [journal.log.submit(each, left.release) for each in appends]
    for _ in appends:
        assert left.acquire(timeout=10)
    assert all(each.done for each in under_way)
    return under_way


def outcome(appending: Appending) -> Appended | type[JournalError]:
    try:
        return appending.result()
    except JournalError as error:
        return type(error)


def test_memory_and_file_agree(journal: Journal) -> None:
    journal.streams.create(OTHER)
    journal.log.append(STREAM, blob([1, 2]), "a", advance=7)
    journal.log.append_on_arrival(OTHER, blob([1]))
    journal.log.append(STREAM, blob([1, 2]), "a")
    with pytest.raises(UnknownError):
        journal.emit([], [(STREAM, blob([5])), ("http://example.org/none", blob([7]))])
    journal.emit([], [(STREAM, blob([8])), (OTHER, blob([9]))])
    journal.log.advance(OTHER, 11)
    found = journal.log.follow(0)
    assert found == stored(journal)
    assert [entry.position for entry in found] == list(range(1, 8))
    assert [journal.log.follow(after) for after in range(8)] == [found[after:] for after in range(8)]


def test_offsets_go_on_whatever_else_is_written_or_taken_back(journal: Journal) -> None:
    def fail(connection: object) -> None:
        raise ValueError

    def refuse() -> None:
        with pytest.raises(ValueError):
            journal._writer.run(fail)

    def delete() -> None:
        journal.streams.delete(OTHER)
        journal.streams.create(OTHER)

    steps = (refuse, delete, lambda: journal.emit([], [(OTHER, blob([5]))]), lambda: journal.streams.create(OTHER))
    journal.streams.create(OTHER)
    for step in (*steps, *reversed(steps)):
        with journal._writer._busy:  # the thread that works and the appends wait: one group
            worker = threading.Thread(target=step)
            worker.start()
            left = threading.Semaphore(0)
            under_way = {iri: journal.log.submit(Appends.of(iri, blob([7])), left.release) for iri in (STREAM, OTHER)}
        worker.join(10)
        assert left.acquire(timeout=10) and left.acquire(timeout=10)
        for iri, appending in under_way.items():
            assert isinstance(outcome(appending), Appended) or (step is delete and iri == OTHER)
            record = journal.streams.get(iri)
            assert journal.log.append(iri, blob([8, 9])).first == record.next
            assert journal.streams.get(iri).next == record.next + 2
    assert journal.log.follow(0) == stored(journal)


def test_the_file_is_not_asked_for_what_memory_has(journal: Journal, monkeypatch: pytest.MonkeyPatch) -> None:
    def snapshot() -> None:
        raise AssertionError("the file is read")

    journal.log.append(STREAM, blob([1]))
    monkeypatch.setattr(journal._reader, "snapshot", snapshot)
    assert [entry.position for entry in journal.log.follow(0)] == [1]
    assert journal.log.follow(1) == []


def test_who_lags_reads_the_file(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recent, "MOST", 4000)
    with Journal(path, "normal") as journal:
        journal.streams.create(STREAM)
        for time in range(100):
            journal.log.append(STREAM, blob([time]))
        at, seen = 0, list[Entry]()
        while entries := journal.log.follow(at, 700):
            seen += entries
            at = entries[-1].position
        assert seen == stored(journal)
        assert journal.log.follow(0, 1)[0].position == 1


def test_a_deleted_stream_is_no_longer_read(journal: Journal) -> None:
    journal.streams.create(OTHER)
    for stream in (STREAM, OTHER, STREAM):
        journal.log.append(stream, blob([1]))
    journal.streams.delete(STREAM)
    assert [entry.stream for entry in journal.log.follow(0)] == [OTHER]
    journal.streams.create(STREAM)
    journal.log.append(STREAM, blob([3]))
    assert [(entry.stream, entry.position) for entry in journal.log.follow(2)] == [(STREAM, 4)]


def test_a_group_answers_each_of_its_appends_by_itself(journal: Journal) -> None:
    journal.streams.create(OTHER)
    before = journal.commits
    found = submitted(
        journal,
        Appends.of(STREAM, blob([1]), "x"),
        Appends.of(OTHER, blob([4, 6]), "x"),
        Appends.of(STREAM, blob([1]), "x"),
        Appends.of(STREAM, blob([2]), "x"),
        Appends.of("http://example.org/none", blob([2])),
        Appends(STREAM, advance=30),
        Appends.of(STREAM, blob([20]), on_arrival=True),
        Appends.of(STREAM, blob([5]), None, None, 90),
    )
    results = [outcome(each) for each in found]
    assert results == [
        Appended(0, 1),
        Appended(0, 2),
        Appended(0, 1, repeated=True),
        ConflictError,
        UnknownError,
        Appended(1, 0),
        Appended(1, 1),
        Appended(2, 1),
    ]
    first, last = results[0], results[-1]
    assert isinstance(first, Appended) and isinstance(last, Appended)
    assert first.largest is None and last.largest is not None and last.punctuation == last.largest + 1
    assert journal.commits == before + 1
    assert journal.log.follow(0) == stored(journal)
    assert journal.verify() == []


def test_what_is_stored_is_answered_without_room_too(journal: Journal, monkeypatch: pytest.MonkeyPatch) -> None:
    journal.log.append(STREAM, blob([1]), "x")
    monkeypatch.setattr(journal._writer, "_lacking", lambda need: "no room")
    known, new = submitted(journal, Appends.of(STREAM, blob([1]), "x"), Appends.of(STREAM, blob([2]), "y"))
    assert (outcome(known), outcome(new)) == (Appended(0, 1, repeated=True), FullError)


def test_arrivals_are_told_after_they_are_stored(journal: Journal) -> None:
    told: list[tuple[int, int]] = []
    journal.log.on_arrival(lambda events: told.append((events, len(stored(journal)))))
    journal.log.append(STREAM, blob([1, 2, 3]))
    journal.log.advance(STREAM, 9)
    assert told == [(3, 1), (0, 2)]


def test_closing_answers_all_that_was_submitted(path: Path) -> None:
    journal = Journal(path, "normal")
    journal.streams.create(STREAM)
    under_way: list[Appending] = []
    notified = threading.Semaphore(0)

    def submit() -> None:
        for i in range(3000):
            under_way.append(journal.log.submit(Appends.of(STREAM, blob([i])), notified.release))

    threads = [threading.Thread(target=submit), threading.Thread(target=journal.close)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
    assert all(notified.acquire(timeout=10) for _ in under_way)
    kept = [found for each in under_way if isinstance(found := outcome(each), Appended)]
    with Journal(path) as again:
        assert len(again.log.follow(0, 1 << 30)) == len(kept)
