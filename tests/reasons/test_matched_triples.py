"""Which triples of an event its pattern matched."""

from __future__ import annotations

from pyoxigraph import Literal, NamedNode, RdfFormat, Triple, parse

from oxiseq.grammar import load
from oxiseq.grammar.algebra import Gpm
from oxiseq.languages.spaseq.why import matched_triples, values_in_all

EX = "http://example.org/"
GRAPH = """@prefix : <http://example.org/> .
:h1 :watts 5.0 ; :at [ :room "attic" ] .
:h2 :watts 7 ; :at [ :room "attic" ] .
:h1 :watts 9 ."""


def triples() -> tuple[Triple, ...]:
    quads = parse(GRAPH.encode(), RdfFormat.TURTLE)
    return tuple(Triple(q.subject, q.predicate, q.object) for q in quads)


def gpms(a: str, b: str = "?house :watts ?other") -> tuple[Gpm, ...]:
    return load(
        f"""PREFIX : <{EX}> SELECT * WITHIN 1 HOUR FROM STREAM S <urn:s> WHERE {{ SEQ(A; B)
        DEFINE GPM A ON S {{ {a} }} DEFINE GPM B ON S {{ {b} }} }}""",
        "spaseq",
    ).gpms


def shown(numbers: tuple[int, ...]) -> set[tuple[str, str]]:
    """(predicate, object) of these triples."""
    graph = triples()
    return {
        (graph[n].predicate.value.removeprefix(EX), graph[n].object.value)
        for n in numbers
        if not str(graph[n].object).startswith("_:")
    }


def test_those_of_the_values_that_the_match_binds() -> None:
    gpm, _ = gpms("?house :watts ?w")
    bound = {"house": NamedNode(f"{EX}h1"), "w": Literal(9)}
    assert shown(matched_triples(gpm, triples(), bound)) == {("watts", "9")}


def test_another_form_of_the_same_number_is_the_same_term_of_the_store() -> None:
    gpm, _ = gpms("?house :watts ?w")
    bound = {"w": Literal("5.00", datatype=NamedNode("http://www.w3.org/2001/XMLSchema#decimal"))}
    assert shown(matched_triples(gpm, triples(), bound)) == {("watts", "5.0")}


def test_a_blank_node_of_the_pattern_joins_its_triples() -> None:
    gpm, _ = gpms("?house :watts ?w ; :at [ :room ?room ]")
    found = matched_triples(gpm, triples(), {"house": NamedNode(f"{EX}h2"), "w": Literal(7), "room": Literal("attic")})
    assert len(found) == 3 and shown(found) == {("watts", "7"), ("room", "attic")}


def test_a_repeated_pattern_has_other_values_in_each_iteration() -> None:
    a, b = gpms("?house :watts ?w")
    bound = {"house": NamedNode(f"{EX}h1"), "w": Literal(1), "other": Literal(2)}
    assert matched_triples(a, triples(), bound) == ()
    assert shown(matched_triples(a, triples(), values_in_all(a, [b], bound))) == {("watts", "5.0"), ("watts", "9")}


def test_nothing_of_an_event_that_is_deleted_or_of_a_pattern_without_plain_triples() -> None:
    gpm, other = gpms("?house :watts|:volts ?w")
    assert matched_triples(other, (), {}) == ()
    assert matched_triples(gpm, triples(), {}) == ()
