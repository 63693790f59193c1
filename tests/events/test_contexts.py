"""Contexts of JSON-LD that are known beforehand: what is written out means the same, and nothing is fetched or grows
without bounds."""

from __future__ import annotations

import json
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyoxigraph import CanonicalizationAlgorithm, Dataset

from oxiseq.engine.events.contexts import NO_CONTEXTS, Contexts

A: Final = "https://e.org/a"
B: Final = "https://e.org/b"
E: Final = "http://e/"


def quads(document: Any, contexts: Contexts = NO_CONTEXTS) -> set[str]:
    dataset = Dataset(contexts.quads(json.dumps(document).encode()))
    dataset.canonicalize(CanonicalizationAlgorithm.UNSTABLE)
    return set(map(str, dataset))


TERMS: Final = st.dictionaries(st.sampled_from("pqr"), st.sampled_from([E + "1", {"@id": E + "2"}]), max_size=3)
NODES: Final = st.recursive(
    st.integers(0, 3),
    lambda inner: st.dictionaries(st.sampled_from(["p", "q", "r"]), inner, min_size=1, max_size=3),
    max_leaves=6,
).filter(lambda node: isinstance(node, dict))


@given(TERMS, TERMS, NODES, st.sampled_from([A, [A, B], [B, A], [A, {"r": E + "r"}]]))
def test_a_named_context_means_what_it_holds(a: Any, b: Any, node: Any, named: Any) -> None:
    held = {A: a, B: b}
    plain = [held.get(each, each) if isinstance(each, str) else each for each in named]
    inside = held[named] if isinstance(named, str) else plain
    contexts = Contexts({A: {"@context": a}, B: b})
    assert quads({"@context": named, **node}, contexts) == quads({"@context": inside, **node})


@pytest.mark.parametrize(
    "document",
    [
        {"@context": {"p": {"@id": E + "p", "@context": A}}, "p": {"q": 1}},
        {"@context": {"@import": A, "p": E + "p"}, "p": {"q": 1}},
        {"@context": {"p": E + "p"}, "p": {"@context": A, "q": 1}},
        [{"@context": [{"p": E + "p"}, A], "p": {"q": 1}}],
        {"@context": B, "p": {"q": 1}},
    ],
)
def test_wherever_a_context_is_named(document: Any) -> None:
    contexts = Contexts({A: {"q": E + "q"}, B: [A, {"p": E + "p"}]})
    assert quads(document, contexts) == quads({"@context": {"p": E + "p", "q": E + "q"}, "p": {"q": 1}})


def test_a_literal_of_json_is_left_as_it_is() -> None:
    document = {E + "p": {"@type": "@json", "@value": {"@context": A}}}
    assert NO_CONTEXTS.written_out(document) == document
    (found,) = quads(document)
    assert '{\\"@context\\"' in found


@pytest.mark.parametrize(
    "context",
    [A, [A], {"p": {"@id": E + "p", "@context": A}}, {"@import": A}],
    ids=["alone", "list", "scoped", "import"],
)
def test_what_is_not_known_is_not_fetched(context: Any) -> None:
    with pytest.raises(SyntaxError, match="nothing is fetched"):
        quads({"@context": context, "p": 1}, Contexts({B: {}}))
    with pytest.raises(SyntaxError, match="nothing is fetched"):
        Contexts({B: context})


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({A: A}, "names itself"),
        ({A: B, B: [A]}, "names itself"),
        ({A: {"@import": B}, B: []}, "is not one context"),
        ({A: {"@import": 5}}, "is the IRI of a context"),
        ({A: {"p": "x" * 100_000}, **{f"{A}{n}": [A, A] for n in range(10)}}, "characters together"),
        ({f"{A}{n}": [f"{A}{n + 1}"] * 10 if n < 9 else {"p": "x" * 99} for n in range(10)}, "characters together"),
    ],
)
def test_contexts_that_cannot_be_are_refused(given: Any, reason: str) -> None:
    with pytest.raises(SyntaxError, match=reason):
        Contexts(given)


def test_a_list_of_contexts_may_stand_in_a_list() -> None:
    contexts = Contexts({A: [{"p": E + "p"}, {"q": E + "q"}], B: [A, {"r": E + "r"}]})
    assert len(quads({"@context": [B, {"s": E + "s"}], "p": 1, "q": 2, "r": 3, "s": 4}, contexts)) == 4


def test_a_document_cannot_multiply_them() -> None:
    contexts = Contexts({A: {"p": E + "p" * 100_000}})
    with pytest.raises(SyntaxError, match="characters together"):
        contexts.quads(json.dumps([{"@context": A, "p": 1}] * 1_000).encode())
    with pytest.raises(SyntaxError, match="nested more than 256 deep"):
        contexts.quads(b'{"@context":' * 100_000)
