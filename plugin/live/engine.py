"""The queries at work: entries of the log go in, packed matches come out. One thread at a time."""

from __future__ import annotations

import logging
import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
from pyoxigraph import Triple

from oxiseq.engine.bounds import SERVED, InstantBounds
from oxiseq.engine.errors import KbError, SnapshotError
from oxiseq.engine.events.batch import EventBatch
from oxiseq.engine.events.encode import encode_events
from oxiseq.engine.extras import needed
from oxiseq.engine.kb import KnowledgeBase, expect
from oxiseq.engine.omissions import InstantError
from oxiseq.engine.order.watermarks import AFTER_ALL, BEFORE_ALL
from oxiseq.engine.run.query import QueryRun
from oxiseq.engine.sharing.dispatching import Outcome
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.grammar import load
from oxiseq.grammar.languages import AnyQuery
from oxiseq.grammar.records import dataclass
from oxiseq.journal import Entry, Found, pack_block, pack_events, unpack_events
from oxiseq.journal.journal import microseconds as microseconds_now
from oxiseq.languages.registry import language_for
from oxiseq.live.live_query import AtWork, Budget, LiveQuery, Readers, Seen
from oxiseq.live.reading import UnworkableError, reason_of
from oxiseq.live.settings import options_of
from oxiseq.matches.match import result_event
from oxiseq.matches.results import ResultQueue

if TYPE_CHECKING:
    from oxiseq.engine.snapshot import saving
else:
    saving = needed("oxiseq.engine.snapshot.saving")

LOG = logging.getLogger("oxiseq.live")


@dataclass(frozen=True, slots=True)
class Emission:
    """The results of entries: matches to store and emit, events of other streams made of them, and up to when (µs)
    these streams are complete now."""

    found: tuple[Found, ...] = ()
    events: tuple[tuple[str, bytes], ...] = ()
    complete: tuple[tuple[str, int], ...] = ()
    failed: tuple[LiveQuery, ...] = ()
    broken: tuple[LiveQuery, ...] = ()
    """Queries that an entry cannot be processed for: they are no longer at work."""
    omitted: tuple[tuple[str, int], ...] = ()
    """Names of queries for which instants were left out (engine/omissions.py), and how many."""
    finders: tuple[LiveQuery, ...] = ()
    """Whose each of `found` is."""

    def __bool__(self) -> bool:
        return bool(self.found or self.events or self.complete or self.failed or self.broken)

    def living(self) -> Emission:
        """Without what is of queries that have been deleted or replaced meanwhile."""
        if not any(query.retired for query in (*self.finders, *self.failed, *self.broken)):
            return self
        kept = [(found, query) for found, query in zip(self.found, self.finders, strict=True) if not query.retired]
        return Emission(
            tuple(found for found, _ in kept),
            self.events,
            self.complete,
            tuple(query for query in self.failed if not query.retired),
            tuple(query for query in self.broken if not query.retired),
            self.omitted,
            tuple(query for _, query in kept),
        )


class Engine:
    """Compiled queries, fed together. Its dictionary is its own. `budget` is for queries that have none; `bounds`: of
    each within an instant; `complete_in_log`: up to when (µs) the log says that a stream is complete, AFTER_ALL where
    it has all results and does not say so."""

    def __init__(
        self,
        kb: KnowledgeBase,
        budget: Budget,
        bounds: InstantBounds = SERVED,
        complete_in_log: Callable[[str], int] = lambda stream: BEFORE_ALL,
    ) -> None:
        self.terms = TermDictionary()
        self.terms.bounds = bounds
        self._kb, self._budget = kb, budget
        self._at_work = AtWork(self.terms)
        self._results = ResultQueue[str, tuple[Triple, ...]]()
        """By the names of queries."""
        self._complete_in_log = complete_in_log
        self._complete: dict[str, int] = {}
        """Up to when streams are complete that queries write, as far as the log knows or is to be told."""
        self._scope = f"r{secrets.token_hex(4)}x"

    # --- queries ------------------------------------------------------------------------------------

    def compile(self, name: str, text: str, language: str, options: Mapping[str, Any]) -> LiveQuery:
        """A query that has seen nothing yet. Raises QueryError, BudgetError, OxiseqError."""
        return self.planned(name, load(text, language), options)

    def planned(
        self,
        name: str,
        query: AnyQuery,
        options: Mapping[str, Any],
        terms: TermDictionary | None = None,
    ) -> LiveQuery:
        """A query that has seen nothing yet; `terms`: for a draft, which never is at work, so that nobody need wait.
        Raises QueryError, BudgetError, OxiseqError."""
        spoken = language_for(query)
        given = options_of(spoken.name, options)
        run, shape = spoken.planned(query, self.terms if terms is None else terms, self._kb, given)
        budget = self._budget.of(given)
        budget.check(run)
        return LiveQuery(name, spoken, run, shape, given.origin, watch=budget.watch())

    def add(self, query: LiveQuery) -> None:
        """Entries go to it from now on."""
        expect(self._kb, query.run.kb_texts)
        self._at_work.add(query)
        if query.shape.feeds is not None and not query.count:
            self._results.forget(query.name)

    def remove(self, query: LiveQuery) -> None:
        """They do no longer."""
        self._at_work.remove(query)

    @property
    def queries(self) -> tuple[LiveQuery, ...]:
        """Those at work."""
        return self._at_work.queries

    def __contains__(self, query: LiveQuery) -> bool:
        return query in self._at_work

    @property
    def reads_kb(self) -> bool:
        """Whether what is found depends on more than the log."""
        return bool(self.kb_readers)

    @property
    def kb_readers(self) -> tuple[LiveQuery, ...]:
        """Those at work that ask the knowledge base."""
        return self._at_work.kb_readers

    @property
    def streams(self) -> set[str]:
        """Those that queries at work read."""
        return self._at_work.streams

    def readers(self, stream: str) -> Readers:
        """Those that read a stream."""
        return self._at_work.readers(stream)

    def stepped(self) -> list[LiveQuery]:
        """Those whose state may be another than at the last call."""
        return self._at_work.stepped()

    def tells_steps(self, query: LiveQuery) -> bool:
        """Whether `stepped` tells of it."""
        return self._at_work.runs.tells_steps(query.run)

    def sleeps(self, query: LiveQuery) -> bool:
        """Whether neither time nor what it has not got yet can have it find anything."""
        return self._at_work.runs.sleeps(query.run)

    def catch_up(self, query: LiveQuery) -> bool:
        """Hand it what has not concerned it so far, so that its state and its counters are current; whether it is
        at work. With the store's lock held, so that no turn is running."""
        self._take(self._at_work.runs.catch_up(query.run))
        return query in self._at_work

    def look(self, query: LiveQuery) -> Seen:
        """Its counters of now. With the store's lock held."""
        self.catch_up(query)
        run = query.run
        waiting = run.waiting if isinstance(run, QueryRun) else None
        query.seen = Seen(run.events, run.late, run.faults, run.omitted, run.state, run.resets, waiting)
        return query.seen

    def keep_answers(self) -> None:
        """The KB is about to change: instants up to the newest one so far keep the present answers. Raises KbError."""
        for query in self.kb_readers:
            if self.catch_up(query) and self._at_work.runs.keep_answers(query.run):
                query.saved = -1  # the answers are part of its state

    def clear(self) -> tuple[LiveQuery, ...]:
        """Release all queries, whatever state they are in; those."""
        gone, self._at_work = self._at_work, AtWork(self.terms)
        self._results = ResultQueue()
        self._complete = {}
        return (*gone.queries, *gone.failed, *gone.broken)

    @contextmanager
    def alone(self, query: LiveQuery) -> Iterator[Engine]:
        """Feed one query by itself, before it is at work with the others."""
        kept, self._at_work = self._at_work, AtWork(self.terms)
        self.add(query)
        try:
            yield self
        finally:
            self._at_work = kept

    def forget(self, query: LiveQuery) -> None:
        """Let it give up its partial matches and continue; it has caught up."""
        self._at_work.runs.forget(query.run, microseconds_now())
        query.watch = query.watch.budget.watch()
        query.saved = -1

    def saved(self, query: LiveQuery) -> bytes:
        """Its state after the last entry. Raises SnapshotError if it turns out that it cannot work."""
        if query in self and not self.catch_up(query):
            raise SnapshotError(f"the query {query.name} cannot work: {query.error}")
        return saving.save(query.run, self.terms)

    def restore(self, query: LiveQuery, state: bytes) -> None:
        """Let a query that is not at work yet continue from a state. Raises SnapshotError, KbError."""
        query.run = query.language.resume(state, query.run, self.terms, self._kb)
        query.omitted = query.run.omitted.count
        self._results.forget(query.name)

    # --- entries ------------------------------------------------------------------------------------

    def unpack(self, blobs: Sequence[bytes]) -> EventBatch:
        """Events as the log has them."""
        return unpack_events(blobs, self.terms)

    def push(self, stream: str, batch: EventBatch) -> None:
        """Events of a stream, in order of arrival."""
        if len(batch):
            for query in self._at_work.writers:
                query.progress.came(stream, int(batch.time.max()))
        self._take(self._at_work.runs.push(stream, batch), stream)

    def punctuate(self, stream: str, time: int) -> None:
        """No event of `stream` before `time` (µs) will come."""
        for query in self._at_work.writers:
            query.progress.told(stream, time)
        self._take(self._at_work.runs.punctuate(stream, time))

    def feed(self, query: LiveQuery, entry: Entry, events: EventBatch) -> None:
        """Hand one entry, whose events these are, to a query that is alone.

        Raises UnworkableError where the query cannot take it.
        """
        try:
            stream = entry.stream
            if entry.count:
                self.push(stream, events)
            else:
                self.punctuate(stream, entry.time)
            self._take(self._at_work.runs.catch_up(query.run))  # an error is raised at its own entry
        except Exception as error:
            LOG.exception("query %s cannot work", query.name, extra={"query": query.name})
            raise UnworkableError(query.name, entry, reason_of(error)) from error
        if query in self._at_work.broken:
            raise UnworkableError(query.name, entry, query.error)

    def collected(self, away: Iterable[str] | None = None) -> Emission:
        """All matches found since the last call, and the events that are made of them as far as their streams are
        complete. `away`: the streams of queries that are not at work yet; None: nothing is written."""
        at_work = self._at_work
        failed, broken, with_matches = tuple(at_work.failed), tuple(at_work.broken), tuple(at_work.found)
        omitted = tuple(at_work.omitted.items())
        at_work.failed, at_work.broken, at_work.found, at_work.omitted = [], [], {}, {}
        packed = [(found, query) for query in with_matches if (found := self._packed(query)) is not None]
        events, complete = ((), ()) if away is None or broken else self._written(away)
        self.terms.collect_if_due()
        finders = tuple(query for _, query in packed)
        return Emission(tuple(found for found, _ in packed), events, complete, failed, broken, omitted, finders)

    @property
    def writes(self) -> bool:
        """Whether results go, or are to go, to streams."""
        return bool(self._at_work.writers) or bool(self._results)

    def forget_stream(self, stream: str) -> None:
        """A stream has been deleted: the log knows nothing of it any more."""
        self._complete.pop(stream, None)

    def sources(self, streams: Iterable[str]) -> tuple[str, ...]:
        """The streams on which all that is in these depends: of one that queries at work write, those that they
        read."""
        writers = [query for query in self._at_work.writers if query.shape.feeds is not None]
        found, left = dict[str, None](), list(streams)
        if not writers:
            return tuple(left)
        seen: set[str] = set()
        while left:
            stream = left.pop(0)
            if stream in seen:
                continue
            seen.add(stream)
            written = [iri for query in writers if query.shape.feeds == stream for iri in query.shape.reads]
            left += written
            if not written:
                found[stream] = None
        return tuple(found)

    def holds_results(self, query: LiveQuery) -> bool:
        """Whether results of a query wait for other queries that write its stream: they are not in the log."""
        return bool(self._results) and self._results.holds(query.name)

    def _written(self, away: Iterable[str]) -> tuple[tuple[tuple[str, bytes], ...], tuple[tuple[str, int], ...]]:
        """The results that may be written, as events of their streams, and up to when these are complete."""
        complete = dict.fromkeys(away, BEFORE_ALL)
        for query in self._at_work.writers:
            if (stream := query.shape.feeds) is not None:
                passed = query.progress.passed
                complete[stream] = min(passed, complete.get(stream, passed))
        events: dict[str, list[tuple[int, tuple[Triple, ...]]]] = {}
        while (result := self._results.next(complete)) is not None:
            events.setdefault(result[0], []).append(result[1:])
        later = {stream: time for stream, time in complete.items() if self._known(stream) < time < AFTER_ALL}
        told = {s: time for s, time in later.items() if s in events or self.readers(s).queries}
        self._complete |= told
        packed = [(s, pack_events(encode_events(each, self.terms), self.terms)) for s, each in events.items()]
        return tuple(packed), tuple(told.items())

    def _known(self, stream: str) -> int:
        """Up to when a stream is complete that queries write."""
        if stream not in self._complete:
            known = self._complete_in_log(stream)
            self._complete[stream] = known if known < AFTER_ALL else BEFORE_ALL
        return self._complete[stream]

    @property
    def upset(self) -> bool:
        """Whether queries have failed or broken and `collected` has not reported it."""
        return self._at_work.upset

    def _packed(self, query: LiveQuery) -> Found | None:
        batches, query.batches = query.batches, []
        if not batches:
            return None
        first = query.count - sum(len(batch) for batch in batches) + 1
        return Found(query.name, first, pack_block(query.shape.block(batches), self._scope))

    def _take(self, outcomes: Sequence[Outcome], stream: str = "") -> None:
        """What a step has led to; `stream`: the one that was pushed."""
        for outcome in outcomes:
            query = self._at_work.of(outcome.run)
            if outcome.late is not None:
                query.add_late(outcome.stream or stream, outcome.late, self.terms)
            error = outcome.error
            if error is not None and not isinstance(error, InstantError):
                self._fail(query, error)
                continue
            for batch in outcome.matches:
                self._found(query, batch)
            if error is not None:
                self._leave_out(query, error)

    def _found(self, query: LiveQuery, batch: Any) -> None:
        known = min(len(batch), max(0, query.stored - query.count))  # stored before a restart
        query.count += len(batch)
        if query.shape.feeds is not None:
            self._queue(query, query.shape.feeds, batch, known)
        if known == len(batch):
            return
        if known:
            batch = batch.take(np.arange(known, len(batch)))
        query.batches.append(batch)
        self._at_work.found[query] = None

    def _queue(self, query: LiveQuery, stream: str, batch: Any, known: int) -> None:
        """Matches as results for a stream. Of those stored before a restart, `known`, the log has the ones before the
        time up to which it says that the stream is complete."""
        block = query.shape.block([batch])
        written = self._complete_in_log(stream) if known else BEFORE_ALL
        for i in range(len(block)):
            match = block.match(i)
            if i >= known or match.at_us >= written:
                self._results.add(stream, match.at_us, query.name, result_event(match))

    def _leave_out(self, query: LiveQuery, error: InstantError) -> None:
        """Instants were left out for a query, which has what was found at the others; one too many stops it."""
        error.query = query.name
        new, query.omitted = query.run.omitted.count - query.omitted, query.run.omitted.count
        self._at_work.omitted[query.name] = self._at_work.omitted.get(query.name, 0) + new
        if error.final:
            self._fail(query, error)
        else:
            LOG.warning("%s (instants left out: %d more)", error, new, extra={"query": query.name})

    def _fail(self, query: LiveQuery, error: Exception) -> None:
        query.error = reason_of(error)
        self.remove(query)
        if isinstance(error, KbError | InstantError):
            LOG.error("query %s has failed: %s", query.name, error, extra={"query": query.name})
            self._at_work.failed.append(query)
        else:  # it is about an event: the query continues without it
            LOG.error("query %s cannot work: %s", query.name, error, exc_info=error, extra={"query": query.name})
            self._at_work.broken.append(query)
