"""The knowledge base changes: an answer rests on the one that holds at the instant at which it ends, whole
(semantics.md 2.2), whatever it is made of and in whatever order it is written down."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import permutations

import pytest
from ep_runs import Bag, Engine, changing_bag, read, reference_bag
from ep_strategies import chains, facts, queries, streams
from hypothesis import assume, event, given, note
from hypothesis import strategies as st
from loaded import load
from profiles import thorough
from pyoxigraph import DefaultGraph, NamedNode, Quad, Store, Triple

from oxiseq.engine.snapshot.saving import restore, save
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.grammar import render
from oxiseq.grammar.ep_algebra import EpQuery
from oxiseq.grammar.rsp_algebra import Consume

Events = list[tuple[int, int, list[Triple]]]
E = "http://e/"
P = f"PREFIX : <{E}>"


def fact(subject: str, predicate: str, target: str) -> Triple:
    return Triple(*(NamedNode(E + name) for name in (subject, predicate, target)))


def kb_of(named: Iterable[Triple], default: Iterable[Triple]) -> Store:
    kb = Store()
    kb.extend(Quad(*t, NamedNode(E + "g")) for t in named)
    kb.extend(Quad(*t, DefaultGraph()) for t in default)
    return kb


def changed_bag(query: EpQuery, events: Events, cut: int, before: Store, after: Store, saved: bool = False) -> Bag:
    """The engine's answers where the KB changes behind so many events; `saved`: and is restored then."""
    kb = Store()
    kb.extend(before)
    engine = Engine(query, kb)
    found = engine.push(events[:cut])
    engine.run.collect()
    assert engine.run.keep_answers() or cut == 0
    kb.clear()
    kb.extend(after)
    engine.kb.touch()
    bag = engine.bag(found)
    if saved:
        data, engine.terms = save(engine.run, engine.terms), TermDictionary()
        run = restore(data, engine.plan, engine.terms, engine.kb)
        assert isinstance(run, type(engine.run))
        engine.run = run
    return bag + engine.bag([*engine.push(events[cut:]), *engine.close()])


def expected_bag(query: EpQuery, events: Events, cut: int, before: Store, after: Store) -> Bag:
    """The reference's: up to the newest event before the change with the one KB, behind it with the other."""
    newest = max((end for _, end, _ in events[:cut]), default=-1)
    if query.consume is not None:
        return changing_bag(query, events, lambda now: before if now <= newest else after)
    old, new = reference_bag(query, events, before), reference_bag(query, events, after)
    return Bag({a: n for a, n in old.items() if a[1] <= newest}) + Bag({a: n for a, n in new.items() if a[1] > newest})


BODIES = [
    ["?s :alarm ?a .", "?s :owner ?o .", "?s :reset ?b ."],
    ["{ ?s :alarm ?a . ?s :owner ?o }", "{ ?s :reset ?b }"],
    ["{ ?s :alarm ?a OPTIONAL { ?s :owner ?o } }", "{ ?s :reset ?b }"],
    ["{ ?s :alarm ?a }", "{ GRAPH :g { ?s :owner ?o } }", "{ ?s :reset ?b }"],
]


@pytest.mark.parametrize("saved", [False, True])
@pytest.mark.parametrize("parts", BODIES)
def test_the_order_of_patterns_decides_nothing(parts: list[str], saved: bool) -> None:
    events = [(1, 1, [fact("s", "alarm", "a")]), (3, 3, [fact("s", "reset", "b")])]
    old, new = ([fact("s", "owner", name)] for name in ("old", "new"))
    before, after = kb_of(old, old), kb_of(new, new)
    for order in permutations(parts):
        query = load(f"{P} SELECT * {{ {' '.join(order)} }}", "epsparql")
        found = changed_bag(query, events, 1, before, after, saved)
        assert found == expected_bag(query, events, 1, before, after)
        assert [dict(row)["o"] for _, _, row in found] == [f"<{E}new>"]


BEFORE = [
    "{ { ?s :alarm ?a . ?s :owner ?o } SEQ { ?s :reset ?b } }",
    "{ { ?s :alarm ?a MINUS { ?s :owner :new } } SEQ { ?s :reset ?b } }",
    "{ { ?s :alarm ?a FILTER NOT EXISTS { ?s :owner :new } } SEQ { ?s :reset ?b } }",
    "{ { ?s :alarm ?a FILTER NOT EXISTS { ?s :owner ?o FILTER(?o = :new) } } SEQ { ?s :reset ?b } }",
    "{ { ?s :alarm|:owner ?a } SEQ { ?s :reset ?b } } ?s :owner :old .",
    "{ { ?s :alarm ?a } SEQ { ?s :reset ?b } } ?s (:alarm|:owner)/:next* ?o .",
    "{ { ?s :owner/:next ?a } SEQ { ?s :reset ?b } } ?s :alarm ?o .",
]


@pytest.mark.parametrize("where", BEFORE)
@pytest.mark.parametrize("rising", [False, True])
def test_what_was_found_before_a_change_is_found_anew(where: str, rising: bool) -> None:
    events = [
        (1, 1, [fact("s", "alarm", "a")]),
        (1, 1, [fact("old", "next", "n"), fact("new", "next", "m")]),
        (4, 4, [fact("s", "reset", "b")]),
        (6, 6, [fact("s", "alarm", "c")]),
        (7, 7, [fact("s", "reset", "d")]),
    ]
    stores = [kb_of((), [fact("s", "owner", name)]) for name in ("old", "new")]
    before, after = stores[:: 1 if rising else -1]
    query = load(f"{P} SELECT * {{ {where} }}", "epsparql")
    assert changed_bag(query, events, 2, before, after) == expected_bag(query, events, 2, before, after)


MISSING = [
    "MINUS { ?s :q ?z }",
    "FILTER NOT EXISTS { ?s :q ?z }",
    "OPTIONAL { { ?s :q ?z } SEQ { ?s :q ?z2 } }",
    "FILTER NOT EXISTS { ?s :q ?z . ?z :w ?w FILTER(getDURATION() < 14) }",
]


@pytest.mark.parametrize("missing", MISSING)
@pytest.mark.parametrize("time", [20, 13])
def test_what_must_not_be_there_is_known_for_longer_than_what_is_made_anew(missing: str, time: int) -> None:
    events = [
        (1, 1, [fact("s", "q", "z"), fact("z", "w", "w")]),
        (3, 3, [fact("s", "q", "z")]),
        *((n, n, [fact("w", "w", "w")]) for n in (10, 11, 12)),
        (time, time, [fact("s", "alarm", "a")]),
        (time + 2, time + 2, [fact("s", "reset", "b")]),
    ]
    found = "{ { ?s :alarm ?a . ?s :owner ?o } SEQ { ?s :reset ?b } FILTER(getDURATION() < 5) }"
    before, after = (kb_of((), [fact("s", "owner", name)]) for name in ("old", "new"))
    for where in (f"{found} {missing}", f"{{ {{ ?s :alarm ?a . ?s :owner ?o {missing} }} SEQ {{ ?s :reset ?b }} }}"):
        query = load(f"{P} SELECT * {{ {where} }}", "epsparql")
        for cut in (5, 6):
            assert changed_bag(query, events, cut, before, after) == expected_bag(query, events, cut, before, after)


def test_what_rules_made_before_a_change_stays() -> None:
    """It is a fact of its instant, as if it had come then."""
    rule = load(f"{P} CONSTRUCT {{ ?s :bad ?o }} {{ ?s :alarm ?a . ?s :owner ?o }}", "epsparql")
    query = load(f"{P} SELECT ?o ?b {{ {{ ?s :bad ?o }} SEQ {{ ?s :reset ?b }} }}", "epsparql")
    kb = kb_of((), [fact("s", "owner", "old")])
    engine = Engine(query, kb, [rule])
    found = engine.push([(1, 1, [fact("s", "alarm", "a")]), (2, 2, [fact("s", "other", "a")])])
    engine.run.keep_answers()
    kb.clear()
    kb.add(Quad(*fact("s", "owner", "new"), DefaultGraph()))
    engine.kb.touch()
    later = [(4, 4, [fact("s", "alarm", "c")]), (5, 5, [fact("s", "reset", "d")])]
    bag = engine.bag([*found, *engine.push(later), *engine.close()])
    assert sorted((start, dict(row)["o"]) for start, _, row in bag) == [(1, f"<{E}old>"), (4, f"<{E}new>")]


@thorough()
@given(
    st.one_of(queries, queries, chains()),
    streams(6, 2),
    st.lists(st.lists(facts, max_size=2), min_size=4, max_size=4),
    st.integers(1, 5),
    st.booleans(),
    st.sampled_from([None, Consume.CHRONOLOGICAL, Consume.RECENT]),
)
def test_answers_rest_on_the_kb_of_their_instant(
    query: EpQuery, events: Events, known: list[list[Triple]], cut: int, saved: bool, consume: Consume | None
) -> None:
    again = read(replace(query, consume=consume))
    assume(again is not None)
    assert again is not None
    note(render(again))
    before, after = kb_of(*known[:2]), kb_of(*known[2:])
    expected = expected_bag(again, events, cut, before, after)
    event(f"answers: {min(len(expected), 3)}")
    assert changed_bag(again, events, cut, before, after, saved) == expected
