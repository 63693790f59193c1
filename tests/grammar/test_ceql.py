"""CEQL: text → algebra → text, one fact per test."""

from __future__ import annotations

import pytest
from broken_texts import assert_read_or_refused, broken_texts, pieces
from ceql_algebra_strategies import formulas, predicates, queries
from hypothesis import given
from hypothesis import strategies as st
from pyoxigraph import Literal, NamedNode, Variable

from oxiseq.grammar import Finding, OxiseqError, QueryError, check, language_of, load, parse, render
from oxiseq.grammar import algebra as a
from oxiseq.grammar import ceql_algebra as c
from oxiseq.grammar.ceql.texts import render_formula, render_predicate
from oxiseq.grammar.ceql_algebra import CeqlQuery

HEAD = "VOCAB <http://e/> SELECT * FROM S WHERE "
XSD = "http://www.w3.org/2001/XMLSchema#"
A, B, C = (c.EventType(n) for n in "ABC")
X, Y = Variable("x"), Variable("y")


def number(text: str) -> Literal:
    return Literal(text, datatype=NamedNode(XSD + "integer"))


def formula(text: str) -> c.Formula:
    return parse(HEAD + text, "ceql").formula


def predicate(text: str) -> a.Expression:
    found = formula(f"A FILTER A[{text}]")
    assert isinstance(found, c.Filtered) and isinstance(found.condition, c.Holds)
    return found.condition.predicate


def condition(text: str) -> c.Condition:
    found = formula(f"A FILTER {text}")
    assert isinstance(found, c.Filtered)
    return found.condition


def asked(name: str, of: str = "A") -> c.Holds:
    return c.Holds(of, Variable(name))


def seq(first: c.Formula, *rest: c.Formula, contiguous: bool = False) -> c.Follows:
    return c.Follows(first, tuple((contiguous, f) for f in rest))


# --- formulas ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("A", A),
        ("((A))", A),
        ("A AS a", c.Named(A, "a")),
        ("A as a+", c.Iterated(c.Named(A, "a"))),
        ("A+ AS a", c.Named(c.Iterated(A), "a")),
        ("A :+", c.Iterated(A, True)),
        ("A: +", c.Iterated(A, True)),
        ("A; B; C", seq(A, B, C)),
        ("A : B", seq(A, B, contiguous=True)),
        ("A:B;C", c.Follows(A, ((True, B), (False, C)))),
        ("A; (B; C)", seq(A, seq(B, C))),
        ("A OR B OR C", c.Either((A, B, C))),
        ("A; B or B; A", c.Either((seq(A, B), seq(B, A)))),
        ("(A OR B)+", c.Iterated(c.Either((A, B)))),
        ("(A OR B); C", seq(c.Either((A, B)), C)),
        ("(A; B)+ ; C", seq(c.Iterated(seq(A, B)), C)),
        ("A OR B FILTER A[x]", c.Filtered(c.Either((A, B)), asked("x"))),
        ("A FILTER A[x] FILTER A[y]", c.Filtered(c.Filtered(A, asked("x")), asked("y"))),
        ("(A FILTER A[x]); B", seq(c.Filtered(A, asked("x")), B)),
        ("A -- a comment ;\n; B /* another\n; */ # and one more", seq(A, B)),
        ("events; Next AS last", seq(c.EventType("events"), c.Named(c.EventType("Next"), "last"))),
    ],
)
def test_formula(text: str, expected: c.Formula) -> None:
    assert formula(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("A[x] AND A[y]", c.AllOf((asked("x"), asked("y")))),
        ("A[x] OR A[y] AND A[z]", c.AnyOf((asked("x"), c.AllOf((asked("y"), asked("z")))))),
        ("(A[x] OR A[y]) and A[z]", c.AllOf((c.AnyOf((asked("x"), asked("y"))), asked("z")))),
        ("((A[x]))", asked("x")),
    ],
)
def test_condition(text: str, expected: c.Condition) -> None:
    assert condition(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x > 1", a.Call(">", (X, number("1")))),
        ("x == 1", a.Call("=", (X, number("1")))),
        ("x <> y", a.Call("!=", (X, Y))),
        ("x = 'a\\'b'", a.Call("=", (X, Literal("a'b")))),
        ('x = "a"', a.Call("=", (X, Literal("a")))),
        ("x = TRUE", a.Call("=", (X, Literal("true", datatype=NamedNode(XSD + "boolean"))))),
        (f"x < '1'^^<{XSD}date>", a.Call("<", (X, Literal("1", datatype=NamedNode(XSD + "date"))))),
        ("NOT x = 1 AND y", a.Call("&&", (a.Call("!", (a.Call("=", (X, number("1"))),)), Y))),
        ("x OR y AND x", a.Call("||", (X, a.Call("&&", (Y, X))))),
        ("(x OR y) and x", a.Call("&&", (a.Call("||", (X, Y)), X))),
        ("not (x or y)", a.Call("!", (a.Call("||", (X, Y)),))),
        ("x -1 > y", a.Call(">", (a.Call("-", (X, number("1"))), Y))),
        ("x - -1 > y", a.Call(">", (a.Call("-", (X, number("-1"))), Y))),
        ("-x < -(1)", a.Call("<", (a.Call("NEGATE", (X,)), a.Call("NEGATE", (number("1"),))))),
        ("x + y * 2 = 1", a.Call("=", (a.Call("+", (X, a.Call("*", (Y, number("2"))))), number("1")))),
        ("(x + y) * 2 = 1", a.Call("=", (a.Call("*", (a.Call("+", (X, Y)), number("2"))), number("1")))),
    ],
)
def test_predicate(text: str, expected: a.Expression) -> None:
    assert predicate(text) == expected


# --- clauses ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1 MINUTE", a.Window(60_000_000, False, True)),
        ("1 hour 30 minutes", a.Window(5_400_000_000, False, True)),
        ("0.5 SECONDS", a.Window(500_000, False, True)),
        ("7 EVENTS", a.Window(7, True, True)),
        ("30000 [stock_time]", c.AttributeWindow(number("30000"), Variable("stock_time"))),
    ],
)
def test_window(text: str, expected: a.Window | c.AttributeWindow) -> None:
    assert parse(f"{HEAD} A WITHIN {text}", "ceql").window == expected


def test_every_clause() -> None:
    text = (
        "vocab <http://e/#> select max b, SELL from Stock, Other where BUY as b; SELL"
        " limit 3 consume by partition within 2 events partition by [name], [volume]"
    )
    names = tuple(c.Name(n) for n in ("b", "SELL"))
    query = parse(text, "ceql")
    assert (query.columns, query.streams) == (names, (c.Name("Stock"), c.Name("Other")))
    assert query.vocab == "http://e/#"
    assert query.selection == a.Selection(a.Strategy.MAX)
    assert query.partition == a.Partition((Variable("name"), Variable("volume")))
    assert query.consumption == a.Consumption(whole_query=False)
    assert query.limit == a.Limit(3)
    assert query.text == text


def test_defaults_of_strategy_and_consumption_may_be_written_out() -> None:
    assert parse(HEAD.replace("*", "ALL *") + "A CONSUME BY NONE", "ceql") == parse(HEAD + "A", "ceql")


def test_an_unknown_language_is_refused() -> None:
    with pytest.raises(OxiseqError, match="'sql' is not known; known: spaseq, ceql"):
        parse("", "sql")
    with pytest.raises(OxiseqError, match="known: spaseq, ceql"):
        load("", "sql")


def test_the_ending_of_a_file_tells_the_language() -> None:
    assert [language_of(f) for f in ("a/b.ceql", "B.CEQL", "b.spaseq", "-")] == ["ceql", "ceql", "spaseq", "spaseq"]


# --- and back ---------------------------------------------------------------------------------------


@given(queries)
def test_rendered_query_parses_to_itself(query: CeqlQuery) -> None:
    assert parse(render(query), "ceql") == query


@given(formulas)
def test_rendered_formula_parses_to_itself(drawn: c.Formula) -> None:
    assert formula(render_formula(drawn)) == drawn


@given(predicates)
def test_rendered_predicate_parses_to_itself(drawn: a.Expression) -> None:
    assert predicate(render_predicate(drawn)) == drawn


def test_render_is_readable() -> None:
    text = """VOCAB <http://example.org/stock#>
SELECT NEXT low, high
FROM Stock, Other
WHERE (BUY OR SELL) AS low; (BUY FILTER BUY[price > 1])+ AS mid : SELL:+ AS high \
FILTER low[price < 100 AND NOT name = "X"] AND (mid[volume = -1] OR high[price * 2 >= 2.5])
PARTITION BY [name], [volume]
WITHIN 90 SECONDS
CONSUME BY ANY
LIMIT 2
"""
    assert render(parse(text, "ceql")) == text


# --- checks -----------------------------------------------------------------------------------------

LINTS = {
    "no window": ("A; B", [("unbounded", "A; B")]),
    "no window, and nothing to wait for": ("A", []),
    "a number as a text": ("A FILTER A[x > '60'] WITHIN 1 DAY", [("text", "x > '60'")]),
    "a name as a text": ("A FILTER A[x > 'N60'] WITHIN 1 DAY", []),
    "a value compared with itself": ("A FILTER A[x = x] WITHIN 1 DAY", [("itself", "x = x")]),
    "no attribute": ("A FILTER A['x' = 'y'] WITHIN 1 DAY", [("constant", "A['x' = 'y']")]),
    "an attribute called as an aggregate": ("A FILTER A[count > 1] WITHIN 1 DAY", [("constant", "A[count > 1]")]),
    "a name that is a type": ("A AS B; B WITHIN 1 DAY", [("name", "B")]),
    "consume by partition without partitions": (
        "A CONSUME BY PARTITION WITHIN 1 DAY",
        [("consume", "CONSUME BY PARTITION")],
    ),
    "nothing to say": ("A AS a; B FILTER a[x > 1] WITHIN 1 DAY", []),
}


def findings(text: str) -> tuple[Finding, ...]:
    return check(parse(text, "ceql"), text)


@pytest.mark.parametrize("name", LINTS)
def test_lints(name: str) -> None:
    text, expected = LINTS[name]
    found = findings(HEAD + text)
    assert [(f.code, (HEAD + text)[f.span.start : f.span.end]) for f in found] == expected
    assert all(f.severity == "lint" and f.message and f.hint for f in found)


def test_a_name_twice_in_select() -> None:
    (found,) = findings("VOCAB <http://e/> SELECT A, A FROM S WHERE A WITHIN 1 DAY")
    assert (found.severity, found.code, found.column) == ("lint", "select", 29)


def test_too_deep_nesting_is_an_error_with_a_message() -> None:
    with pytest.raises(QueryError, match="the query is nested too deeply"):
        load(HEAD + "A" + "+" * 3000, "ceql")


# --- whatever the text ------------------------------------------------------------------------------

TEXT = (
    "VOCAB <http://e/#>\nSELECT MAX b, SELL FROM Stock, Other\nWHERE (BUY OR SELL)+ AS b; SELL : BUY:+ FILTER"
    " b[price > 1 AND NOT name = 'x'] OR SELL[-price + 1 <= 2.5]\nPARTITION BY [name], [x] WITHIN 30 [t]"
    " CONSUME BY ANY LIMIT 3 -- end"
)
WORDS = sorted({*pieces(TEXT), "?", "&&", "||", "->", "EVENTS", "#", "/*", '"', "{", "*"})


@given(st.one_of(broken_texts([TEXT], WORDS), st.text(max_size=30)))
def test_any_text_is_a_query_or_a_query_error(text: str) -> None:
    assert_read_or_refused(text, "ceql")
