"""What is told of an answer: nothing that comes and goes at one instant, by the columns that are compared, in order."""

from __future__ import annotations

from collections import Counter

import pytest
from loaded import load
from pyoxigraph import NamedNode, RdfFormat, Store, Triple, parse

import oxiseq
from oxiseq.engine.events.encode import encode_events
from oxiseq.engine.flow import told as told_module
from oxiseq.engine.kb import StoreKb
from oxiseq.engine.rsp.plan import RspOptions, compile_rsp
from oxiseq.engine.run import rsp as rsp_module
from oxiseq.engine.run.rsp import RspRun
from oxiseq.engine.terms import blanks
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.grammar.rsp_algebra import Report, RspQuery

S = "urn:S"
Row = tuple[int, tuple[str | None, ...]]


def told(text: str, events: list[tuple[int, str]], report: str) -> list[Row]:
    found = oxiseq.run(text, {S: events}, language="rspql", stream_operator=report)  # type: ignore[call-overload]
    return [(a.at_us, tuple(None if (t := a.get(v)) is None else t.value for v in found.variables)) for a in found]


def compile_text(text: str) -> RspQuery:
    query = load(text, "rspql")
    assert isinstance(query, RspQuery)
    return query


def over(where: str, shown: str = "*", window: str = "RANGE 1 EVENTS") -> str:
    return f"PREFIX : <urn:> SELECT {shown} FROM STREAM <{S}> [{window}] WHERE {where}"


def triples(*facts: str) -> str:
    return " ".join(f"<urn:{s}> <urn:{p}> {o} ." for s, p, o in (f.split() for f in facts))


def test_what_comes_and_goes_at_one_instant_is_not_told() -> None:
    optional = over("{ ?s :v ?a OPTIONAL { ?s :w ?b } }", "?s ?a ?b")
    events = [(1, triples("a w 5")), (2, triples("a v 1")), (3, triples("a w 7"))]
    assert told(optional, events, "ISTREAM") == [(2, ("urn:a", "1", None))]
    assert told(optional, events, "DSTREAM") == [(3, ("urn:a", "1", None))]
    projected = over("{ { SELECT ?s { ?s :v ?a } } }", "?s")
    changing = [(1, triples("a v 1")), (2, triples("a v 2"))]
    assert told(projected, changing, "ISTREAM") == [(1, ("urn:a",))]
    assert told(projected, changing, "DSTREAM") == []


def test_rows_that_only_sort_are_not_compared() -> None:
    text = over("{ ?s :v ?a } ORDER BY ?a", "?s")
    events = [(1, triples("a v 1")), (2, triples("a v 2"))]
    assert told(text, events, "ISTREAM") == [(1, ("urn:a",))]
    assert told(text, events, "DSTREAM") == []


def test_rows_are_sorted_by_those_that_come() -> None:
    text = over("{ { ?s :v ?a } OPTIONAL { ?s :v 99 } } ORDER BY ?a", "?s", "RANGE 2 EVENTS")
    events = [(1, triples("a v 1")), (2, triples("x w 0")), (3, triples("a v 8", "a v 9", "b v 5"))]
    assert told(text, events, "ISTREAM")[1:] == [(3, ("urn:b",)), (3, ("urn:a",))]


def test_of_rows_that_look_alike_the_first_in_order_are_emitted() -> None:
    """One ?s of two comes more than goes: it is the one of the least ?a, whatever the order of triples."""
    text = over("{ ?s :v ?a } ORDER BY ?a", "?s")
    for now in (("a v 9", "a v 2", "b v 4"), ("a v 2", "b v 4", "a v 9")):
        events = [(1, triples("a v 5")), (2, triples(*now))]
        assert told(text, events, "ISTREAM")[1:] == [(2, ("urn:a",)), (2, ("urn:b",))]


def test_now_is_asked_when_something_is_told() -> None:
    text = over("{ ?s :v ?a } REPORT EVERY 1 SECONDS", "?s (NOW() AS ?n)", "RANGE 30 DAYS")
    found = told(text, [(0, triples("a v 1")), (1_500_000, triples("b v 1"))], "ISTREAM")
    assert [(at, s) for at, (s, _) in found] == [(0, "urn:a"), (2_000_000, "urn:b")]


def test_blank_nodes_are_sorted_as_they_came_to_be() -> None:
    text = over("{ ?b :v ?a } ORDER BY ?b", "?a", "RANGE 100 EVENTS")
    events = [(1, " ".join(f'_:b{i} <urn:v> "{i}" .' for i in range(30)))]
    every = told(text, events, "RSTREAM")
    first = told(text + " LIMIT 12", events, "RSTREAM")
    assert len(every) == 30 and every[:12] == first


def test_the_order_of_blank_nodes_that_branches_make_does_not_hang_on_batches() -> None:
    branches = " UNION ".join(f"{{ ?s :{p} ?a BIND(BNODE() AS ?n) }}" for p in "vw")
    query = compile_text(over(f"{{ {branches} }} ORDER BY ?n", "?s", "RANGE 100 EVENTS"))
    events = [(time, graph(f"a{time} v 1", f"b{time} w 1")) for time in range(3)]
    found = []
    for size in (1, 3):
        terms = TermDictionary()
        plan, rows = compile_rsp(query, terms, RspOptions(Report.RSTREAM)), list[tuple[int, str]]()
        run = RspRun(plan, terms, StoreKb(Store()))
        for start in range(0, 3, size):
            run.push(S, encode_events(events[start : start + size], terms))
            run.settle()
            for batch in run.advance():
                rows += [(at, terms.text(row[0])) for at, row in zip(batch.time, batch.values.tolist(), strict=True)]
        found.append(rows)
    assert found[0] == found[1] and len(found[0]) == 2 + 4 + 6


def test_what_rstream_tells_of_a_batch_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(told_module, "MOST_ROWS", 40)
    monkeypatch.setattr(rsp_module, "MOST_ROWS", 40)
    text = over("{ ?s :v ?a OPTIONAL { ?s :w ?b } }", "?s", "RANGE 100 EVENTS")
    with pytest.raises(oxiseq.LimitError, match="push smaller batches"):
        told(text, [(i, triples(f"s{i} v 1")) for i in range(12)], "RSTREAM")


# --- with the knowledge base ------------------------------------------------------------------------


NAMED = """PREFIX : <urn:> SELECT ?s ?n FROM NAMED WINDOW :w ON <urn:S> [RANGE 100]
WHERE { WINDOW :w { ?s :v ?a } GRAPH :g { ?s :n ?n } }"""


def names(*pairs: str) -> Store:
    store = Store()
    store.load(
        "\n".join(f"<urn:{s}> <urn:n> <urn:{n}> <urn:g> ." for s, n in map(str.split, pairs)).encode(),
        format=RdfFormat.N_QUADS,
    )
    return store


def graph(*facts: str) -> list[Triple]:
    return [quad.triple for quad in parse(triples(*facts).encode(), format=RdfFormat.TURTLE)]


def test_terms_of_the_kb_stay_as_long_as_it_holds() -> None:
    terms, store = TermDictionary(), names("a anna", "a anne")
    kb = StoreKb(store)
    run = RspRun(compile_rsp(load(NAMED, "rspql"), terms), terms, kb, None, 5)
    run.push(S, encode_events([(1, graph("a v 1"))], terms))
    run.advance()
    run.keep_answers()
    store.extend(names("b berta"))
    kb.touch()
    terms.collect()
    terms.intern_all(NamedNode(f"urn:y{i}") for i in range(20))  # they take the places of what has been freed
    run.push(S, encode_events([(2, graph("b v 1")), (20, [])], terms))
    run.close()
    rows = [row for batch in run.advance() for row in batch.values[batch.time == 1].tolist()]
    found = [tuple(terms.term(i).value for i in row) for row in rows]
    assert sorted(found) == [("urn:a", "urn:anna"), ("urn:a", "urn:anne")]


def test_blank_nodes_that_the_kb_has_no_more_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blanks, "MOST_HELD", 4)
    terms, store = TermDictionary(), names("a anna")
    kb = StoreKb(store)
    run = RspRun(compile_rsp(load(NAMED, "rspql"), terms), terms, kb, None, 0)
    live = []
    for time in range(40):
        quads = f"_:b{time} <urn:n> <urn:anna> <urn:g> .\n<urn:a> <urn:n> _:c{time} <urn:g> .".encode()
        store.clear()
        store.load(quads, format=RdfFormat.N_QUADS)
        kb.touch()
        run.push(S, encode_events([(time, graph("a v 1"))], terms))
        assert len(run.advance()) == (time > 0)
        terms.collect()
        live.append(terms.live)
    assert max(live) <= live[5] + 1


def test_the_kbs_blank_nodes_come_first_after_the_windows_were_forgotten() -> None:
    terms, store = TermDictionary(), Store()
    kb = StoreKb(store)
    text = """PREFIX : <urn:> SELECT ?n FROM NAMED WINDOW :w ON <urn:S> [RANGE 100]
              WHERE { { WINDOW :w { :b :m ?n } } UNION { GRAPH :g { :a :n ?n } } } ORDER BY ?n"""
    run = RspRun(compile_rsp(load(text, "rspql"), terms), terms, kb, None, 0)
    batches = [encode_events([(time, graph("b m _:x"))], terms) for time in (1, 2)]  # before the KB's are met
    store.load(b"<urn:a> <urn:n> _:k <urn:g> .", format=RdfFormat.N_QUADS)
    kb.touch()
    found = []
    for time, batch in enumerate(batches, 1):
        run.push(S, batch)
        run.settle()
        found.append([row[-1] for told in run.advance() for row in told.values.tolist()])
        run.forget(time + 1)
    of_kb = set(terms.kb_blanks.values())
    assert [[node in of_kb for node in each] for each in found] == [[True, False]] * 2


@pytest.mark.parametrize(
    "where",
    [
        "?x :p ?y FILTER(RAND() < 0.5)",
        "?x :p ?y OPTIONAL { ?x :p ?z FILTER(RAND() < 0.5 && ?z = ?y) }",
    ],
)
def test_what_a_condition_draws_is_drawn_once_for_a_row(where: str) -> None:
    text = f"PREFIX : <http://e/> SELECT * FROM STREAM <urn:s> [RANGE 5 EVENTS SLIDE 1 EVENTS] WHERE {{ {where} }}"
    events = [(i, f"<http://e/a{i}> <http://e/p> {i} .") for i in range(105)]
    found = oxiseq.run(text, {"urn:s": events}, language="rspql", stream_operator="RSTREAM")
    rows = Counter((answer["x"].value, "z" in answer) for answer in found)
    whole = [count for (name, _), count in rows.items() if int(name.removeprefix("http://e/a")) < 100]
    assert {*whole} == {5}
    assert 20 < len(whole) <= 100
