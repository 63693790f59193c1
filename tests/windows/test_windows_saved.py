"""A run that is saved and restored goes on as if nothing had been."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from profiles import drawn
from pyoxigraph import NamedNode
from window_cases import decoded, query_of, random_case
from window_invariants import check
from window_run import ConjunctiveQuery, WindowRun

from oxiseq.engine.events.encode import encode_events
from oxiseq.engine.snapshot.container import pack, unpack
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.engine.terms.saved import KnownTerms, SavedTerms, State
from oxiseq.engine.window import Window


def saved(run: WindowRun, terms: TermDictionary) -> State:
    """A run and its terms, by way of bytes."""
    named = SavedTerms(terms)
    state = run.save(named)
    return unpack(pack({"run": state, "terms": named.state()}))


def restored(state: State, queries: Sequence[ConjunctiveQuery], window: Window, terms: TermDictionary) -> WindowRun:
    """The run again, in another dictionary."""
    run = WindowRun(queries, terms, window)
    run.restore(state["run"], KnownTerms(state["terms"], terms))
    return run


@drawn(20)
@given(st.integers(0, 2**62))
def test_a_restored_run_gives_the_same_rows(seed: int) -> None:
    dice = random.Random(seed)
    case = random_case(dice, most_events=12, blank=False)  # whose labels depend on what the dictionary holds
    terms = [TermDictionary(), TermDictionary()]
    runs = [WindowRun(case.queries, each, case.window, tiny=case.tiny) for each in terms]
    for time in sorted({time for time, _ in case.events}):
        events = [event for event in case.events if event[0] == time]
        found = []
        for each, run in zip(terms, runs, strict=True):
            answers = run.push(encode_events(events, each))
            kinds = (answers.new, answers.ended, answers.all)
            rows_ = [decoded(rows, key, 1, each) for kind in kinds for rows, key in zip(kind, run.keys, strict=True)]
            found.append([[set(matches) for matches in by_instant] for by_instant in rows_])
        assert found[0] == found[1]
        if dice.random() < 0.4:
            state = saved(runs[1], terms[1])
            terms[1] = TermDictionary(capacity=1)
            for i in range(dice.randrange(4)):
                terms[1].intern(NamedNode(f"http://other/{i}"))
            runs[1] = restored(state, case.queries, case.window, terms[1])
            check(runs[1])


def test_another_plans_state_is_refused() -> None:
    terms = TermDictionary()
    run = WindowRun([query_of("?x :p ?y . ?y :q ?z")], terms, Window(5))
    with pytest.raises(ValueError, match="zip"):
        restored(saved(run, terms), [query_of("?x :p ?y")], Window(5), TermDictionary())
