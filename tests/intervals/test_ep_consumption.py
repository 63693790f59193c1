"""CONSUME CHRONOLOGICAL and RECENT: what answers use up (semantics.md 5 and RSEP-QL's Table 1)."""

from __future__ import annotations

import pytest
from ep_runs import Engine, changing_bag, engine_bag, read, reference_bag
from profiles import crossed
from pyoxigraph import NamedNode, Quad, Store, Triple

import oxiseq
from oxiseq.grammar import parse

S = "http://e/S"
P = "PREFIX : <http://e/> "
PAIR = "{ ?x :p ?y } SEQ { ?y :q ?z }"


def answers(where: str, triples: str, consume: str | None, **more: object) -> list[tuple[int, int]]:
    """(start, end) of the answers over `subject predicate object` triples, one a time from 1 on."""
    events = [
        (time, " ".join(f"<http://e/{part}>" for part in triple.split()) + " .")
        for time, triple in enumerate(triples.split("; "), 1)
    ]
    text = f"{P} SELECT * WHERE {{ {where} }}"
    found = oxiseq.run(text, {S: events}, language="epsparql", consumption=consume, **more)  # type: ignore[call-overload]
    return [(m.start_us, m.end_us) for m in found]


def test_an_answer_uses_its_triples_up() -> None:
    triples = "c p a; d p a; a q c; a q d; c p a; a q c"
    assert answers(PAIR, triples, None) == [(1, 3), (2, 3), (1, 4), (2, 4), (1, 6), (2, 6), (5, 6)]
    assert answers(PAIR, triples, "chronological") == [(1, 3), (2, 4), (5, 6)]
    assert answers(PAIR, triples, "RECENT") == [(2, 3), (1, 4), (5, 6)]


def test_a_seq_takes_the_first_or_the_last_first_operand_of_those_that_share_nothing() -> None:
    where, triples = "{ ?x :a ?k } SEQ { ?y :b ?l }", "x a k; y a k; z b l; z b m; x a k; z b l"
    assert answers(where, triples, None) == [(1, 3), (2, 3), (1, 4), (2, 4), (1, 6), (2, 6), (5, 6)]
    assert answers(where, triples, "CHRONOLOGICAL") == [(1, 3), (2, 4), (5, 6)]
    assert answers(where, triples, "RECENT") == [(2, 3), (1, 4), (5, 6)]


def test_a_second_operand_that_leaves_a_variable_unbound_is_one_for_all_its_values() -> None:
    where = "{ ?x :a ?k } SEQ { ?y :b ?z OPTIONAL { ?y :in ?k } }"
    triples = "x a k; x a l; y b z"
    assert answers(where, triples, None) == [(1, 3), (2, 3)]
    assert answers(where, triples, "CHRONOLOGICAL") == [(1, 3)]
    assert answers(where, triples, "RECENT") == [(2, 3)]


def test_a_seq_takes_the_first_or_the_last_second_operand() -> None:
    where = "{ ?x :a ?k } SEQ { ?y :b ?k BIND(getENDTIME() AS ?at) } SEQ { ?z :c ?k }"
    triples = "x a k; y b k; y b k; z c k; z c k"
    for consume, time in (("CHRONOLOGICAL", 2), ("RECENT", 3)):
        events = [
            (n, " ".join(f"<http://e/{part}>" for part in t.split()) + " .")
            for n, t in enumerate(triples.split("; "), 1)
        ]
        (found,) = oxiseq.run(f"{P} SELECT * {{ {where} }} CONSUME {consume}", {S: events}, language="epsparql")
        assert f"00:00:00.00000{time}Z" in str(found["at"])


def test_second_operands_that_bind_the_same_are_told_apart_by_their_triples() -> None:
    """Both end at 4; for the one that begins at 3 only what ended before 3 is a first operand."""
    x, y, p = (NamedNode(f"http://e/{n}") for n in "xyp")
    early, same = [Triple(y, p, x)], [Triple(y, p, y)]
    events = [(1, 2, early), (2, 3, early), (4, 4, same), (3, 4, same)]
    query = read(parse(f"{P} SELECT * WHERE {{ {{ ?s :p ?a }} SEQ {{ ?s :p ?b }} }} CONSUME RECENT", "epsparql"))
    assert query is not None
    found = engine_bag(query, events)
    assert found == reference_bag(query, events)
    assert {(start, dict(row)["b"]) for start, end, row in found if end == 4 and dict(row)["b"] == str(y)} == {
        (1, str(y)),
        (2, str(y)),
    }


def test_a_row_whose_optional_part_is_used_up_stays_without_it() -> None:
    x, y, p, q = (NamedNode(f"http://e/{n}") for n in "xypq")
    events = [(0, 0, [Triple(x, p, x)]), (1, 1, [Triple(x, p, y), Triple(x, q, y)]), (4, 4, [Triple(x, q, x)])]
    where = "{ ?s :p ?o0 OPTIONAL { ?s :p ?s } } SEQ { ?s :q ?o1 }"
    query = read(parse(f"{P} SELECT * WHERE {{ {where} }} CONSUME CHRONOLOGICAL", "epsparql"))
    assert query is not None
    assert engine_bag(query, events) == reference_bag(query, events)


LEFT = [
    "{ { ?s :p ?a OPTIONAL { ?s :r ?w } } SEQ { ?s :q ?b } } SEQ { ?s :t ?c }",
    "{ { ?s :p ?a OPTIONAL { ?s :r ?w FILTER(?w != :k) } } SEQ { ?s :q ?b } } SEQ { ?s :t ?c }",
    "{ { ?s :p ?a OPTIONAL { ?s :r ?w FILTER EXISTS { ?s :p ?any } } } SEQ { ?s :q ?b } } SEQ { ?s :t ?c }",
    "{ { { ?s :r ?w } OPTIONALSEQ { ?s :p ?a } } SEQ { ?s :q ?b } } SEQ { ?s :t ?c }",
    "{ { { ?s :q ?b } EQUALSOPTIONAL { ?s :r ?w } } SEQ { ?s :t ?c } }",
    "{ { ?s :p ?a } SEQ { ?s :q ?b OPTIONAL { ?s :r ?w } } } SEQ { ?s :t ?c }",
    "{ { ?s :p ?a OPTIONAL { ?s :r ?w OPTIONAL { ?s :u ?v } } } SEQ { ?s :q ?b } } SEQ { ?s :t ?c }",
    "{ { ?s :p ?a OPTIONAL { ?s :r ?w } MINUS { ?s :u ?w } } SEQ { ?s :q ?b } } SEQ { ?s :t ?c }",
    "{ { ?s :p ?a OPTIONAL { ?s :r ?w } FILTER NOT EXISTS { ?w :u ?v } } SEQ { ?s :q ?b } } SEQ { ?s :t ?c }",
    "{ { ?s :p ?a OPTIONAL { ?s :r ?w } FILTER(getDURATION() < 3) } SEQ { ?s :q ?b } } SEQ { ?s :t ?c }",
    "{ { ?s :p ?a OPTIONAL { ?s :r ?w OPTIONAL { ?s :u ?v } FILTER(!BOUND(?v)) } } SEQ { ?s :q ?b } }",
    "?s :p ?a OPTIONAL { ?s :q ?b OPTIONAL { ?s :r ?w OPTIONAL { ?s :u ?v } FILTER(!BOUND(?v)) } FILTER(!BOUND(?w)) }",
    "{ { ?s :p ?a OPTIONAL { ?s :r ?w } OPTIONAL { ?s :u ?v } } SEQ { ?s :q ?b } } SEQ { ?s :t ?c }",
    "{ { { ?s :p ?a OPTIONAL { ?s :r ?w } } UNION { ?s :t ?a } } SEQ { ?s :q ?b } }",
]


@pytest.mark.parametrize(("where", "consume"), crossed(LEFT, ["CHRONOLOGICAL", "RECENT"]))
def test_rows_are_left_alone_by_every_operator(where: str, consume: str) -> None:
    """Several rows have one partner, which goes with the first of them that is told."""
    triples = "s r w; s u w; s p a; s q b; s p c; s p d; s q b; s r x; s q e; s t f; s q g; s t h; s t i; s q j; s t k"
    every = [Triple(*(NamedNode(f"http://e/{part}") for part in each.split())) for each in triples.split("; ")]
    query = read(parse(f"{P} SELECT * {{ {where} }} CONSUME {consume}", "epsparql"))
    assert query is not None
    for together in (1, 2):  # so many triples at an instant
        events = [(n, n, every[n : n + together]) for n in range(0, len(every), together)]
        for size in (1, 100):
            assert engine_bag(query, events, size=size) == reference_bag(query, events)


def test_a_partner_that_the_knowledge_base_states_is_never_used_up() -> None:
    where, kb = "{ ?x :in ?c OPTIONAL { ?x :r ?w } } SEQ { ?x :p ?y }", "<http://e/x> <http://e/r> <http://e/w> ."
    assert answers(where, "x r v; x in a; x p b; x in a; x p b", "RECENT") == [(1, 3), (4, 5)]
    assert answers(where, "x r v; x in a; x p b; x in a; x p b", "RECENT", kb=kb) == [(1, 3), (2, 3), (4, 5)]
    stated = f"{kb}\n<http://e/x> <http://e/in> <http://e/a> ."
    assert answers("{ ?x :in ?c OPTIONAL { ?x :r ?w } } ?x :p ?y", "x p b; x p c", "RECENT", kb=stated) == [
        (1, 1),
        (2, 2),
    ]


def test_many_instants_are_worked_through_at_a_time_and_what_is_used_up_is_not_kept() -> None:
    query = read(parse(f"{P} SELECT * {{ ?x :p ?y OPTIONAL {{ ?x :r ?w }} }} CONSUME RECENT", "epsparql"))
    assert query is not None
    x, p, r = (NamedNode(f"http://e/{n}") for n in "xpr")
    every = [Triple(x, p if n % 3 else r, NamedNode(f"http://e/{n}")) for n in range(3000)]
    engine = Engine(query)
    assert not engine.run.plan.one_by_one
    found = engine.push([(n, n, [triple]) for n, triple in enumerate(every)])
    assert sum(map(len, found)) == 1999
    engine.run.collect()
    assert engine.run.records < 100


SEEN = [
    "{ ?s :p ?a . ?s :owner ?o } SEQ { ?s :q ?b } MINUS { ?s :p :a }",
    "{ ?s :p ?a . ?s :owner ?o } SEQ { ?s :q ?b } FILTER NOT EXISTS { ?s :p ?x FILTER(?x != ?a) }",
    "{ ?s :p ?a . ?s :owner ?o FILTER EXISTS { ?t :q ?b } } SEQ { ?s :q ?b }",
    "{ ?s :p ?a . ?s :owner ?o OPTIONAL { ?s :q ?w } } SEQ { ?s :q ?b }",
]


@pytest.mark.parametrize("where", SEEN)
def test_what_is_used_up_stays_so_when_the_knowledge_base_changes(where: str) -> None:
    """It is seen again by what must not be there, and makes no answers again."""
    triples = ["s p a", "s q b", "s p c", "s p d", "s q e", "s x x", "s q f", "s q g", "s p h", "s q i"]
    events = [
        (n, n, [Triple(*(NamedNode(f"http://e/{part}") for part in each.split()))]) for n, each in enumerate(triples)
    ]
    query = read(parse(f"{P} SELECT * {{ {{ {where} }} }} CONSUME RECENT", "epsparql"))
    assert query is not None
    owner = [Quad(*(NamedNode(f"http://e/{part}") for part in ("s", "owner", name))) for name in ("old", "new")]
    for cut in range(1, len(events)):
        kb, before, after = Store(), Store(), Store()
        for store, quad in ((kb, owner[0]), (before, owner[0]), (after, owner[1])):
            store.add(quad)
        engine = Engine(query, kb)
        found = engine.push(events[:cut])
        engine.run.keep_answers()
        kb.clear()
        kb.extend(after)
        engine.kb.touch()
        found += [*engine.push(events[cut:]), *engine.close()]
        newest = events[cut - 1][1]
        expected = changing_bag(query, events, lambda now, newest=newest, b=before, a=after: b if now <= newest else a)
        assert engine.bag(found) == expected


def test_what_a_filter_refuses_uses_nothing_up() -> None:
    assert answers(f"{PAIR} FILTER(?z != :c)", "x p a; a q c; a q d; a q e", "RECENT") == [(1, 3)]


def test_used_triples_are_still_seen_by_what_must_not_be_there() -> None:
    triples = "x p a; a q c; a r w; x p b; b q d"
    assert answers(PAIR, triples, "RECENT") == [(1, 2), (4, 5)]
    assert answers(f"{PAIR} MINUS {{ ?x :p ?u . ?u :r ?w }}", triples, "RECENT") == [(1, 2)]
    assert answers(f"{PAIR} FILTER NOT EXISTS {{ ?x :p ?u . ?u :r ?w }}", triples, "RECENT") == [(1, 2)]


def test_a_part_that_may_be_missing_is_used_up_when_it_is_there() -> None:
    where = "?x :p ?y OPTIONAL { ?x :r ?w }"
    assert answers(where, "x r w; x p a; x p b", None) == [(1, 2), (1, 3)]
    assert answers(where, "x r w; x p a; x p b", "RECENT") == [(1, 2), (3, 3)]


def test_rules_see_what_answers_have_used() -> None:
    rule = f"{P} CONSTRUCT {{ ?x :both ?y }} WHERE {{ {{ ?x :p ?y }} SEQ {{ ?x :r ?z }} }}"
    where = "{ ?x :p ?y } UNION { ?x :both ?y }"
    assert answers(where, "x p a; x r b", "RECENT", rules=[rule]) == [(1, 1), (1, 2)]


def test_the_knowledge_base_is_not_used_up() -> None:
    kb = "<http://e/x> <http://e/in> <http://e/c> ."
    assert answers("?x :p ?y . ?x :in ?c", "x p a; x p b", "RECENT", kb=kb) == [(1, 1), (2, 2)]


def test_what_is_said_twice_must_agree() -> None:
    text = f"{P} SELECT * {{ {PAIR} }} CONSUME RECENT"
    with pytest.raises(oxiseq.OxiseqError, match="the query says CONSUME RECENT"):
        oxiseq.run(text, {S: []}, language="epsparql", consumption="CHRONOLOGICAL")
    with pytest.raises(oxiseq.OxiseqError, match="RSEP-QL: a query of EP-SPARQL has none"):
        oxiseq.run(f"{P} SELECT * {{ {PAIR} }}", {S: []}, language="epsparql", stream_operator="RSTREAM")  # type: ignore[call-overload]
    with pytest.raises(oxiseq.QueryError, match="a path of any length does not show"):
        oxiseq.run(f"{P} SELECT * {{ ?x :p+ ?y }}", {S: []}, language="epsparql", consumption="RECENT")


def test_why_counts_the_answers_that_are_told() -> None:
    events = [
        (1, "<http://e/x> <http://e/p> <http://e/a> ."),
        (2, "<http://e/a> <http://e/q> <http://e/c> ."),
        (3, "<http://e/a> <http://e/q> <http://e/d> ."),
    ]
    for consume, count in ((None, 2), ("RECENT", 1)):
        why = oxiseq.Query(f"{P} SELECT * {{ {PAIR} }}", "epsparql").why({S: events}, consumption=consume)
        assert why.found == count


def test_a_registered_query_uses_up_too() -> None:
    store = oxiseq.Store()
    query = store.register(f"{P} SELECT * FROM STREAM <{S}> {{ {PAIR} }}", language="epsparql", consumption="recent")
    for time, triple in enumerate(["x p a", "a q c", "a q d"], 1):
        store.stream(S).push(" ".join(f"<http://e/{part}>" for part in triple.split()) + " .", time)
    assert [(m.start_us, m.end_us) for m in query.poll("0s")] == [(1, 2)]
