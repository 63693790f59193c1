"""Registered queries as records."""

from __future__ import annotations

from pathlib import Path

import pytest
from journal_events import STREAM, Clock, blob, found, matches

from oxiseq.journal import ConflictError, CursorError, Journal, QueryRecord, Retention, UnknownError


def test_a_registered_query_is_there_after_a_restart(journal: Journal, path: Path, clock: Clock) -> None:
    made = journal.queries.register("q", "SELECT é", "ceql", options={"lateness": 5}, keep=Retention(count=9))
    now = clock.now
    keep = Retention(None, 9)
    assert made == QueryRecord("q", "SELECT é", "ceql", {"lateness": 5}, "running", 1, 1, keep, now, now, begun=0)
    journal.close()
    with Journal(path) as again:
        assert again.queries.all() == [made]
        assert again.queries.get("q") == made


def test_a_name_is_taken_once_unless_it_is_replaced(journal: Journal, clock: Clock) -> None:
    journal.queries.register("q", "old")
    with pytest.raises(ConflictError, match="'q'"):
        journal.queries.register("q", "new")
    assert journal.queries.get("q").text == "old"
    created, clock.now = clock.now, clock.now + 5
    replaced = journal.queries.register("q", "new", replace=True)
    assert (replaced.text, replaced.created, replaced.changed) == ("new", created, clock.now)
    assert journal.queries.register("r", "fresh", replace=True).text == "fresh"


def test_one_is_found_and_all_are_counted_but_the_deleted(journal: Journal) -> None:
    made = journal.queries.register("q", "text")
    journal.queries.register("r", "text")
    assert (journal.queries.find("q"), journal.queries.find("s"), journal.queries.count()) == (made, None, 2)
    journal.queries.delete("q")
    assert (journal.queries.find("q"), journal.queries.count()) == (None, 1)


def test_pausing_changes_the_state_only(journal: Journal, clock: Clock) -> None:
    made = journal.queries.register("q", "text")
    clock.now += 5
    paused = journal.queries.set_state("q", "paused")
    assert (paused.state, paused.text, paused.changed) == ("paused", made.text, clock.now)
    assert journal.queries.set_state("q", "running").state == "running"
    with pytest.raises(ConflictError):
        journal.queries.set_state("q", "deleted")


def test_a_deleted_query_is_gone_with_matches_and_checkpoint(journal: Journal) -> None:
    journal.log.append(STREAM, blob([1]))
    journal.queries.register("q", "text", offsets={STREAM: 0})
    journal.matches.append(found("q", 1, [5, 6]))
    journal.queries.delete("q")
    assert journal.queries.all() == []
    assert journal.checkpoints.latest("q") is None
    for work in (
        lambda: journal.queries.get("q"),
        lambda: journal.queries.delete("q"),
        lambda: journal.queries.set_state("q", "x"),
        lambda: matches(journal, "q"),
        lambda: journal.matches.append(found("q", 3, [7])),
    ):
        with pytest.raises(UnknownError, match="no query 'q'"):
            work()


def test_ids_of_matches_go_on_when_a_query_is_replaced_or_comes_back(journal: Journal) -> None:
    journal.queries.register("q", "text")
    journal.matches.append(found("q", 1, [5, 6]))
    assert journal.queries.register("q", "new", replace=True).next == 3
    assert matches(journal, "q") == [(1, 5), (2, 6)]
    journal.queries.delete("q")
    again = journal.queries.register("q", "third")
    assert (again.first, again.next) == (3, 3)
    journal.matches.append(found("q", 3, [7]))
    assert matches(journal, "q", after=2) == [(3, 7)]
    with pytest.raises(CursorError):
        matches(journal, "q", after=1)


def test_a_query_begins_with_a_checkpoint_without_state(journal: Journal) -> None:
    journal.log.append(STREAM, blob([1, 2]))
    journal.queries.register("q", "text", offsets={STREAM: 1})
    begun = journal.checkpoints.latest("q")
    assert begun is not None
    assert (begun.state, begun.offsets, begun.matches) == (b"", {STREAM: 1}, {"q": 0})


def test_offsets_that_there_are_not_are_refused_and_nothing_is_registered(journal: Journal) -> None:
    with pytest.raises(ConflictError, match="offset 1"):
        journal.queries.register("q", "text", offsets={STREAM: 1})
    with pytest.raises(UnknownError):
        journal.queries.register("q", "text", offsets={"http://e/unknown": 0})
    assert journal.queries.all() == []


def test_a_query_and_its_answer_are_stored_together(journal: Journal) -> None:
    """And nothing of them where they cannot be; an id is left out each time."""
    commits = journal._writer.commits
    made = journal.queries.register("q", "text", answer=b"one")
    assert journal._writer.commits == commits + 1
    checkpoint = journal.checkpoints.latest("q")
    assert checkpoint is not None
    assert (made.first, made.next, checkpoint.state, checkpoint.matches) == (2, 2, b"one", {"q": 1})
    with pytest.raises(UnknownError):
        journal.queries.register("q", "other", replace=True, answer=b"two", streams=["http://e/unknown"])
    assert journal.queries.get("q") == made
    assert journal.checkpoints.latest("q") == checkpoint
    assert journal.queries.register("q", "text", replace=True, answer=b"two").next == 3
