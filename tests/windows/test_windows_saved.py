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

from oxiseq.engine.events.encode import encode_events
from oxiseq.engine.snapshot.container import pack, unpack
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.engine.terms.saved import KnownTerms, SavedTerms, State
from oxiseq.engine.windows.plan import ConjunctiveQuery, compile_windows
from oxiseq.engine.windows.run import Report, WindowRun
from oxiseq.engine.windows.window import Window

EVERYTHING = Report.NEW | Report.ENDED | Report.ALL


def saved(run: WindowRun, terms: TermDictionary) -> State:
    """A run and its terms, by way of bytes."""
    named = SavedTerms(terms)
    state = run.save(named)
    return unpack(pack({"run": state, "terms": named.state()}))


def restored(state: State, queries: Sequence[ConjunctiveQuery], window: Window, terms: TermDictionary) -> WindowRun:
    """The run again, in another dictionary."""
    run = WindowRun(compile_windows(queries, terms), terms, window, EVERYTHING)
    run.restore(state["run"], KnownTerms(state["terms"], terms))
    return run


@drawn(20)
@given(st.integers(0, 2**62))
def test_a_restored_run_gives_the_same_rows_in_the_same_order(seed: int) -> None:
    dice = random.Random(seed)
    case = random_case(dice, most_events=12, blank=False)  # whose labels depend on what the dictionary holds
    terms = [TermDictionary(), TermDictionary()]
    runs = [
        WindowRun(compile_windows(case.queries, each), each, case.window, EVERYTHING, case.capacities) for each in terms
    ]
    for time in sorted({time for time, _ in case.events}):
        events = [event for event in case.events if event[0] == time]
        found = []
        for each, run in zip(terms, runs, strict=True):
            answers = run.push(encode_events(events, each))
            kinds = (answers.new, answers.ended, answers.all)
            keys = [query.keys for query in run.plan.queries]
            found.append([decoded(rows, key, 1, each) for kind in kinds for rows, key in zip(kind, keys, strict=True)])
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
    run = WindowRun(compile_windows([query_of("?x :p ?y . ?y :q ?z")], terms), terms, Window(5), EVERYTHING)
    with pytest.raises(ValueError, match="another plan"):
        restored(saved(run, terms), [query_of("?x :p ?y")], Window(5), TermDictionary())
