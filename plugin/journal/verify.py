"""Looking the whole file through."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator

from oxiseq.journal.envelope import Summary
from oxiseq.journal.errors import JournalError
from oxiseq.journal.events import check_events
from oxiseq.journal.names import DELETED
from oxiseq.journal.rows import unpack_matches
from oxiseq.journal.schema import CHECKSUMS


def faults(connection: sqlite3.Connection) -> Iterator[str]:
    """What is wrong with the file, in the words of a message each."""
    for (said,) in connection.execute("PRAGMA integrity_check(20)"):
        if said != "ok":
            yield f"SQLite: {said}"
    yield from _log(connection)
    yield from _matches(connection)
    yield from _checkpoints(connection)
    yield from _settings(connection)


def _settings(connection: sqlite3.Connection) -> Iterator[str]:
    """Of texts that are not what was stored; of those that an earlier version stored nothing is known."""
    found = f"SELECT name FROM query WHERE state <> ? AND checksum NOT IN ('', {CHECKSUMS['query']})"
    for (name,) in connection.execute(found, (DELETED,)):
        yield f"query {name!r}: its text, its language or its options are not what was registered"
    found = (
        "SELECT q.name, s.name FROM sink s JOIN query q ON q.id = s.query"
        f" WHERE s.checksum NOT IN ('', {CHECKSUMS['sink']})"
    )
    for query, name in connection.execute(found):
        yield f"sink {name!r} of query {query!r}: its settings are not what was stored"
    found = f"SELECT iri FROM stream WHERE checksum NOT IN ('', {CHECKSUMS['stream']})"
    for (iri,) in connection.execute(found):
        yield f"stream <{iri}>: its mapping is not what was stored"


def _log(connection: sqlite3.Connection) -> Iterator[str]:
    for number, iri, first, following in connection.execute("SELECT id, iri, first, next FROM stream"):
        at = first
        sql = "SELECT first, count, min_time, max_time, data FROM entry WHERE stream = ? ORDER BY first, id"
        for begin, count, low, high, data in connection.execute(sql, (number,)):
            place = f"stream <{iri}>, offset {begin}"
            if begin != at:
                yield f"{place}: offset {at} was expected"
            if count:
                yield from _events(place, data, Summary(count, low, high))
            at = begin + count
        if at != following:
            yield f"stream <{iri}>: it ends at offset {at} instead of {following}"


def _matches(connection: sqlite3.Connection) -> Iterator[str]:
    for number, name, first, following in connection.execute("SELECT id, name, first, next FROM query"):
        at = first
        sql = "SELECT first, count, data FROM match_batch WHERE query = ? ORDER BY first"
        for begin, count, data in connection.execute(sql, (number,)):
            place = f"query {name!r}, match {begin}"
            if begin != at:
                yield f"{place}: match {at} was expected"
            at = begin + count
            try:
                if len(unpack_matches(data, 0)) < count:
                    yield f"{place}: the blob holds fewer than {count} matches"
            except JournalError as error:
                yield f"{place}: {error}"
        if at != following:
            yield f"query {name!r}: its matches end at {at} instead of {following}"


def _checkpoints(connection: sqlite3.Connection) -> Iterator[str]:
    offsets = (
        "SELECT owner, iri FROM checkpoint_offset c JOIN stream s ON s.id = c.stream"
        " WHERE c.next < s.first OR c.next > s.next"
    )
    for owner, iri in connection.execute(offsets):
        yield f"checkpoint of {owner!r}: its offset of <{iri}> is not in the log"
    matches = "SELECT owner, name FROM checkpoint_match c JOIN query q ON q.id = c.query WHERE c.last >= q.next"
    for owner, name in connection.execute(matches):
        yield f"checkpoint of {owner!r}: its last match of {name!r} is not stored"


def _events(place: str, data: bytes, expected: Summary) -> Iterator[str]:
    try:
        if check_events(data) != expected:
            yield f"{place}: number or times of the events are not those of the blob"
    except JournalError as error:
        yield f"{place}: {error}"
