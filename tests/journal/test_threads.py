"""Many appenders and readers at once; transactions are shared."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from journal_events import STREAM, blob, read

from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.journal import Appends, ConflictError, Journal, JournalError


def at_once(count: int, work: Callable[[int], None]) -> None:
    """Call `work(number)` in threads; the first error is raised."""
    errors: list[BaseException] = []

    def guarded(number: int) -> None:
        try:
            work(number)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=guarded, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
    if errors:
        raise errors[0]


def test_appenders_get_offsets_of_their_own_and_readers_see_whole_batches(journal: Journal) -> None:
    places: dict[int, int] = {}
    stop = threading.Event()

    def follow(_: int) -> None:
        terms, at = TermDictionary(), 0
        while not stop.is_set():
            for part in journal.log.read(STREAM, terms, since=at):
                assert part.offset.tolist() == list(range(at, at + len(part.offset)))
                at += len(part.offset)
                assert at % 3 == 0

    def append(number: int) -> None:
        for i in range(40):
            time = 1000 * number + i
            places[time] = journal.log.append(STREAM, blob([time] * 3), f"{number}-{i}").first

    readers = threading.Thread(target=at_once, args=(3, follow))
    readers.start()
    try:
        at_once(8, append)
    finally:
        stop.set()
        readers.join()
    assert sorted(places.values()) == list(range(0, 960, 3))
    assert read(journal) == [(o + i, t) for t, o in sorted(places.items(), key=lambda p: p[1]) for i in range(3)]


def test_appenders_share_transactions(path: Path) -> None:
    with Journal(path, "full") as journal:
        journal.streams.create(STREAM)
        before = journal.commits

        def append(number: int) -> None:
            for i in range(20):
                journal.log.append(STREAM, blob([i]), f"{number}-{i}")

        at_once(16, append)
        assert len(read(journal)) == 320
        assert journal.commits - before < 320


def test_writes_that_come_alone_again_do_not_trouble_the_thread(
    journal: Journal, caplog: pytest.LogCaptureFixture
) -> None:
    """Behind a group it waits for others, each time half as long."""
    grouped, done = threading.Event(), threading.Semaphore(0)

    def submit(notify: Callable[[], object]) -> None:
        journal.log.submit(Appends.of(STREAM, blob([1])), lambda: (notify(), done.release()))

    submit(lambda: grouped.wait(30))
    submit(lambda: None)
    grouped.set()
    assert done.acquire(timeout=30) and done.acquire(timeout=30)
    for _ in range(8):
        submit(lambda: None)
        assert done.acquire(timeout=30)
    assert len(read(journal)) == 10
    assert not caplog.records


def test_the_same_id_from_many_threads_is_stored_once(journal: Journal) -> None:
    answers = []
    at_once(8, lambda _: answers.append(journal.log.append(STREAM, blob([1]), "x")))
    assert sum(not answer.repeated for answer in answers) == 1
    assert {answer.first for answer in answers} == {0}
    assert read(journal) == [(0, 1)]


def test_one_refused_write_leaves_the_others_of_its_group_alone(journal: Journal) -> None:
    journal.log.append(STREAM, blob([0]), "taken")
    refused = []

    def append(number: int) -> None:
        for i in range(20):
            if number % 2:
                try:
                    journal.log.append(STREAM, blob([9]), "taken")
                except ConflictError as error:
                    refused.append(error)
            else:
                journal.log.append(STREAM, blob([1]), f"{number}-{i}")

    at_once(6, append)
    assert len(refused) == 60
    assert [t for _, t in read(journal)] == [0] + [1] * 60


def test_closing_while_others_write_loses_no_answer(path: Path) -> None:
    journal = Journal(path, "normal")
    journal.streams.create(STREAM)
    done: list[int] = []
    begun = threading.Event()

    def append(number: int) -> None:
        with pytest.raises(JournalError, match="closed"):
            for i in range(100_000):
                done.append(journal.log.append(STREAM, blob([i]), f"{number}-{i}").first)
                begun.set()

    closer = threading.Thread(target=lambda: (begun.wait(30), journal.close()))
    closer.start()
    at_once(6, append)
    closer.join()
    with Journal(path) as again:
        assert sorted(done) == [offset for offset, _ in read(again)]
