"""A query over prepared events: compile once, run as often as wanted."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from pyoxigraph import Store

from benchmarks.data import STREAM, Events
from oxiseq.engine.events.batch import EventBatch
from oxiseq.engine.kb import StoreKb
from oxiseq.engine.output.batch import MatchBatch
from oxiseq.engine.plan.query import QueryPlan, compile_query
from oxiseq.engine.run.query import QueryRun
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.grammar import load

WARM = 2_000
"""Events of the run before the first measured one: kernels are compiled or loaded, tables touched."""


@dataclass(frozen=True, slots=True, eq=False)
class Prepared:
    """A compiled query; its plan keeps the KB's answers, so the KB is queried once."""

    terms: TermDictionary
    plan: QueryPlan
    kb: StoreKb

    @classmethod
    def of(cls, text: str, terms: TermDictionary, kb: Store | None = None) -> Prepared:
        """Compile `text` with the dictionary that codes the events."""
        return cls(terms, compile_query(load(text), terms), StoreKb(Store() if kb is None else kb))

    def run(self, batches: Iterable[EventBatch]) -> list[MatchBatch]:
        """All matches, as columns."""
        return self.run_streams((STREAM, batch) for batch in batches)

    def run_streams(self, pushes: Iterable[tuple[str, EventBatch]]) -> list[MatchBatch]:
        """All matches of events that are pushed to several streams, by IRI."""
        run = QueryRun(self.plan, self.terms, self.kb)
        found: list[MatchBatch] = []
        for stream, batch in pushes:
            run.push(stream, batch)
            found += run.advance()
        run.close()
        return found + run.advance()

    def counting(self, events: Events) -> Callable[[], int]:
        """A task that runs the query over the events and returns the number of matches."""
        return lambda: sum(len(batch) for batch in self.run(events.batches))
