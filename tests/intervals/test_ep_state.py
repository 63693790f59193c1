"""What a run keeps: bounded by time constraints, saved and restored, knowledge that changes, rules that never end."""

from __future__ import annotations

from contextlib import nullcontext, suppress
from itertools import islice

import pytest
from ep_runs import Engine, read, reference_bag
from ep_strategies import queries, streams
from failing_kb import FailingKb
from hypothesis import assume, given
from hypothesis import strategies as st
from loaded import load
from profiles import in_the_gate
from pyoxigraph import BlankNode, DefaultGraph, Literal, NamedNode, Quad, Store, Triple

import oxiseq
from oxiseq.engine.bounds import InstantBounds
from oxiseq.engine.errors import KbError, LimitError, QueryError
from oxiseq.engine.events.encode import encode_events
from oxiseq.engine.flow.times import NEVER
from oxiseq.engine.output.batch import MatchBatch
from oxiseq.engine.run.intervals import IntervalRun
from oxiseq.engine.snapshot.saving import restore, save
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.grammar.ep_algebra import EpQuery

P = "PREFIX : <http://e/> "
DURATION = '"PT0.00005S"^^<http://www.w3.org/2001/XMLSchema#duration>'


def price(time: int) -> tuple[int, str]:
    return time, f"<http://e/s{time % 7}> <http://e/p> {time % 13} ; <http://e/q> <http://e/c{time % 5}> ."


BOUNDED = {
    "join": "?s :p ?a . ?s :q ?c . ?t :q ?c FILTER(getDURATION() < 50)",
    "SEQ": "{ ?s :p ?a } SEQ { ?s :p ?b } SEQ { ?s :q ?c } FILTER(?a < ?b && getDURATION() <= 50)",
    "a duration": f"{{ ?s :p ?a }} SEQ {{ ?s :p ?b }} FILTER(getDURATION() < {DURATION})",
    "EQUALS": "{ ?s :p ?a } EQUALS { ?s :q ?c }",
    "UNION": "{ { ?s :p ?a } SEQ { ?s :p ?b } } UNION { ?s :p ?a . ?s :q ?b } FILTER(50 > getDURATION() && ?a != ?b)",
    "OPTIONAL": "?s :p ?a OPTIONAL { ?s :q ?c FILTER(getDURATION() < 50) }",
    "OPTIONALSEQ": "{ ?s :q ?c FILTER(getDURATION() < 50) } OPTIONALSEQ { ?s :p ?a }",
    "EQUALSOPTIONAL": "{ { ?s :p ?a } SEQ { ?s :p ?b } }"
    " EQUALSOPTIONAL { { ?s :p ?a } SEQ { ?s :q ?c } SEQ { ?s :p ?b } } FILTER(getDURATION() < 50 && !BOUND(?c))",
    "MINUS": "?s :p ?a MINUS { ?s :q :c1 }",
    "NOT EXISTS": "?s :p ?a FILTER NOT EXISTS { ?s :r ?c }",
    "EXISTS, bounded": "?s :p ?a FILTER EXISTS { ?s :q ?c FILTER(getDURATION() < 50 && ?c != ?a) }",
    "a path": "?s :q+ ?c . ?s :p ?a FILTER(getDURATION() < 50)",
    "a sub-SELECT": "{ SELECT ?s { ?s :p ?a . ?s :q ?c } } FILTER(getDURATION() < 50)",
    "a drawn value": "?s :p ?a BIND(UUID() AS ?u) FILTER(getDURATION() < 50)",
}


KINDS = {"SEQ", "UNION", "OPTIONALSEQ", "EQUALSOPTIONAL", "MINUS", "EXISTS, bounded", "a path", "a drawn value"}


@pytest.mark.parametrize("name", in_the_gate(KINDS, BOUNDED))
def test_a_bound_on_the_duration_bounds_what_is_kept(name: str) -> None:
    engine = Engine(load(f"{P} SELECT * {{ {BOUNDED[name]} }}", "epsparql"))
    kept = []
    for low in range(0, 10_000, 1_000):
        engine.run.push("urn:s", encode_events(map(price, range(low, low + 1_000)), engine.terms))
        engine.run.advance()
        kept.append(engine.run.state["rows"])
    assert max(kept[5:]) <= 2 * max(kept[:2]) + 100
    assert max(kept) < 6_000


def test_a_query_that_no_event_has_concerned_keeps_nothing() -> None:
    """Nor does one that has been saved and restored so. What concerns it then is found, the knowledge base included."""
    store = Store()
    store.add(Quad(NamedNode("http://e/s3"), NamedNode("http://e/known"), Literal("yes")))
    engine = Engine(load(f"{P} SELECT ?c ?y {{ {{ ?s :r ?b }} SEQ {{ ?s :q ?c . ?s :known ?y }} }}", "epsparql"), store)
    run, others = engine.run, ((time, f"<http://e/s3> <http://e/p> {time} .") for time in range(100))
    run.push("urn:s", encode_events(others, engine.terms))
    assert run.advance() == []
    assert (run.bytes, run.records, run.events) == (0, 0, 100)
    run = restore(save(run, engine.terms), engine.plan, engine.terms, engine.kb)
    assert run.bytes == 0
    run.push("urn:s", encode_events([(100, "<http://e/s3> <http://e/r> 1 ."), price(101)], engine.terms))
    run.close()
    (found,) = run.advance()
    assert [engine.terms.text(int(i)) for i in found.values[0]] == ["<http://e/c1>", '"yes"']
    assert run.bytes > 0


def test_without_a_bound_all_is_kept() -> None:
    engine = Engine(load(f"{P} SELECT * {{ {{ ?s :p ?a }} SEQ {{ ?s :r ?c }} }}", "epsparql"))
    engine.run.push("urn:s", encode_events(map(price, range(5_000)), engine.terms))
    engine.run.advance()
    assert engine.run.state["rows"] == 4_999


@given(queries, streams(), st.integers(0, 5))
def test_a_run_goes_on_from_a_snapshot(query: EpQuery, events: list[tuple[int, int, list[Triple]]], cut: int) -> None:
    again = read(query)
    assume(again is not None)
    assert again is not None
    first = Engine(again)
    found: list[MatchBatch] = first.push(list(islice(events, cut)))
    before = first.bag(found)
    data = save(first.run, first.terms)
    second = Engine(again)
    second.terms = TermDictionary()
    second.terms.intern(NamedNode("http://e/other"))
    second.plan = Engine(again).plan
    second.run = restore(data, second.plan, second.terms, second.kb)
    assert isinstance(second.run, IntervalRun)
    after = second.bag([*second.push(events[cut:]), *second.close()])
    assert before + after == reference_bag(again, events)


BLANK_KB = [
    f"{P} SELECT ?x ?k ?z {{ {{ ?x :p ?y GRAPH :g {{ ?k :q ?y }} }} SEQ {{ ?z :r ?u GRAPH :g {{ ?k :r ?u }} }} }}",
    f"{P} SELECT ?x ?k ?z {{ {{ ?x :p ?y . ?k :q ?y }} SEQ {{ ?z :r ?u . ?k :r ?u }} }}",
]


@pytest.mark.parametrize("text", BLANK_KB)
@pytest.mark.parametrize("cut", [1, 2, 3])
def test_blank_nodes_of_the_kb_are_known_again(text: str, cut: int) -> None:
    """What came before the restart joins on them with what comes after it, and tells them by the same labels."""
    kb = Store()
    for node in (BlankNode(), BlankNode()):
        for p in "qr":
            for graph in (NamedNode("http://e/g"), DefaultGraph()):
                kb.add(Quad(node, NamedNode(f"http://e/{p}"), NamedNode(f"http://e/{p}o"), graph))
    made = [(1, "p", "qo"), (2, "r", "ro"), (3, "p", "qo"), (4, "r", "ro")]
    events = [
        (t, t, [Triple(NamedNode(f"http://e/x{t}"), NamedNode(f"http://e/{p}"), NamedNode(f"http://e/{o}"))])
        for t, p, o in made
    ]
    whole = Engine(load(text, "epsparql"), kb)
    expected = whole.bag([*whole.push(events), *whole.close()])
    assert sum(expected.values()) == 6
    first, second = Engine(load(text, "epsparql"), kb), Engine(load(text, "epsparql"), kb)
    before = first.bag(first.push(events[:cut]))
    second.terms = TermDictionary()
    second.run = restore(save(first.run, first.terms), second.plan, second.terms, second.kb)
    assert before + second.bag([*second.push(events[cut:]), *second.close()]) == expected


def test_a_blank_node_that_comes_again_is_the_same() -> None:
    """Though the KB has not had it for a while, in which terms that nothing holds were freed."""
    kb = Store()
    fact = Quad(BlankNode(), NamedNode("http://e/q"), NamedNode("http://e/o"), NamedNode("http://e/g"))
    engine = Engine(load(f"{P} SELECT ?k {{ ?x :p ?y GRAPH :g {{ ?k :q ?y }} }}", "epsparql"), kb)
    found = []
    for time in range(4):
        (kb.add if time in (0, 3) else kb.remove)(fact)
        engine.kb.touch()
        event = Triple(NamedNode(f"http://e/x{time}"), NamedNode("http://e/p"), NamedNode("http://e/o"))
        engine.run.push("urn:s", encode_events([(time, [event])], engine.terms))
        engine.run.settle()
        found += [engine.bag([batch]) for batch in engine.run.advance()]
        engine.terms.collect()
        engine.terms.intern_all(Literal(f"another term {time} {n}") for n in range(20))
    (first,), (second,) = found
    assert first[:2] == (0, 0) and second[:2] == (3, 3)
    assert first[2] == second[2] and str(first[2][0][1]).startswith("_:")


def test_another_querys_snapshot_is_refused() -> None:
    one, other = (Engine(load(f"{P} SELECT * {{ ?s :{name} ?a }}", "epsparql")) for name in "pq")
    with pytest.raises(oxiseq.OxiseqError, match="another query"):
        restore(save(one.run, one.terms), other.plan, other.terms, other.kb)


# --- knowledge --------------------------------------------------------------------------------------


@pytest.mark.parametrize("pattern", ["?x :q ?z . ?z :p ?y", "?z :p ?y . ?x :q ?z", "?x :q/:p ?y"])
def test_knowledge_is_found_behind_what_is_too_old(pattern: str) -> None:
    store = Store()
    store.update("PREFIX : <http://e/> INSERT DATA { :b :p :k }")
    engine = Engine(load(f"{P} SELECT ?x ?y {{ {pattern} FILTER(getDURATION() < 4) }}", "epsparql"), store)
    found = engine.push([(1, 1, triples_of("b p a")), (2, 2, triples_of("b p l"))])
    found += engine.push([(10, 10, triples_of("c q b"))])
    found += engine.close()
    assert engine.bag(found) == {(10, 10, (("x", "<http://e/c>"), ("y", "<http://e/k>"))): 1}


def triples_of(*facts: str) -> list[Triple]:
    return [Triple(*(NamedNode(f"http://e/{part}") for part in fact.split())) for fact in facts]


def test_changed_knowledge_holds_from_then_on() -> None:
    store = oxiseq.Store()
    text = "SELECT ?x ?c FROM STREAM <urn:s> { ?x <http://e/p> ?y GRAPH <http://e/g> { ?x <http://e/in> ?c } }"
    query = store.register(text, language="epsparql")
    found: list[oxiseq.Match] = []
    query.subscribe(found.append)
    fact = Quad(NamedNode("http://e/x"), NamedNode("http://e/in"), NamedNode("http://e/c"), NamedNode("http://e/g"))
    stream = store.stream("urn:s")
    stream.push("<http://e/x> <http://e/p> 1 .", 1)
    store.add(fact)  # the event of 1 waits, and keeps the answer of then
    stream.push("<http://e/x> <http://e/p> 2 .", 2)
    stream.push("<http://e/x> <http://e/p> 3 .", 3)
    store.remove(fact)
    stream.push("<http://e/x> <http://e/p> 4 .", 4)
    stream.push("<http://e/x> <http://e/p> 5 .", 5)
    assert [(m.start_us, m.end_us) for m in found] == [(2, 2), (3, 3)]


@pytest.mark.parametrize("changes", [False, True])
def test_an_error_of_the_kb_loses_nothing(changes: bool) -> None:
    fact = [Quad(NamedNode(f"http://e/{x}"), NamedNode("http://e/in"), NamedNode("http://e/c")) for x in "ab"]
    bags = []
    for fails in (False, True):
        store = Store()
        store.add(fact[0])
        kb, found = FailingKb(store), list[MatchBatch]()
        engine = Engine(load(f"{P} SELECT * {{ ?x :p ?y . ?x :in ?c }}", "epsparql"), kb)
        kb.failing = fails and not changes
        with suppress(KbError):
            found += engine.push([(1, 1, named("a")), (2, 2, named("b"))])
        if changes:
            engine.run.keep_answers()
            store.add(fact[1])
            kb.touch()
        kb.failing = fails
        with suppress(KbError):
            found += engine.push([(3, 3, named("b")), (4, 4, named("a"))])
        with pytest.raises(KbError) if fails else nullcontext():
            found += engine.run.advance()
        kb.failing = False
        bags.append(engine.bag([*found, *engine.close()]))
    assert bags[0] == bags[1]
    assert bags[0].total() == 2 + changes


def named(name: str) -> list[Triple]:
    return [Triple(NamedNode(f"http://e/{name}"), NamedNode("http://e/p"), Literal(1))]


def test_knowledge_without_a_graph_is_joined_and_is_no_answer_by_itself() -> None:
    kb = "<http://e/x> <http://e/in> <http://e/c> .\n<http://e/y> <http://e/in> <http://e/d> ."
    text = f"{P} SELECT * {{ ?x :in ?c . ?x :p ?v }}"
    found = oxiseq.run(text, streams={"urn:s": [(7, "<http://e/x> <http://e/p> 1 .")]}, kb=kb, language="epsparql")
    assert [(m.start_us, m.end_us, str(m["c"])) for m in found] == [(7, 7, "<http://e/c>")]
    alone = f"{P} SELECT * {{ ?x :in ?c }}"
    assert not oxiseq.run(alone, streams={"urn:s": [(7, "<http://e/z> <http://e/p> 1 .")]}, kb=kb, language="epsparql")


# --- rules ------------------------------------------------------------------------------------------

AVERAGE = [
    f"{P} CONSTRUCT {{ _:w :of ?c ; :sum ?p ; :count 1 }} WHERE {{ ?c :price ?p }}",
    P
    + """CONSTRUCT { _:w :of ?c ; :sum ?sum2 ; :count ?count2 } WHERE {
      { { ?w :of ?c ; :sum ?sum ; :count ?count FILTER(?count < 3) } SEQ { ?c :price ?p } }
      EQUALSOPTIONAL { { ?w :of ?c } SEQ { ?c :price ?between } SEQ { ?c :price ?p } }
      FILTER(!BOUND(?between))
      BIND(?sum + ?p AS ?sum2) BIND(?count + 1 AS ?count2)
    }""",
]


def test_rules_make_a_sliding_average() -> None:
    """Sums over one, two and three prices of a company, each made of the one before; three make the average."""
    text = P + "SELECT ?c (?sum / 3 AS ?average) WHERE { ?w :of ?c ; :count 3 ; :sum ?sum }"
    prices = {"a": [3, 6, 9, 3, 30], "b": [1, 1, 4, 7]}
    events = sorted(
        (10 * i + (c == "b"), f"<http://e/{c}> <http://e/price> {p} .")
        for c, values in prices.items()
        for i, p in enumerate(values)
    )
    found = oxiseq.run(text, streams={"urn:s": events}, language="epsparql", rules=AVERAGE)
    rows = [(m["c"].value[-1], float(m["average"].value), m.start_us, m.end_us) for m in found]  # type: ignore[union-attr]
    assert rows == [("a", 6, 0, 20), ("b", 2, 1, 21), ("a", 6, 10, 30), ("b", 4, 11, 31), ("a", 14, 20, 40)]


def test_rules_that_make_new_terms_for_ever_are_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("oxiseq.engine.terms.dictionary.BOUNDS", InstantBounds(rounds=100))
    rule = f"{P} CONSTRUCT {{ ?x :n ?m }} WHERE {{ ?x :n ?n BIND(?n + 1 AS ?m) }}"
    with pytest.raises(LimitError, match="new terms for ever"):
        oxiseq.run(
            f"{P} SELECT * {{ ?x :n ?n }}",
            streams={"urn:s": [(0, "<http://e/x> <http://e/n> 0 .")]},
            language="epsparql",
            rules=[rule],
        )


def test_a_rule_cannot_wait_for_itself() -> None:
    rule = f"{P} CONSTRUCT {{ ?x :q 1 }} WHERE {{ ?x :p ?y FILTER NOT EXISTS {{ ?x :q ?z }} }}"
    with pytest.raises(QueryError, match="triples that it derives"):
        oxiseq.run(f"{P} SELECT * {{ ?x :q ?n }}", streams={"urn:s": []}, language="epsparql", rules=[rule])


def test_rules_are_construct_queries() -> None:
    with pytest.raises(oxiseq.OxiseqError, match="rule 1 is no CONSTRUCT"):
        oxiseq.run("SELECT * { ?x ?y ?z }", streams={"urn:s": []}, language="epsparql", rules=["ASK { ?x ?y ?z }"])


# --- starts -----------------------------------------------------------------------------------------


def test_an_event_may_say_its_start() -> None:
    """By prov:startedAtTime in its graph, or in the call; either way it is one interval event."""
    said = "<http://e/x> <http://e/p> 1 . <urn:e> <http://www.w3.org/ns/prov#startedAtTime> 2 ."
    text = f"{P} SELECT ?v {{ ?x :p ?v }}"
    for events in ([(5, said)], [(2, 5, "<http://e/x> <http://e/p> 1 .")]):
        found = oxiseq.run(text, streams={"urn:s": events}, language="epsparql")
        assert [(m.start_us, m.end_us) for m in found] == [(2, 5)]
    every = oxiseq.run("SELECT * { ?s ?p ?o }", streams={"urn:s": [(2, 5, "<urn:a> <urn:b> 1 .")]}, language="epsparql")
    assert len(every) == 1


def test_limits_are_whole_microseconds() -> None:
    engine = Engine(load(f"{P} SELECT * {{ ?s :p ?a . ?s :q ?c FILTER(getDURATION() < 2.5) }}", "epsparql"))
    events = [(0, 0, _facts("p")), (2, 2, _facts("q")), (3, 3, _facts("q"))]
    found = engine.bag([*engine.push(events), *engine.close()])
    assert {(start, end) for start, end, _ in found} == {(0, 2)}
    assert NEVER > 1 << 60


def _facts(predicate: str) -> list[Triple]:
    return [Triple(NamedNode("http://e/x"), NamedNode(f"http://e/{predicate}"), NamedNode("http://e/y"))]
