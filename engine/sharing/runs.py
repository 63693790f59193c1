"""The registered queries of a store, of all languages: which dispatcher has each (dispatching.py)."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from itertools import chain
from typing import Any

from oxiseq.engine.events.batch import EventBatch
from oxiseq.engine.order.watermarks import BEFORE_ALL
from oxiseq.engine.rsp.steady import is_steady
from oxiseq.engine.run.alone import AloneRun
from oxiseq.engine.run.query import QueryRun
from oxiseq.engine.run.rsp import RspRun
from oxiseq.engine.run.run import Run
from oxiseq.engine.sharing.apart import ApartRuns
from oxiseq.engine.sharing.dispatching import Dispatcher, Outcome
from oxiseq.engine.sharing.member import equal_by
from oxiseq.engine.sharing.shared import SharedRuns
from oxiseq.engine.sharing.together import Kind, Together, kind_of
from oxiseq.engine.terms.dictionary import TermDictionary


class Runs(Dispatcher[Run]):
    """The queries of a store. Not safe for several threads. Outcomes come in order of registration."""

    def __init__(self, terms: TermDictionary) -> None:
        super().__init__()
        self._shared = SharedRuns(terms)
        self._together = Together(terms)
        self._apart = ApartRuns(terms)
        self._of: dict[Run, Dispatcher[Any]] = {}
        self._single: dict[Kind, RspRun] = {}
        """By kind a query that may share with others and gets its events apart, as long as there are none: so it may
        sleep."""
        self._owed: list[Outcome] = []
        """The results of events that a query got when another came."""

    def add(self, run: Run, start: int | None = None, *, shares: bool = True, bounds: Hashable | None = None) -> None:
        """A query; `start` as it was given. shares: it may share its state with others. bounds: how large that may
        become; one with bounds is one with equal queries that have the same, or shares nothing. One of SPAseq has not
        seen any event yet."""
        self._enrol(run)
        if isinstance(run, QueryRun):
            self._of[run] = self._shared
            self._shared.add(run, start, shares=shares, bounds=bounds)
        elif not (shares and bounds is None and isinstance(run, RspRun) and self._add_together(run)):
            assert isinstance(run, AloneRun)
            self._of[run] = self._apart
            self._apart.add(run, equal_by(run, bounds) if shares else None)

    def _add_together(self, run: RspRun) -> bool:
        """Whether it is among those that may share their state."""
        kind = kind_of(run)
        if kind is None:
            return False
        single = self._single.pop(kind, None)
        if single is None and not self._together.knows(kind) and not is_steady(run.plan):
            self._single[kind] = run
            return False
        if single is not None and single in self._apart:
            self._owed += self._apart.catch_up(single)
            self._apart.remove(single)
            self._put_together(single, kind)
        self._put_together(run, kind)
        return True

    def _put_together(self, run: RspRun, kind: Kind) -> None:
        self._of[run] = self._together
        self._together.add(run, kind)

    def remove(self, run: Run) -> None:
        self._strike(run)
        self._of.pop(run).remove(run)
        self._owed = [outcome for outcome in self._owed if outcome.run is not run]
        self._single = {kind: each for kind, each in self._single.items() if each is not run}

    @property
    def registered(self) -> tuple[Run, ...]:
        """In order of registration."""
        return tuple(self._number)

    def push(self, stream: str, batch: EventBatch) -> list[Outcome]:
        shared, together = self._shared.push(stream, batch), self._together.push(stream, batch)
        return self._joined(shared, together, self._apart.push(stream, batch))

    def punctuate(self, stream: str, time: int) -> list[Outcome]:
        shared, together = self._shared.punctuate(stream, time), self._together.punctuate(stream, time)
        return self._joined(shared, together, self._apart.punctuate(stream, time))

    def catch_up(self, run: Run | None = None) -> list[Outcome]:
        """As there, of one query, or of all."""
        runs = self.registered if run is None else (run,)
        return [outcome for each in runs if each in self._of for outcome in self._of[each].catch_up(each)]

    def tells_steps(self, run: Run) -> bool:
        """As there."""
        return self._of[run].tells_steps(run)

    def sleeps(self, run: Run) -> bool:
        return self._of[run].sleeps(run)

    def stepped(self) -> set[Run]:
        return {*self._shared.stepped(), *self._together.stepped(), *self._apart.stepped()}

    def orders(self, stream: str) -> Iterable[Run]:
        return chain(self._shared.orders(stream), self._together.orders(stream), self._apart.orders(stream))

    def keep_answers(self, run: Run) -> bool:
        return self._of[run].keep_answers(run)

    def settle(self, run: Run, until: int = BEFORE_ALL) -> list[Outcome]:
        """As there; one that has been closed has done so."""
        return self._of[run].settle(run, until) if run in self._of else []

    def forget(self, run: Run, at: int) -> None:
        self._of[run].forget(run, at)

    def close(self, run: Run) -> list[Outcome]:
        return self._of[run].close(run)

    def _joined(self, shared: list[Outcome], together: list[Outcome], apart: list[Outcome]) -> list[Outcome]:
        """In order of registration."""
        if not self._owed and not together and not (shared and apart):
            return shared or apart
        owed, self._owed = [outcome for outcome in self._owed if not outcome.is_nothing], []
        return self._in_order([*owed, *shared, *together, *apart])
