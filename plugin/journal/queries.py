"""The registered queries, as plain records: what they mean is not known here."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterable, Mapping
from dataclasses import field
from typing import Any, Final

from oxiseq.engine.order.watermarks import BEFORE_ALL, REMEMBERED, Passed
from oxiseq.grammar.languages import USUAL
from oxiseq.grammar.records import dataclass
from oxiseq.journal.errors import ConflictError, JournalError
from oxiseq.journal.events import times_of
from oxiseq.journal.names import DELETED, last_position, query_id, stream_id, unknown_query
from oxiseq.journal.positions import begin, begin_anew, drop
from oxiseq.journal.reader import Reader, Row
from oxiseq.journal.retention import Retention
from oxiseq.journal.schema import CHECKSUMS
from oxiseq.journal.writer import Need, Writer

_COLUMNS: Final = (
    "name, text, language, options, state, first, next, keep_time, keep_count, created, changed, error, begun,"
    " rebuilt, omitted"
)


@dataclass(frozen=True, slots=True)
class QueryRecord:
    """A registered query.

    options: JSON values; state: `running`, `paused` or whatever the caller sets; matches with ids `first` to
    `next` - 1 are kept, ids begin with 1; created, changed: µs since 1970; error: what was given with the state.
    """

    name: str
    text: str
    language: str = USUAL
    options: Mapping[str, Any] = field(default_factory=dict)
    state: str = "running"
    first: int = 1
    next: int = 1
    keep: Retention = field(default_factory=Retention)
    created: int = 0
    changed: int = 0
    error: str = ""
    begun: int | None = None
    """The log's entry after which it was registered; None: by an earlier version, which did not note it."""
    rebuilt: str = ""
    """How its state was rebuilt from the log, empty where that was not needed."""
    omitted: Mapping[str, Any] | None = None
    """The instants that were left out for it when it failed, as they were given with the state."""
    passed: Mapping[str, Passed] = field(default_factory=dict)
    """How far each of its streams had come when it was registered."""


_PASSED: Final = "passed"
"""Member of the stored options: how far each stream had come."""


class Queries:
    """Register, list, replace, pause and delete."""

    def __init__(self, writer: Writer, reader: Reader, clock: Callable[[], int]) -> None:
        self._writer = writer
        self._reader = reader
        self._clock = clock

    def register(
        self,
        name: str,
        text: str,
        language: str = USUAL,
        *,
        options: Mapping[str, Any] | None = None,
        keep: Retention | None = None,
        state: str = "running",
        offsets: Mapping[str, int] | None = None,
        streams: Iterable[str] = (),
        replace: bool = False,
        answer: bytes | None = None,
    ) -> QueryRecord:
        """Store a query; with `replace` it may be known already.

        `offsets`: stream → offset of the first event that it sees; it is the query's first checkpoint, without state,
        so the log keeps what it needs from there on (default: nothing is kept for it). `streams` begin at their ends.
        Ids of matches continue where a query of this name, replaced or deleted, has left off: an id never means two.
        `answer`: what a query that has no matches but changes of its answer begins with, the state of that checkpoint:
        what was emitted under this name is deleted, and an id left out. All or nothing is stored.
        Raises ConflictError for a name that is taken, UnknownError for a stream.
        """
        chosen = keep or Retention()
        read = tuple(streams)

        def work(connection: sqlite3.Connection) -> QueryRecord:
            now = self._clock()
            passed = {iri: _passed(connection, iri) for iri in read}
            stored = {**(options or {}), **({_PASSED: passed} if passed else {})}
            given = json.dumps(stored, ensure_ascii=False, sort_keys=True)
            known = connection.execute("SELECT state, created FROM query WHERE name = ?", (name,)).fetchone()
            taken = known is not None and known[0] != DELETED
            if taken and not replace:
                raise ConflictError(f"there is a query {name!r} already")
            created = known[1] if taken else now
            values = (text, language, given, state, chosen.time, chosen.count, created, now, name)
            if known is None:
                connection.execute(
                    "INSERT INTO query (text, language, options, state, keep_time, keep_count, created, changed, name,"
                    " first, next) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, 1, 1)",
                    values,
                )
            else:
                connection.execute(
                    "UPDATE query SET text = ?, language = ?, options = ?, state = ?, keep_time = ?, keep_count = ?,"
                    " created = ?, changed = ?, error = '' WHERE name = ?",
                    values,
                )
            ends = {iri: stream_id(connection, iri)[2] for iri in read}
            begin(connection, name, {**ends, **(offsets or {})}, now)
            if answer is not None:
                begin_anew(connection, name, answer, now)
            connection.execute(
                f"UPDATE query SET begun = ?, rebuilt = '', omitted = '', checksum = {CHECKSUMS['query']}"
                " WHERE name = ?",
                (last_position(connection), name),
            )
            connection.execute("DELETE FROM set_aside WHERE query = (SELECT id FROM query WHERE name = ?)", (name,))
            return _record(_row(connection, name))

        return self._writer.run(work)

    def set_state(
        self, name: str, state: str, error: str = "", omitted: Mapping[str, Any] | None = None
    ) -> QueryRecord:
        """`running`, `paused`..., and why; the instants that were left out for it by then. Raises UnknownError.

        A paused query's checkpoint continues to hold the log back; `checkpoints.drop` gives it up.
        """
        if state == DELETED:
            raise ConflictError("a query is deleted by `delete`")

        def work(connection: sqlite3.Connection) -> QueryRecord:
            query_id(connection, name)
            connection.execute(
                "UPDATE query SET state = ?, error = ?, omitted = ?, changed = ? WHERE name = ?",
                (state, error, "" if omitted is None else json.dumps(omitted), self._clock(), name),
            )
            return _record(_row(connection, name))

        return self._writer.run(work, Need.DELETING)

    def set_rebuilt(self, name: str, how: str) -> None:
        """Record how its state was rebuilt from the log. Raises UnknownError."""

        def work(connection: sqlite3.Connection) -> None:
            query_id(connection, name)
            connection.execute("UPDATE query SET rebuilt = ? WHERE name = ?", (how, name))

        self._writer.run(work, Need.DELETING)

    def delete(self, name: str) -> None:
        """Forget the query, its matches, its sinks and its checkpoint; that ids of matches are used up is remembered.

        Raises UnknownError.
        """

        def work(connection: sqlite3.Connection) -> None:
            number, _, following = query_id(connection, name)
            connection.execute("DELETE FROM match_batch WHERE query = ?", (number,))
            connection.execute(
                "UPDATE query SET state = ?, text = '', options = '{}', first = ? WHERE id = ?",
                (DELETED, following, number),
            )
            connection.execute("DELETE FROM checkpoint_match WHERE query = ?", (number,))
            connection.execute("DELETE FROM set_aside WHERE query = ?", (number,))
            connection.execute("DELETE FROM sink WHERE query = ?", (number,))
            drop(connection, name)

        self._writer.run(work, Need.DELETING)

    def all(self) -> list[QueryRecord]:
        """All queries, in the order in which their names came first."""
        rows = self._reader.rows(f"SELECT {_COLUMNS} FROM query WHERE state <> ? ORDER BY id", (DELETED,))
        return [_record(row) for row in rows]

    def count(self) -> int:
        """How many there are."""
        ((found,),) = self._reader.rows("SELECT count(*) FROM query WHERE state <> ?", (DELETED,))
        return int(found)

    def find(self, name: str) -> QueryRecord | None:
        """The query of this name; None where there is none."""
        row = self._reader.row(f"SELECT {_COLUMNS} FROM query WHERE name = ? AND state <> ?", (name, DELETED))
        return None if row is None else _record(row)

    def get(self, name: str) -> QueryRecord:
        """The query of this name. Raises UnknownError."""
        found = self.find(name)
        if found is None:
            raise unknown_query(name)
        return found


def _row(connection: sqlite3.Connection, name: str) -> Row:
    row: Row = connection.execute(f"SELECT {_COLUMNS} FROM query WHERE name = ?", (name,)).fetchone()
    return row


def _record(row: Row) -> QueryRecord:
    name, text, language, options, state, first, following, keep_time, keep_count, *rest = row
    created, changed, error, begun, rebuilt, omitted = rest
    keep = Retention(keep_time, keep_count)
    given = json.loads(options)
    passed = {
        iri: Passed(BEFORE_ALL if largest is None else largest, BEFORE_ALL if told is None else told, tuple(lately))
        for iri, (largest, told, lately) in given.pop(_PASSED, {}).items()
    }
    return QueryRecord(
        name,
        text,
        language,
        given,
        state,
        first,
        following,
        keep,
        created,
        changed,
        error,
        begun,
        rebuilt,
        json.loads(omitted) if omitted else None,
        passed,
    )


def _passed(connection: sqlite3.Connection, iri: str) -> list[Any]:
    """How far a stream has come, as JSON values. Raises UnknownError."""
    number, *_ = stream_id(connection, iri)
    marks = connection.execute("SELECT largest, punctuated FROM stream WHERE id = ?", (number,)).fetchone()
    lately: list[int] = []
    rows = connection.execute(
        "SELECT data FROM entry WHERE stream = ? AND count > 0 ORDER BY first DESC, id DESC", (number,)
    )
    for (data,) in rows:
        try:
            lately += reversed(times_of(data))
        except JournalError:  # it is told by who reads its events
            continue
        if len(lately) >= REMEMBERED:
            break
    return [*marks, lately[:REMEMBERED]]
