"""A store's queries with their dictionary and knowledge base, driven step by step, without threads and clocks."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence

from loaded import load
from moved_runs import moved
from pyoxigraph import Quad, RdfFormat, Store, parse

from oxiseq.engine.cea.plan import CeaPlan, DeterminisedSets, compile_ceql
from oxiseq.engine.events.encode import encode_events
from oxiseq.engine.kb import StoreKb
from oxiseq.engine.order.watermarks import Passed
from oxiseq.engine.output.batch import MatchBatch
from oxiseq.engine.plan.query import QueryPlan, compile_query
from oxiseq.engine.run.query import QueryRun
from oxiseq.engine.run.run import Run
from oxiseq.engine.run.tuples import TupleRun
from oxiseq.engine.sharing.dispatching import Outcome
from oxiseq.engine.sharing.runs import Runs
from oxiseq.engine.terms.dictionary import TermDictionary

Given = list[tuple[object, ...]]
"""What a step did, in order of registration: the query's number, its matches, the times of its late events, its
error."""


class World:
    """A store. lazy: queries catch up only when somebody looks at their state."""

    def __init__(self, kb: str = "", *, lazy: bool = False) -> None:
        self.terms, self.store = TermDictionary(), Store()
        self.store.extend(parse(kb.encode(), format=RdfFormat.N_QUADS))
        self.kb = StoreKb(self.store)
        self.runs = Runs(self.terms)
        self.texts: list[str] = []
        self.bounds: list[Hashable | None] = []
        self._lazy = lazy

    def plan(self, text: str) -> QueryPlan | CeaPlan:
        return compile_ceql(load(text, "ceql")) if text.startswith("VOCAB") else compile_query(load(text), self.terms)

    def register(
        self,
        text: str,
        lateness: int,
        start: int | None,
        passed: Mapping[str, Passed] | None = None,
        bounds: Hashable | None = None,
    ) -> Given:
        """passed: how far streams have come; bounds: of the query's state."""
        plan = self.plan(text)
        run: Run
        if isinstance(plan.runner, DeterminisedSets):
            run = TupleRun(plan, self.terms, start, lateness)
        else:
            run = QueryRun(plan, self.terms, self.kb, start, lateness)
        if passed:
            run.take_over(passed)
        self.runs.add(run, start, bounds=bounds)
        self.texts.append(text)
        self.bounds.append(bounds)
        return []

    def run(self, number: int) -> Run:
        """A query, which has caught up."""
        run = self.runs.registered[number]
        self.runs.catch_up(run)
        return run

    def move(self, terms: TermDictionary) -> None:
        """Go on as another process would, over the same KB."""
        self.runs.catch_up()
        store = Store()
        store.extend(self.store)
        old, self.terms, self.store, self.kb = self.terms, terms, store, StoreKb(store)
        self.runs = moved(self.runs, [self.plan(text) for text in self.texts], old, terms, self.kb, self.bounds)

    def push(self, stream: str, events: Sequence[tuple[int, str]]) -> Given:
        return self._stepped(self.runs.push(stream, encode_events(events, self.terms)))

    def punctuate(self, stream: str, time: int) -> Given:
        return self._stepped(self.runs.punctuate(stream, time))

    def _stepped(self, outcomes: list[Outcome]) -> Given:
        return self.given(outcomes if self._lazy else [*outcomes, *self.runs.catch_up()])

    def settle(self, number: int) -> Given:
        return self.given(self.runs.settle(self.runs.registered[number]))

    def forget(self, number: int) -> Given:
        """A query drops its partial matches."""
        self.runs.forget(self.run(number), 0)
        return []

    def close(self, number: int) -> Given:
        """The streams end for a query, and it is removed."""
        found = self.given(self.runs.close(self.runs.registered[number]))
        self.remove(number)
        return found

    def remove(self, number: int) -> Given:
        self.runs.remove(self.runs.registered[number])
        del self.texts[number], self.bounds[number]
        return []

    def change_kb(self, quad: Quad) -> Given:
        for run in self.runs.registered:
            self.runs.catch_up(run)
            self.runs.keep_answers(run)
        self.store.add(quad)
        self.kb.touch()
        return []

    def given(self, outcomes: list[Outcome]) -> Given:
        """Blank nodes of events by order of appearance in what a query finds, those of the KB by their labels."""
        number, found = {run: i for i, run in enumerate(self.runs.registered)}, []
        of_kb = {term: f"_:of the KB {label}" for label, term in self.terms.kb_blanks.items()}
        for outcome in sorted(outcomes, key=lambda outcome: number[outcome.run]):
            matches: list[object] = []
            blanks: dict[int, str] = {}
            for batch in outcome.matches:
                if isinstance(batch, MatchBatch):
                    columns = [tuple(self.text(i, of_kb, blanks) for i in row) for row in batch.values.tolist()]
                    letters, times = batch.event_letter.tolist(), batch.event_time.tolist()
                    events = [
                        tuple(zip(letters[low:high], times[low:high], strict=True))
                        for low, high in zip(batch.ends[:-1].tolist(), batch.ends[1:].tolist(), strict=True)
                    ]
                    matches += zip(batch.time.tolist(), batch.at.tolist(), columns, events, strict=True)
                else:
                    matches += [batch.start.tolist(), batch.end.tolist(), batch.positions.tolist()]
            late = None if outcome.late is None else outcome.late.time.tolist()
            error = None if outcome.error is None else f"{type(outcome.error).__name__}: {outcome.error}"
            found.append((number[outcome.run], matches, late, error))
        return found

    def text(self, term: int, of_kb: dict[int, str], blanks: dict[int, str]) -> str:
        text = self.terms.text(term) if term else ""
        if not text.startswith("_:"):
            return text
        return of_kb.get(term) or blanks.setdefault(term, f"_:{len(blanks)}")

    @property
    def counters(self) -> list[tuple[object, ...]]:
        return [(run.events, run.late, run.matches, run.open, run.lateness) for run in self.runs.registered]
