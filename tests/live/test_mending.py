"""What an entry of the log that cannot be worked through costs: itself, and nothing else."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from live_events import (
    ALARM,
    ALARMS,
    DOORS,
    OPENED,
    POWER,
    RISES,
    Batch,
    batches,
)
from live_services import Rows, eventually, live, push, rest, rows
from many_queries import LANGUAGES, QUERIES, found, register

from oxiseq.engine.automaton.automaton import SharedAutomaton
from oxiseq.engine.errors import LimitError
from oxiseq.engine.run.query import QueryRun
from oxiseq.engine.run.rsp import RspRun
from oxiseq.engine.sharing.runs import Runs
from oxiseq.journal import FILE_NAME, ConflictError, Journal, recent
from oxiseq.journal.log import EventLog
from oxiseq.live import LiveService, LiveSettings
from oxiseq.live.intake import read_batch

SENT = batches(60, seed=5)
BAD = next(batch for batch in SENT[40:] if batch.stream == POWER)
"""The batch that cannot be worked through."""
READERS = [name for name in QUERIES if name not in ("twice",)]
"""Queries that read its stream."""


@pytest.fixture(scope="module")
def without(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Rows]:
    """The matches of a run that BAD is never pushed to."""
    with live(tmp_path_factory.mktemp("without")) as service:
        register(service)
        for batch in SENT:
            if batch is not BAD:
                push(service, batch)
        return found(service)


def times(batch: Batch) -> list[int]:
    """When the events of a batch are, in microseconds."""
    return [int(time) for time in read_batch(batch.body, "nquads").time]


def breaking(
    monkeypatch: pytest.MonkeyPatch, cls: type, method: str, seen: Callable[..., Any], error: Exception
) -> None:
    """Let a method raise where it sees an event of BAD."""
    bad, usual = times(BAD), getattr(cls, method)

    def broken(self: Any, *given: Any) -> Any:
        if np.isin(seen(*given), bad).any():
            raise error
        return usual(self, *given)

    monkeypatch.setattr(cls, method, broken)


def quarantined(service: LiveService) -> dict[str, tuple[int, int]]:
    """What each query has quarantined: entries and events."""
    told = {name: service.queries.get(name).quarantined for name in QUERIES}
    return {name: (count.entries, count.events) for name, count in told.items() if count.entries}


def check(folder: Path, without: dict[str, Rows], broken: list[str], restarts: int = 0) -> None:
    """All queries find what they find without the batch, those that are not broken what they find with it."""
    at, every = 0, restarts + 1
    for number in range(every):
        with live(folder, LiveSettings(idle=None, checkpoint=1000)) as service:
            if number == 0:
                register(service)
            for batch in SENT[at : len(SENT) * (number + 1) // every]:
                push(service, batch)
            at = len(SENT) * (number + 1) // every
            rest(service)
            if number == restarts:
                answers = found(service)
                assert {name: answers[name] for name in broken} == {name: without[name] for name in broken}
                assert quarantined(service) == {name: (1, len(times(BAD))) for name in broken}
                assert {service.queries.get(name).doing for name in QUERIES} == {"running"}
                assert service.ready and service.worker.error is None
                assert service.health()["quarantined"] == len(broken)


@pytest.mark.parametrize("restarts", [0, 2])
def test_an_error_that_no_query_owns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, without: dict[str, Rows], restarts: int
) -> None:
    breaking(monkeypatch, Runs, "push", lambda stream, batch: batch.time, IndexError("out of bounds"))
    check(tmp_path, without, READERS, restarts)


def test_checkpoints_stand_behind_an_entry_whose_error_no_query_owns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is the last of its stream: what comes later, of another one, moves no offset of it."""
    breaking(monkeypatch, Runs, "push", lambda stream, batch: batch.time, IndexError("out of bounds"))
    at = SENT.index(BAD)
    with live(tmp_path) as service:
        service.queries.register("opened", OPENED)
        for batch in [*SENT[: at + 1], *(batch for batch in SENT[at:] if batch.stream == DOORS)]:
            push(service, batch)
        rest(service)
        assert service.worker.stops == 1
        following = {stream: service.streams.get(stream).next for stream in (POWER, DOORS)}
    with Journal(tmp_path / FILE_NAME) as journal:
        checkpoint = journal.checkpoints.latest("opened")
        assert checkpoint is not None and checkpoint.offsets == following


@pytest.mark.parametrize("error", [IndexError("out of bounds"), LimitError(5, 4, "mappings"), MemoryError()])
def test_an_error_of_some_queries_that_comes_with_a_later_entry(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, without: dict[str, Rows], error: Exception
) -> None:
    breaking(monkeypatch, QueryRun, "_work", lambda part, rows, last, answers: part.time, error)
    breaking(monkeypatch, SharedAutomaton, "step", lambda part: part.time, error)
    check(tmp_path, without, [name for name in READERS if LANGUAGES.get(name) is None], 1)


def test_an_error_of_a_query_over_windows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, without: dict[str, Rows]
) -> None:
    breaking(monkeypatch, RspRun, "push", lambda stream, batch: batch.time, ValueError("no such row"))
    check(tmp_path, without, ["high", "busy", "left"], 1)


def test_a_state_that_is_at_fault_is_given_up_and_said_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The event that is to blame waits in the checkpoint itself: no entry behind it is."""
    power = [batch for batch in SENT if batch.stream == POWER]
    bad = power[10]
    last = max(times(bad))
    with live(tmp_path) as service:
        service.queries.register("rises", RISES)
        for batch in power[:11]:
            push(service, batch)
        rest(service)
        stored = len(rows(service, "rises"))
    usual = QueryRun._work

    def broken(self: QueryRun, part: Any, *rest_: Any) -> Any:
        if last in part.time.tolist():
            raise IndexError("out of bounds")
        return usual(self, part, *rest_)

    monkeypatch.setattr(QueryRun, "_work", broken)
    with live(tmp_path) as service:
        for batch in power[11:]:
            push(service, batch)
        rest(service)
        status = service.queries.get("rises")
        assert status.doing == "running" and "restarted" in status.record.rebuilt
        assert "IndexError: out of bounds" in status.record.rebuilt
        before = status.record.next
        service.streams.advance(POWER, times(power[-1])[-1] + 1)
        rest(service)
        assert service.queries.get("rises").record.next >= before > 1
        since = rows(service, "rises", stored)
    (tmp_path / "another").mkdir()
    with live(tmp_path / "another") as service:  # that sees what comes behind, and nothing else
        service.queries.register("rises", RISES)
        for batch in power[11:]:
            push(service, batch)
        service.streams.advance(POWER, times(power[-1])[-1] + 1)
        rest(service)
        assert since == [(stored + number, row) for number, row in rows(service, "rises")]


def test_a_damaged_blob_is_passed_over_by_its_readers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, without: dict[str, Rows]
) -> None:
    monkeypatch.setattr(recent, "MOST", 0)  # nothing of the log is kept in memory
    with live(tmp_path) as service:
        register(service)
        held = service.worker.lock
        held.acquire()  # nothing is worked through meanwhile
        try:
            for batch in SENT:
                offset = push(service, batch).first
                if batch is BAD:
                    damage(tmp_path / FILE_NAME, offset)
        finally:
            held.release()
        assert found(service) == without
        assert quarantined(service) == {name: (1, len(times(BAD))) for name in READERS}
        last = service.queries.get("rises").quarantined.last
        assert last is not None and "checksum" in last.reason
    with live(tmp_path) as service:
        assert found(service) == without
        assert quarantined(service) == {name: (1, len(times(BAD))) for name in READERS}


def damage(path: Path, offset: int) -> None:
    """Flip a byte of a batch of POWER."""
    with closing(sqlite3.connect(path)) as connection, connection:
        sql = "SELECT e.id, data FROM entry e JOIN stream s ON s.id = stream WHERE iri = ? AND e.first = ? AND count"
        number, data = connection.execute(sql, (POWER, offset)).fetchone()
        flipped = bytearray(data)
        flipped[-5] ^= 0xFF
        connection.execute("UPDATE entry SET data = ? WHERE id = ?", (bytes(flipped), number))


def test_a_worker_that_is_stopped_says_so_and_begins_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, without: dict[str, Rows]
) -> None:
    usual, fails = EventLog.follow, [True]

    def follow(self: EventLog, *given: Any) -> Any:
        if fails[0]:
            raise OSError("the disk does not answer")
        return usual(self, *given)

    with live(tmp_path) as service:
        register(service)
        for batch in SENT[:20]:
            push(service, batch)
        monkeypatch.setattr(EventLog, "follow", follow)
        eventually(lambda: service.worker.stops > 2)
        assert not service.ready
        assert "the disk does not answer" in str(service.health()["reason"])
        for name in QUERIES:
            status = service.queries.get(name)
            assert status.doing == "stalled" and "the disk does not answer" in status.stalled
        fails[0] = False
        eventually(lambda: service.ready)
        for batch in SENT[20:]:
            if batch is not BAD:
                push(service, batch)
        assert found(service) == without
        assert {service.queries.get(name).doing for name in QUERIES} == {"running"}
        assert quarantined(service) == {}


def test_a_stream_that_a_query_feeds_cannot_be_deleted_under_it(tmp_path: Path) -> None:
    with live(tmp_path) as service:
        service.queries.register("alarm", ALARM)
        with pytest.raises(ConflictError, match="fed by 'alarm'"):
            service.streams.delete(ALARMS)
        service.queries.pause("alarm")
        service.streams.delete(ALARMS)
        service.queries.resume("alarm")
        for batch in SENT:
            if batch.stream != DOORS:
                push(service, batch)
        finish_power(service)
        assert service.streams.get(ALARMS).next > 0
        assert service.worker.stops == 0


def finish_power(service: LiveService) -> None:
    service.streams.advance(POWER, max(max(times(batch)) for batch in SENT) + 60_000_000)
    rest(service)


def test_a_query_that_comes_anew_has_quarantined_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    breaking(monkeypatch, Runs, "push", lambda stream, batch: batch.time, IndexError("out of bounds"))
    with live(tmp_path) as service:
        service.queries.register("rises", RISES)
        for batch in SENT:
            if batch.stream == POWER:
                push(service, batch)
        rest(service)
        assert set(quarantined_of(service, "rises")) == {1}
        service.queries.register("rises", RISES, replace=True)
        assert quarantined_of(service, "rises") == (0,)
        service.queries.delete("rises")
    with Journal(tmp_path / FILE_NAME) as journal:
        assert journal.quarantine.total() == 0


def quarantined_of(service: LiveService, name: str) -> tuple[int]:
    return (service.queries.get(name).quarantined.entries,)
