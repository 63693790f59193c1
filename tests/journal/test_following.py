"""The log by position, and what is stored together with matches."""

from __future__ import annotations

from pathlib import Path

import pytest
from journal_events import STREAM, blob, found

from oxiseq.journal import Checkpoint, ConflictError, Found, Journal, Retention, UnknownError

OTHER = "http://example.org/other"


@pytest.fixture
def two(tmp_path: Path) -> Journal:
    """A journal with two streams."""
    journal = Journal(tmp_path / "journal", "normal")
    for iri in (STREAM, OTHER):
        journal.streams.create(iri)
    return journal


def test_entries_of_all_streams_follow_each_other(two: Journal) -> None:
    assert two.log.position() == 0
    two.log.append(STREAM, blob([1, 2]))
    two.log.append(OTHER, blob([5]))
    two.log.append(STREAM, blob([3]), advance=4)
    entries = two.log.follow(0)
    assert [(e.stream, e.first, e.count, e.time) for e in entries] == [
        (STREAM, 0, 2, 2),
        (OTHER, 0, 1, 5),
        (STREAM, 2, 1, 3),
        (STREAM, 3, 0, 4),
    ]
    assert [e.position for e in two.log.follow(entries[1].position)] == [e.position for e in entries[2:]]
    assert two.log.position() == entries[-1].position
    assert len(two.log.follow(0, 1)) == 1
    two.close()


def test_positions_are_never_given_again(two: Journal) -> None:
    two.log.append(STREAM, blob([1]))
    two.streams.create(STREAM, Retention(count=0))
    assert two.retain() == 1
    assert two.log.position() == 1
    two.log.append(STREAM, blob([2]))
    assert [e.position for e in two.log.follow(1)] == [2]
    two.close()


def test_an_append_tells_what_was_there_before(two: Journal) -> None:
    first = two.log.append(STREAM, blob([7, 3]))
    assert (first.largest, first.punctuation) == (None, None)
    two.log.advance(STREAM, 9)
    two.log.advance(STREAM, 8)
    second = two.log.append(STREAM, blob([1]))
    assert (second.largest, second.punctuation) == (7, 9)
    two.close()


def test_a_query_begins_at_the_end_of_its_streams(two: Journal) -> None:
    two.log.append(STREAM, blob([1, 2]))
    two.queries.register("q", "text", streams=[STREAM, OTHER])
    begun = two.checkpoints.latest("q")
    assert begun is not None
    assert (dict(begun.offsets), begun.position) == ({STREAM: 2, OTHER: 0}, 1)
    two.log.append(STREAM, blob([3]))
    two.checkpoints.commit(Checkpoint("q", b"state", {STREAM: 3}, position=2))
    later = two.checkpoints.latest("q")
    assert later is not None
    assert later.position == 2
    two.close()


def test_matches_and_what_they_lead_to_are_stored_together(two: Journal) -> None:
    two.queries.register("q", "text")
    one = found("q", 1, [1, 2])
    two.emit([one], [(OTHER, blob([5])), (STREAM, blob([6]))])
    assert two.matches.last("q") == 2
    assert [e.stream for e in two.log.follow(0)] == [OTHER, STREAM]
    with pytest.raises(ConflictError):
        two.emit([Found("q", 9, one.data)], [(OTHER, blob([7]))])
    with pytest.raises(UnknownError):
        two.emit([Found("q", 3, one.data)], [("http://example.org/none", blob([7]))])
    assert two.matches.last("q") == 2
    assert len(two.log.follow(0)) == 2
    assert two.verify() == []
    two.close()


def test_a_stream_is_deleted_unless_somebody_stands_in_it(two: Journal) -> None:
    two.log.append(STREAM, blob([1]), "id")
    two.queries.register("q", "text", streams=[STREAM])
    with pytest.raises(ConflictError):
        two.streams.delete(STREAM)
    two.queries.delete("q")
    two.streams.delete(STREAM)
    with pytest.raises(UnknownError):
        two.log.append(STREAM, blob([1]), "id")
    two.streams.create(STREAM)
    assert not two.log.append(STREAM, blob([1]), "id").repeated
    assert two.verify() == []
    two.close()
