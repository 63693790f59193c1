"""The registered queries of a store, of all languages.

SPAseq queries share clocks and matching (shared.py); each query of another language has an order of its own (alone.py).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from oxiseq.engine.events.batch import EventBatch
from oxiseq.engine.run.alone import AloneRun
from oxiseq.engine.run.query import QueryRun
from oxiseq.engine.run.shared import Outcome, SharedRuns
from oxiseq.engine.run.watermarks import BEFORE_ALL
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.engine.terms.saved import KnownTerms, SavedTerms, State

AnyRun: TypeAlias = QueryRun | AloneRun


class Runs:
    """The queries of a store. Not safe for several threads. Outcomes come in order of registration."""

    def __init__(self, terms: TermDictionary) -> None:
        self._shared = SharedRuns(terms)
        self._alone: list[AloneRun] = []
        self._number: dict[AnyRun, int] = {}
        self._count = 0

    def add(self, run: AnyRun, start: int | None = None) -> None:
        """A query that has not seen any event yet; `start` as it was given."""
        self._number[run] = self._count
        self._count += 1
        if isinstance(run, AloneRun):
            self._alone.append(run)
        else:
            self._shared.add(run, start)

    def remove(self, run: AnyRun) -> None:
        """Forget a query."""
        del self._number[run]
        if isinstance(run, AloneRun):
            self._alone.remove(run)
        else:
            self._shared.remove(run)

    @property
    def registered(self) -> tuple[AnyRun, ...]:
        """In order of registration."""
        return tuple(self._number)

    def save(self, terms: SavedTerms) -> State:
        """The state of all queries."""
        return {"shared": self._shared.save(terms), "alone": [run.save(terms) for run in self._alone]}

    def restore(self, state: State, runs: Sequence[AnyRun], terms: KnownTerms) -> None:
        """Go on from a saved state, with runs of the same plans in the same order that have not seen any event; when
        there are none yet."""
        self._shared.restore(state["shared"], [run for run in runs if isinstance(run, QueryRun)], terms)
        self._alone = [run for run in runs if isinstance(run, AloneRun)]
        for run, saved in zip(self._alone, state["alone"], strict=True):
            run.restore(saved, terms)
        self._number = {run: number for number, run in enumerate(runs)}
        self._count = len(runs)

    def push(self, stream: str, batch: EventBatch) -> list[Outcome]:
        """Events of a stream, in order of arrival; what that did."""
        return self._with_those_alone(
            self._shared.push(stream, batch), stream, lambda run: _outcome(run, lambda: run.push(stream, batch))
        )

    def punctuate(self, stream: str, time: int) -> list[Outcome]:
        """No event of `stream` before `time` (µs) will come."""
        return self._with_those_alone(
            self._shared.punctuate(stream, time), stream, lambda run: _outcome(run, lambda: run.punctuate(stream, time))
        )

    def settle(self, run: AnyRun, until: int = BEFORE_ALL) -> list[Outcome]:
        """One query takes everything seen so far as complete; one of SPAseq also all before `until` (µs)."""
        return [_outcome(run, run.settle)] if isinstance(run, AloneRun) else self._shared.settle(run, until)

    def close(self, run: AnyRun) -> list[Outcome]:
        """The streams have ended for one query; `remove` it afterwards."""
        return [_outcome(run, run.close)] if isinstance(run, AloneRun) else self._shared.close(run)

    def _with_those_alone(
        self, outcomes: list[Outcome], stream: str, step: Callable[[AloneRun], Outcome]
    ) -> list[Outcome]:
        mine = [step(run) for run in self._alone if stream in run.plan.streams]
        mine = [o for o in mine if o.matches or o.late is not None or o.error is not None or o.left_out]
        if mine and outcomes:
            return sorted([*outcomes, *mine], key=lambda outcome: self._number[outcome.run])
        return mine or outcomes


def _outcome(run: AloneRun, step: Callable[[], Any]) -> Outcome:
    """What a step does, and what can be worked through then."""
    known = run.faults.count
    try:
        late = step()
        return Outcome(run, run.advance(), late, left_out=run.faults.count - known)
    except Exception as error:
        return Outcome(run, [], None, error)
