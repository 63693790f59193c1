"""Dispatchers pass events to queries: one for each way in which queries share work.

In the flow: events of a store → **a dispatcher for each kind of query** (runs.py says which) → the outcome for
each query. None is safe for several threads.

    shared.py    one clock and one pass of matching: SPAseq
    together.py  one state of windows: RSP-QL, SPECTRA, RSEP-QL
    apart.py     runs with orders of their own, of which those in one state are one: all others
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import count
from types import MappingProxyType
from typing import Any, Generic, NamedTuple, TypeVar

from oxiseq.engine.events.batch import EventBatch
from oxiseq.engine.order.watermarks import BEFORE_ALL
from oxiseq.engine.run.run import Run

R = TypeVar("R", bound=Run)


class Outcome(NamedTuple):
    """The outcome of a step for one query: its matches, its late events, how many events it left out (Run.faults), an
    error, which may have cost it matches. `stream`: that of the late events, empty where it is the one that was pushed
    to. `errors`: of queries that have one state errors of some, by number (AloneRun)."""

    run: Run
    matches: Sequence[Any]
    late: EventBatch | None = None
    error: Exception | None = None
    ignored: int = 0
    stream: str = ""
    errors: Mapping[int, Exception] = MappingProxyType({})

    @property
    def is_nothing(self) -> bool:
        """Whether it is empty."""
        return not self.matches and self.late is None and self.error is None and not self.ignored


def stepped_alone(run: Run, step: Callable[[], Any]) -> Outcome:
    """A step of a run that shares nothing, and the processing after it."""
    known, late = run.faults.count, None
    try:
        late = step()
        return Outcome(run, run.advance(), late, ignored=run.faults.count - known)
    except Exception as error:
        return Outcome(run, run.left(), late, error)


class Dispatcher(ABC, Generic[R]):
    """Some queries of a store, numbered in order of registration."""

    def __init__(self) -> None:
        self._number: dict[R, int] = {}
        self._next = count()
        self._stepped: set[R] = set()

    def _enrol(self, run: R) -> None:
        """A query comes."""
        self._number[run] = next(self._next)

    def _strike(self, run: R) -> None:
        """A query goes."""
        del self._number[run]
        self._stepped.discard(run)

    def _in_order(self, outcomes: list[Outcome]) -> list[Outcome]:
        """Of registration."""
        if len(outcomes) > 1:
            outcomes.sort(key=lambda outcome: self._number[outcome.run])  # type: ignore[index]  # it is one of these
        return outcomes

    @abstractmethod
    def remove(self, run: R) -> None:
        """Forget a query."""

    @abstractmethod
    def push(self, stream: str, batch: EventBatch) -> list[Outcome]:
        """Events of a stream, in order of arrival; the result."""

    @abstractmethod
    def punctuate(self, stream: str, time: int) -> list[Outcome]:
        """No event of `stream` before `time` (µs) will come."""

    @abstractmethod
    def settle(self, run: R, until: int = BEFORE_ALL) -> list[Outcome]:
        """One query takes everything seen so far as complete; one of SPAseq also all before `until` (µs)."""

    @abstractmethod
    def close(self, run: R) -> list[Outcome]:
        """The streams have ended for one query; `remove` it afterwards."""

    @abstractmethod
    def forget(self, run: R, at: int) -> None:
        """One query gives up its partial matches, and has caught up before: see `Run.forget`."""

    def orders(self, stream: str) -> Iterable[R]:
        """Queries that read a stream, at least one for each order in which its events are taken."""
        return [run for run in self._number if stream in run.plan.streams]

    def keep_answers(self, run: R) -> bool:
        """The KB is about to change, and the query has caught up: see `Run.keep_answers`. Raises KbError."""
        return run.keep_answers()

    def catch_up(self, run: R) -> list[Outcome]:
        """Hand a query the events that have not concerned it so far, before its state, its counters or its late events
        are examined; returns the result."""
        return []

    def sleeps(self, run: R) -> bool:
        """Whether time alone cannot have it find anything, nor can the events that it has not got yet."""
        return False

    def tells_steps(self, run: R) -> bool:
        """Whether `stepped` tells of each step of it."""
        return True

    def stepped(self) -> set[R]:
        """Those whose state may be another than at the last call, but for those that share it."""
        stepped, self._stepped = self._stepped, set()
        return stepped
