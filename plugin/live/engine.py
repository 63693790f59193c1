"""The queries at work: entries of the log go in, packed matches come out. One thread at a time."""

from __future__ import annotations

import logging
import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from oxiseq.engine.errors import KbError
from oxiseq.engine.events.batch import EventBatch
from oxiseq.engine.events.encode import encode_events
from oxiseq.engine.events.faults import Faults
from oxiseq.engine.kb import KnowledgeBase
from oxiseq.engine.run.alone import faults_of
from oxiseq.engine.run.runs import AnyRun, Runs
from oxiseq.engine.run.shared import Outcome
from oxiseq.engine.snapshot.saving import save
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.grammar import load
from oxiseq.journal import Entry, Found, Heading, pack_events, unpack_events
from oxiseq.journal.journal import microseconds as microseconds_now
from oxiseq.languages.front import AnswerShape, Front
from oxiseq.languages.registry import front_of
from oxiseq.live.budgets import Budget, Watch
from oxiseq.live.options import options_of
from oxiseq.live.reading import UnworkableError, reason_of

LOG = logging.getLogger("oxiseq.live")


@dataclass(slots=True, eq=False)
class LiveQuery:
    """A query at work. `count`: the id of the last match found; `stored`: up to which id they are stored already;
    `position`: the log's entry after which it began."""

    name: str
    front: Front[Any, Any]
    run: AnyRun
    shape: AnswerShape[Any]
    heading: Heading
    start: int | None
    count: int = 0
    stored: int = 0
    position: int = 0
    error: str = ""
    watch: Watch = field(default_factory=lambda: Budget().watch())
    """Its state's budget."""
    decided: int = 0
    """The log's entry before which nothing is decided about its budget (see budgets.py)."""
    saved: int = -1
    """The log's entry after which its last checkpoint stands."""
    settled: int = 0
    """How many events it had seen when silence was last taken for their end."""
    batches: list[Any] = field(default_factory=list)
    """Found, and not packed yet."""
    passed_over: frozenset[int] = frozenset()
    """The log's entries that are set aside for it: it does not see them."""

    @property
    def one_by_one(self) -> bool:
        """Whether how entries are put together could be seen."""
        return self.shape.feeds is not None

    @property
    def faults(self) -> Faults:
        """Events that it cannot read, which it leaves out."""
        return faults_of(self.run)


@dataclass(frozen=True, slots=True)
class Emission:
    """What has come of entries: matches that are to be stored and told, and events of other streams made of them."""

    found: tuple[Found, ...] = ()
    events: tuple[tuple[str, bytes], ...] = ()
    failed: tuple[LiveQuery, ...] = ()
    broken: tuple[LiveQuery, ...] = ()
    """Queries that an entry cannot be worked through for: they are no longer at work."""


class Engine:
    """Compiled queries, fed together. Its dictionary is its own. `budget` is for queries that have none."""

    def __init__(self, kb: KnowledgeBase, budget: Budget) -> None:
        self.terms = TermDictionary()
        self._kb, self._budget = kb, budget
        self._runs = Runs(self.terms)
        self._live: dict[AnyRun, LiveQuery] = {}
        self._scope = f"r{secrets.token_hex(4)}x"
        self._failed: list[LiveQuery] = []
        self._broken: list[LiveQuery] = []

    # --- queries ------------------------------------------------------------------------------------

    def compile(self, name: str, text: str, language: str, options: Mapping[str, Any]) -> LiveQuery:
        """A query that has seen nothing yet. Raises QueryError, BudgetError, OxiseqError."""
        query = load(text, language)
        front = front_of(query)
        given = options_of(front, options)
        run, shape = front.compile(query, self.terms, self._kb, given)
        budget = self._budget.of(options)
        budget.check(run)
        return LiveQuery(name, front, run, shape, front.heading(shape), given.start, watch=budget.watch())

    def add(self, query: LiveQuery) -> None:
        """Entries go to it from now on."""
        budget = query.watch.budget
        alone = budget.records is not None or budget.bytes is not None  # it is about what the query has by itself
        self._live[query.run] = query
        self._runs.add(query.run, query.start, shares=not alone)

    def remove(self, query: LiveQuery) -> None:
        """They do no longer."""
        if self._live.pop(query.run, None) is not None:
            self._runs.remove(query.run)

    @property
    def queries(self) -> tuple[LiveQuery, ...]:
        """Those at work."""
        return tuple(self._live.values())

    @property
    def reads_kb(self) -> bool:
        """Whether what is found depends on more than the log."""
        return bool(self.kb_readers)

    @property
    def kb_readers(self) -> list[LiveQuery]:
        """Those at work that ask the knowledge base."""
        return [query for query in self._live.values() if query.run.reads_kb]

    def readers(self, stream: str) -> list[LiveQuery]:
        """Those that read a stream."""
        return [query for query in self._live.values() if stream in query.shape.reads]

    def keep_answers(self) -> None:
        """The KB is about to change: instants up to the newest one so far keep the answers of now. Raises KbError."""
        for query in self.kb_readers:
            if self._runs.keep_answers(query.run):
                query.saved = -1  # the answers are part of its state

    def clear(self) -> tuple[LiveQuery, ...]:
        """Let go of all queries, whatever state they are in; those."""
        gone = (*self._live.values(), *self._failed, *self._broken)
        self._live, self._runs, self._failed, self._broken = {}, Runs(self.terms), [], []
        return gone

    @contextmanager
    def alone(self, query: LiveQuery) -> Iterator[Engine]:
        """Feed one query by itself, before it is at work with the others."""
        kept = self._runs, self._live, self._failed, self._broken
        self._runs, self._live, self._failed, self._broken = Runs(self.terms), {}, [], []
        self.add(query)
        try:
            yield self
        finally:
            self._runs, self._live, self._failed, self._broken = kept

    def forget(self, query: LiveQuery) -> None:
        """Let it give up its partial matches and go on."""
        query.run.forget(microseconds_now())
        query.watch = query.watch.budget.watch()
        query.saved = -1

    def saved(self, query: LiveQuery) -> bytes:
        """Its state after the last entry."""
        return save(query.run, self.terms)

    def restore(self, query: LiveQuery, state: bytes) -> None:
        """Let a query that is not at work yet go on from a state. Raises SnapshotError, KbError."""
        query.run = query.front.resume(state, query.run, self.terms, self._kb)

    # --- entries ------------------------------------------------------------------------------------

    def one_by_one(self, stream: str) -> bool:
        """Whether how entries are put together could be seen: results that feed streams are put in order of time entry
        by entry."""
        return any(q.one_by_one for q in self.readers(stream))

    def unpack(self, blobs: Sequence[bytes]) -> EventBatch:
        """Events as the log has them."""
        return unpack_events(blobs, self.terms)

    def push(self, stream: str, batch: EventBatch) -> list[tuple[str, bytes]]:
        """Events of a stream, in order of arrival; the events that its queries make of them for other streams."""
        return self._take(self._runs.push(stream, batch))

    def punctuate(self, stream: str, time: int) -> list[tuple[str, bytes]]:
        """No event of `stream` before `time` (µs) will come."""
        return self._take(self._runs.punctuate(stream, time))

    def feed(self, query: LiveQuery, entry: Entry, events: EventBatch) -> list[tuple[str, bytes]]:
        """Hand one entry, whose events these are, to a query that is alone; what `push` and `punctuate` answer.

        Raises UnworkableError where the query cannot take it.
        """
        try:
            stream = entry.stream
            made = self.push(stream, events) if entry.count else self.punctuate(stream, entry.time)
        except Exception as error:
            LOG.exception("query %s cannot work", query.name, extra={"query": query.name})
            raise UnworkableError(query.name, entry, reason_of(error)) from error
        if query in self._broken:
            raise UnworkableError(query.name, entry, query.error)
        return made

    def collected(self, events: Iterable[tuple[str, bytes]] = ()) -> Emission:
        """All matches found since the last call."""
        failed, broken = tuple(self._failed), tuple(self._broken)
        self._failed, self._broken = [], []
        every = (*self._live.values(), *failed, *broken)  # what these have found before is found
        found = tuple(f for query in every if (f := self._packed(query)) is not None)
        self.terms.collect_if_due()
        return Emission(found, tuple(events), failed, broken)

    def _packed(self, query: LiveQuery) -> Found | None:
        batches, query.batches = query.batches, []
        if not batches:
            return None
        first = query.count - sum(len(batch) for batch in batches) + 1
        return Found(query.name, first, query.front.packed(query.shape, batches, query.heading, self._scope))

    def _take(self, outcomes: Sequence[Outcome]) -> list[tuple[str, bytes]]:
        made: list[tuple[int, str, Any]] = []
        for outcome in outcomes:
            query = self._live[outcome.run]
            if outcome.error is not None:
                self._fail(query, outcome.error)
                continue
            for batch in outcome.matches:
                self._found(query, batch, made)
        return self._results(made)

    def _found(self, query: LiveQuery, batch: Any, made: list[tuple[int, str, Any]]) -> None:
        known = min(len(batch), max(0, query.stored - query.count))  # stored before a restart
        query.count += len(batch)
        if known == len(batch):
            return
        if known:
            batch = batch.take(np.arange(known, len(batch)))
        query.batches.append(batch)
        if query.shape.feeds is not None:
            matches = (query.shape.match(batch, i) for i in range(len(batch)))
            made += [(match.time, query.shape.feeds, match) for match in matches]

    def _results(self, made: list[tuple[int, str, Any]]) -> list[tuple[str, bytes]]:
        """Graphs as events of the streams that they feed, in order of time."""
        by_stream: dict[str, list[tuple[int, Any]]] = {}
        for time, stream, match in sorted(made, key=lambda each: each[0]):
            by_stream.setdefault(stream, []).append((time, match.event))
        return [
            (stream, pack_events(encode_events(events, self.terms), self.terms)) for stream, events in by_stream.items()
        ]

    def _fail(self, query: LiveQuery, error: Exception) -> None:
        query.error = reason_of(error)
        self.remove(query)
        if isinstance(error, KbError):
            LOG.error("query %s has failed: %s", query.name, error, extra={"query": query.name})
            self._failed.append(query)
        else:  # it is about an event: the query goes on without it
            LOG.error("query %s cannot work: %s", query.name, error, exc_info=error, extra={"query": query.name})
            self._broken.append(query)
