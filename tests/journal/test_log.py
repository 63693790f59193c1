"""The event log: offsets, idempotency, reading, punctuations."""

from __future__ import annotations

from pathlib import Path

import pytest
from journal_events import OTHER, STREAM, Clock, E, blob, events, read, seen

from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.journal import (
    Appended,
    Appends,
    ConflictError,
    CursorError,
    DamagedBatchError,
    DamagedError,
    Journal,
    Retention,
    Session,
    UnknownError,
    log,
)

DAY = 86_400_000_000


def test_offsets_go_up_by_one_per_event_and_stream(journal: Journal) -> None:
    journal.streams.create(OTHER)
    assert journal.log.append(STREAM, blob([5, 7])) == Appended(0, 2)
    assert journal.log.append(OTHER, blob([9])) == Appended(0, 1)
    assert journal.log.append(STREAM, blob([6])) == Appended(2, 1)
    assert read(journal) == [(0, 5), (1, 7), (2, 6)]
    assert read(journal, OTHER) == [(0, 9)]


def test_events_come_back_with_their_triples(journal: Journal) -> None:
    terms = TermDictionary()
    journal.log.append_batch(STREAM, events([3], terms), terms)
    (part,) = journal.log.read(STREAM, terms)
    texts = {terms.text(int(i)) for i in part.batch.object}
    assert texts == {'"3"^^<http://www.w3.org/2001/XMLSchema#integer>', f"<{E}a>"}


def test_an_unknown_stream_is_told(journal: Journal) -> None:
    for work in (
        lambda: journal.log.append(E, blob([1])),
        lambda: journal.log.advance(E, 1),
        lambda: list(journal.log.read(E, TermDictionary())),
        lambda: journal.streams.get(E),
        lambda: list(journal.log.replay({E: 0}, TermDictionary())),
    ):
        with pytest.raises(UnknownError, match="no stream <http://e/>"):
            work()


def test_streams_are_listed_and_created_once(journal: Journal, clock: Clock) -> None:
    clock.now = 77
    made = journal.streams.create(OTHER, Retention(count=5))
    clock.now = 88
    assert journal.streams.create(OTHER) == made == journal.streams.get(OTHER)
    assert [s.iri for s in journal.streams.all()] == [STREAM, OTHER]
    assert (made.created, made.keep, made.first, made.next) == (77, Retention(None, 5), 0, 0)
    assert journal.streams.create(OTHER, Retention(time=9)).keep == Retention(9, None)


# --- idempotency ----------------------------------------------------------------------------------


def test_the_same_batch_id_again_stores_nothing_also_after_a_restart(journal: Journal, path: Path) -> None:
    first = journal.log.append(STREAM, blob([1, 2]), "x")
    assert journal.log.append(STREAM, blob([1, 2]), "x") == Appended(first.first, 2, repeated=True)
    journal.close()
    with Journal(path) as again:
        assert again.log.append(STREAM, blob([1, 2]), "x") == Appended(0, 2, repeated=True)
        assert read(again) == [(0, 1), (1, 2)]


def test_another_body_under_a_known_id_is_refused(journal: Journal) -> None:
    journal.log.append(STREAM, blob([1]), "x")
    with pytest.raises(ConflictError, match="'x'"):
        journal.log.append(STREAM, blob([2]), "x")
    assert read(journal) == [(0, 1)]


def test_a_digest_may_stand_for_the_body(journal: Journal) -> None:
    journal.log.append(STREAM, blob([1]), "x", b"body")
    assert journal.log.append(STREAM, blob([2]), "x", b"body").repeated
    with pytest.raises(ConflictError):
        journal.log.append(STREAM, blob([1]), "x", b"other")


def test_batch_ids_are_a_streams_own(journal: Journal) -> None:
    journal.streams.create(OTHER)
    journal.log.append(STREAM, blob([1]), "x")
    assert journal.log.append(OTHER, blob([2]), "x") == Appended(0, 1)


def test_an_empty_batch_is_remembered_too(journal: Journal) -> None:
    assert journal.log.append(STREAM, blob([]), "x") == Appended(0, 0)
    assert journal.log.append(STREAM, blob([]), "x") == Appended(0, 0, repeated=True)
    with pytest.raises(ConflictError):
        journal.log.append(STREAM, blob([1]), "x")
    assert read(journal) == []


def test_ids_outlive_their_batches_for_a_day(journal: Journal, clock: Clock) -> None:
    journal.streams.create(STREAM, Retention(count=0))
    journal.log.append(STREAM, blob([1]), "x")
    assert journal.retain() == 1
    assert read(journal) == []
    clock.now += DAY
    journal.retain()
    assert journal.log.append(STREAM, blob([1]), "x").repeated
    clock.now += 1
    journal.retain()
    assert not journal.log.append(STREAM, blob([1]), "x").repeated


def test_what_is_no_blob_of_events_is_refused(journal: Journal) -> None:
    with pytest.raises(DamagedError):
        journal.log.append(STREAM, b"<http://e/a> <http://e/b> <http://e/c> .          ")
    assert read(journal) == []


# --- reading --------------------------------------------------------------------------------------


def test_reading_by_offset_begins_within_a_batch(journal: Journal) -> None:
    for low in (0, 10, 20):
        journal.log.append(STREAM, blob(range(low, low + 10)))
    assert read(journal, since=7, until=12) == [(i, i) for i in range(7, 12)]
    assert read(journal, since=29) == [(29, 29)]
    assert read(journal, since=30) == read(journal, since=99) == []


def test_reading_by_time_range_takes_events_not_batches(journal: Journal) -> None:
    journal.log.append(STREAM, blob([1, 50, 3]))
    journal.log.append(STREAM, blob([90, 91]))
    journal.log.append(STREAM, blob([4, 2]))
    assert read(journal, start=3, stop=50) == [(2, 3), (5, 4)]
    assert read(journal, start=50) == [(1, 50), (3, 90), (4, 91)]
    assert read(journal, start=3, since=3) == [(3, 90), (4, 91), (5, 4)]


def test_many_small_batches_come_as_few_large_ones(journal: Journal) -> None:
    for i in range(600):
        journal.log.append(STREAM, blob([i]))
    parts = list(journal.log.read(STREAM, TermDictionary()))
    assert len(parts) < 10
    assert seen(parts) == [(i, i) for i in range(600)]


def test_streams_are_replayed_in_order_of_arrival_with_their_punctuations(journal: Journal) -> None:
    journal.streams.create(OTHER)
    journal.log.append(STREAM, blob([5, 6]))
    journal.log.append(OTHER, blob([1]))
    assert journal.log.advance(STREAM, 100) == 2
    journal.log.append(OTHER, blob([2]))
    journal.log.append(STREAM, blob([101]))

    def replayed(offsets: dict[str, int]) -> list[object]:
        return [
            (part.stream[-1], part.advance or part.batch.time.tolist())
            for part in journal.log.replay(offsets, TermDictionary())
        ]

    everything = [("s", [5, 6]), ("t", [1]), ("s", 100), ("t", [2]), ("s", [101])]
    assert replayed({STREAM: 0, OTHER: 0}) == everything
    assert replayed({STREAM: 1, OTHER: 1}) == [("s", [6]), ("s", 100), ("t", [2]), ("s", [101])]
    assert replayed({STREAM: 2}) == [("s", 100), ("s", [101])]
    assert replayed({STREAM: 3, OTHER: 2}) == []
    assert read(journal) == [(0, 5), (1, 6), (2, 101)]
    stored = list(journal.log.entries({STREAM: 1}))
    assert [(e.first, e.count, e.time) for e in stored] == [(0, 2, 6), (2, 0, 100), (2, 1, 101)]


def test_a_long_replay_is_read_page_by_page(journal: Journal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log, "PAGE_BYTES", 10_000)
    monkeypatch.setattr(log, "BATCH_EVENTS", 800)
    journal.streams.create(OTHER)
    for i in range(60):
        journal.log.append((STREAM, OTHER)[i % 2], blob(range(i * 300, (i + 1) * 300)))
    replayed = journal.log.replay({STREAM: 301, OTHER: 0}, TermDictionary())
    times = [t for part in replayed for t in part.batch.time.tolist()]
    assert times == [*range(300, 600), *range(601, 18_000)]


# --- retention ------------------------------------------------------------------------------------


def test_retention_by_number_deletes_whole_batches(journal: Journal) -> None:
    journal.streams.create(STREAM, Retention(count=5))
    for low in (0, 4, 8):
        journal.log.append(STREAM, blob(range(low, low + 4)))
    assert journal.retain() == 1
    assert read(journal) == [(i, i) for i in range(4, 12)]
    assert journal.streams.get(STREAM).first == 4


def test_retention_by_time_counts_from_the_arrival(journal: Journal, clock: Clock) -> None:
    journal.streams.create(STREAM, Retention(time=100))
    journal.log.append(STREAM, blob([10**15]))
    clock.now += 100
    journal.log.append(STREAM, blob([1]))
    assert journal.retain() == 0
    clock.now += 1
    assert journal.retain() == 1
    assert read(journal) == [(1, 1)]
    clock.now += 1000
    assert journal.retain() == 1
    assert read(journal) == []
    assert journal.log.append(STREAM, blob([2])) == Appended(2, 1)


def test_a_cursor_before_what_is_kept_is_too_old(journal: Journal) -> None:
    journal.streams.create(STREAM, Retention(count=1))
    for i in range(3):
        journal.log.append(STREAM, blob([i]))
    journal.retain()
    for work in (lambda: read(journal, since=1), lambda: list(journal.log.replay({STREAM: 0}, TermDictionary()))):
        with pytest.raises(CursorError, match="cursor too old") as told:
            work()
        assert told.value.first == 2
    assert read(journal, since=2) == [(2, 2)]
    assert read(journal, since=3) == []


def test_what_is_deleted_while_it_is_read_is_told(journal: Journal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log, "PAGE_BYTES", 1000)
    journal.streams.create(STREAM, Retention(count=0))
    for i in range(200):
        journal.log.append(STREAM, blob(range(i * 10, (i + 1) * 10)))
    reading = journal.log.read(STREAM, TermDictionary())
    next(reading)
    journal.retain()
    with pytest.raises(CursorError):
        list(reading)


# --- the time of arrival ----------------------------------------------------------------------------


def test_an_event_gets_the_time_of_its_arrival(journal: Journal, clock: Clock) -> None:
    clock.now = 100
    first = journal.log.append_on_arrival(STREAM, blob([7]))
    assert (first, first.time) == (Appended(0, 1), 100)
    assert read(journal) == [(0, 100)]


def test_each_arrival_is_later_than_all_before(journal: Journal, clock: Clock) -> None:
    clock.now = 100
    journal.log.append(STREAM, blob([500]))
    assert journal.log.append_on_arrival(STREAM, blob([7])).time == 501
    assert journal.log.append_on_arrival(STREAM, blob([7])).time == 503  # the first one's instant is over: 502
    journal.log.advance(STREAM, 900)
    assert journal.log.append_on_arrival(STREAM, blob([7])).time == 901
    clock.now = 2_000
    assert journal.log.append_on_arrival(STREAM, blob([7])).time == 2_000


def test_an_arrival_completes_its_instant(journal: Journal, clock: Clock) -> None:
    clock.now = 100
    journal.log.append_on_arrival(STREAM, blob([7]))
    event, punctuation = journal.log.follow(0, 1 << 20)
    assert (event.count, event.time, punctuation.count, punctuation.time) == (1, 100, 0, 101)


def test_an_arrival_is_idempotent(journal: Journal, clock: Clock) -> None:
    clock.now = 100
    journal.log.append_on_arrival(STREAM, blob([7]), "a")
    clock.now = 200
    again = journal.log.append_on_arrival(STREAM, blob([7]), "a")
    assert (again, again.time) == (Appended(0, 1, repeated=True), None)
    assert read(journal) == [(0, 100)]


def test_events_that_arrive_together_are_a_microsecond_apart(journal: Journal, clock: Clock) -> None:
    clock.now = 100
    assert journal.log.append_on_arrival(STREAM, blob([7, 3, 9])).time == 100
    assert journal.log.append_on_arrival(STREAM, blob([1, 1])).time == 104  # a punctuation stands at 103
    assert read(journal) == [(0, 100), (1, 101), (2, 102), (3, 104), (4, 105)]


def test_a_session_stores_what_follows_it_and_nothing_else(journal: Journal) -> None:
    def store(after: int, last: int, name: str = "s", times: tuple[int, ...] = (1,)) -> Appended:
        return journal.log.store(Appends.of(STREAM, blob(times), session=Session(name, after, last)))

    assert journal.log.session(STREAM, "s") == 0
    assert store(0, 5).first == 0
    assert journal.log.session(STREAM, "s") == 5
    for after, last in ((0, 5), (4, 6), (6, 7)):
        with pytest.raises(ConflictError, match="is at 5"):
            store(after, last)
    assert store(5, 9, times=()).count == 0
    assert store(0, 3, "other").first == 1
    assert (journal.log.session(STREAM, "s"), journal.log.session(STREAM, "other")) == (9, 3)
    assert len(read(journal)) == 2
    with pytest.raises(UnknownError):
        journal.log.session("http://example.org/none", "s")
    journal.streams.delete(STREAM)
    journal.streams.create(STREAM)
    assert journal.log.session(STREAM, "s") == 0


def test_a_damaged_batch_says_which_numbers_cannot_be_read() -> None:
    assert (
        str(DamagedBatchError("events", 3, 7, "it is cut off"))
        == "events from number 3 to 6 cannot be read: it is cut off"
    )
