"""The registered queries of a store, of all languages.

SPAseq queries share clocks and matching (shared.py); each query of another language has an order of its own (alone.py)
and is handed events only when something may come of them (apart.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from oxiseq.engine.events.batch import EventBatch
from oxiseq.engine.run.alone import AloneRun
from oxiseq.engine.run.apart import ApartRuns
from oxiseq.engine.run.query import QueryRun
from oxiseq.engine.run.shared import Outcome, SharedRuns
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.engine.terms.saved import KnownTerms, SavedTerms, State

AnyRun: TypeAlias = QueryRun | AloneRun


class Runs:
    """The queries of a store. Not safe for several threads. Outcomes come in order of registration."""

    def __init__(self, terms: TermDictionary) -> None:
        self._shared = SharedRuns(terms)
        self._apart = ApartRuns(terms)
        self._number: dict[AnyRun, int] = {}
        self._count = 0

    def add(self, run: AnyRun, start: int | None = None) -> None:
        """A query that has not seen any event yet; `start` as it was given."""
        self._number[run] = self._count
        self._count += 1
        if isinstance(run, AloneRun):
            self._apart.add(run)
        else:
            self._shared.add(run, start)

    def remove(self, run: AnyRun) -> None:
        """Forget a query."""
        del self._number[run]
        if isinstance(run, AloneRun):
            self._apart.remove(run)
        else:
            self._shared.remove(run)

    @property
    def registered(self) -> tuple[AnyRun, ...]:
        """In order of registration."""
        return tuple(self._number)

    def save(self, terms: SavedTerms) -> State:
        """The state of all queries, each of which has caught up."""
        assert not self._apart.behind, "catch_up first"
        return {"shared": self._shared.save(terms), "alone": [run.save(terms) for run in self._apart.runs]}

    def restore(self, state: State, runs: Sequence[AnyRun], terms: KnownTerms) -> None:
        """Go on from a saved state, with runs of the same plans in the same order that have not seen any event; when
        there are none yet."""
        self._shared.restore(state["shared"], [run for run in runs if isinstance(run, QueryRun)], terms)
        alone = [run for run in runs if isinstance(run, AloneRun)]
        for run, saved in zip(alone, state["alone"], strict=True):
            run.restore(saved, terms)
            self._apart.add(run)
        self._number = {run: number for number, run in enumerate(runs)}
        self._count = len(runs)

    def push(self, stream: str, batch: EventBatch) -> list[Outcome]:
        """Events of a stream, in order of arrival; what that did."""
        return self._in_order(self._shared.push(stream, batch), self._apart.push(stream, batch))

    def punctuate(self, stream: str, time: int) -> list[Outcome]:
        """No event of `stream` before `time` (µs) will come."""
        return self._in_order(self._shared.punctuate(stream, time), self._apart.punctuate(stream, time))

    def catch_up(self, run: AnyRun | None = None) -> list[Outcome]:
        """Hand one query, or all, the events that have not concerned it so far, before its state, its counters or its
        late events are looked at; what has come of that."""
        runs = self._apart.runs if run is None else [run]
        return [outcome for each in runs if isinstance(each, AloneRun) for outcome in self._apart.catch_up(each)]

    def stepped(self) -> set[AnyRun]:
        """Those whose state may be another than at the last call."""
        return {*self._shared.stepped(), *self._apart.stepped()}

    def keep_answers(self, run: AnyRun) -> bool:
        """The KB is about to change, and the query has caught up: see `AloneRun.keep_answers`. Raises KbError."""
        return self._apart.keep_answers(run) if isinstance(run, AloneRun) else self._shared.keep_answers(run)

    def settle(self, run: AnyRun) -> list[Outcome]:
        """One query takes everything seen so far as complete."""
        return self._apart.settle(run) if isinstance(run, AloneRun) else self._shared.settle(run)

    def close(self, run: AnyRun) -> list[Outcome]:
        """The streams have ended for one query; `remove` it afterwards."""
        return self._apart.close(run) if isinstance(run, AloneRun) else self._shared.close(run)

    def _in_order(self, outcomes: list[Outcome], mine: list[Outcome]) -> list[Outcome]:
        """In order of registration."""
        if mine and outcomes:
            return sorted([*outcomes, *mine], key=lambda outcome: self._number[outcome.run])
        return mine or outcomes
