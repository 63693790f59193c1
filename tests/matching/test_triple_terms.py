"""RDF 1.2: triple terms are values in events, knowledge base and CONSTRUCT; patterns do not look into them."""

from __future__ import annotations

from typing import Any

import pytest
from pyoxigraph import Literal, NamedNode, Triple

import oxiseq

EVENT = "<urn:a> <urn:said> <<( <urn:x> <urn:p> 1 )>> ."
TERM = Triple(NamedNode("urn:x"), NamedNode("urn:p"), Literal(1))
ONE = '"1"^^<http://www.w3.org/2001/XMLSchema#integer>'


def query(pattern: str, form: str = "SELECT *") -> str:
    return f"{form} FROM STREAM S <urn:s> WHERE {{ SEQ(A) DEFINE GPM A ON S {{ {pattern} }} }}"


def run(text: str, event: str = EVENT, **options: Any) -> list[Any]:
    return list(oxiseq.run(text, {"urn:s": [(1, event)]}, **options))


def test_a_variable_is_bound_to_the_whole_term() -> None:
    (match,) = run(query("?a <urn:said> ?t"))
    assert match["t"] == TERM


def test_terms_that_are_equal_join() -> None:
    text = query("?a <urn:said> ?t . ?b <urn:heard> ?t")
    assert len(run(text, EVENT + EVENT.replace("said", "heard"))) == 1
    assert len(run(text, EVENT + EVENT.replace("said", "heard").replace("1", "2"))) == 0


def test_the_knowledge_base_joins_on_them() -> None:
    text = query("?a <urn:said> ?t GRAPH <urn:g> { ?who <urn:knows> ?t }")
    known = f"<urn:ann> <urn:knows> <<( <urn:x> <urn:p> {ONE} )>> <urn:g> ."
    assert [match["who"] for match in run(text, kb=known)] == [NamedNode("urn:ann")]
    assert run(text, kb=known.replace('"1"', '"2"')) == []


def test_construct_tells_them() -> None:
    (match,) = run(query("?a <urn:said> ?t", "CONSTRUCT { ?a <urn:told> ?t }"))
    assert match.graph == (Triple(NamedNode("urn:a"), NamedNode("urn:told"), TERM),)


def test_reifiers_are_triples() -> None:
    pattern = "?r <http://www.w3.org/1999/02/22-rdf-syntax-ns#reifies> ?t . ?r <urn:by> ?who"
    (match,) = run(query(pattern), "<< <urn:x> <urn:p> 1 >> <urn:by> <urn:ann> .")
    assert (match["t"], match["who"]) == (TERM, NamedNode("urn:ann"))


@pytest.mark.parametrize("language", ["spaseq", "rspql", "epsparql"])
def test_a_term_in_a_pattern_is_refused_with_what_to_write(language: Any) -> None:
    pattern = "?a <urn:said> <<( ?x <urn:p> ?n )>>"
    text = query(pattern) if language == "spaseq" else f"SELECT * WHERE {{ {pattern} }}"
    with pytest.raises(oxiseq.QueryError, match="a triple term in a pattern") as caught:
        run(text, language=language)
    assert text[caught.value.span.start :].startswith("<<(")
    assert "use a variable instead" in caught.value.hint


def test_a_blank_node_in_a_term_is_refused() -> None:
    with pytest.raises(oxiseq.EventError, match="a triple term that holds a blank node is not supported"):
        run(query("?a <urn:said> ?t"), "<urn:a> <urn:said> <<( _:x <urn:p> 1 )>> .")
