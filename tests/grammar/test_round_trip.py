"""parse(render(q)) == q."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from algebra_strategies import groups, queries, sequences
from grammar_queries import QUERIES
from hypothesis import given
from pyoxigraph import Store

from oxiseq.grammar import parse, render
from oxiseq.grammar.algebra import Atom, Group, Query, SequenceElement
from oxiseq.grammar.render import render_group
from oxiseq.grammar.spaseq.texts import render_sequence

CORPUS = sorted((Path(__file__).parents[1] / "corpus").glob("*.toml"))
CALLS_BY_IRI = ("filters", "casts")  # the store refuses functions that it does not know
HEAD = "SELECT * FROM STREAM S <http://e/s> WHERE "


@given(queries)
def test_rendered_query_parses_to_itself(query: Query) -> None:
    assert parse(render(query)) == query


@given(sequences)
def test_rendered_sequence_parses_to_itself(element: SequenceElement) -> None:
    assert parse(f"{HEAD}{{ SEQ({render_sequence(element)}) }}").sequence == element


@given(groups)
def test_group_with_full_iris_parses_to_itself(group: Group) -> None:
    query = parse(f"{HEAD}{{ SEQ(A) DEFINE GPM A ON S {render_group(group)} }}")
    assert query.gpms[0].pattern == group


@pytest.mark.parametrize("name", QUERIES)
def test_query_of_every_clause_comes_back(name: str) -> None:
    query = parse(QUERIES[name])
    assert parse(render(query)) == query


@pytest.mark.parametrize("path", CORPUS, ids=lambda p: p.stem)
def test_query_of_the_corpus_comes_back(path: Path) -> None:
    query = parse(tomllib.loads(path.read_text(encoding="utf-8"))["query"])
    assert parse(render(query)) == query


@pytest.mark.parametrize("name", QUERIES)
def test_oxigraph_reads_the_rendered_patterns(name: str) -> None:
    """What is sent to the store is SPARQL 1.1."""
    store = Store()
    for gpm in parse(QUERIES[name]).gpms:
        text = render_group(gpm.pattern)
        if "PREV(" not in text and name not in CALLS_BY_IRI:
            store.query(f"SELECT * WHERE {text}")


def test_render_is_readable() -> None:
    text = """PREFIX : <http://e/>
SELECT DISTINCT ?a (COUNT(B) AS ?n)
WITHIN 90 SECONDS SLIDING
FROM STREAM S1 <http://e/s>
WHERE {
  SEQ(A; (B | C){2,}, D! : E?)
  DEFINE GPM A ON S1 {
    ?a :p 1 .
    OPTIONAL {
      ?a :q "x"@en .
    }
    FILTER(?a > 1 && !(?a = 2))
  }
}
"""
    assert render(parse(text)) == text


def test_spans_take_no_part_in_comparison() -> None:
    assert Atom("A") == parse(f"{HEAD}{{ SEQ(\n\n  A) }}").sequence
