"""EP-SPARQL shown in RSEP-QL and back: the same answers on random streams, by the references and by the engine; what
the other language cannot say."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TypeAlias

import pytest
from ep_strategies import PREDICATES, chains, facts_of, streams
from hypothesis import assume, event, given, note
from hypothesis import strategies as st
from loaded import load
from profiles import drawn
from pyoxigraph import NamedNode, Triple, Variable
from reference.epsparql import evaluate_ep, stamped
from reference.rsp import evaluate_rsp

import oxiseq
from oxiseq.grammar import QueryError, render
from oxiseq.grammar.algebra import Projection, Select, Stream
from oxiseq.grammar.ep_algebra import EpQuery
from oxiseq.grammar.rsp_algebra import Consume, RspQuery

S = "http://e/S"
P = "PREFIX : <http://e/> "
Bag: TypeAlias = Counter[tuple[int, int, tuple[tuple[str, str], ...]]]
"""(start, end, row)."""
Events: TypeAlias = list[tuple[int, list[Triple]]]


def by_references(text: str, language: str, events: Events) -> Bag:
    query = load(text, language)
    if isinstance(query, EpQuery):
        found = evaluate_ep(query, stamped((time, time, graph) for time, graph in events))
        return Counter((a.start, a.end, tuple(sorted((v.value, str(t)) for v, t in a.bindings.items()))) for a in found)
    assert isinstance(query, RspQuery)
    shown = None if query.body.projection is None else {v.value for v in query.body.projection}  # type: ignore[union-attr]
    return Counter(
        (a.start or 0, a.end or 0, tuple((v, t) for v, t in a.row if shown is None or v in shown))
        for a in evaluate_rsp(query, {S: events})
        if a.at == a.end
    )


def by_engine(text: str, language: str, events: Events) -> Bag:
    found = oxiseq.run(text, streams={S: events}, language=language)  # type: ignore[call-overload]
    return Counter(
        (m.start_us, m.end_us, tuple(sorted((v, str(t)) for v, t in m.items() if t is not None))) for m in found
    )


@st.composite
def queries_and_events(draw: st.DrawFn) -> tuple[str, Events]:
    """A query and a stream of points; of single triples where these are used up."""
    query = replace(
        draw(chains(plain=True)), streams=(Stream("", NamedNode(S)),), consume=draw(st.sampled_from([None, *Consume]))
    )
    if draw(st.integers(0, 3)) == 0:
        columns = draw(st.lists(st.sampled_from(["s", "o0", "o1"]), min_size=1, unique=True))
        query = replace(query, form=Select(tuple(Projection(Variable(c)) for c in columns)))
    alone = query.consume not in (None, Consume.UNRESTRICTED)
    drawn = draw(streams(8, 4, facts_of(PREDICATES[:2])))
    return render(query), [(end, graph[:1] if alone else graph) for _, end, graph in drawn]


@drawn(40)
@given(queries_and_events(), st.sampled_from(["[ID]", "[ID]", "[LND 3]"]))
def test_rsepql_and_ep_sparql_answer_the_same(setting: tuple[str, Events], window: str) -> None:
    text, events = setting
    try:
        load(text, "epsparql")
        translated = oxiseq.Query(text, "epsparql").translate("rsepql").text.replace("[ID]", window)
        back = oxiseq.Query(translated, "rsepql").translate("epsparql").text
    except QueryError as error:
        assume(error.code in ("translate", "scope"))
        return
    note(f"{translated}{back}")
    expected = by_references(back, "epsparql", events)
    event(f"answers: {min(sum(expected.values()), 3)}")
    assert by_references(translated, "rsepql", events) == expected
    assert by_engine(back, "epsparql", events) == expected
    assert by_engine(translated, "rsepql", events) == expected
    if window == "[ID]":
        assert by_engine(text, "epsparql", events) == expected


EP = P + "SELECT * FROM STREAM <http://e/S> WHERE { { ?x :p ?y } SEQ { ?y :q ?z } }"


@pytest.mark.parametrize(
    ("text", "message", "place"),
    [
        (EP.replace("FROM STREAM <http://e/S> ", ""), "a window of RSEP-QL reads a named stream", "{ { ?x"),
        (
            EP.replace("WHERE", "FROM STREAM <http://e/T> WHERE"),
            "an event of RSEP-QL comes",
            "FROM STREAM <http://e/T>",
        ),
        (EP.replace("?x :p ?y", "?x :p ?y ; :r ?w"), "only single triples mean the same", ":r ?w }"),
        (EP.replace("?x :p ?y", "?x :p/:r ?y"), "only single triples mean the same", "?x :p/:r ?y"),
        (EP.replace("?x :p", "[] :p"), "a blank node counts differently", "[] :p ?y"),
        (EP.replace("} SEQ", "FILTER(getDURATION() < 5) } SEQ"), "RSEP-QL has no getDURATION()", "getDURATION()"),
        (EP.replace("} }", "} FILTER(getSTARTTIME() > 5) }"), "RSEP-QL has no getSTARTTIME()", "getSTARTTIME()"),
        (EP.replace("} }", "} FILTER NOT EXISTS { ?x :r 1 } }"), "EXISTS reads other triples", "NOT EXISTS"),
        (EP.replace("SEQ", "EQUALS"), "RSEP-QL has no EQUALS", "{ ?x :p ?y } EQUALS"),
        (EP.replace("{ ?y :q ?z }", "{ ?y :q ?z } UNION { ?y :r ?z }"), "RSEP-QL has no UNION", "{ ?y :q ?z } UNION"),
        (EP.replace("} }", "} OPTIONAL { ?x :r ?w } }"), "this has no counterpart beside", "OPTIONAL"),
        (EP.replace("*", "DISTINCT ?x"), "DISTINCT means something else", "DISTINCT"),
        (EP.replace("SELECT *", "ASK"), "ASK means something else", "ASK"),
        (EP.replace("} }", "} SEQ { ?z :q ?u } } CONSUME RECENT"), "with several SEQs", "{ { ?x"),
        (
            EP.replace("} }", "} FILTER(?x != ?z) } CONSUME RECENT"),
            "RSEP-QL also consumes what this condition",
            "FILTER",
        ),
        (EP.replace("{ { ?x :p ?y } SEQ { ?y :q ?z } }", "{ VALUES ?x { :a } }"), "this is no sequence", "VALUES"),
    ],
)
def test_what_rsepql_cannot_say_has_its_place(text: str, message: str, place: str) -> None:
    _refused(text, "epsparql", "rsepql", message, place)


RSEP = (
    P
    + """REGISTER ISTREAM AS SELECT * FROM NAMED WINDOW :w ON <http://e/S> [LND 2]
EVENT ON :w { ?x :p ?y } AS A EVENT ON :w { ?y :q ?z } AS B WHERE { MATCH { A SEQ B } }"""
)


@pytest.mark.parametrize(
    ("text", "message", "place"),
    [
        (RSEP.replace("ISTREAM", "RSTREAM"), "EP-SPARQL does not emit answers again", "REGISTER"),
        (RSEP + " REPORT EVERY 5", "EP-SPARQL answers at every event", "REPORT EVERY 5"),
        (RSEP.replace("[LND 2]", "[RANGE 4 SLIDE 1]"), "EP-SPARQL has only landmark windows", "RANGE 4"),
        (
            RSEP.replace("EVENT ON :w { ?y", "FROM NAMED WINDOW :v ON <http://e/T> [ID] EVENT ON :v { ?y"),
            "EP-SPARQL does not distinguish streams",
            "FROM NAMED WINDOW :v",
        ),
        (RSEP.replace("A SEQ B", "FIRST(A) SEQ B"), "EP-SPARQL has no FIRST", "FIRST(A)"),
        (RSEP.replace("EVENT ON :w { ?x", "LAST ON :w { ?x"), "EP-SPARQL has no LAST", "LAST ON"),
        (RSEP.replace("A SEQ B", "A SEQ^n B"), "EP-SPARQL has no SEQ^n", "A SEQ^n B"),
        (RSEP.replace("A SEQ B", "A SEQ^c B"), "SEQ^c consumes other triples", "A SEQ^c B"),
        (RSEP + " CONSUME CHRONOLOGICAL", "SEQ consumes other triples", "A SEQ B"),
        (RSEP.replace("} }", "} WINDOW :w { ?x :p ?y } }"), "this has no counterpart beside", "WINDOW :w { ?x"),
        (RSEP.replace("MATCH { A SEQ B }", "WINDOW :w { ?x :p ?y }"), "an EP-SPARQL query has one MATCH", "{ WINDOW"),
        (RSEP + " LIMIT 3", "EP-SPARQL cannot group, order or limit", "PREFIX"),
        (RSEP.replace("SELECT *", "SELECT DISTINCT ?x"), "DISTINCT means something else", "DISTINCT"),
        (RSEP.replace("?x :p ?y }", "?x :p ?y . ?y :r ?w }"), "only single triples mean the same", "?y :r ?w"),
    ],
)
def test_what_ep_sparql_cannot_say_has_its_place(text: str, message: str, place: str) -> None:
    _refused(text, "rsepql", "epsparql", message, place)


def _refused(text: str, language: str, to: str, message: str, place: str) -> None:
    load(text, language)
    with pytest.raises(QueryError) as raised:
        oxiseq.Query(text, language).translate(to)
    assert raised.value.code == "translate"
    assert raised.value.message.startswith(message)
    lines = text.split("\n")[raised.value.line - 1]
    assert lines[raised.value.column - 1 :].startswith(place)
    assert "^" in str(raised.value)


@pytest.mark.parametrize(
    ("consume", "sequence"), [("UNRESTRICTED", "SEQ"), ("CHRONOLOGICAL", "SEQ^c"), ("RECENT", "SEQ^r")]
)
def test_each_policy_has_its_sequence(consume: str, sequence: str) -> None:
    """Table 1 of RSEP-QL, there and back."""
    text = f"{EP} CONSUME {consume}"
    there = oxiseq.Query(text, "epsparql").translate("rsepql").text
    assert f"MATCH {{ E1 {sequence} E2 }}" in there and f"CONSUME {consume}" in there
    assert load(oxiseq.Query(there, "rsepql").translate("epsparql").text, "epsparql") == load(text, "epsparql")


def test_a_landmark_is_a_bound_on_the_start() -> None:
    text = oxiseq.Query(RSEP, "rsepql").translate("epsparql").text
    assert text.count("FILTER(getSTARTTIME() >= 2)") == 2


def test_constructs_keep_their_template_and_stream() -> None:
    text = EP.replace("SELECT *", "CONSTRUCT { ?x :r ?z } INTO STREAM <http://e/T>")
    there = oxiseq.Query(text, "epsparql").translate("rsepql").text
    assert "REGISTER ISTREAM :T AS" in there
    query = load(oxiseq.Query(there, "rsepql").translate("epsparql").text, "epsparql")
    assert replace(query, consume=None) == load(text, "epsparql")


def test_conditions_beside_match_are_told_to_be_oxigraphs() -> None:
    text = EP.replace("} }", "} FILTER(?x != ?z) }")
    assert "# RSEP-QL's FILTER beside MATCH is Oxigraph's" in oxiseq.Query(text, "epsparql").translate("rsepql").text
    assert "Oxigraph" not in oxiseq.Query(EP, "epsparql").translate("rsepql").text
