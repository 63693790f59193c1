"""The engine answers as the reference does."""

from __future__ import annotations

from dataclasses import replace

from ep_runs import engine_bag, read, reference_bag
from ep_strategies import PREDICATES, E, chains, facts, facts_of, queries, rules, streams
from hypothesis import assume, event, given, note
from hypothesis import strategies as st
from profiles import thorough
from pyoxigraph import DefaultGraph, NamedNode, Quad, Store, Triple

from oxiseq.grammar import QueryError, render
from oxiseq.grammar.ep_algebra import EpQuery
from oxiseq.grammar.epsparql.rules import strata
from oxiseq.grammar.rsp_algebra import Consume

Events = list[tuple[int, int, list[Triple]]]


@thorough()
@given(queries, streams(), st.lists(facts, max_size=2), st.lists(facts, max_size=1), st.sampled_from([1, 2, 100]))
def test_engine_answers_as_the_reference(
    query: EpQuery, events: Events, named: list[Triple], default: list[Triple], size: int
) -> None:
    again = read(query)
    assume(again is not None)
    assert again is not None
    note(render(again))
    kb = Store()
    kb.extend(Quad(t.subject, t.predicate, t.object, NamedNode(E + "g")) for t in named)
    kb.extend(Quad(t.subject, t.predicate, t.object, DefaultGraph()) for t in default)
    expected = reference_bag(again, events, kb)
    event(f"answers: {min(len(expected), 3)}")
    assert engine_bag(again, events, kb, size=size) == expected


@given(
    st.one_of(chains(), chains(), queries),
    streams(8, 4, facts_of(PREDICATES[:2])),
    st.sampled_from([Consume.CHRONOLOGICAL, Consume.RECENT]),
    st.sampled_from([1, 2, 100]),
)
def test_triples_are_used_up_as_by_the_reference(query: EpQuery, events: Events, consume: Consume, size: int) -> None:
    again = read(replace(query, consume=consume))
    assume(again is not None)
    assert again is not None
    note(render(again))
    expected = reference_bag(again, events)
    free = reference_bag(replace(again, consume=None), events)
    event(f"answers: {min(len(expected), 3)}, of {min(len(free), 3)}")
    assert engine_bag(again, events, size=size) == expected


@given(queries, st.lists(rules, min_size=1, max_size=2), streams(4), st.sampled_from([1, 100]))
def test_rules_reach_the_reference_closure(query: EpQuery, made: list[EpQuery], events: Events, size: int) -> None:
    again, read_rules = read(query), [read(rule) for rule in made]
    assume(again is not None and all(rule is not None for rule in read_rules))
    known = [rule for rule in read_rules if rule is not None]
    assert again is not None
    note("\n".join(map(render, [again, *known])))
    try:
        recursive = any(s.recursive for s in strata(known))
    except QueryError:
        event("refused")
        return
    creates = any("_:" in str(t.object) for rule in known for t in rule.form.template)  # type: ignore[union-attr]
    assume(not (recursive and creates))
    expected = reference_bag(again, events, rules=known)
    event(f"recursive: {recursive}, answers: {min(len(expected), 3)}")
    found = engine_bag(again, events, rules=known, size=size)
    if creates:  # blank nodes have other names
        assert sum(found.values()) == sum(expected.values())
    else:
        assert found == expected
