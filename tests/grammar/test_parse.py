"""Text → algebra, one fact per test."""

from __future__ import annotations

import pytest
from grammar_queries import PATTERNS, body, seq
from pyoxigraph import BlankNode, Literal, NamedNode, Variable

from oxiseq.grammar import QueryError, parse
from oxiseq.grammar import algebra as a

XSD = "http://www.w3.org/2001/XMLSchema#"
A, B, C, D = (a.Atom(n) for n in "ABCD")
S, O = Variable("s"), Variable("o")


def sequence(text: str) -> a.SequenceElement:
    return parse(seq(text)).sequence


def elements(pattern: str) -> tuple[a.PatternElement, ...]:
    return parse(body(pattern)).gpms[0].pattern.elements


def condition(text: str) -> a.Expression:
    (found,) = (e for e in elements(f"?s :p ?o FILTER({text})") if isinstance(e, a.Filter))
    return found.condition


def iri(name: str) -> NamedNode:
    return NamedNode(f"http://e/{name}")


# --- SEQ ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("A", A),
        ("(A)", A),
        ("A, B", a.Sequence(A, ((a.Op.STRICT, B),))),
        ("A; B", a.Sequence(A, ((a.Op.NEXT, B),))),
        ("A : B", a.Sequence(A, ((a.Op.ANY, B),))),
        ("A:B", a.Sequence(A, ((a.Op.ANY, B),))),
        ("A:B;C", a.Sequence(A, ((a.Op.ANY, B), (a.Op.NEXT, C)))),
        ("A & B | C", a.Disjunction((a.Conjunction((A, B)), C))),
        ("A & (B | C)", a.Conjunction((A, a.Disjunction((B, C))))),
        ("(A & B) & C", a.Conjunction((a.Conjunction((A, B)), C))),
        ("A; (B, C)", a.Sequence(A, ((a.Op.NEXT, a.Sequence(B, ((a.Op.STRICT, C),))),))),
        ("A+", a.Repeat(A)),
        ("A;+", a.Repeat(A, chain=a.Op.NEXT)),
        ("A:+", a.Repeat(A, chain=a.Op.ANY)),
        ("A,+", a.Repeat(A, chain=a.Op.STRICT)),
        ("A ; +", a.Repeat(A, chain=a.Op.NEXT)),
        ("A{2}", a.Repeat(A, 2, 2)),
        ("A{2,}", a.Repeat(A, 2, None)),
        ("A;{0,3}", a.Repeat(A, 0, 3, a.Op.NEXT)),
        ("A?", a.Maybe(A)),
        ("A!; B", a.Sequence(a.Not(A), ((a.Op.NEXT, B),))),
        ("(A+)?", a.Maybe(a.Repeat(A))),
        ("(A; B)+", a.Repeat(a.Sequence(A, ((a.Op.NEXT, B),)))),
        ("A # comment )\n; B", a.Sequence(A, ((a.Op.NEXT, B),))),
    ],
)
def test_sequence(text: str, expected: a.SequenceElement) -> None:
    assert sequence(text) == expected


def test_names_of_gpms_may_look_like_keywords() -> None:
    query = parse("SELECT * FROM STREAM STREAM <http://e/s> WHERE { SEQ(ON; a) DEFINE GPM ON ON STREAM { } }")
    assert query.sequence == a.Sequence(a.Atom("ON"), ((a.Op.NEXT, a.Atom("a")),))
    assert (query.gpms[0].name, query.gpms[0].stream) == ("ON", "STREAM")


def test_colon_is_an_operator_though_a_prefix_of_that_name_is_declared() -> None:
    query = parse("PREFIX A: <http://e/> SELECT * FROM STREAM S <http://e/s> WHERE { SEQ(A:B) }")
    assert query.sequence == a.Sequence(A, ((a.Op.ANY, B),))


# --- clauses ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("5 MILLISECONDS", a.Window(5_000)),
        ("1 second", a.Window(1_000_000)),
        ("60 MINUTES", a.Window(3_600_000_000)),
        ("1 HOUR SLIDING", a.Window(3_600_000_000, sliding=True)),
        ("2 DAYS", a.Window(172_800_000_000)),
        ("0.5 SECONDS", a.Window(500_000)),
        ("7 EVENTS", a.Window(7, events=True)),
        ("1 EVENT SLIDING", a.Window(1, events=True, sliding=True)),
        ("PT30M", a.Window(1_800_000_000)),
        ("P1DT2H3M4.5S SLIDING", a.Window(93_784_500_000, sliding=True)),
        (f'"PT30M"^^<{XSD}duration>', a.Window(1_800_000_000)),
        (f'"PT30M"^^<{XSD}dayTimeDuration>', a.Window(1_800_000_000)),
        ('"PT30M"', a.Window(1_800_000_000)),
    ],
)
def test_window(text: str, expected: a.Window) -> None:
    assert parse(f"ASK WITHIN {text} FROM STREAM S <http://e/s> WHERE {{ SEQ(A) }}").window == expected


def test_clauses_stand_in_any_order() -> None:
    one = parse("ASK WITHIN 1 DAY FROM STREAM S <http://e/s> WHERE { SEQ(A) }")
    other = parse("ask from stream S <http://e/s> within 1 day where { seq(A) }")
    assert one == other


def test_defaults_of_strategy_and_consumption_may_be_written_out() -> None:
    text = "SELECT{} * FROM STREAM S <http://e/s>{} WHERE {{ SEQ(A) }}"
    assert parse(text.format(" ALL", " CONSUME BY NONE")) == parse(text.format("", ""))


def test_iris_are_resolved_against_base_and_prefixes() -> None:
    query = parse(
        "BASE <http://e/x/> PREFIX p: <y#> ASK FROM STREAM S <../s> WHERE { SEQ(A) DEFINE GPM A ON S { ?s p:q <> } }"
    )
    assert query.streams[0].iri == NamedNode("http://e/s")
    assert query.gpms[0].pattern.elements == (
        a.TriplePattern(S, NamedNode("http://e/x/y#q"), NamedNode("http://e/x/")),
    )
    assert (query.base, query.prefixes) == ("http://e/x/", (("p", "http://e/x/y#"),))


def test_expression_in_a_template_becomes_a_column() -> None:
    form = parse("CONSTRUCT { ?s <http://e/n> (COUNT(A)), ?value1 } FROM STREAM S <http://e/s> WHERE { SEQ(A) }").form
    assert isinstance(form, a.Construct)
    made = Variable("value2")  # ?value1 is taken
    assert form.columns == (a.Projection(made, a.MatchFunction("COUNT", "A")),)
    assert [t.object for t in form.template] == [made, Variable("value1")]


def test_construct_into_a_stream() -> None:
    form = parse("CONSTRUCT { } INTO STREAM <http://e/out> FROM STREAM S <http://e/s> WHERE { SEQ(A) }").form
    assert form == a.Construct((), NamedNode("http://e/out"))


# --- patterns -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", PATTERNS)
def test_pattern_is_read(name: str) -> None:
    parse(body(PATTERNS[name]))


def test_numbers_stay_as_written() -> None:
    assert [t.object for t in elements("?s :p 01, -1, +2.50, 1e3, TRUE")] == [  # type: ignore[union-attr]  # triples
        Literal("01", datatype=NamedNode(XSD + "integer")),
        Literal("-1", datatype=NamedNode(XSD + "integer")),
        Literal("+2.50", datatype=NamedNode(XSD + "decimal")),
        Literal("1e3", datatype=NamedNode(XSD + "double")),
        Literal("true", datatype=NamedNode(XSD + "boolean")),
    ]


def test_odd_datatype_is_just_read() -> None:
    odd = NamedNode("http://www.w3.org/2001/XMLSchema-datatypes#integer")
    assert elements(f'?s :p "1"^^<{odd.value}>') == (a.TriplePattern(S, iri("p"), Literal("1", datatype=odd)),)


def test_fresh_blank_nodes_are_numbered_and_avoid_labels_of_the_text() -> None:
    assert elements("_:anon1 :p [ :q [] ]") == (
        a.TriplePattern(BlankNode("anon1"), iri("p"), BlankNode("anon2")),
        a.TriplePattern(BlankNode("anon2"), iri("q"), BlankNode("anon3")),
    )


def test_collection_becomes_first_and_rest() -> None:
    rdf = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
    first, rest, nil = (NamedNode(rdf + n) for n in ("first", "rest", "nil"))
    cell = BlankNode("anon1")
    assert elements("?s :p (?o)") == (
        a.TriplePattern(S, iri("p"), cell),
        a.TriplePattern(cell, first, O),
        a.TriplePattern(cell, rest, nil),
    )
    assert elements("?s :p ()") == (a.TriplePattern(S, iri("p"), nil),)


def test_path_of_one_iri_is_a_triple_pattern() -> None:
    assert elements("?s (:p) ?o") == (a.TriplePattern(S, iri("p"), O),)


def test_path_precedence() -> None:
    (pattern,) = elements("?s ^:a/:b*|!(:c|^a) ?o")
    assert isinstance(pattern, a.PathPattern)
    rdf_type = NamedNode("http://www.w3.org/1999/02/22-rdf-syntax-ns#type")
    assert pattern.path == a.PathAlternative(
        (
            a.PathSequence((a.PathInverse(iri("a")), a.PathRepeat(iri("b"), "*"))),
            a.PathNegated((iri("c"), a.PathInverse(rdf_type))),
        )
    )


def test_sub_select_stands_alone_in_its_group() -> None:
    (group,) = elements("{ SELECT ?s WHERE { ?s :p ?o } }")
    assert isinstance(group, a.Group)
    assert isinstance(group.elements[0], a.SubSelect)


def test_single_group_is_an_element() -> None:
    assert elements("{ ?s :p ?o }") == (a.Group((a.TriplePattern(S, iri("p"), O),)),)


# --- expressions --------------------------------------------------------------------------------------


def number(text: str) -> Literal:
    return Literal(text, datatype=NamedNode(XSD + "integer"))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("?s -1", a.Call("-", (S, number("1")))),
        ("?s - -1", a.Call("-", (S, number("-1")))),
        ("?s+1*2", a.Call("+", (S, a.Call("*", (number("1"), number("2")))))),
        ("?s-1-?o", a.Call("-", (a.Call("-", (S, number("1"))), O))),
        ("-?s", a.Call("NEGATE", (S,))),
        ("+?s", a.Call("PLUS", (S,))),
        ("!?s", a.Call("!", (S,))),
        ("?s || ?o && ?s", a.Call("||", (S, a.Call("&&", (O, S))))),
        ("?s<?o&&?o>?s", a.Call("&&", (a.Call("<", (S, O)), a.Call(">", (O, S))))),
        ("?s IN (1, ?o)", a.Call("IN", (S, number("1"), O))),
        ("?s not in ()", a.Call("NOT IN", (S,))),
        ("bound(?s)", a.Call("BOUND", (S,))),
        ("sameTerm(?s, ?o)", a.Call("SAMETERM", (S, O))),
        ("<http://e/f>(?s)", a.FunctionCall(iri("f"), (S,))),
        (":f()", a.FunctionCall(iri("f"), ())),
        ("<http://e/a> * 2", a.Call("*", (iri("a"), number("2")))),
        ("prev(?s) < ?s", a.Call("<", (a.Prev(S), S))),
        ("TIMEOF(A)", a.MatchFunction("TIMEOF", "A")),
        ("count(A)", a.MatchFunction("COUNT", "A")),
        ("COUNT(DISTINCT ?s)", a.Aggregate("COUNT", S, True)),
        ("STARTTIME()", a.MatchFunction("STARTTIME")),
    ],
)
def test_expression(text: str, expected: a.Expression) -> None:
    assert condition(text) == expected


def test_spans_tell_the_place() -> None:
    text = "ASK FROM STREAM S <http://e/s>\nWHERE {\n  SEQ(A;\n    B) }"
    found = parse(text).sequence
    assert isinstance(found, a.Sequence)
    assert found.rest[0][1].span == a.Span(text.index("B)"), text.index("B)") + 1, 4, 5)


@pytest.mark.parametrize(
    ("base", "reference", "expected"),
    [
        ("http://a/b/c/d;p?q", "g", "http://a/b/c/g"),
        ("http://a/b/c/d;p?q", "./g/", "http://a/b/c/g/"),
        ("http://a/b/c/d;p?q", "/g", "http://a/g"),
        ("http://a/b/c/d;p?q", "//g", "http://g"),
        ("http://a/b/c/d;p?q", "?y", "http://a/b/c/d;p?y"),
        ("http://a/b/c/d;p?q", "#s", "http://a/b/c/d;p?q#s"),
        ("http://a/b/c/d;p?q", "", "http://a/b/c/d;p?q"),
        ("http://a/b/c/d;p?q", "../../../g", "http://a/g"),
        ("http://a/b/c/d;p?q", "..", "http://a/b/"),
        ("http://a", "g", "http://a/g"),
        ("http://a/b", "urn:x", "urn:x"),
    ],
)
def test_resolution_is_rfc_3986(base: str, reference: str, expected: str) -> None:
    query = parse(f"BASE <{base}> ASK FROM STREAM S <{reference}> WHERE {{ SEQ(A) }}")
    assert query.streams[0].iri.value == expected


def test_collections_in_templates_are_refused() -> None:
    with pytest.raises(QueryError, match="unexpected `2`"):
        parse("CONSTRUCT { ?s <http://e/p> (1 2) } FROM STREAM S <http://e/s> WHERE { SEQ(A) }")
