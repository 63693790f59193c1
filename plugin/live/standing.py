"""Queries that stand over the served store, durable: their changes are matches in the journal, under the same ids.

    Store.register ─▶ StandingQuery ─▶ changes ─▶ a thread: one transaction for all that wait ─▶ journal ─▶ topics

A change is a row of the journal's matches for each row (triple) that came or went: the answer's columns and `CHANGE`,
how many came (above 0) or went (below 0), removed ones first; all have the time of the update. Its last row's id is the
change's `number`. So they are read, kept, resumed and sent as the matches of other queries are.

A checkpoint is the answer after a change. After a restart the answer that was told last is the checkpoint and all rows
behind it; the store is asked what the answer is now, and what differs is one change more: an update whose change had
not been stored when the process died is told then, and so is what has changed while the server was away. Where that
cannot be known any more, ids go on and all before them are gone: readers are told that their cursor is too old.
"""

from __future__ import annotations

import logging
import threading
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, TypeAlias

import numpy as np
from pyoxigraph import Literal, Triple

from oxiseq.engine.errors import OxiseqError
from oxiseq.engine.output.batch import MatchBatch
from oxiseq.engine.standing import Limits
from oxiseq.engine.terms.texts import Term, read_term, term_text
from oxiseq.journal import (
    Checkpoint,
    ConflictError,
    Found,
    FullError,
    Heading,
    Journal,
    JournalError,
    QueryRecord,
    Retention,
    StoredMatches,
    UnknownError,
    unpack_matches,
)
from oxiseq.journal.rows import pack_rows
from oxiseq.live.errors import BoundError
from oxiseq.live.queries import NAME
from oxiseq.live.remote import RemoteKnowledge
from oxiseq.live.settings import LiveSettings
from oxiseq.live.topics import Topics
from oxiseq.standing import StandingQuery, StoreChange
from oxiseq.standing.change import Form, Row, Weighed
from oxiseq.store import Store

LOG: Final = logging.getLogger("oxiseq.live")
LANGUAGE: Final = "sparql"
"""Of these queries, in the journal."""
CHANGE: Final = "@change"
"""The column that says how many of a row came or went; no variable is called so."""
_TRIPLE: Final = ("subject", "predicate", "object")
_Answer: TypeAlias = "Counter[tuple[str | None, ...]]"
"""Rows as texts."""
_PATIENCE: Final = 1.0
"""Seconds after which a full journal is tried again."""


class StandingService:
    """Register, list, delete; changes are stored by a thread. Safe for many threads."""

    def __init__(
        self, journal: Journal, store: Store | RemoteKnowledge, topics: Topics, settings: LiveSettings
    ) -> None:  # fmt: skip
        self._journal, self._store, self._topics, self._settings = journal, store, topics, settings
        self._queries: dict[str, StandingQuery] = {}
        self._lock = threading.RLock()
        self._arrived = threading.Condition()
        self._waiting: list[tuple[StandingQuery, StoreChange]] = []
        self._busy = False
        self._ending = False
        self._saved: dict[str, int] = {}
        """By name the number of the change that the checkpoint has."""
        self._thread = threading.Thread(target=self._keep_storing, name="oxiseq-standing-journal", daemon=True)

    # --- queries --------------------------------------------------------------------------------------

    def register(
        self, name: str | None, text: str, *, replace: bool = False, most_triples: int | None = None,
        most_rows: int | None = None,
    ) -> StandingQuery:  # fmt: skip
        """A query that stands from now on. With `replace` one of this name goes; ids go on.

        Raises QueryError, LimitError, KbError, ConflictError, BoundError, OxiseqError.
        """
        options: dict[str, Any] = {}
        if most_triples is not None:
            options["mostTriples"] = most_triples
        if most_rows is not None:
            options["mostRows"] = most_rows
        with self._lock:
            known = {record.name: record for record in self._journal.queries.all()}
            chosen = name if name is not None else _unused(known)
            if not NAME.fullmatch(chosen):
                raise OxiseqError(f"{chosen!r} is no name for a query: letters, digits and . _ ~ -, at most 100")
            if chosen in known and (not replace or known[chosen].language != LANGUAGE):
                raise ConflictError(f"there is a query {chosen!r} already")
            if chosen not in known and len(known) >= self._settings.queries:
                raise BoundError(f"there are {self._settings.queries} queries, which is the most")
            query = self._registered(text, options)
            self._end(chosen)
            if chosen in known:
                self.flush()
                self._journal.queries.delete(chosen)  # what was told of the other text is gone
            keep = Retention(count=self._settings.matches)
            record = self._journal.queries.register(chosen, text, LANGUAGE, options=options, keep=keep)
            self._begin(query, record, None)
            return query

    def delete(self, name: str) -> None:
        """Forget it and its changes. Raises UnknownError."""
        with self._lock:
            self._end(name)
            self.flush()
            self._journal.queries.delete(name)
            self._topics.close(name, "deleted")

    def get(self, name: str) -> StandingQuery:
        """Raises UnknownError where no such query is at work."""
        with self._lock:
            if name not in self._queries:
                raise UnknownError(f"no query {name!r} stands over the store")
            return self._queries[name]

    def all(self) -> list[StandingQuery]:
        """Those at work, in the order in which they came."""
        with self._lock:
            return [*self._queries.values()]

    def _own_store(self) -> Store:
        if isinstance(self._store, RemoteKnowledge):
            raise OxiseqError("queries stand over a store of this server only, not over a knowledge base elsewhere")
        return self._store

    def _end(self, name: str) -> None:
        if (query := self._queries.pop(name, None)) is not None:
            query.close()
            self._saved.pop(name, None)

    # --- at the start ---------------------------------------------------------------------------------

    def start(self) -> None:
        """Bring back what was registered; what has changed since is told as one change of each query."""
        for record in self._journal.queries.all():
            if record.language == LANGUAGE and record.state == "running":
                try:
                    self._restore(record)
                except Exception as error:
                    LOG.exception("query %s cannot be restored", record.name, extra={"query": record.name})
                    self._journal.queries.set_state(record.name, "failed", str(error))
        self._thread.start()

    def _restore(self, record: QueryRecord) -> None:
        answered = self._answered(record)
        if answered is None:
            LOG.warning("query %s: what it told last is lost, readers begin anew", record.name)
            self._journal.queries.delete(record.name)
            record = self._journal.queries.register(
                record.name, record.text, LANGUAGE, options=record.options, keep=record.keep
            )
        self._begin(self._registered(record.text, record.options), record, answered)

    def _registered(self, text: str, options: Mapping[str, Any]) -> StandingQuery:
        usual = Limits()
        return self._own_store().register(
            text, language="sparql", keep=self._settings.recent,
            most_triples=options.get("mostTriples", usual.most_triples),
            most_rows=options.get("mostRows", usual.most_rows),
        )  # fmt: skip

    def _answered(self, record: QueryRecord) -> _Answer | None:
        """What readers know: the checkpoint's answer and all that was told behind it."""
        checkpoint = self._journal.checkpoints.latest(record.name)
        if checkpoint is None or not checkpoint.state:
            return None
        found: _Answer = Counter()
        number = checkpoint.matches.get(record.name, 0)
        try:
            _add(found, unpack_matches(checkpoint.state, 1))
            while number < record.next - 1:
                parts = self._journal.matches.read(record.name, number)
                if not parts:
                    return None
                for part in parts:
                    _add(found, part)
                    number = part.last
        except JournalError:
            return None
        self._saved[record.name] = checkpoint.matches.get(record.name, 0)
        return found

    def _begin(self, query: StandingQuery, record: QueryRecord, answered: _Answer | None) -> None:
        """Changes are stored from now on; `answered`: what was told before, None: nothing."""
        told = None if answered is None else [(_row_of(query, texts), n) for texts, n in answered.items()]
        self._topics.open(record.name, record.next - 1)
        query.resume(record.name, record.next - 1, told, lambda change: self._take(query, change))
        self._queries[record.name] = query
        if told is None:
            self._save(query)

    # --- changes --------------------------------------------------------------------------------------

    def _take(self, query: StandingQuery, change: StoreChange) -> None:
        with self._arrived:
            self._waiting.append((query, change))
            self._arrived.notify_all()

    def flush(self) -> None:
        """All changes that have been told are stored; or the journal is full."""
        with self._arrived:
            while (self._waiting or self._busy) and self._thread.is_alive() and not self._journal.full:
                self._arrived.wait(0.1)

    def _keep_storing(self) -> None:
        while True:
            with self._arrived:
                self._busy = False
                self._arrived.notify_all()
                while not self._waiting and not self._ending:
                    self._arrived.wait()
                if not self._waiting:
                    return
                taken, self._waiting, self._busy = self._waiting, [], True
            try:
                self._store_all(taken)
            except Exception:  # what is not stored is told after a restart
                LOG.exception("changes of standing queries could not be stored")

    def _store_all(self, taken: Sequence[tuple[StandingQuery, StoreChange]]) -> None:
        """One transaction for all; those of queries that are gone are left out."""
        found = [
            (Found(query.name, change.since + 1, packed(query, change.weighed, change.at_us)), len(change))
            for query, change in taken if not query.closed
        ]  # fmt: skip
        while found:
            try:
                self._journal.emit([each for each, _ in found])
                break
            except UnknownError:
                known = {record.name for record in self._journal.queries.all()}
                found = [each for each in found if each[0].query in known]
            except FullError as error:
                LOG.warning("changes wait for room in the journal: %s", error)
                with self._arrived:
                    if self._ending:
                        return
                    self._arrived.wait(_PATIENCE)
            except JournalError:
                LOG.exception("changes of standing queries could not be stored; they are told after a restart")
                return
        for each, count in found:
            if (topic := self._topics.get(each.query)) is not None:
                topic.publish(each, count)
        for query in dict.fromkeys(query for query, _ in taken):
            saved = self._saved.get(query.name)
            if not query.closed and (saved is None or query.number - saved > self._settings.matches // 2):
                self._save(query)

    def _save(self, query: StandingQuery) -> None:
        """A checkpoint. Raises JournalError."""
        number, answer = query.answered
        state = packed(query, answer, 0)
        try:
            self._journal.checkpoints.commit(Checkpoint(query.name, state, {}, {query.name: number}))
            self._saved[query.name] = number
        except (UnknownError, ConflictError):
            return  # it is gone; or the last changes wait to be stored: later

    def close(self) -> None:
        """Store what waits, with a checkpoint of each query."""
        if isinstance(self._store, RemoteKnowledge) or not self._thread.is_alive():
            return
        for query in self.all():
            query.catch_up()
        with self._arrived:
            self._ending = True
            self._arrived.notify_all()
        self._thread.join()
        for query in self.all():
            try:
                if query.number != self._saved.get(query.name):
                    self._save(query)
            except JournalError as error:
                LOG.warning("query %s has no new checkpoint: %s", query.name, error)
            query.close()


def heading_of(query: StandingQuery) -> Heading:
    """The columns of its changes."""
    return Heading((*_columns(query.form, query.variables), CHANGE))


def _columns(form: Form, variables: tuple[str, ...]) -> tuple[str, ...]:
    return _TRIPLE if form == "CONSTRUCT" else variables


def packed(query: StandingQuery, weighed: Weighed, at: int) -> bytes:
    """Rows as the journal has them, those that went first."""
    rows = [(_terms(query, row), weight) for row, weight in sorted(weighed, key=lambda each: each[1] > 0)]
    numbers: dict[Term, int] = {}
    codes = [
        [0 if t is None else numbers.setdefault(t, len(numbers) + 1) for t in (*terms, Literal(weight))]
        for terms, weight in rows
    ]
    texts = [term_text(term).encode() for term in numbers]
    n = len(rows)
    nothing = np.zeros(0, np.int64)
    batch = MatchBatch(
        np.full(n, at), np.zeros((n, 0), np.uint32), np.zeros(n + 1, np.int64), nothing.astype(np.int32), nothing
    )
    heading = heading_of(query)
    return pack_rows(batch, heading, np.array(codes, np.int64).reshape(n, len(heading.variables)), texts)


def _terms(query: StandingQuery, row: Row) -> tuple[Term | None, ...]:
    if isinstance(row, Triple):
        return (row.subject, row.predicate, row.object)
    return tuple(row[name] for name in query.variables)


def _add(found: _Answer, stored: StoredMatches) -> None:
    for *texts, weight in stored.rows():
        assert weight is not None
        found[tuple(texts)] += int(read_term(weight).value)  # type: ignore[union-attr]


def _row_of(query: StandingQuery, texts: Any) -> Row:
    terms = [None if text is None else read_term(text) for text in texts]
    if query.form == "CONSTRUCT":
        return Triple(*terms)  # type: ignore[arg-type]
    return dict(zip(query.variables, terms, strict=True))


def _unused(known: Iterable[str]) -> str:
    names, number = frozenset(known), 1
    while f"standing-{number}" in names:
        number += 1
    return f"standing-{number}"
