"""Texts of many terms at once against one by one: N-Triples, plain, SPARQL JSON."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st
from pyoxigraph import BaseDirection, BlankNode, Literal, NamedNode, Triple

from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.engine.terms.normal import XSD
from oxiseq.engine.terms.texts import Term

IRI = NamedNode("http://example.org/ä?q#f")
text = st.text(st.characters(codec="utf-8"), max_size=12)
literals = st.one_of(
    st.builds(Literal, text),
    st.builds(lambda lexical: Literal(lexical, datatype=IRI), text),
    st.builds(lambda lexical, tag: Literal(lexical, language=tag), text, st.sampled_from(["en", "de-ch-1996"])),
    st.builds(lambda lexical: Literal(lexical, language="en", direction=BaseDirection.LTR), text),
    st.builds(lambda number: Literal(str(number), datatype=NamedNode(XSD + "integer")), st.integers()),
)
gaps = st.sampled_from([IRI, None, BlankNode("x")])
terms_and_gaps = st.lists(st.one_of(literals, gaps), min_size=1, max_size=12)


def ids_of(found: list[Any], terms: TermDictionary) -> list[int]:
    return [0 if t is None else terms.blank() if isinstance(t, BlankNode) else terms.intern(t) for t in found]


def pieces(data: Any, ends: Any) -> list[str]:
    return [data[a:b].tobytes().decode() for a, b in pairwise(ends)]


def plain(term: Term | None) -> str:
    if term is None:
        return ""
    return str(term) if isinstance(term, BlankNode | Triple) else term.value


def cell(term: Term) -> dict[str, str]:
    if isinstance(term, NamedNode | BlankNode):
        return {"type": "uri" if isinstance(term, NamedNode) else "bnode", "value": term.value}
    assert isinstance(term, Literal)
    made = {"type": "literal", "value": term.value}
    if term.language:
        direction = {} if term.direction is None else {"its:dir": term.direction.value}
        return made | {"xml:lang": term.language} | direction
    return made if term.datatype.value == XSD + "string" else made | {"datatype": term.datatype.value}


@given(terms_and_gaps)
@example([Literal("".join(map(chr, [*range(40), 127, 0xFFFE, 0xFFFF, 92, 34, 39])))])
def test_many_texts_are_those_of_each(found: list[Any]) -> None:
    terms = TermDictionary(capacity=1)
    ids = np.array(ids_of(found, terms), np.uint32)
    shown = [terms.term(i) if i else None for i in ids.tolist()]
    assert pieces(*terms.texts(ids)) == [terms.text(i) if i else "" for i in ids.tolist()]
    assert pieces(*terms.plain_texts(ids)) == [plain(term) for term in shown]
    rows = np.stack([ids, ids[::-1]], axis=1)
    made = json.loads("[" + terms.json_rows(rows, ['"a"', '"\\u00e4 \\""']).decode().removeprefix(",") + "]")
    assert made == [
        {name: cell(t) for name, t in (("a", a), ('ä "', b)) if t is not None}
        for a, b in zip(shown, reversed(shown), strict=True)
    ]


@given(st.lists(literals, max_size=8))
def test_texts_are_found_again_at_once(found: list[Literal]) -> None:
    terms = TermDictionary()
    ids = terms.intern_all([*found, IRI, Triple(IRI, IRI, Literal('"'))])
    data, ends = terms.texts(ids)
    assert terms.intern_texts(data, ends).tolist() == ids.tolist()
    other = TermDictionary()
    again = other.intern_texts(data, ends)
    assert [other.text(i) for i in again.tolist()] == [terms.text(i) for i in ids.tolist()]


def test_no_rows_and_no_columns() -> None:
    terms = TermDictionary()
    none = np.zeros(0, np.uint32)
    assert pieces(*terms.texts(none)) == pieces(*terms.plain_texts(none)) == []
    assert terms.json_rows(np.zeros((0, 2), np.uint32), ['"a"', '"b"']) == b""
    assert terms.json_rows(np.zeros((2, 0), np.uint32), []) == b",\n{},\n{}"
