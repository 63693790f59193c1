"""Checkpoints of the queries at work, and what is decided where a state is beyond its budget (see live_query.py).

A decision and the checkpoint behind its entry are one: nothing is processed before that is durable.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from math import inf
from typing import Final

from oxiseq.engine.errors import SnapshotError
from oxiseq.grammar.records import dataclass
from oxiseq.journal import Checkpoint, Journal, UnknownError
from oxiseq.live.engine import Engine
from oxiseq.live.live_query import LiveQuery
from oxiseq.live.metrics import Metrics
from oxiseq.live.outbox import Outbox
from oxiseq.live.progress import LogProgress, checkpoint_of

LOG = logging.getLogger("oxiseq.live")
_PORTION: Final = 0.02
"""Seconds for which states are saved at a time."""
_PASSED: Final = 1 << 14
"""Events that have not concerned a query, until its state is saved again."""


@dataclass(frozen=True, slots=True)
class _Decision:
    """A query has forgotten its state after the entry at `position`, and fails if there is an error; `offsets`: the
    next one of each stream then."""

    query: LiveQuery
    error: str
    position: int
    offsets: Mapping[str, int]


class Checkpointer:
    """Used with the worker's lock held, and between two entries of the log. `every`: seconds between two checkpoints of
    all queries."""

    def __init__(
        self,
        journal: Journal,
        engine: Engine,
        outbox: Outbox,
        progress: LogProgress,
        metrics: Metrics,
        names: threading.RLock,
        store_lock: AbstractContextManager[object],
        every: float,
    ) -> None:
        self._journal, self._engine, self._outbox = journal, engine, outbox
        self._progress, self._metrics, self._names = progress, metrics, names
        self._store_lock, self._every = store_lock, every
        self._decisions: list[_Decision] = []
        self._undecided: list[LiveQuery] = []
        """Queries whose budgets are to be examined, as soon as something may be decided."""
        self._begun = time.monotonic()
        """When the last checkpoint of all queries began."""
        self._unsaved: list[LiveQuery] = []
        """Those of it whose turn has not come."""
        self._touched: set[LiveQuery] = set()
        """Queries that something has concerned since their last checkpoints."""

    def clear(self) -> None:
        """Forget what was to be done, as a kill would."""
        self._decisions, self._unsaved, self._touched = [], [], set()

    def remove(self, query: LiveQuery) -> None:
        """A query is not at work any more."""
        self._decisions = [each for each in self._decisions if each.query is not query]
        self._touched.discard(query)

    # --- checkpoints --------------------------------------------------------------------------------

    @property
    def due(self) -> bool:
        """Whether states are to be saved now."""
        return bool(self._unsaved) or time.monotonic() - self._begun >= self._every

    def save_some(self, *, last: bool = False) -> bool:
        """Save what has changed, so that a restart need not read the log from the beginning: all queries once in a
        while, some at a time, since what has come meanwhile waits for that. Whether there are more. `last`: nothing
        comes any more. Raises FullError, JournalError."""
        now = time.monotonic()
        self._outbox.flush()
        if not self._unsaved:
            self._begun, self._unsaved = now, self._changed(last=last)
        until = inf if last else now + _PORTION
        made: dict[LiveQuery, Checkpoint] = {}
        while self._unsaved and (not made or time.monotonic() < until):
            query = self._unsaved.pop()
            if query in self._engine and query.saved != self._progress.position:
                try:
                    made[query] = self._checkpoint(query, self._progress.position, self._progress.offsets)
                except SnapshotError as error:
                    LOG.warning("no checkpoint: %s", error)
        self._commit(made)
        return bool(self._unsaved)

    def give_up(self) -> None:
        """This checkpoint cannot be made: the next one begins anew."""
        self._unsaved = []

    def save(self, *queries: LiveQuery) -> None:
        """Checkpoints of queries at work: states, position and matches in one transaction. Raises SnapshotError."""
        self.save_at(queries, self._progress.position, self._progress.offsets)

    def save_at(self, queries: Sequence[LiveQuery], position: int, offsets: Mapping[str, int]) -> None:
        """Of queries that are behind this entry."""
        self._outbox.flush()
        changed = [query for query in queries if query.saved != position]
        self._commit({query: self._checkpoint(query, position, offsets) for query in changed})

    def _changed(self, *, last: bool) -> list[LiveQuery]:
        """The queries at work whose states may not be the saved ones; the others are where the log is now."""
        queries, progress = self._engine.queries, self._progress
        same = [query for query in queries if query.saved >= progress.last_of(query.shape.reads)]
        with self._names:
            self._journal.checkpoints.move([query.name for query in same if not query.retired], progress.position)
        for query in same:
            query.saved, query.passed = progress.position, progress.events
        return [query for query in queries if query.saved < progress.position and self._is_worth_it(query, last=last)]

    def _is_worth_it(self, query: LiveQuery, *, last: bool) -> bool:
        """Not while a restart has little to read of what has not concerned it, nor while results of it are nowhere but
        in memory."""
        if self._engine.holds_results(query):
            return False
        if last or query in self._touched or not self._engine.tells_steps(query):
            return True
        return query.saved < 0 or self._progress.events - query.passed > _PASSED

    def _checkpoint(self, query: LiveQuery, position: int, offsets: Mapping[str, int]) -> Checkpoint:
        """Raises SnapshotError."""
        with self._store_lock:
            state = self._engine.saved(query)
            self._engine.look(query)
        return checkpoint_of(self._journal, query, state, position, offsets)

    def _commit(self, made: Mapping[LiveQuery, Checkpoint]) -> None:
        self._note_steps()  # saving is a step, too, which is in what is saved
        with self._names:
            self._journal.checkpoints.commit_all([each for query, each in made.items() if not query.retired])
        for query, checkpoint in made.items():
            query.saved, query.passed = checkpoint.position, self._progress.events
            self._touched.discard(query)

    # --- budgets ------------------------------------------------------------------------------------

    def keep_to_budgets(self, *, between_entries: bool) -> None:
        """After a turn: queries whose state is beyond its budget forget, or fail; within an entry nothing is decided
        yet. Raises FullError."""
        self._note_steps()
        due = dict.fromkeys(self._undecided)
        position = self._progress.position if between_entries else -1
        self._undecided = [query for query in due if query.decided > position and query in self._engine]
        ready = [query for query in due if query.decided <= position and query in self._engine]
        self.decide(ready, self._progress.position, self._progress.offsets)
        self.save_decisions()

    def _note_steps(self) -> None:
        """Queries whose states have changed are to be saved, and examined."""
        stepped = self._engine.stepped()
        self._touched.update(stepped)
        self._undecided += [query for query in stepped if query.watch.budget.bounds]

    def decide(self, queries: Iterable[LiveQuery], position: int, offsets: Mapping[str, int]) -> None:
        """What is to be done about their states after the entry at `position`."""
        with self._store_lock:  # who is examined first frees what is dead for all that share its state
            records = {query: query.run.records for query in queries}
        for query, had in records.items():
            self._decide_one(query, had, position, offsets)

    def _decide_one(self, query: LiveQuery, had: int, position: int, offsets: Mapping[str, int]) -> None:
        """`had`: its records by then, some of them dead; one that sleeps keeps nothing of what it has not got yet."""
        with self._store_lock:
            if query not in self._engine or not (passed := query.watch.passed(query.run, had)):
                return
            if not self._engine.catch_up(query):
                return
            LOG.warning("query %s: %s", query.name, passed, extra={"query": query.name})
            fails = query.watch.budget.policy == "fail"
            self._engine.forget(query)
            if still := query.watch.passed(query.run, query.run.records):
                passed, fails = f"{still}, although it discarded all partial matches", True
        self._decisions.append(_Decision(query, passed if fails else "", position, dict(offsets)))

    def save_decisions(self) -> None:
        """Make what has been decided durable; nothing is processed before. Raises FullError: tried again later."""
        while self._decisions:
            decision = self._decisions[0]
            query = decision.query
            self._outbox.flush()
            if decision.error:
                query.error = decision.error
                with self._names, suppress(UnknownError):
                    if not query.retired:
                        self._journal.queries.set_state(query.name, "failed", query.error, query.run.omitted.save())
            self.save_at((query,), decision.position, decision.offsets)
            self._decisions.pop(0)
            if decision.error:
                self._outbox.on_gone(query)
                with self._store_lock:
                    self._engine.remove(query)
                self._metrics.failures.labels(query.name).inc()
            else:
                self._metrics.state_drops.labels(query.name).inc()
