"""Terms ↔ their texts in N-Triples form."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final, TypeAlias

from pyoxigraph import BlankNode, Literal, NamedNode, RdfFormat, Triple

from oxiseq.engine.rdf import parse

Term: TypeAlias = NamedNode | Literal | BlankNode | Triple

_SHOWN: Final = 200
"""Characters of a text that an error shows."""
_PLAIN: Final = re.compile(r'"([^"\\]*)"(?:@([A-Za-z0-9]+(?:-[A-Za-z0-9]+)*)|\^\^<([^>\\]*)>)?')
"""A literal without escapes and without a base direction."""


def term_text(term: Term) -> str:
    """A term in N-Triples form. `str` of a triple is its three terms without the brackets of a triple term."""
    if not isinstance(term, Triple):
        return str(term)
    return f"<<( {term.subject} {term.predicate} {term_text(term.object)} )>>"


def read_term(text: str) -> Term:
    """The term of a text that `term_text` has made: nothing is checked. Not for blank nodes."""
    if text[0] == "<" and text[1] != "<":
        return NamedNode(text[1:-1])
    plain = _PLAIN.fullmatch(text)
    if plain is None:
        return parse_term(text)
    lexical, language, datatype = plain.groups()
    if language is not None:
        return Literal(lexical, language=language)
    return Literal(lexical, datatype=None if datatype is None else _datatype(datatype))


@lru_cache(1024)
def _datatype(iri: str) -> NamedNode:
    return NamedNode(iri)


def parse_term(text: str) -> Term:
    """The one term that an N-Triples text holds. Raises ValueError when it holds something else."""
    try:
        quads = list(parse(f"<urn:s> <urn:p> {text} .", RdfFormat.N_TRIPLES))
    except SyntaxError as error:
        raise ValueError(f"not a term in N-Triples form: {text[:_SHOWN]}") from error
    if len(quads) != 1:
        raise ValueError(f"not one term in N-Triples form: {text[:_SHOWN]}")
    term: Term = quads[0].object
    return term
