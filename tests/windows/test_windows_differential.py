"""Incremental windows against evaluation from scratch, at every instant."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st
from profiles import drawn, thorough
from reference.windows import At, Instant, evaluate, sliding
from window_cases import Case, decoded, graphs, random_case
from window_invariants import check
from window_run import Answers, WindowRun

from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.engine.window import Window


def run_and_compare(case: Case) -> None:
    """Push the case's batches, by its window."""
    terms = TermDictionary()
    run = WindowRun(case.queries, terms, case.window, tiny=case.tiny)
    batches = case.batches(terms)
    events = [event for batch in batches for event in graphs(batch, terms)]
    window = case.window
    instants = [*sliding(events, window.range, window.slide, window.counted)]
    expected = [evaluate(q.patterns, q.filters, instants) for q in case.queries]
    for batch in batches:
        answers = run.push(batch)
        assert answers.time.tolist() == sorted(set(batch.time.tolist()))
        compare(run, answers, expected, terms)


def compare(run: WindowRun, answers: Answers, expected: Sequence[Iterator[At]], terms: TermDictionary) -> None:
    """The answers of one push with what is expected at its instants."""
    check(run)
    for number, keys in enumerate(run.keys):
        kinds = (answers.new, answers.ended, answers.all)
        by_instant = [decoded(kind[number], keys, len(answers.time), terms) for kind in kinds]
        for time, new, ended, every in zip(answers.time.tolist(), *by_instant, strict=True):
            assert all(len(set(kind)) == len(kind) for kind in (new, ended, every))
            wanted = next(expected[number])
            assert At(time, frozenset(new), frozenset(ended), frozenset(every)) == wanted, number
        if len(answers.time):
            assert len(run.rows(number)) == len(wanted.all)
            check(run)


@thorough()
@given(st.integers(0, 2**62))
@example(928444687303)  # a pattern without variables, whose row comes twice within a batch: it had not come to an end
def test_rows_are_those_of_evaluation_from_scratch(seed: int) -> None:
    run_and_compare(random_case(random.Random(seed)))


@drawn(20)
@given(st.integers(0, 2**62))
def test_instants_and_bounds_may_be_given(seed: int) -> None:
    """Reports at times of their own: events of several clocks in one instant, any bound that does not fall."""
    dice = random.Random(seed)
    case = random_case(dice, most_events=14)
    terms = TermDictionary()
    run = WindowRun(case.queries, terms, Window(None), tiny=case.tiny)
    low = -20
    instants: list[Instant] = []
    moves = []
    for batch in case.batches(terms):
        events, numbers, lows = graphs(batch, terms), [], []
        for i, event in enumerate(events):
            if not i or dice.random() < 0.5:
                instants.append(Instant(0, 0, ()))
                lows.append(low)
            low = lows[-1] = max(low, event[0] - dice.randint(-1, 8))
            instants[-1] = Instant(len(lows) - 1, low, (*instants[-1].events, event))
            numbers.append(len(lows) - 1)
        moves.append((batch, np.array(numbers), np.array(lows)[:, None]))
    expected = [evaluate(q.patterns, q.filters, instants) for q in case.queries]
    for batch, numbers_, lows_ in moves:
        compare(run, run.move([batch], [numbers_], [batch.time], lows_), expected, terms)
