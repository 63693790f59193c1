"""The standing queries over one store: changes taken in, one after the other, and passed on.

In the flow: `Store.listen` → queue → **Standings** → engine/standing → histories, callbacks.

Who changes the store only puts the change into the queue, with the store's lock held. A thread that lives as long as
the queue is not empty works it through; so does whoever wants to know what holds now. A query that is registered or
begun again begins with what the store holds while its lock is held, all changes in the queue having been taken in;
what is read of that is read after it has been let go. Queries that are asked are asked by threads of their own, with
no lock held. Locks are taken in this order: the store's, ours. Callbacks are called by a thread that does
nothing else and holds neither: who wants to know what holds may hold the store's lock.

Queries to the store for standing queries that are not followed, run beside everything else.

In the flow: `Standing.next_question` → a thread each, some at a time → an `Asker` → `Standing.answered`.

No lock is held while the store is queried: it answers as it was when it began, so updates need not wait, however long
that takes. Here the store is queried in this process and cannot be interrupted: who has waited for `most_seconds` waits
no more, and leaves the thread behind until the store is through. A server asks in processes, which it ends
(`oxiseq.sparql.processes`).
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Final, Protocol

from pyoxigraph import Store as RdfStore

from oxiseq.api.standing.query import MemoryStanding, StoreChange, Subscription
from oxiseq.changes import Anew, Changed, Listeners, Listening
from oxiseq.engine.errors import ArgumentValueError, KbError, QueryError
from oxiseq.engine.flow.delta import Ids
from oxiseq.engine.kernels.flow.arranging import arrange
from oxiseq.engine.kernels.flow.joining import join
from oxiseq.engine.standing import (
    Asker,
    Asking,
    Limits,
    Outcome,
    Question,
    Solutions,
    Standing,
    Upheld,
    asked,
    bare,
    check_time,
)
from oxiseq.engine.terms.texts import Term
from oxiseq.grammar.over_store import load_over_store
from oxiseq.warmup.first_run import announce

AT_ONCE: Final = 4
"""Questions; the others wait for their turn."""
_LOOK: Final = 0.25
"""Seconds between looks whether the answer is still wanted."""
LOG: Final = logging.getLogger("oxiseq.standing")


def in_process(store: Callable[[], RdfStore]) -> Asker:
    """Asks the present store."""

    def ask(question: Question) -> Solutions:
        found: list[Solutions | Exception] = []
        begun = time.monotonic()
        begin = partial(asked, store(), question)
        thread = threading.Thread(
            target=lambda: found.append(_outcome(begin)), name="oxiseq-standing-asks", daemon=True
        )
        thread.start()
        while thread.is_alive():
            thread.join(_LOOK)
            if thread.is_alive():
                check_time(question, begun)
        if not found:
            raise KbError("the store has failed at a query")
        if isinstance(found[0], Exception):
            raise found[0]
        return found[0]

    return ask


class Source(Protocol):
    """The source of questions and receiver of the answers; called without any lock."""

    def next_question(self) -> tuple[Asking, Question] | None:
        """A question that is not running yet; None if there is none, or if enough are running."""
        ...

    def answered(self, asking: Asking, found: Solutions | Exception) -> None:
        """What has come of it."""
        ...


class Questions:
    """Asked by some threads. asker: how."""

    def __init__(self, asker: Asker) -> None:
        self.asker = asker

    def ask(self, source: Source) -> None:
        """Begin to ask what is due; the rest follows."""
        while (found := source.next_question()) is not None:
            threading.Thread(
                target=self._work, args=(source, *found), name="oxiseq-standing-questions", daemon=True
            ).start()

    def _work(self, source: Source, asking: Asking, question: Question) -> None:
        while True:
            try:
                source.answered(asking, _outcome(partial(self.asker, question)))
            except Exception:
                LOG.exception("an answer could not be read")
            if (found := source.next_question()) is None:
                return
            asking, question = found


def _outcome(ask: Callable[[], Solutions]) -> Solutions | Exception:
    """The answer or the failure."""
    try:
        return ask()
    except Exception as error:
        return bare(error)


KEEP: Final = 10_000
"""Rows of changes that are kept of a query by default."""


class Standings:
    """store: the present store, None where it is elsewhere; store_lock: held while it changes; asker: how one elsewhere
    is asked."""

    def __init__(
        self,
        store: Callable[[], RdfStore] | None,
        store_lock: threading.RLock,
        listeners: Listeners,
        asker: Asker | None = None,
    ) -> None:
        self._store_lock, self._listeners = store_lock, listeners
        self._engine = Standing(store)
        self.present = store
        self._asker = in_process(store) if store is not None else asker
        assert self._asker is not None
        self._questions = Questions(self._asker)
        self._queries: dict[str, MemoryStanding | None] = {}
        """None: its first answer is not there yet."""
        self._of: dict[object, MemoryStanding] = {}
        self._asked_at: dict[Asking, int] = {}
        """Running questions; the time of the last change before each."""
        self.lock = threading.RLock()
        self.arrived = threading.Condition(self.lock)
        """Told when changes of answers have come, or a query has ended."""
        self._waiting: deque[tuple[Changed, int]] = deque()
        self._listening: Listening | None = None
        self._at = self._last = 0
        """When the last change was made that was taken in, that was made."""
        self._worker: threading.Thread | None = None
        self._starting = threading.Lock()
        self._deliveries: deque[tuple[Subscription, StoreChange]] = deque()
        self._deliverer: threading.Thread | None = None
        self._unnamed = 0

    # --- queries --------------------------------------------------------------------------------------

    @property
    def queries(self) -> tuple[MemoryStanding, ...]:
        """Those that have not been closed, in the order of their registration."""
        return tuple(query for query in [*self._queries.values()] if query is not None)

    def ask_by(self, way: Callable[[Asker], Asker] | None) -> None:
        """Lets `way` query the store elsewhere than in this process; None: in this process."""
        assert self._asker is not None
        self._questions.asker = self._asker if way is None else way(self._asker)

    def register(
        self, text: str, name: str | None = None, keep: int = KEEP, limits: Limits | None = None
    ) -> MemoryStanding:
        """Raises QueryError, LimitError, KbError, OxiseqError for a name that another has."""
        query = load_over_store(text)
        announce((arrange, join))
        with self._reserved(name) as own_name:
            with self.lock:
                try:
                    upheld = self._engine.planned(query, text, limits or Limits())
                except RecursionError:
                    raise QueryError("the query is nested too deeply", query.span, text, code="depth") from None
            with self._store_locked() as store_lock, self.lock:
                self._take_in_all()
                self._engine.add(upheld, store_lock.close)
            return self._first_answered(own_name, upheld, keep)

    @contextmanager
    def _reserved(self, name: str | None) -> Iterator[str]:
        """A name for a query that is to come, and changes listened to."""
        with self._store_lock, self.lock:
            if name is None:
                self._unnamed += 1
                name = f"standing-{self._unnamed}"
            if name in self._queries:
                raise ArgumentValueError(f"a query {name!r} over the store exists already")
            self._queries[name] = None
            if self._listening is None:
                self._listening = self._listeners.add(self._heard)
        try:
            yield name
        except BaseException:
            with self._store_lock, self.lock:
                del self._queries[name]
                self._listen_no_more()
            raise
        self.deliver()

    def _store_locked(self) -> ExitStack:
        """The store's lock, which may be let go before the block ends."""
        locked = ExitStack()
        locked.enter_context(self._store_lock)
        return locked

    def _first_answered(self, name: str, upheld: Upheld, keep: int) -> MemoryStanding:
        """Raises what its first question has raised."""
        self._questions.ask(self)
        with self.arrived:
            try:
                self.arrived.wait_for(lambda: upheld.asked or upheld.state != "asked")
                if upheld.error is not None:
                    raise upheld.error
                registered = MemoryStanding(self, name, upheld, keep)
            except BaseException:
                self._engine.remove(upheld)
                raise
            self._queries[name] = self._of[upheld] = registered
            return registered

    def remove(self, query: MemoryStanding) -> None:
        """End a query."""
        with self._store_lock, self.arrived:
            if query.closed:
                return
            query.end()
            del self._queries[query.name], self._of[query.upheld]
            self._engine.remove(query.upheld)
            self._listen_no_more()
            self.arrived.notify_all()

    def _listen_no_more(self) -> None:
        if not self._queries and self._listening is not None:
            self._listening.close()
            self._listening = None
            self._waiting.clear()

    def restart(self, upheld: Upheld) -> None:
        """Restart one."""
        with self._store_locked() as store_lock, self.lock:
            self._take_in_all()
            if upheld in self._of:
                self._tell(self._engine.anew(upheld, store_lock.close), _now())
        self.catch_up(upheld)

    # --- changes --------------------------------------------------------------------------------------

    def _heard(self, changed: Changed) -> None:
        """The store has changed; its lock is held."""
        self._last = max(_now(), self._last + 1)  # no two changes at one moment
        self._waiting.append((changed, self._last))
        with self._starting:
            if self._worker is None or not self._worker.is_alive():
                self._worker = threading.Thread(target=self._work, name="oxiseq-standing", daemon=True)
                self._worker.start()

    def _work(self) -> None:
        while True:
            try:
                self.catch_up()
            except Exception:
                LOG.exception("changes of the store could not be applied; queries restart at the next change")
            with self._starting:
                if not self._waiting:
                    self._worker = None
                    return

    def catch_up(self, upheld: Upheld | None = None) -> None:
        """Take in all changes made so far. Where the store is queried for what they change of a query, wait for
        that."""
        while not self._caught_up():
            with self._store_locked() as store_lock, self.lock:
                self._begin_anew(store_lock.close)
        self._questions.ask(self)
        if upheld is not None and upheld.asked < upheld.wanted:
            with self.arrived:
                wanted = upheld.wanted
                self.arrived.wait_for(
                    lambda: upheld.asked >= wanted or upheld.state != "asked" or upheld not in self._of
                )
        self.deliver()

    def _caught_up(self) -> bool:
        with self.lock:
            return self._take_in()

    def _take_in(self) -> bool:
        """What waits; with the lock held. False where queries are to restart: that needs the store's lock."""
        while self._waiting:
            changed, at = self._waiting[0]
            self._at = at
            if isinstance(changed, Anew):
                return False
            self._waiting.popleft()
            try:
                outcomes = self._engine.change(changed.removed, changed.added, changed.dropped, changed.created)
            except Exception:
                LOG.exception("a change could not be applied; all queries restart")
                self._waiting.appendleft((Anew("a change could not be applied"), at))
                return False
            self._tell(outcomes, at)
        return True

    def _begin_anew(self, pinned: Callable[[], object]) -> None:
        """Where that is needed to take in what waits; with both locks held, the store's until `pinned` is called."""
        if not self._take_in():
            self._waiting.clear()  # what has come since is in what the store holds now
            self._tell(self._engine.anew(pinned=pinned), self._at)

    def _take_in_all(self) -> None:
        """All that waits, with both locks held: the store is as the queries know it."""
        while not self._take_in():
            self._begin_anew(lambda: None)

    def next_question(self) -> tuple[Asking, Question] | None:
        """A question that is not running yet, if there is room for it."""
        with self.lock:
            asking = self._engine.next_question() if len(self._asked_at) < AT_ONCE else None
            if asking is None:
                return None
            question = self._engine.question(asking)
            self._asked_at[asking] = _now() if self.present is None else self._at
            return asking, question

    def answered(self, asking: Asking, found: Solutions | Exception) -> None:
        """The difference to the answer before is a change; its time is that of the change that made the query due."""
        with self.lock:
            at = self._asked_at.pop(asking)  # first: whatever becomes of the answer, there is room for another question
            self._tell(self._engine.answered(asking, found), at)
        self.deliver()

    def _tell(self, outcomes: Iterable[Outcome], at: int) -> None:
        """One whose change cannot be made fails, alone."""
        for outcome in outcomes:
            query = self._of.get(outcome.upheld)
            if query is None:  # it is being registered
                continue
            try:
                query.receive(outcome.told, at)
            except Exception as error:
                LOG.exception("query %s: a change could not be delivered", query.name)
                self._engine.fail(outcome.upheld, error)
                query.lose()
        self.arrived.notify_all()
        self._engine.terms.collect_if_due()

    # --- callbacks ------------------------------------------------------------------------------------

    def deliver_later(self, subscription: Subscription, change: StoreChange) -> None:
        """In the order of calls; with the lock held."""
        self._deliveries.append((subscription, change))

    def deliver(self) -> None:
        """Have those called back who wait for it, soon."""
        with self._starting:
            if self._deliveries and (self._deliverer is None or not self._deliverer.is_alive()):
                self._deliverer = threading.Thread(target=self._call_back, name="oxiseq-standing-calls", daemon=True)
                self._deliverer.start()

    def _call_back(self) -> None:
        while True:
            while self._deliveries:
                subscription, change = self._deliveries.popleft()
                subscription.tell(change)
            with self._starting:
                if not self._deliveries:
                    self._deliverer = None
                    return

    # --- terms ----------------------------------------------------------------------------------------

    def hold(self, rows: Ids) -> None:
        """Keep these terms as long as somebody holds the rows."""
        self._engine.terms.dictionary.hold(rows)

    def decoded(self, rows: Ids) -> list[tuple[Term | None, ...]]:
        """Rows of terms."""
        with self.lock:
            return self._engine.terms.decoded(rows)

    @property
    def records(self) -> dict[str, int]:
        """Quads held for all queries, rows held by their operators, rows of their answers."""
        with self.lock:
            return self._engine.records


def _now() -> int:
    return time.time_ns() // 1000
