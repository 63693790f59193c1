"""The queries that stand over one store: changes taken in, one after the other, and handed on.

Where it stands: `Store.listen` → queue → **Standings** → engine/standing → histories, callbacks.

Who changes the store only puts the change into the queue, with the store's lock held. A thread that lives as long as
the queue is not empty works it through; so does whoever wants to know what holds now. What asks the store is done with
its lock held, so that what it answers is what the last change in the queue has made. Locks are taken in this order: the
store's, ours. Callbacks are called by a thread that does nothing else and holds neither: who wants to know what holds
may hold the store's lock.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from typing import Final

from pyoxigraph import Store as RdfStore

from oxiseq.changes import Anew, Changed, Listeners, Listening
from oxiseq.engine.errors import OxiseqError
from oxiseq.engine.flow.delta import Ids
from oxiseq.engine.kernels.flow.arranging import arrange
from oxiseq.engine.kernels.flow.joining import join
from oxiseq.engine.standing import Limits, Outcome, Standing
from oxiseq.engine.terms.texts import Term
from oxiseq.first_run import announce
from oxiseq.grammar.over_store import load_over_store
from oxiseq.standing.change import StoreChange
from oxiseq.standing.query import StandingQuery, Subscription

LOG: Final = logging.getLogger("oxiseq.standing")
KEEP: Final = 10_000
"""Rows of changes that are kept of a query if nothing else is said."""


class Standings:
    """store: the store of now; store_lock: held while it changes."""

    def __init__(
        self, store: Callable[[], RdfStore], store_lock: AbstractContextManager[object], listeners: Listeners
    ) -> None:
        self._store_lock, self._listeners = store_lock, listeners
        self._engine = Standing(store)
        self._queries: dict[str, StandingQuery] = {}
        self._of: dict[object, StandingQuery] = {}
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
    def queries(self) -> tuple[StandingQuery, ...]:
        """Those that have not been closed, in the order of their registration."""
        return tuple(self._queries.values())

    def get(self, name: str) -> StandingQuery:
        """Raises OxiseqError for a name that no query has."""
        try:
            return self._queries[name]
        except KeyError:
            raise OxiseqError(f"no query {name!r} stands over the store") from None

    def register(
        self, text: str, name: str | None = None, keep: int = KEEP, limits: Limits | None = None
    ) -> StandingQuery:
        """Raises QueryError, LimitError, KbError, OxiseqError for a name that another has."""
        query = load_over_store(text)
        announce((arrange, join))
        with self._store_lock, self.lock:
            self._take_in(asking=True)
            if name is None:
                self._unnamed += 1
                name = f"standing-{self._unnamed}"
            if name in self._queries:
                raise OxiseqError(f"a query {name!r} stands over the store already")
            if self._listening is None:
                self._listening = self._listeners.add(self._heard)
            try:
                upheld = self._engine.add(query, text, limits or Limits())
            except BaseException:
                self._listen_no_more()
                raise
            registered = StandingQuery(self, name, upheld, keep)
            self._queries[name] = self._of[upheld] = registered
        self.deliver()
        return registered

    def remove(self, query: StandingQuery) -> None:
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

    def restart(self, upheld: object) -> None:
        """Begin one anew."""
        with self._store_lock, self.lock:
            self._take_in(asking=True)
            query = self._of.get(upheld)
            if query is not None:
                self._tell(self._engine.anew(query.upheld), _now())
        self.deliver()

    # --- changes --------------------------------------------------------------------------------------

    def _heard(self, changed: Changed) -> None:
        """The store has changed; its lock is held."""
        self._last = max(_now(), self._last + 1)  # no two changes at one moment
        self._waiting.append((changed, self._last))
        with self._starting:
            if self._worker is None:
                self._worker = threading.Thread(target=self._work, name="oxiseq-standing", daemon=True)
                self._worker.start()

    def _work(self) -> None:
        while True:
            try:
                self.catch_up()
            except Exception:
                LOG.exception("changes of the store could not be taken in; queries will begin anew at the next one")
            with self._starting:
                if not self._waiting:
                    self._worker = None
                    return

    def catch_up(self) -> None:
        """Take in all changes made so far."""
        with self.lock:
            done = self._take_in(asking=False)
        if not done:
            with self._store_lock, self.lock:
                self._take_in(asking=True)
        self.deliver()

    def _take_in(self, asking: bool) -> bool:
        """What waits; `asking`: the store's lock is held, so that it can be asked. Whether all is done."""
        while self._waiting:
            changed, at = self._waiting[0]
            self._at = at
            if isinstance(changed, Anew):
                if not asking:
                    return False
                self._waiting.clear()  # what has come since is in what the store holds now
                self._tell(self._engine.anew(), at)
                continue
            self._waiting.popleft()
            try:
                outcomes = self._engine.change(changed.removed, changed.added, changed.dropped, changed.created)
            except Exception:
                LOG.exception("a change could not be taken in; all queries begin anew")
                self._waiting.appendleft((Anew("a change could not be taken in"), at))
                continue
            self._tell(outcomes, at)
        if self._engine.due:
            if not asking:
                return False
            self._tell(self._engine.ask(), self._at)
        return True

    def _tell(self, outcomes: Iterable[Outcome], at: int) -> None:
        """One that cannot be told fails, alone."""
        for outcome in outcomes:
            query = self._of[outcome.upheld]
            try:
                query.receive(outcome.told, at)
            except Exception as error:
                LOG.exception("query %s: a change could not be told", query.name)
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

    @property
    def bytes(self) -> int:
        """How large all that is."""
        with self.lock:
            return self._engine.bytes


def _now() -> int:
    return time.time_ns() // 1000
