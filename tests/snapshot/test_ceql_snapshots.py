"""A CEQL query's run that is saved and restored now and then finds what the run that goes on finds."""

from __future__ import annotations

import random
import sys
from pathlib import Path

import pytest
from ceql_strategies import VOCAB, CeqlOptions, CeqlSituation, ceql_situations, with_order, with_totals
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from loaded import load
from saved_runs import crowded

from oxiseq.engine.cea.memory import Capacities
from oxiseq.engine.cea.plan import compile_ceql
from oxiseq.engine.events.encode import encode_events
from oxiseq.engine.events.tuples import read_rows
from oxiseq.engine.output.batch import MatchBatch
from oxiseq.engine.output.complex_events import ComplexEvents
from oxiseq.engine.run.tuples import TupleRun
from oxiseq.engine.snapshot import saving
from oxiseq.engine.terms.dictionary import TermDictionary

sys.path.insert(0, str(Path(__file__).parent.parent / "ceql"))
from ceql_tables import as_table

WITHOUT_SHRINKING = [Phase.explicit, Phase.reuse, Phase.generate]
Found = tuple[int, int, int, tuple[int, ...], tuple[tuple[int, ...], ...], tuple[int, ...], tuple[int, ...]]


class TupleLife:
    """A query at work, which may move on into another process at any time."""

    def __init__(self, text: str, lateness: int, capacities: Capacities | None) -> None:
        self.text, self.capacities = text, capacities
        self.terms = TermDictionary()
        self.run = TupleRun(compile_ceql(load(text, "ceql")), self.terms, lateness=lateness, capacities=capacities)
        self.found: list[Found | tuple[object, ...]] = []
        self.late: list[int] = []

    def move(self, terms: TermDictionary) -> None:
        data = saving.save(self.run, self.terms)
        assert saving.save(self.run, self.terms) == data
        self.terms = terms
        with pytest.MonkeyPatch.context() as patch:
            if self.capacities is not None:
                patch.setattr(saving, "_run", lambda plan, terms, kb: TupleRun(plan, terms, capacities=self.capacities))
            self.run = saving.restore(data, compile_ceql(load(self.text, "ceql")), terms)

    def advance(self) -> None:
        for batch in self.run.advance():
            self.found += [of(batch, i, self.terms) for i in range(len(batch))]
        self.terms.collect()

    @property
    def counters(self) -> tuple[int, int, int, bool, int]:
        run = self.run
        return run.events, run.late, run.matches, run.open, run.lateness


def of(batch: ComplexEvents | MatchBatch, i: int, terms: TermDictionary) -> Found | tuple[object, ...]:
    if isinstance(batch, MatchBatch):
        return int(batch.time[i]), *(terms.term(n) if n else None for n in batch.values[i].tolist())
    part = slice(int(batch.ends[i]), int(batch.ends[i + 1]))
    return (
        int(batch.start[i]),
        int(batch.end[i]),
        int(batch.time[i]),
        tuple(batch.positions[part].tolist()),
        tuple(map(tuple, batch.held[part].tolist())),
        tuple(batch.event_time[part].tolist()),
        tuple(batch.event_stream[part].tolist()),
    )


@settings(phases=WITHOUT_SHRINKING)
@given(ceql_situations(CeqlOptions(most=14)), st.integers(0, 2**32), st.booleans())
def test_a_tuple_run_goes_on(situation: CeqlSituation, seed: int, small: bool) -> None:
    goes_on(situation, seed, small)


@settings(phases=WITHOUT_SHRINKING)
@given(ceql_situations(CeqlOptions(most=14, limits=False)), st.integers(0, 2**32), st.booleans())
def test_a_tuple_run_with_aggregates_goes_on(situation: CeqlSituation, seed: int, small: bool) -> None:
    goes_on(with_totals(situation, seed), seed, small)


@settings(phases=WITHOUT_SHRINKING)
@given(ceql_situations(CeqlOptions(most=14, limits=False)), st.integers(0, 2**32), st.booleans())
@pytest.mark.slow
def test_a_tuple_run_with_an_order_goes_on(situation: CeqlSituation, seed: int, small: bool) -> None:
    goes_on(with_order(situation, seed), seed, small)


def goes_on(situation: CeqlSituation, seed: int, small: bool) -> None:
    dice = random.Random(seed)
    lateness, capacities = dice.choice([0, 0, 1, 3]), Capacities.smallest() if small else None
    lives = [TupleLife(situation.text, lateness, capacities) for _ in range(2)]
    events = list(situation.events)
    for i in range(1, len(events)):
        if dice.random() < 0.2:
            events[i - 1], events[i] = events[i], events[i - 1]
    while events:
        count = dice.choice([1, 1, 2])
        some, events = events[:count], events[count:]
        some = [each for each in some if each.stream == some[0].stream]
        table, pauses, settles, told = (dice.random() < chance for chance in (0.4, 0.5, 0.1, 0.1))
        for life in lives:
            graphs = [(e.time, e.graph) for e in some]
            for batch in read_rows(as_table(some)) if table else [encode_events(graphs, life.terms)]:
                late = life.run.push(VOCAB + some[0].stream, batch)
                life.late += [] if late is None else late.time.tolist()
            if settles:
                life.run.settle()
            if told:
                life.run.punctuate(VOCAB + some[0].stream, some[-1].time + 2)
            if pauses:
                life.advance()
        if dice.random() < 0.4:
            lives[1].move(crowded(dice))
        assert lives[0].counters == lives[1].counters
    for life in lives:
        life.advance()
        life.run.collect()
    assert lives[1].run.records == lives[0].run.records, "what lives is what budgets count"
    for life in lives:
        life.run.close()
        life.advance()
    assert lives[1].found == lives[0].found
    assert (lives[1].late, lives[1].counters) == (lives[0].late, lives[0].counters)
