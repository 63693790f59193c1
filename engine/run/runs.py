"""The registered queries of a store, of all languages.

SPAseq queries share clocks and matching (shared.py); those over windows share their state as long as it is the same
(together.py); each other query is handed events only when something may come of
them (apart.py). Of those, equal ones that are in the same state are one.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

from oxiseq.engine.events.batch import EventBatch
from oxiseq.engine.rsp.steady import is_steady
from oxiseq.engine.run.alone import AloneRun
from oxiseq.engine.run.apart import ApartRuns
from oxiseq.engine.run.equal import equal_by
from oxiseq.engine.run.group import Kind, kind_of
from oxiseq.engine.run.query import QueryRun
from oxiseq.engine.run.rsp import RspRun
from oxiseq.engine.run.run import Run
from oxiseq.engine.run.shared import Outcome, SharedRuns
from oxiseq.engine.run.together import Together
from oxiseq.engine.run.watermarks import BEFORE_ALL
from oxiseq.engine.terms.dictionary import TermDictionary


class Runs:
    """The queries of a store. Not safe for several threads. Outcomes come in order of registration."""

    def __init__(self, terms: TermDictionary) -> None:
        self._shared = SharedRuns(terms)
        self._apart = ApartRuns(terms)
        self._number: dict[Run, int] = {}
        self._together = Together(terms)
        self._single: dict[Kind, RspRun] = {}
        """By kind a query that may share with others and is handed events apart, as long as there are none: so it may
        sleep."""
        self._owed: list[Outcome] = []
        """What has come of events that a query was handed when another came."""
        self._count = 0

    def add(self, run: Run, start: int | None = None, *, shares: bool = True, bounds: Hashable | None = None) -> None:
        """A query; `start` as it was given. shares: it may share its state with others. bounds: how large that may
        become; one with bounds is one with equal queries that have the same, or shares nothing. One of SPAseq has not
        seen any event yet."""
        self._number[run] = self._count
        self._count += 1
        if isinstance(run, QueryRun):
            self._shared.add(run, start, shares=shares, bounds=bounds)
        elif not (shares and bounds is None and isinstance(run, RspRun) and self._is_together(run)):
            self._apart.add(_alone(run), equal_by(_alone(run), bounds) if shares else None)

    def _is_together(self, run: RspRun) -> bool:
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
            self._together.add(single, kind)
        self._together.add(run, kind)
        return True

    def remove(self, run: Run) -> None:
        """Forget a query."""
        del self._number[run]
        if run in self._together:
            assert isinstance(run, RspRun)
            self._together.remove(run)
        elif isinstance(run, QueryRun):
            self._shared.remove(run)
        else:
            self._apart.remove(_alone(run))
        self._owed = [outcome for outcome in self._owed if outcome.run is not run]
        self._single = {kind: each for kind, each in self._single.items() if each is not run}

    @property
    def registered(self) -> tuple[Run, ...]:
        """In order of registration."""
        return tuple(self._number)

    def push(self, stream: str, batch: EventBatch) -> list[Outcome]:
        """Events of a stream, in order of arrival; what that did."""

        def alone(run: AloneRun) -> Outcome:
            return _outcome(run, lambda: run.push(stream, batch))

        found = self._shared.push(stream, batch)
        return self._in_order(found, self._together.push(stream, batch, alone), self._apart.push(stream, batch))

    def punctuate(self, stream: str, time: int) -> list[Outcome]:
        """No event of `stream` before `time` (µs) will come."""

        def alone(run: AloneRun) -> Outcome:
            return _outcome(run, lambda: run.punctuate(stream, time))

        found = self._shared.punctuate(stream, time)
        together = self._together.punctuate(stream, time, alone)
        return self._in_order(found, together, self._apart.punctuate(stream, time))

    def catch_up(self, run: Run | None = None) -> list[Outcome]:
        """Hand one query, or all, the events that have not concerned it so far, before its state, its counters or its
        late events are looked at; what has come of that."""
        for each in self._number if run is None else (run,):
            if isinstance(each, QueryRun):
                self._shared.catch_up(each)
        runs = self._apart.runs if run is None else [run]
        return [outcome for each in runs if isinstance(each, AloneRun) for outcome in self._apart.catch_up(each)]

    def stepped(self) -> set[Run]:
        """Those whose state may be another than at the last call, but for those that share it."""
        return {*self._shared.stepped(), *self._apart.stepped()}

    def keep_answers(self, run: Run) -> bool:
        """The KB is about to change, and the query has caught up: see `Run.keep_answers`. Raises KbError."""
        return self._shared.keep_answers(run) if isinstance(run, QueryRun) else self._apart.keep_answers(_alone(run))

    def settle(self, run: Run, until: int = BEFORE_ALL) -> list[Outcome]:
        """One query takes everything seen so far as complete; one of SPAseq also all before `until` (µs)."""
        if isinstance(run, QueryRun):
            return self._shared.settle(run, until)
        return [_outcome(run, run.settle)] if run in self._together else self._apart.settle(_alone(run))

    def forget(self, run: Run, at: int) -> None:
        """One query gives up its partial matches, and has caught up before: see `Run.forget`."""
        if isinstance(run, QueryRun):
            self._shared.forget(run, at)
        elif run in self._together:
            run.forget(at)
        else:
            self._apart.forget(_alone(run), at)

    def close(self, run: Run) -> list[Outcome]:
        """The streams have ended for one query; `remove` it afterwards."""
        if isinstance(run, QueryRun):
            return self._shared.close(run)
        return [_outcome(run, run.close)] if run in self._together else self._apart.close(_alone(run))

    def _in_order(self, outcomes: list[Outcome], together: list[Outcome], apart: list[Outcome]) -> list[Outcome]:
        """In order of registration."""
        owed, self._owed = self._owed, []
        together = [
            o for o in (*owed, *together) if o.matches or o.late is not None or o.error is not None or o.left_out
        ]
        if not together and not (outcomes and apart):
            return outcomes or apart
        return sorted([*outcomes, *together, *apart], key=lambda outcome: self._number[outcome.run])


def _alone(run: Run) -> AloneRun:
    """One that is not of SPAseq."""
    assert isinstance(run, AloneRun)
    return run


def _outcome(run: Run, step: Callable[[], Any]) -> Outcome:
    """What a step does, and what can be worked through then."""
    known, late = run.faults.count, None
    try:
        late = step()
        return Outcome(run, run.advance(), late, left_out=run.faults.count - known)
    except Exception as error:
        return Outcome(run, [], late, error)
