"""Several windows in one join: each has its own clock, and what is known besides streams is the newest event of one."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyoxigraph import NamedNode, Triple
from window_cases import query_of
from window_invariants import check
from window_run import ConjunctiveQuery, WindowRun

from oxiseq.engine.events.batch import EventBatch
from oxiseq.engine.events.encode import encode_events
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.engine.window import Window

A, B, C, P, Q = (NamedNode(f"http://e/{name}") for name in "abcpq")
Events = list[tuple[int, list[Triple]]]
Graphs = list[list[Triple]]


def run_of(body: str, sources: tuple[int, ...], windows: tuple[Window, ...], terms: TermDictionary) -> WindowRun:
    found = query_of(body)
    return WindowRun([ConjunctiveQuery(found.patterns, found.filters, sources)], terms, windows, tiny=True)


def told(run: WindowRun, terms: TermDictionary, *events: Events) -> list[tuple[int, int, int]]:
    """(time, rows that are new, rows that have ended) by instant."""
    answers = run.push_each([encode_events(each, terms) for each in events])
    check(run)
    new, ended = (Counter(rows.at.tolist()) for rows in (answers.new[0], answers.ended[0]))
    return [(int(time), new[i], ended[i]) for i, time in enumerate(answers.time)]


def test_each_window_has_its_own_clock() -> None:
    terms = TermDictionary()
    run = run_of("?x :p ?y . ?y :q ?z .", (0, 1), (Window(3), Window(1, counted=True)), terms)
    first: Events = [(1, [Triple(A, P, B)]), (9, [])]
    second: Events = [(2, [Triple(B, Q, C)]), (3, []), (5, [Triple(B, Q, C)]), (9, [Triple(A, Q, A)])]
    assert told(run, terms, first, second) == [(1, 0, 0), (2, 1, 0), (3, 0, 1), (5, 0, 0), (9, 0, 0)]


def test_the_same_triple_in_two_windows_is_two() -> None:
    terms = TermDictionary()
    run = run_of("?x :p ?y . ?x :p ?z .", (0, 1), (Window(9), Window(9)), terms)
    assert told(run, terms, [(1, [Triple(A, P, B)])], []) == [(1, 0, 0)]
    assert told(run, terms, [(2, [Triple(A, P, C)])], [(2, [Triple(A, P, B)])]) == [(2, 2, 0)]


def test_a_window_of_one_event_holds_the_newest_answer() -> None:
    terms = TermDictionary()
    run = run_of("?x :p ?y . ?y :q ?z .", (0, 1), (Window(100), Window(1, counted=True)), terms)
    assert told(run, terms, [(1, [Triple(A, P, B)])], [(1, [Triple(B, Q, C), Triple(B, Q, A)])]) == [(1, 2, 0)]
    assert told(run, terms, [(2, [])], []) == [(2, 0, 0)]
    assert told(run, terms, [(3, [])], [(3, [Triple(B, Q, C), Triple(B, Q, B)])]) == [(3, 1, 1)]


def test_times_do_not_fall() -> None:
    terms = TermDictionary()
    run = run_of("?x :p ?y . ?y :q ?z .", (0, 1), (Window(3), Window(3)), terms)
    assert told(run, terms, [], []) == []
    told(run, terms, [(5, [])], [])
    with pytest.raises(ValueError, match="order of time"):
        run.push_each([EventBatch.empty(), encode_events([(4, [])], terms)])


_TRIPLES = st.lists(st.builds(Triple, *(st.sampled_from(each) for each in ([A, B], [P, Q], [A, B, C]))), max_size=3)
_EVENTS = st.lists(st.tuples(st.integers(0, 2), _TRIPLES), max_size=6)


@given(st.lists(st.tuples(_EVENTS, _EVENTS), max_size=4), st.integers(1, 5), st.integers(1, 5), st.booleans())
def test_new_less_ended_rows_are_all(steps: list[tuple[Events, Events]], low: int, high: int, counts: bool) -> None:
    terms = TermDictionary()
    windows = Window(low, 2), Window(high, counted=counts)
    run = run_of("?x :p ?y . ?y :q ?z . ?x :q ?z .", (0, 1, 0), windows, terms)
    time, rows = 0, Counter[tuple[int, ...]]()
    for pair in steps:
        batches, newest = [], time
        for events in pair:
            now, timed = time, []
            for gap, graph in events:
                now += gap
                timed.append((now, graph))
            batches.append(encode_events(timed, terms))
            newest = max(newest, now)
        answers, time = run.push_each(batches), newest + 1
        check(run)
        rows.update(map(tuple, answers.new[0].values.tolist()))
        rows.subtract(map(tuple, answers.ended[0].values.tolist()))
        assert +rows == Counter(map(tuple, run.rows().tolist()))
        assert min(rows.values(), default=0) >= 0


# --- instants and bounds of the caller's own ---------------------------------------------------------------

_COMING = st.lists(_TRIPLES, max_size=2)
_INSTANTS = st.lists(st.tuples(_COMING, _COMING, st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=5)


@given(st.lists(_INSTANTS, min_size=1, max_size=3))
def test_instants_of_the_callers_own(calls: list[list[tuple[Graphs, Graphs, int, int]]]) -> None:
    """Two sources, events of several clocks at an instant, bounds that rise by any number, several instants a call."""
    terms = TermDictionary()
    run = run_of("?x :p ?y . ?y :q ?z .", (0, 1), (Window(None), Window(None)), terms)
    events: tuple[Graphs, Graphs] = ([], [])
    low, before = [0, 0], set[tuple[str, ...]]()
    for call in calls:
        batches, instants, clocks, lows, expected = ([[], []], [[], []], [[], []], [], [])
        for number, (*comes, gone, gone_too) in enumerate(call):
            for source, graphs in enumerate(comes):
                for graph in graphs:
                    events[source].append(graph)
                    batches[source].append((0, graph))
                    instants[source].append(number)
                    clocks[source].append(len(events[source]))
            rising = zip(low, (gone, gone_too), events, strict=True)
            low = [min(bound + more, len(each)) for bound, more, each in rising]
            lows.append(low)
            first, second = ({t for g in each[bound:] for t in g} for bound, each in zip(low, events, strict=True))
            now = {
                (str(a.subject), str(a.object), str(b.object))
                for a in first
                for b in second
                if (a.predicate, b.predicate) == (P, Q) and a.object == b.subject
            }
            expected.append((now - before, before - now))
            before = now
        answers = run.move(
            [encode_events(each, terms) for each in batches],
            [np.array(each, np.int64) for each in instants],
            [np.array(each, np.int64) for each in clocks],
            np.array(lows, np.int64),
        )
        check(run)
        found = [
            tuple(
                {tuple(str(terms.term(i)) for i in row) for row in rows.values[rows.at == k].tolist()}
                for rows in (answers.new[0], answers.ended[0])
            )
            for k in range(len(call))
        ]
        assert found == expected
