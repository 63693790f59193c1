"""semantics.md, section 7, fact by fact: the exact evaluator, and the machine where it decides."""

from __future__ import annotations

import machine_calls
import numpy as np
import pytest
from pyoxigraph import NamedNode, Variable

from oxiseq.engine.expressions.exact import ExpressionError, evaluate, holds, truth
from oxiseq.engine.expressions.program import compile_program
from oxiseq.engine.expressions.values import read
from oxiseq.engine.kernels.expressions import machine
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.grammar.algebra import Expression, Filter, Prev
from oxiseq.grammar.parser import parse

pytestmark = pytest.mark.xdist_group("kernels of the machine")  # compiled in one worker
FACTS = {
    "true": """
        9007199254740993 = 9007199254740992e0
        9007199254740993 != 9007199254740992
        9007199254740993 > 9007199254740992
        0.1 = "0.1"^^xsd:float
        99999999999999999999 < 100000000000000000000
        99999999999999999999 + 1 = 100000000000000000000
        0.1 + 0.2 = 0.3
        0.1e0 + 0.2e0 != 0.3
        1 / 3 = 0.333333333333333333
        -1 / 3 = -0.333333333333333333
        7 / 2 = 3.5
        1e0 / 0 > 1e308
        "NaN"^^xsd:double != "NaN"^^xsd:double
        -0.0e0 = 0.0e0
        "01"^^xsd:byte = 1
        "300"^^xsd:byte = 300
        false < true
        "a" < "b"
        "Z" < "a"
        "\\uFFFF" < "\\U00010000"
        "a"@en = "a"@EN
        "a"@en != "a"
        <http://e/a> != 1
        1 != "1"
        "2020-01-01T00:00:00Z"^^xsd:dateTime = "2020-01-01T01:00:00+01:00"^^xsd:dateTime
        "2020-01-01T00:00:00"^^xsd:dateTime != "2020-01-01T00:00:00Z"^^xsd:dateTime
        "2020-01-01T00:00:00Z"^^xsd:dateTime < "2020-01-01T14:00:00.000001"^^xsd:dateTime
        "2020-01-01T00:00:00.0000001Z"^^xsd:dateTime > "2020-01-01T00:00:00Z"^^xsd:dateTime
        "x"^^<http://e/t> = "x"^^<http://e/t>
        "abc"^^xsd:integer = "abc"^^xsd:integer
        sameTerm(1, "01"^^xsd:integer)
        !sameTerm(1, 1.0)
        1 IN (2, 1.0)
        1 IN (1, 1/0)
        2 NOT IN (1, 3)
        true || (1/0 = 1)
        !(false && (1/0 = 1))
        "a"
        1
        IF(1 < 2, true, 1/0)
        COALESCE(1/0, true)
        !BOUND(?nothing)
        REGEX("abc", "^a")
        xsd:integer("7") = 7
    """,
    "false": """
        "0.1"^^xsd:float = 0.1e0
        "NaN"^^xsd:double = "NaN"^^xsd:double
        "NaN"^^xsd:double < 1
        "NaN"^^xsd:double >= "NaN"^^xsd:double
        "2020-01-01T00:00:00"^^xsd:dateTime = "2020-01-01T00:00:00Z"^^xsd:dateTime
        "a"@en = "a"
        "a"@en = "x"^^<http://e/t>
        <http://e/a> = "x"^^<http://e/t>
        "2020-01-01"^^xsd:date = 1
        ""
        0
        "NaN"^^xsd:double
        2 IN (1, 3)
        false && (1/0 = 1)
        sameTerm(1, +"PT1H"^^xsd:duration)
    """,
    "error": """
        sameTerm(-"2020-01-01"^^xsd:date, "PT1H"^^xsd:duration)
        1 / 0
        1.0 / 0.0
        1 < "a"
        <http://e/a> < <http://e/b>
        <http://e/a> <= <http://e/a>
        "a"@en < "b"@en
        "x"^^<http://e/t> = "y"^^<http://e/t>
        "x"^^<http://e/t> = 1
        "abc"^^xsd:integer = 1
        "abc"^^xsd:integer
        "a"@en
        <http://e/a>
        "2020-01-01T00:00:00Z"^^xsd:dateTime
        "2020-01-01T00:00:00Z"^^xsd:dateTime < "2020-01-01T14:00:00"^^xsd:dateTime
        2 IN (1, 1/0)
        false || (1/0 = 1)
        true && (1/0 = 1)
        !(1/0)
        "a" + 1
        -"a"
        sameTerm(1, +"a")
        ?nothing
        ?nothing = 1
        COALESCE(1/0, ?nothing)
    """,
}
CASES = [(line.strip(), outcome) for outcome, lines in FACTS.items() for line in lines.splitlines() if line.strip()]
OUTCOMES = {"true": machine.TRUE, "false": machine.FALSE, "error": machine.ERROR}


def parsed(text: str) -> Expression:
    """The condition of FILTER(text)."""
    query = (
        "PREFIX xsd: <http://www.w3.org/2001/XMLSchema#> SELECT * FROM STREAM S <http://e/s> WHERE { SEQ(A)"
        f" DEFINE GPM A ON S {{ ?x ?y ?z FILTER({text}) }} }}"
    )
    (condition,) = (e.condition for e in parse(query).gpms[0].pattern.elements if isinstance(e, Filter))
    return condition


def outcome_of(e: Expression) -> str:
    try:
        return "true" if truth(read(evaluate(e, {}))) else "false"
    except ExpressionError:
        return "error"


@pytest.mark.parametrize(("text", "outcome"), CASES)
def test_exact(text: str, outcome: str) -> None:
    assert outcome_of(parsed(text)) == outcome
    assert holds(parsed(text), {}) is (outcome == "true")


@pytest.mark.parametrize(("text", "outcome"), CASES)
def test_machine_where_it_decides(text: str, outcome: str) -> None:
    terms = TermDictionary()
    code = compile_program(parsed(text), {}, terms).code
    decided = machine_calls.truth(code, 0, len(code), np.zeros(1, np.int64), *terms.columns)
    assert decided in (machine.UNDECIDED, OUTCOMES[outcome])


@pytest.mark.parametrize(
    ("text", "term"),
    [
        ("1 + 1", '"2"^^<http://www.w3.org/2001/XMLSchema#integer>'),
        ("1 + 1.50", '"2.5"^^<http://www.w3.org/2001/XMLSchema#decimal>'),
        ("2 / 3", '"0.666666666666666666"^^<http://www.w3.org/2001/XMLSchema#decimal>'),
        ("4 / 2", '"2"^^<http://www.w3.org/2001/XMLSchema#decimal>'),
        ('1 + "0.1"^^xsd:float', '"1.1"^^<http://www.w3.org/2001/XMLSchema#float>'),
        ('33554442.000000000000003 + "0"^^xsd:float', '"33554444"^^<http://www.w3.org/2001/XMLSchema#float>'),
        ("1e0 / 0", '"INF"^^<http://www.w3.org/2001/XMLSchema#double>'),
        ("-(0e0)", '"-0"^^<http://www.w3.org/2001/XMLSchema#double>'),
        ('DATATYPE("1"^^xsd:byte)', "<http://www.w3.org/2001/XMLSchema#integer>"),
        (
            '"2020-01-02T00:00:00Z"^^xsd:dateTime - "2020-01-01T00:00:00Z"^^xsd:dateTime',
            '"P1D"^^<http://www.w3.org/2001/XMLSchema#dayTimeDuration>',
        ),
        ("1 < 2", '"true"^^<http://www.w3.org/2001/XMLSchema#boolean>'),
    ],
)
def test_values_are_terms_in_normal_form(text: str, term: str) -> None:
    assert str(evaluate(parsed(text), {})) == term


def test_prev_is_looked_up_like_a_variable() -> None:
    x = Variable("x")
    e = parsed("PREV(?x) = ?x")
    assert holds(e, {x: NamedNode("http://e/a"), Prev(x): NamedNode("http://e/a")})
    assert not holds(e, {x: NamedNode("http://e/a")})
