"""Conditions that are asked for many rows at once say what they say of each row alone."""

from __future__ import annotations

from typing import Final

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyoxigraph import BlankNode, Literal, NamedNode, Triple, Variable

from oxiseq.engine.expressions.exact import ExpressionError, evaluate, truth
from oxiseq.engine.expressions.values import read
from oxiseq.engine.matching.asking import KNOWN_ERROR, KNOWN_FALSE, KNOWN_TRUE, Asked
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.grammar import parse
from oxiseq.grammar.algebra import Expression, Filter

XSD: Final = "http://www.w3.org/2001/XMLSchema#"
CONDITIONS: Final = (
    'CONTAINS(?a, "b")',
    'REGEX(?a, "^a.?$", "i")',
    "STRSTARTS(?a, ?b)",
    'LCASE(?a) = "ab"',
    '"ab" != LCASE(?a)',
    'LCASE(?a) IN ("ab", "", "x y")',
    'LCASE(?a) NOT IN ("ab", "\\t")',
    'LCASE(?a) = "\\t"',
    'LCASE(?a) = "é" || STR(?b) = "x"',
    'LCASE(?a) = "ab" && STRLEN(?a) > 1',
    "LCASE(?a) = LCASE(?b)",
    'LCASE(?a) = "ab"@en',
    "LCASE(?a) = 1",
    'LCASE(?a) < "b"',
    'IF(ISIRI(?a), ISBLANK(?b), STR(?a) = "1")',
    'COALESCE(LANG(?a), "none") = "none"',
    "STRLEN(STR(?a)) > STRLEN(STR(?b))",
    "ABS(?a) > ?b",
    "ABS(?a - ?b) > 1",
    "ROUND(?a) = ?a",
    "?a = ?b || ISBLANK(?a)",
    "sameTerm(?a, ?b) || ISLITERAL(?a)",
    "DATATYPE(?a) = <http://www.w3.org/2001/XMLSchema#integer>",
    "<http://www.w3.org/2001/XMLSchema#integer>(?a) > 1",
    "<urn:unknown>(?a) || true",
    "BOUND(?a) && ISNUMERIC(?b)",
    'STRBEFORE(?a, "b") = ?b',
)
OF_ONE: Final = (
    *(text for text in CONDITIONS if "?b" not in text),
    '?a > "ab"',
    '"ab" >= ?a',
    '?a <= "\U0001f600"',
    '"é" < ?a',
    '?a < "b"@en',
    "?a >= 1",
    'STRSTARTS(?a, "a")',
    'STRENDS(?a, "\t")',
    'CONTAINS(?a, "")',
    'CONTAINS(?a, "b"@en)',
    'CONTAINS("abc", ?a)',
    'CONTAINS(?a, "1"^^<http://www.w3.org/2001/XMLSchema#integer>)',
    'STRSTARTS(STR(?a), "a")',
    "ISBLANK(?a) && ?a = ?a",
)
TEXTS: Final = (
    "",
    "a",
    "ab",
    "AB",
    "é",
    "x y",
    'say "b"',
    "b\\",
    "\t",
    "a\nb",
    "\r",
    "\x08",
    "\x7f",
    "\U0001f600",
    "1",
    "01",
    "1.50",
    "NaN",
)
TERMS: Final = (
    None,
    NamedNode("urn:ab"),
    BlankNode(),
    Triple(NamedNode("urn:s"), NamedNode("urn:p"), Literal("b")),
    *(Literal(text) for text in TEXTS),
    *(Literal(text, language="en") for text in TEXTS),
    *(
        Literal(text, datatype=NamedNode(XSD + kind))
        for text in TEXTS[-4:]
        for kind in ("integer", "decimal", "double")
    ),
    Literal("x", datatype=NamedNode("urn:own")),
    Literal("true", datatype=NamedNode(XSD + "boolean")),
    Literal("2024-01-01", datatype=NamedNode(XSD + "date")),
)


def expression_of(text: str) -> Expression:
    """The condition of a FILTER."""
    query = parse(
        "SELECT * FROM STREAM S <urn:S> WHERE { SEQ(A) DEFINE GPM A ON S { ?a <urn:p> ?b FILTER(" + text + ") } }"
    )
    return next(part.condition for part in query.gpms[0].pattern.elements if isinstance(part, Filter))


def alone(expression: Expression, row: np.ndarray, terms: TermDictionary) -> int:
    """The outcome of one row by the exact evaluator alone."""
    names = (Variable("a"), Variable("b"))
    mapping = {v: terms.term(int(i)) for v, i in zip(names, row, strict=False) if i}
    try:
        return KNOWN_TRUE if truth(read(evaluate(expression, mapping))) else KNOWN_FALSE
    except ExpressionError:
        return KNOWN_ERROR


@pytest.mark.parametrize("text", CONDITIONS)
@given(pairs=st.lists(st.tuples(st.sampled_from(TERMS), st.sampled_from(TERMS)), max_size=40))
def test_rows_asked_together_and_alone_agree(text: str, pairs: list[tuple[object, object]]) -> None:
    terms = TermDictionary()
    expression = expression_of(text)
    rows = np.array([[number(a, terms), number(b, terms)] for a, b in pairs], np.uint32).reshape(-1, 2)
    together = Asked(expression, (Variable("a"), Variable("b"))).outcomes(rows, terms)
    assert together.tolist() == [alone(expression, row, terms) for row in rows]


@pytest.mark.parametrize("text", OF_ONE)
def test_terms_asked_together_and_alone_agree(text: str) -> None:
    """Each term thrice: a store query, and what is asked one by one, may see some of them only."""
    terms = TermDictionary()
    expression = expression_of(text)
    rows = np.array([[number(term, terms)] for term in TERMS * 3], np.uint32)
    together = Asked(expression, (Variable("a"),)).outcomes(rows, terms)
    assert together.tolist() == [alone(expression, row, terms) for row in rows]


def number(term: object, terms: TermDictionary) -> int:
    """The id of a term, 0 of None; each blank node is another one."""
    if term is None:
        return 0
    return terms.blank() if isinstance(term, BlankNode) else terms.intern(term)  # type: ignore[arg-type]
