"""Checkpoints: a running state, its position in the log, and the matches up to it, in one transaction.

The contract. Whoever runs queries keeps it, and then no match is lost and none is given twice, whatever dies:

1. An event is in the log (`EventLog.append` has returned) before a query sees it; so is a punctuation. Queries see the
   entries of a stream in the order of their offsets and, when they read several streams, all in the order of arrival.
2. The matches of a query are counted from 1 on, in the order in which it finds them; the count is a match's id. The
   same state and the same entries find the same matches in the same order. So nothing but entries may decide: not the
   clock on the wall, not how entries are put together in batches.
3. `commit` stores the state after a certain entry of every stream (`offsets`: the next one's), the count of matches so
   far (`matches`: the last one's id) and all matches found since the checkpoint before. All of it or nothing is there
   after a kill. Matches may be stored earlier (`MatchLog.append`), and may be emitted before they are stored.
4. After a kill: load the `latest` checkpoint, count matches from its `matches`, feed the state with
   `EventLog.replay(offsets)`. Matches after the checkpoint are found again, with the same ids; storing them passes
   over those that are stored already. A state of b"" means: a fresh query, nothing seen before `offsets`.
5. The log keeps every entry from a checkpoint's offsets on, whatever its retention says. One owner's new checkpoint
   takes the place of its last one. An owner is a query's name, or anything else for several queries at once: then a
   commit that counts a query's matches takes the place of that query's own checkpoint too. A query that has been
   registered again has its own again; it overrides the common one until the next commit that counts it.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field

from oxiseq.grammar.records import dataclass
from oxiseq.journal.matches import Found, storing
from oxiseq.journal.positions import drop, put
from oxiseq.journal.reader import Reader
from oxiseq.journal.writer import Need, Writer


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The state of `owner` after the entries before `offsets` (stream IRI → offset) and with the matches up to
    `matches` (query → id of its last match, 0: none yet). `position`: that of the last entry seen, of whatever stream.
    `made`: µs since 1970."""

    owner: str
    state: bytes
    offsets: Mapping[str, int] = field(default_factory=dict)
    matches: Mapping[str, int] = field(default_factory=dict)
    made: int = 0
    position: int = 0


class Checkpoints:
    """Commit and load. Safe for many threads."""

    def __init__(self, writer: Writer, reader: Reader, clock: Callable[[], int]) -> None:
        self._writer = writer
        self._reader = reader
        self._clock = clock

    def commit(self, checkpoint: Checkpoint, *found: Found) -> None:
        """Store the checkpoint and the matches up to it, all or nothing; returns when that is durable.

        Raises UnknownError; ConflictError for offsets that are not in the log and matches that are not stored;
        FullError, and then the checkpoint before still holds.
        """
        self.commit_all((checkpoint,), *found)

    def commit_all(self, checkpoints: Sequence[Checkpoint], *found: Found) -> None:
        """As `commit`, several at once."""
        if not checkpoints and not found:
            return
        store = storing(found, self._clock)

        def work(connection: sqlite3.Connection) -> None:
            store(connection)
            for each in checkpoints:
                for query in each.matches:
                    drop(connection, query)
                put(connection, each.owner, each.state, each.offsets, each.matches, each.position, self._clock())

        self._writer.run(work, Need.PROGRESS)

    def move(self, owners: Sequence[str], position: int) -> None:
        """Nothing up to this entry has concerned these owners: their states are those at their checkpoints."""
        if not owners:
            return
        rows = [(position, self._clock(), owner) for owner in owners]

        def work(connection: sqlite3.Connection) -> None:
            connection.executemany("UPDATE checkpoint SET position = ?, made = ? WHERE owner = ?", rows)

        self._writer.run(work, Need.PROGRESS)

    def drop(self, owner: str) -> None:
        """Give up a checkpoint, and with it its hold on the log."""
        self._writer.run(lambda connection: drop(connection, owner), Need.DELETING)

    def latest(self, owner: str) -> Checkpoint | None:
        """The owner's checkpoint, None if it has none."""
        with self._reader.snapshot() as connection:
            return _read(connection, owner)

    def all(self) -> list[Checkpoint]:
        """All checkpoints, of one moment, oldest first."""
        with self._reader.snapshot() as connection:
            owners = connection.execute("SELECT owner FROM checkpoint ORDER BY made, rowid").fetchall()
            return [found for (owner,) in owners if (found := _read(connection, owner)) is not None]


def _read(connection: sqlite3.Connection, owner: str) -> Checkpoint | None:
    row = connection.execute("SELECT state, made, position FROM checkpoint WHERE owner = ?", (owner,)).fetchone()
    if row is None:
        return None
    offsets = connection.execute(
        "SELECT iri, c.next FROM checkpoint_offset c JOIN stream ON stream.id = c.stream WHERE owner = ?", (owner,)
    ).fetchall()
    matches = connection.execute(
        "SELECT name, last FROM checkpoint_match JOIN query ON query.id = query WHERE owner = ?", (owner,)
    ).fetchall()
    return Checkpoint(owner, row[0], dict(offsets), dict(matches), row[1], row[2])
