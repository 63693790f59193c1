"""SUPPRESS and SUPPRESSED(): what is refused, with the place, and what is hardly meant (semantics.md 2.6c)."""

from __future__ import annotations

import time

import pytest

from oxiseq.grammar import parse, render
from oxiseq.grammar.checks import check, load
from oxiseq.grammar.errors import QueryError

WHERE = """FROM STREAM S <http://e/s> WHERE { SEQ(A; B?)
  DEFINE GPM A ON S { ?x <http://e/k> ?k OPTIONAL { ?x <http://e/o> ?o } }
  DEFINE GPM B ON S { ?y <http://e/k> ?k } }"""
LONE = "FROM STREAM S <http://e/s> WHERE { SEQ(A) DEFINE GPM A ON S { ?x <http://e/k> ?k } }"
ENDS = """FROM STREAM S <http://e/s> WHERE { SEQ(A; N!)
  DEFINE GPM A ON S { ?x <http://e/k> ?k } DEFINE GPM N ON S { ?k <http://e/n> ?n } }"""
ALLOWED = (
    f"SELECT ?k SUPPRESS PT5S BY ?x ?k PARTITION BY ?k WITHIN 3 EVENTS {ENDS}",
    f"SELECT ?k (SUPPRESSED() AS ?n) SUPPRESS 10 MINUTES BY ?k WITHIN 1 HOUR {WHERE}",
    f"CONSTRUCT {{ ?x <http://e/n> (SUPPRESSED() + 1) }} SUPPRESS PT5S BY ?x ?k WITHIN 1 HOUR {WHERE}",
    f'ASK SUPPRESS "PT5S"^^<http://www.w3.org/2001/XMLSchema#duration> BY ?x WITHIN 1 HOUR {WHERE}',
    f"SELECT ?k (COUNT(*) AS ?n) (SUPPRESSED() AS ?m) SUPPRESS 1 DAY BY ?k WITHIN 1 HOUR {WHERE} GROUP BY ?k",
    "SELECT * SUPPRESS 1 DAY BY ?k WITHIN 1 HOUR FROM STREAM S <http://e/s> WHERE { SEQ(SUPPRESS) "
    "DEFINE GPM SUPPRESS ON S { ?x <http://e/k> ?k } }",
)
REFUSED = {
    f"SELECT ?k (SUPPRESSED() AS ?n) {WHERE}": ("SUPPRESSED() needs SUPPRESS", 12),
    f"SELECT ?k SUPPRESS 0 SECONDS {WHERE}": ("SUPPRESS 0 drops nothing", 11),
    f"SELECT ?k SUPPRESS 5 EVENTS {WHERE}": ("SUPPRESS takes a time, not EVENTS", 11),
    f"SELECT ?k SUPPRESS P1M {WHERE}": ("months differ in length", 20),
    f"SELECT ?k SUPPRESS PT5S SUPPRESS PT5S {WHERE}": ("a query has one SUPPRESS", 25),
    f"SELECT ?k SUPPRESS PT5S BY ?z {WHERE}": ("no GPM of SEQ binds ?z", 28),
    f"SELECT ?k SUPPRESS PT5S BY ?k ?k {WHERE}": ("?k twice in BY", 28),
    f"SELECT ?k SUPPRESS PT5S EXTENDING {WHERE}": ("SEQ(N!; X) WITHIN d SLIDING", 25),
    f"SELECT ?k SUPPRESS PT5S {WHERE} SAMPLE 2": ("SAMPLE draws matches", 11),
    f"SELECT ?k SUPPRESS PT5S {WHERE} ORDER BY ?k LIMIT 2 OFFSET 1": ("OFFSET leaves out the first rows", 11),
    f"SELECT ?k SUPPRESS PT5S WITHIN 1 HOUR {LONE} ORDER BY ?k LIMIT 2 REPORT ON WINDOW CLOSE": (
        "REPORT ON WINDOW",
        11,
    ),
    f"SELECT ?k (COUNT(*) AS ?n) SUPPRESS PT5S BY ?x {LONE} GROUP BY ?k": ("GROUP BY has no such key", 45),
    f"SELECT ?k (COUNT(*) + SUPPRESSED() AS ?n) SUPPRESS PT5S {LONE} GROUP BY ?k": ("a column by itself", 23),
    f"SELECT ?k (COUNT(*) AS ?n) SUPPRESS PT5S {LONE} GROUP BY ?k HAVING (SUPPRESSED() > 1)": ("used in HAVING", None),
    f"SELECT ?k (SUPPRESSED() AS ?n) SUPPRESS PT5S {LONE} ORDER BY ?n LIMIT 1": ("?n is SUPPRESSED()", None),
    f"SELECT ?k SUPPRESS PT5S {LONE.replace('?k }', '?k FILTER(SUPPRESSED() > 1) }')}": ("cannot be used", None),
    f"SELECT ?k SUPPRESS PT5S BY ?x PARTITION BY ?k WITHIN 3 EVENTS {ENDS}": ("close their windows of EVENTS", 11),
    f"SELECT ?k {LONE} SUPPRESS 5 MINUTES": ("SUPPRESS belongs between SELECT and WHERE", None),
}
LINTED = {
    f"SELECT ?k SUPPRESS PT5S WITHIN 1 HOUR {LONE}": "one alert for all",
    f"SELECT ?k SUPPRESS PT5S BY ?o WITHIN 1 HOUR {WHERE}": "?o may be unbound",
    f"SELECT ?k SUPPRESS PT5S BY ?y WITHIN 1 HOUR {WHERE}": "?y may be unbound",
    f"SELECT ?k (SUPPRESSED() AS ?n) SUPPRESS PT5S BY ?k WITHIN 1 HOUR {LONE}": "a number is kept for each value",
}
OTHERS = {
    "rspql": "REGISTER RSTREAM AS SELECT ?a SUPPRESS 5 MINUTES FROM STREAM <http://e/s> [RANGE PT1M] WHERE {}",
    "epsparql": "SELECT ?a SUPPRESS 5 MINUTES FROM STREAM <http://e/s> WHERE { ?a ?b ?c }",
    "ceql": "SELECT * FROM S WHERE (A; B) SUPPRESS 5 MINUTES",
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("text", ALLOWED)
def test_it_comes_back(text: str) -> None:
    query = load(text)
    assert query.suppression is not None and parse(render(query)) == query


@pytest.mark.parametrize("text", REFUSED)
def test_it_is_refused_with_its_place(text: str) -> None:
    message, column = REFUSED[text]
    with pytest.raises(QueryError) as caught:
        load(text)
    assert message in str(caught.value)
    assert column is None or f"column {column}\n" in str(caught.value)


@pytest.mark.parametrize("text", LINTED)
def test_it_is_hardly_meant(text: str) -> None:
    lints = [finding for finding in check(parse(text), text) if finding.severity == "lint"]
    assert any(LINTED[text] in finding.message for finding in lints)


@pytest.mark.parametrize("language", OTHERS)
def test_other_languages_say_whose_clause_it_is(language: str) -> None:
    with pytest.raises(QueryError, match="SUPPRESS is a clause of SPAseq"):
        load(OTHERS[language], language)


@pytest.mark.parametrize("clause", ["SUPPRESS PT5S BY", "PARTITION BY"])
def test_thousands_of_unknown_variables_are_refused_soon(clause: str) -> None:
    named = " ".join(f"?v{number}" for number in range(4_000))
    begun = time.process_time()
    with pytest.raises(QueryError, match=r"\?v0"):
        load(f"SELECT ?k {clause} {named} {LONE}")
    assert time.process_time() - begun < 5
