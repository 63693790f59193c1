"""Incremental windows against evaluation from scratch, at every instant."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st
from reference.windows import At, evaluate
from window_cases import Case, decoded, graphs, random_case
from window_invariants import check

from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.engine.windows import Report, WindowRun, compile_windows

EVERYTHING = Report.NEW | Report.ENDED | Report.ALL


def run_and_compare(case: Case) -> int:
    """Push the case's batches; how many new rows there were."""
    terms = TermDictionary()
    plan = compile_windows(case.queries, terms)
    run = WindowRun(plan, terms, case.window, EVERYTHING, case.capacities)
    batches = case.batches(terms)
    events = [event for batch in batches for event in graphs(batch, terms)]
    window = case.window
    expected = [
        iter(evaluate(q.patterns, q.filters, events, window.range, window.slide, window.counted)) for q in case.queries
    ]
    rows = 0
    for batch in batches:
        answers = run.push(batch)
        check(run)
        assert answers.time.tolist() == sorted(set(batch.time.tolist()))
        for number, query in enumerate(plan.queries):
            assert query.left == ()
            count = len(answers.time)
            kinds = [decoded(k[number], query.keys, count, terms) for k in (answers.new, answers.ended, answers.all)]
            for i, time in enumerate(answers.time.tolist()):
                new, ended, every = (kind[i] for kind in kinds)
                assert all(len(set(kind)) == len(kind) for kind in (new, ended, every))
                wanted = next(expected[number])
                assert At(time, frozenset(new), frozenset(ended), frozenset(every)) == wanted, case.texts[number]
                rows += len(new)
            assert len(run.rows(number)) == len(wanted.all)
            check(run)
    return rows


@given(st.integers(0, 2**62))
def test_rows_are_those_of_evaluation_from_scratch(seed: int) -> None:
    run_and_compare(random_case(random.Random(seed)))
