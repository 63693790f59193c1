"""Checkpoints: all or nothing, and the log keeps what they need."""

from __future__ import annotations

from pathlib import Path

import pytest
from journal_events import OTHER, STREAM, Clock, blob, found, matches, read

from oxiseq.journal import Checkpoint, ConflictError, CursorError, Journal, Retention, UnknownError


@pytest.fixture(autouse=True)
def _registered(journal: Journal) -> None:
    journal.queries.register("q", "text")
    journal.queries.register("r", "text")
    for low in range(0, 30, 10):
        journal.log.append(STREAM, blob(range(low, low + 10)))


def test_state_offsets_and_matches_are_stored_together(journal: Journal, path: Path, clock: Clock) -> None:
    checkpoint = Checkpoint("q", b"state", {STREAM: 15}, {"q": 2}, clock.now)
    journal.checkpoints.commit(checkpoint, found("q", 1, [3, 4]))
    journal.close()
    with Journal(path) as again:
        assert again.checkpoints.latest("q") == checkpoint
        assert matches(again, "q") == [(1, 3), (2, 4)]


def test_the_next_checkpoint_takes_the_place_of_the_last(journal: Journal) -> None:
    journal.streams.create(OTHER)
    journal.checkpoints.commit(Checkpoint("q", b"1", {STREAM: 5, OTHER: 0}, {"q": 1}), found("q", 1, [3]))
    journal.checkpoints.commit(Checkpoint("q", b"2", {STREAM: 25}, {"q": 2}), found("q", 2, [4]))
    latest = journal.checkpoints.latest("q")
    assert latest is not None
    assert (latest.state, latest.offsets, latest.matches) == (b"2", {STREAM: 25}, {"q": 2})
    assert journal.checkpoints.latest("nobody") is None


@pytest.mark.parametrize(
    ("checkpoint", "error"),
    [
        (Checkpoint("q", b"2", {STREAM: 31}, {"q": 2}), ConflictError),
        (Checkpoint("q", b"2", {STREAM: -1}, {"q": 2}), ConflictError),
        (Checkpoint("q", b"2", {"http://e/unknown": 0}, {"q": 2}), UnknownError),
        (Checkpoint("q", b"2", {STREAM: 9}, {"q": 3}), ConflictError),
        (Checkpoint("q", b"2", {STREAM: 9}, {"nobody": 0}), UnknownError),
    ],
)
def test_a_refused_commit_changes_nothing(journal: Journal, checkpoint: Checkpoint, error: type[Exception]) -> None:
    journal.checkpoints.commit(Checkpoint("q", b"1", {STREAM: 5}, {"q": 1}), found("q", 1, [3]))
    before = journal.checkpoints.all()
    with pytest.raises(error):
        journal.checkpoints.commit(checkpoint, found("q", 2, [4]))
    assert journal.checkpoints.all() == before
    assert matches(journal, "q") == [(1, 3)]


def test_the_log_keeps_what_the_checkpoint_that_is_furthest_behind_needs(journal: Journal) -> None:
    journal.streams.create(STREAM, Retention(count=0))
    journal.checkpoints.commit(Checkpoint("q", b"1", {STREAM: 12}, {"q": 0}))
    journal.checkpoints.commit(Checkpoint("r", b"1", {STREAM: 25}, {"r": 0}))
    journal.retain()
    assert read(journal)[0] == (10, 10)
    journal.checkpoints.commit(Checkpoint("q", b"2", {STREAM: 30}, {"q": 0}))
    journal.retain()
    assert read(journal)[0] == (20, 20)
    journal.queries.delete("r")
    journal.retain()
    assert read(journal) == []


def test_a_query_without_checkpoint_keeps_what_it_has_not_seen(journal: Journal) -> None:
    journal.streams.create(STREAM, Retention(count=0))
    journal.queries.register("s", "text", offsets={STREAM: 10})
    journal.retain()
    assert read(journal)[0] == (10, 10)
    journal.checkpoints.drop("s")
    journal.retain()
    assert read(journal) == []
    with pytest.raises(ConflictError):
        journal.queries.register("t", "text", offsets={STREAM: 10})
    with pytest.raises(CursorError):
        read(journal, since=10)


def test_a_punctuation_at_the_checkpoint_is_kept(journal: Journal) -> None:
    journal.streams.create(STREAM, Retention(count=0))
    journal.checkpoints.commit(Checkpoint("q", b"1", {STREAM: 30}, {"q": 0}))
    journal.log.advance(STREAM, 500)
    journal.retain()
    assert [(e.first, e.count, e.time) for e in journal.log.entries({STREAM: 30})] == [(30, 0, 500)]


def test_a_common_checkpoint_takes_the_place_of_those_it_counts(journal: Journal) -> None:
    for name in "qr":
        journal.queries.register(name, "text", replace=True, offsets={STREAM: 3})
    journal.checkpoints.commit(Checkpoint("", b"all", {STREAM: 20}, {"q": 0}))
    assert [c.owner for c in journal.checkpoints.all()] == ["r", ""]
    journal.checkpoints.commit(Checkpoint("", b"all", {STREAM: 20}, {"q": 0, "r": 0}))
    assert [c.owner for c in journal.checkpoints.all()] == [""]
    journal.queries.register("r", "new", replace=True, offsets={STREAM: 21})
    assert [c.owner for c in journal.checkpoints.all()] == ["", "r"]
    journal.queries.delete("r")
    (left,) = journal.checkpoints.all()
    assert left.matches == {"q": 0}
