"""The draft's own tests of RDF Messages, from `rdf-messages` beside the W3C's suites (w3c_suites.py says where)."""

from __future__ import annotations

import json
from collections.abc import Iterable
from io import BytesIO
from typing import Any, Final, cast

import pytest
from pyoxigraph import (
    BlankNode,
    CanonicalizationAlgorithm,
    Dataset,
    DefaultGraph,
    Literal,
    NamedNode,
    Quad,
    RdfFormat,
    Triple,
    parse,
)
from w3c_suites import absent, shared_suite

from oxiseq.engine.errors import EventError
from oxiseq.engine.events.contexts import Contexts
from oxiseq.engine.events.messages.announced import RDF_FORMATS, MessageFormat, announces
from oxiseq.engine.events.messages.reading import message_columns
from oxiseq.engine.events.messages.writing import head, message_text
from oxiseq.engine.terms.dictionary import TermDictionary

_FOLDER = shared_suite("rdf-messages")
_CASES: Final = [] if _FOLDER is None else json.loads((_FOLDER / "cases.json").read_text())["cases"]
_FORMATS: Final[dict[str, MessageFormat]] = {
    "ntriples": "messages-ntriples",
    "nquads": "messages-nquads",
    "turtle": "messages-turtle",
    "trig": "messages-trig",
    "ndjson-ld": "messages-ndjsonld",
}
_CONTEXTS: Final = Contexts(
    {
        "https://schema.org/": {"@context": {"@vocab": "https://schema.org/"}},
        "https://example.org/other-vocab/": {"@vocab": "https://example.org/other-vocab/"},
    }
)
"""What stands at the addresses that the cases name."""
_TYPE: Final = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"


def _product(name: str, colour: str) -> list[str]:
    of = "https://schema.org/"
    return [f"_:a {_TYPE} <{of}Product> .", f'_:a <{of}name> "{name}" .', f'_:a <{of}color> "{colour}" .']


_FROM_NOTES: Final = {
    "context-message-followed-by-data-message": [_product("Hairdryer DRY 2000", "red")],
    "empty-message-does-not-change-active-context": [[], _product("27-inch 4K Monitor 2700P", "black")],
    "context-switch-applies-to-subsequent-data-messages": [
        _product("Hairdryer DRY 2000", "red"),
        [
            f"_:a {_TYPE} <https://example.org/other-vocab/OtherType> .",
            '_:a <https://example.org/other-vocab/name> "Piotr" .',
        ],
    ],
}
"""Of the cases that say in a note what is to be expected."""


def read(text: str, format: MessageFormat) -> list[list[Quad]]:
    """The messages of a text, announced as the draft asks. Raises EventError."""
    content = text.encode()
    if format != "messages-ndjsonld" and not announces(content):
        raise EventError(None, 1, "not a log of messages")
    terms = TermDictionary()
    found = []
    for columns in message_columns(BytesIO(content), terms, format, _CONTEXTS):
        for fault in columns.faults.values():
            raise EventError(None, *fault)
        rows = list(zip(columns.subject, columns.predicate, columns.object, columns.graph, strict=True))
        for low, high in zip(columns.offset, columns.offset[1:], strict=False):
            found.append([_quad(terms, row) for row in rows[low:high]])
    return found


def _quad(terms: TermDictionary, ids: Iterable[Any]) -> Quad:
    subject, predicate, object_, graph = (None if term == 0 else terms.term(int(term)) for term in ids)
    assert isinstance(subject, NamedNode | BlankNode)
    assert isinstance(predicate, NamedNode)
    assert isinstance(object_, NamedNode | BlankNode | Literal | Triple)
    name = DefaultGraph() if graph is None else cast("NamedNode | BlankNode", graph)
    return Quad(subject, predicate, object_, name)


def _canonical(quads: Iterable[Quad]) -> Dataset:
    dataset = Dataset(quads)
    dataset.canonicalize(CanonicalizationAlgorithm.RDFC_1_0)
    return dataset


def _expected(case: dict[str, Any]) -> list[Dataset]:
    messages = case["messages"] if case["messages"] is not None else _FROM_NOTES[case["id"]]
    return [_canonical(parse("\n".join(lines), RdfFormat.N_QUADS)) for lines in messages]


def _named(*, round_trip: bool) -> list[Any]:
    """The cases of a kind, as parameters."""
    return [pytest.param(case, id=case["id"]) for case in _CASES if (case["format"] == "round trip") == round_trip]


pytestmark = pytest.mark.skipif(_FOLDER is None, reason=absent("rdf-messages"))


def test_there_are_as_many_as_there_were() -> None:
    assert len(_CASES) == 21


@pytest.mark.parametrize("case", _named(round_trip=False))
def test_log(case: dict[str, Any]) -> None:
    """What is read from a text."""
    format = _FORMATS[case["format"]]
    if case["messages"] == "error":
        with pytest.raises(EventError):
            read(case["input"], format)
        return
    messages = read(case["input"], format)
    assert [_canonical(message) for message in messages] == _expected(case)
    nodes = [{q.subject for q in message if isinstance(q.subject, BlankNode)} for message in messages]
    assert not any(one & other for i, one in enumerate(nodes) for other in nodes[:i])


@pytest.mark.parametrize("format", RDF_FORMATS)
@pytest.mark.parametrize("case", _named(round_trip=True))
def test_round_trip(case: dict[str, Any], format: MessageFormat) -> None:
    """Written and read back: in the formats without graphs the triples alone."""
    messages = [list(parse("\n".join(lines), RdfFormat.N_QUADS)) for lines in case["messages"]]
    text = head(format) + "".join(message_text(message, format) for message in messages)
    if format in ("messages-ntriples", "messages-turtle"):
        messages = [[Quad(q.subject, q.predicate, q.object) for q in message] for message in messages]
    assert [_canonical(message) for message in read(text, format)] == [_canonical(message) for message in messages]
