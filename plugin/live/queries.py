"""Continuous queries: how they come, pause and go."""

from __future__ import annotations

import re
import secrets
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field
from functools import partial
from typing import Any, Final

from oxiseq.api.standing import StandingQuery
from oxiseq.engine.errors import KbError, OxiseqError
from oxiseq.engine.events.faults import Faults
from oxiseq.engine.omissions import NO_OMISSIONS, Omissions
from oxiseq.engine.run.resets import Resets
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.grammar.languages import STANDING, USUAL, AnyQuery
from oxiseq.grammar.records import dataclass
from oxiseq.journal import (
    Checkpoint,
    ConflictError,
    FullError,
    Journal,
    JournalError,
    QuarantineCount,
    QueryRecord,
    Retention,
)
from oxiseq.languages.registry import language_named
from oxiseq.languages.result_streams import StreamUse, refuse_own_results
from oxiseq.live.engine import Engine
from oxiseq.live.live_query import Budget, Late, LiveQuery, Seen
from oxiseq.live.metrics import Metrics
from oxiseq.live.outbox import quarantined
from oxiseq.live.reading import UnworkableError, reason_of
from oxiseq.live.rebuilding import Mender, Rebuilder
from oxiseq.live.settings import BoundError, LiveSettings, options_of, stored_options
from oxiseq.live.standing import StandingQueries
from oxiseq.live.streams import Streams
from oxiseq.live.topics import Topics
from oxiseq.live.worker import LOG, Worker
from oxiseq.options import Options
from oxiseq.options.query_text import known_text
from oxiseq.rights import EVERYTHING, Rights

NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._~-]{0,99}")
"""What a query may be called."""
_PATIENCE: Final = 0.25
"""Seconds for which who looks at counters waits for the running turn."""


@dataclass(frozen=True, slots=True)
class QueryStatus:
    """A registered query and, where it is at work, its counters."""

    record: QueryRecord
    reads: tuple[str, ...] = ()
    feeds: str | None = None
    variables: tuple[str, ...] = ()
    events: int = 0
    late: int = 0
    lag: int | None = None
    state: Mapping[str, int] | None = None
    error: str = ""
    budget: Budget = field(default_factory=Budget)
    resets: Resets = field(default_factory=Resets)
    stalled: str = ""
    """Why it is not at work though it is registered as running."""
    quarantined: QuarantineCount = field(default_factory=QuarantineCount)
    faults: Faults = field(default_factory=Faults)
    omitted: Omissions = NO_OMISSIONS
    standing: StandingQuery | None = None
    """Of a query over the store that is at work."""
    rows: int = 0
    """Of its answer."""
    options: Options = field(default_factory=Options)
    """The options of one that reads streams."""

    @property
    def doing(self) -> str:
        """Its state as it is shown: `stalled`, or that of the record."""
        return "stalled" if self.stalled else self.record.state


@dataclass(frozen=True, slots=True)
class _Facts:
    """What is known of a query without its state."""

    reads: tuple[str, ...]
    feeds: str | None
    variables: tuple[str, ...]
    asks: tuple[str, ...] = ()


def _options(record: QueryRecord) -> Options:
    """The options of a query; None where they are no longer accepted, and the query has failed for it."""
    try:
        return options_of(record.language, record.options)
    except OxiseqError:
        return Options()


def random_name() -> str:
    """Of a query that was given none."""
    return f"q{secrets.token_hex(4)}"


class Queries:
    """Register, list, pause, resume, replace, delete. Safe for many threads."""

    def __init__(
        self,
        journal: Journal,
        engine: Engine,
        engine_lock: threading.RLock,
        worker: Worker,
        streams: Streams,
        topics: Topics,
        settings: LiveSettings,
        metrics: Metrics,
        standing: StandingQueries,
        learn: Callable[[Iterable[str]], None] | None = None,
    ) -> None:
        self._journal, self._engine, self._engine_lock = journal, engine, engine_lock
        self._worker, self._streams, self._topics, self._settings = worker, streams, topics, settings
        self._learn, self._metrics, self._standing = learn, metrics, standing
        self._rebuilder = Rebuilder(journal, engine, engine_lock, self._compiled)
        """Has a KB elsewhere answer what a query is going to ask."""
        self._known: dict[str, _Facts] = {}
        worker.bring_back = self._bring_back
        self.on_deleted: Callable[[str], None] = lambda name: None
        """Called with the name of a query that was deleted."""
        self.on_registered: Callable[[str], None] = lambda name: None
        """Called with the name of a query that is registered, before it has a match."""

    def register(
        self,
        name: str | None,
        text: str,
        language: str = USUAL,
        options: Mapping[str, Any] | None = None,
        *,
        replace: bool = False,
        rights: Rights = EVERYTHING,
    ) -> QueryStatus:
        """A query that sees what comes from now on; its streams are made where they are missing.

        options: those that a query of the language has, as JSON values (`oxiseq.options`). With `replace` a query of
        this name goes; ids of matches continue. `rights`: those of its owner, on what it reads and feeds. Raises
        QueryError, DeniedError, ConflictError, BoundError, KbError, OxiseqError.
        """
        chosen = name if name is not None else random_name()
        if not NAME.fullmatch(chosen):
            raise OxiseqError(f"{chosen!r} is no name for a query: letters, digits and . _ ~ -, at most 100")
        given = dict(options or {})
        if language == STANDING:
            rights.demand_reading((), kb=True)
            return self._register_standing(chosen, text, given, replace)
        spoken = language_named(language)
        spoken.prepare()
        streams = self._readable(rights) if spoken.reads_any else ()
        given = stored_options(language, given, streams)  # one that names no stream reads those, also after a restart
        query = known_text(text, language).algebra
        if self._learn is not None:  # without locks: it may take long
            self._learn(self._engine.planned(chosen, query, given, terms=TermDictionary()).run.kb_texts)
        with self._worker.between_turns() as at_once:
            made = self._drafted(chosen, query, given, rights, at_once=at_once)
            if at_once:
                self._worker.flush()
            with self._worker.names:
                self._enter(made, text, language, given, replace=replace)
                self._know(made)
            self._worker.change(partial(self._take_up, chosen, made if at_once else None), at_once=at_once)
            self.on_registered(chosen)
        LOG.info("query %s registered", chosen, extra={"query": chosen})
        return self._status(self._journal.queries.get(chosen), {})  # it was looked at when it was put to work

    def _drafted(
        self, name: str, query: AnyQuery, options: Mapping[str, Any], rights: Rights, *, at_once: bool
    ) -> LiveQuery:
        """The query, planned once: what is going to be at work where that begins at once, else a draft in terms of its
        own, for which no turn is waited for. Raises QueryError, BudgetError, DeniedError."""
        if at_once:
            with self._engine_lock:
                made = self._engine.planned(name, query, options)
        else:
            made = self._engine.planned(name, query, options, terms=TermDictionary())
        rights.demand_reading(made.shape.reads, kb=bool(made.run.kb_texts))
        if made.shape.feeds is not None:
            rights.demand("push", "stream", made.shape.feeds)
        return made

    def _enter(self, draft: LiveQuery, text: str, language: str, options: Mapping[str, Any], *, replace: bool) -> None:
        """Into the journal, with names held; the earlier one finds nothing any more. Raises ConflictError, BoundError,
        QueryError, FullError."""
        name = draft.name
        known = self._journal.queries.find(name) is not None
        if known and not replace:
            raise ConflictError(f"there is a query {name!r} already")
        if not known and self._journal.queries.count() >= self._settings.queries:
            raise BoundError(f"there are {self._settings.queries} queries, the limit (--max-queries of `oxiseq serve`)")
        self._refuse_own_results(draft)
        for iri in dict.fromkeys((*draft.shape.reads, *filter(None, [draft.shape.feeds]))):
            self._streams.create(iri)
        if self._standing.query(name) is not None:
            self.delete(name)
        self._journal.queries.register(
            name,
            text,
            language,
            options=options,
            keep=Retention(count=self._settings.matches),
            streams=draft.shape.reads,
            replace=replace,
        )
        self._worker.retire(name)
        if draft.shape.feeds is not None:
            self._worker.announced[name] = draft.shape.feeds

    def _take_up(self, name: str, made: LiveQuery | None = None) -> None:
        """Between two turns: what has been registered under this name is at work, and nothing else. `made`: it, where
        it is planned already."""
        self._worker.announced.pop(name, None)
        self._worker.drop(name)
        record = self._journal.queries.find(name)
        if record is not None:
            try:
                self._restore(record, made=made)
            except JournalError as error:
                LOG.warning("query %s tries again: %s", name, error, extra={"query": name})
                self._worker.lose(name)

    def _readable(self, rights: Rights) -> list[str]:
        """The streams that there are, as far as they may be read."""
        return [record.iri for record in self._streams.all() if rights.may("read", "stream", record.iri)]

    def _register_standing(self, name: str, text: str, options: Mapping[str, Any], replace: bool) -> QueryStatus:
        """A query over the store; one that reads streams makes room for it."""
        if replace and (before := self._journal.queries.find(name)) is not None and before.language != STANDING:
            self._standing.check(text)
            self.delete(name)
        self._standing.register(name, text, options, replace=replace)
        self.on_registered(name)
        return self.get(name)

    def _stands(self, name: str) -> bool:
        """Whether a query is over the store. Raises UnknownError."""
        return self._journal.queries.get(name).language == STANDING

    @property
    def kb_texts(self) -> set[str]:
        """What all queries, paused ones too, ask the knowledge base."""
        return {text for facts in tuple(self._known.values()) for text in facts.asks}

    def sends(self, name: str) -> tuple[str, ...]:
        """A query's queries to the knowledge base. Raises UnknownError."""
        if self._stands(name):
            standing = self._standing.query(name)
            return () if standing is None else (standing.status["asks"],)
        return self._known[name].asks if name in self._known else ()

    def pause(self, name: str) -> QueryStatus:
        """It sees nothing until it is resumed; then it sees what has come meanwhile. Raises UnknownError."""
        if self._stands(name):
            self._standing.pause(name)
            return self.get(name)
        with self._worker.between_turns() as at_once:
            if at_once:
                self._worker.flush()
            self._journal.queries.set_state(name, "paused")
            self._worker.change(partial(self._rest, name), at_once=at_once)
        return self.get(name)

    def _rest(self, name: str) -> None:
        """Between two turns: it sees nothing for now."""
        self._worker.flush()
        if (query := self._worker.find(name)) is not None:
            if query not in self._worker.joining:
                self._worker.checkpointer.save(query)
            self._worker.remove(query)
        self._worker.found_again(name)

    def resume(self, name: str) -> QueryStatus:
        """Go on after a pause or a failure. Raises UnknownError; FullError, and then it pauses."""
        if self._stands(name):
            self._standing.resume(name)
            return self.get(name)
        with self._worker.between_turns() as at_once:
            if at_once:
                self._worker.flush()
            self._journal.queries.set_state(name, "running")
            self._worker.change(partial(self._go_on, name), at_once=at_once)
        return self.get(name)

    def _go_on(self, name: str) -> None:
        """Between two turns: it sees what comes, and what has come meanwhile."""
        record = self._journal.queries.find(name)
        if record is None or record.state != "running":
            return
        if self._worker.stalled(name):
            self._worker.lose(name)
        elif self._worker.find(name) is None:
            try:
                self._restore(record)
            except FullError:
                self._journal.queries.set_state(name, "paused")
                raise

    def delete(self, name: str) -> None:
        """Forget it and its matches. Raises UnknownError."""
        if self._stands(name):
            self._standing.delete(name)
            return
        with self._worker.between_turns() as at_once:
            with self._worker.names:
                self._journal.queries.delete(name)
                self._worker.retire(name)
                self._worker.announced.pop(name, None)
            self.on_deleted(name)
            self._worker.change(partial(self._worker.drop, name), at_once=at_once)
        self._known.pop(name, None)
        self._topics.close(name, "deleted")
        LOG.info("query %s deleted", name, extra={"query": name})

    def get(self, name: str) -> QueryStatus:
        """Raises UnknownError."""
        return self._status(self._journal.queries.get(name))

    def waiting(self, name: str) -> tuple[int, ...] | None:
        """Of each edge of a SPAseq query's automaton, how many groups wait there; None: no such query is at work."""
        query = self._worker.find(name)
        return None if query is None else self._looked_at((query,))[query].waiting

    def late(self, name: str, since: int) -> list[Late]:
        """The late events behind the one of this number that are kept; none of a query that is not at work."""
        query = self._worker.find(name)
        if query is None:
            self.get(name)
            return []
        self._looked_at((query,))
        behind = since if since <= query.late_count else 0  # numbers begin again with the server
        return [each for each in tuple(query.late) if each.number > behind]

    def looked(self) -> dict[str, Seen]:
        """The counters of all that are at work, by name."""
        return {query.name: seen for query, seen in self._looked_at(self._worker.at_work).items()}

    def _looked_at(self, queries: Sequence[LiveQuery]) -> dict[LiveQuery, Seen]:
        """Counters of now; where a turn is running for long, those of the last look."""
        if not self._engine_lock.acquire(timeout=_PATIENCE):
            return {query: query.seen for query in queries}
        try:
            return {query: self._engine.look(query) for query in queries}
        finally:
            self._engine_lock.release()

    def all(self) -> list[QueryStatus]:
        """In the order in which their names came first."""
        seen = self._looked_at(self._worker.at_work)
        return [self._status(record, seen) for record in self._journal.queries.all()]

    def restore(self) -> int:
        """At the start: restore what was registered; the position to read the log from."""
        head = self._journal.log.position()
        for record in self._journal.queries.all():
            if record.language == STANDING:
                self._standing.restore(record)
                continue
            try:
                self._restore(record, decided=head)  # matches of entries up to the last may have been emitted
            except (JournalError, OSError, MemoryError) as error:
                LOG.warning("query %s tries again: %s", record.name, error, extra={"query": record.name})
                self._worker.lose(record.name)
        return min((q.position for q in self._worker.joining), default=self._journal.log.position())

    def _restore(self, record: QueryRecord, decided: int | None = None, made: LiveQuery | None = None) -> None:
        try:
            query = self._compiled(record, made)
            self._refuse_own_results(query)
            self._know(query)
            if query.shape.feeds is not None:
                self._streams.create(query.shape.feeds)  # it may have been deleted while nobody fed it
            if record.state == "running":
                self._begin_mended(query, record, decided)
        except (JournalError, OSError, MemoryError):  # not its fault: it may be tried again
            raise
        except Exception as error:
            LOG.exception("query %s cannot be restored", record.name, extra={"query": record.name})
            self._journal.queries.set_state(record.name, "failed", reason_of(error))

    def _refuse_own_results(self, query: LiveQuery) -> None:
        """Raises QueryError where its results reach it, also through queries that pause; those that have failed are
        looked at when they are resumed."""
        if query.shape.feeds is None:
            return
        failed = {record.name for record in self._journal.queries.all() if record.state == "failed"}
        refuse_own_results(
            StreamUse.of(query.name, query.shape),
            (
                StreamUse(name, facts.reads, facts.feeds)
                for name, facts in self._known.items()
                if name != query.name and name not in failed
            ),
        )

    def _bring_back(self, name: str) -> None:
        """A query that was at work begins again from its checkpoint. Raises JournalError: to be tried again."""
        record = self._journal.queries.find(name)
        if record is not None and record.state == "running" and self._worker.find(name) is None:
            LOG.warning("query %s is restored from its checkpoint", name, extra={"query": name})
            self._restore(record, decided=self._journal.log.position())

    def _begin_mended(self, query: LiveQuery, record: QueryRecord, decided: int | None) -> None:
        """`_begin`; where an entry cannot be processed, the query skips it, and continues."""
        while True:
            try:
                self._begin(query, record, decided)
                return
            except UnworkableError as error:
                self._mend(record, error)
                record = self._journal.queries.get(record.name)
                query = self._compiled(record)

    def _compiled(self, record: QueryRecord, made: LiveQuery | None = None) -> LiveQuery:
        with self._engine_lock:
            if made is None:
                algebra = known_text(record.text, record.language).algebra
                query = self._engine.planned(record.name, algebra, record.options)
            else:
                query = made
            if record.passed:
                query.run.take_over(record.passed)
        query.passed_over = self._journal.quarantine.positions(record.name)
        return query

    def _mend(self, record: QueryRecord, error: UnworkableError) -> None:
        checkpoint = self._journal.checkpoints.latest(record.name) or Checkpoint(record.name, b"")
        mender = Mender(self._journal, self._engine, self._engine_lock, lambda: self._compiled(record))
        blamed = mender.blamed(error.entry, checkpoint.state, checkpoint.position)
        self._worker.flush()
        if blamed is not None:
            LOG.error("%s: it continues without entry %d", error, blamed.position, extra={"query": record.name})
            self._journal.quarantine.add([quarantined(record.name, blamed, error.reason)])
            self._metrics.quarantined.labels(record.name).inc()
            return
        LOG.error("%s: it restarts there with empty state", error, extra={"query": record.name})
        last = self._journal.queries.get(record.name).next - 1
        self._journal.checkpoints.commit(
            Checkpoint(record.name, b"", checkpoint.offsets, {record.name: last}, position=error.entry.position - 1)
        )
        self._journal.queries.set_rebuilt(
            record.name,
            f"its partial matches are lost at entry {error.entry.position} "
            f"of the log, where it restarted: {error.reason}",
        )

    def _know(self, query: LiveQuery) -> None:
        shape, asks = query.shape, query.run.kb_texts
        self._known[query.name] = _Facts(shape.reads, shape.feeds, shape.told, asks)

    def _begin(self, query: LiveQuery, record: QueryRecord, decided: int | None = None) -> None:
        """From its checkpoint on; matches that are stored already are skipped. `decided` as in LiveQuery; without
        it, all matches that have been emitted are stored."""
        known = self._journal.checkpoints.latest(query.name)
        checkpoint = known or Checkpoint(query.name, b"")
        if checkpoint.state:
            try:
                with self._engine_lock:
                    self._engine.restore(query, checkpoint.state)
            except KbError:
                raise
            except Exception as error:  # a damaged one may lead to any
                query, checkpoint = self._rebuilder.rebuilt(record, checkpoint, reason_of(error))
                record = self._journal.queries.get(record.name)
        if known is not None:  # the state of a query that has seen nothing is none
            query.saved = checkpoint.position
        query.count, query.stored = checkpoint.matches.get(query.name, 0), record.next - 1
        query.position = query.decided = checkpoint.position
        if decided is not None:
            query.decided = decided
        elif query.stored > query.count:
            query.decided = self._journal.log.position()
        self._know(query)
        self._topics.open(query.name, query.stored)
        self._worker.add(query)

    def _status(self, record: QueryRecord, looked: Mapping[LiveQuery, Seen] | None = None) -> QueryStatus:
        if record.language == STANDING:
            standing, columns = self._standing.query(record.name), tuple(record.options["columns"])
            return QueryStatus(
                record, variables=columns, error=record.error, standing=standing, rows=self._standing.size(record.name)
            )
        query = self._worker.find(record.name)
        facts = self._known.get(record.name, _Facts((), None, ()))
        options = _options(record)
        budget = self._settings.budget.of(options)
        stalled = self._worker.stalled(record.name) if record.state == "running" else ""
        quarantined = self._journal.quarantine.count(record.name)
        if query is None:
            return QueryStatus(
                record,
                facts.reads,
                facts.feeds,
                facts.variables,
                error=record.error,
                budget=budget,
                stalled=stalled,
                quarantined=quarantined,
                omitted=Omissions.restored(record.omitted),
                options=options,
            )
        seen = self._looked_at((query,))[query] if looked is None else looked.get(query, query.seen)
        return QueryStatus(
            record,
            facts.reads,
            facts.feeds,
            facts.variables,
            seen.events,
            seen.late,
            self._worker.waiting,
            seen.state,
            query.error,
            budget,
            seen.resets,
            stalled,
            quarantined,
            seen.faults,
            seen.omitted,
            options=options,
        )
