"""The term dictionary: every RDF term of streams, queries and KB answers gets one small integer.

Where it stands: reader → **ids** → event batches, graph patterns, kernels. Literals are brought to the
store's normal form first, so equal ids are equal terms in the sense of a join (semantics.md, section 7).

Beside each id stand four numbers (kind, number, exact, quality) in NumPy columns that double as they grow;
kernels read them without touching a Python object.

Memory per term: 18 bytes of columns, one list entry, one dictionary entry and pyoxigraph's object, about
220 bytes for an IRI of 30 characters; a blank node costs the columns and the list entry only. Ids are never reused, so
terms that occur once (event names, timestamps) must not be interned. Not safe for several threads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from pyoxigraph import BlankNode, Literal, NamedNode, RdfFormat, Triple, parse

from oxiseq.engine.errors import LimitError
from oxiseq.engine.terms import kinds
from oxiseq.engine.terms.normal import normalise, normalise_triple
from oxiseq.engine.terms.value import IRI_VALUE, term_value

Term: TypeAlias = NamedNode | Literal | BlankNode | Triple
TermId: TypeAlias = int

UNBOUND: Final = 0
MAX_TERMS: Final = 2**32 - 1
CACHE_SIZE: Final = 1 << 17
"""Entries of the caches of as-written literals and of texts; a full cache is emptied."""


class TermColumns(NamedTuple):
    """Arrays by term id, C-contiguous and writable, at least as long as the dictionary (matching.md 2)."""

    kind: NDArray[np.uint8]
    number: NDArray[np.float64]
    exact: NDArray[np.int64]
    quality: NDArray[np.uint8]


def _columns(capacity: int) -> TermColumns:
    return TermColumns(
        np.zeros(capacity, np.uint8),
        np.zeros(capacity, np.float64),
        np.zeros(capacity, np.int64),
        np.zeros(capacity, np.uint8),
    )


class TermDictionary:
    """Terms ↔ ids. Id 0 is "unbound", the first term gets 1; `len` counts the id 0 too."""

    def __init__(self, capacity: int = 1024) -> None:
        self._ids: dict[Term, TermId] = {}
        self.lookup: Callable[[Term], TermId | None] = self._ids.get
        """The fast door of readers: the id of a term that is known in exactly this form, else None."""
        self._terms: list[Term | None] = [None]  # None: unbound, or a blank node (made when asked for)
        self._written: dict[Literal, TermId] = {}  # literals that are not in normal form
        self._texts: dict[str, TermId] = {}
        self._columns = _columns(max(capacity, 16))

    def __len__(self) -> int:
        return len(self._terms)

    @property
    def columns(self) -> TermColumns:
        """The columns as they are now. Growth replaces the arrays: fetch them anew for every batch."""
        return self._columns

    def intern(self, term: Term) -> TermId:
        """The id of an IRI, a literal or a triple term without blank nodes; a new one when it is not known.

        Raises ValueError for a blank node, which has no meaning outside its event (see `blank`).
        """
        known = self._ids.get(term)
        if known is not None:
            return known
        if isinstance(term, NamedNode):
            return self._add(term)
        if isinstance(term, Literal):
            return self._intern_literal(term)
        if isinstance(term, Triple):
            _refuse_blank_nodes(term)
            normal = normalise_triple(term)
            return self._ids.get(normal) or self._add(normal)
        if isinstance(term, BlankNode):
            raise ValueError("a blank node belongs to its event: ask for blank()")
        raise TypeError(f"not an RDF term: {term!r}")

    def intern_all(self, terms: Iterable[Term]) -> NDArray[np.uint32]:
        """The ids of many terms, u32 in their order."""
        intern = self.intern
        return np.fromiter((intern(term) for term in terms), np.uint32)

    def intern_text(self, text: str) -> TermId:
        """The id of a term in N-Triples form (`<http://a>`, `"1"^^<...>`, `"x"@en`).

        Raises ValueError when the text is not exactly one IRI, literal or triple term. Texts are cached.
        """
        known = self._texts.get(text)
        if known is None:
            known = self.intern(parse_term(text))
            if len(self._texts) >= CACHE_SIZE:
                self._texts.clear()
            self._texts[text] = known
        return known

    def blank(self) -> TermId:
        """The id of a fresh blank node."""
        fresh = self._next_id()
        self._terms.append(None)
        self._columns.kind[fresh] = kinds.BLANK
        return fresh

    def blanks(self, count: int) -> int:
        """The first of `count` fresh blank nodes with consecutive ids."""
        first = len(self._terms)
        self._reserve(first + count)
        self._terms.extend([None] * count)
        self._columns.kind[first : first + count] = kinds.BLANK
        return first

    def find(self, term: Term) -> TermId:
        """The id of a term, 0 when it has none; nothing is added. Blank nodes are never found."""
        known = self._ids.get(term, UNBOUND)
        if known == UNBOUND and isinstance(term, Literal):
            return self._written.get(term) or self._ids.get(normalise(term), UNBOUND)
        return known

    def term(self, term_id: TermId) -> Term:
        """The term of an id, in normal form; a blank node is labelled `b` and its id.

        Raises KeyError for 0 and for an id that was not given.
        """
        if not 0 < term_id < len(self._terms):
            raise KeyError(term_id)
        term = self._terms[term_id]
        return BlankNode(f"b{term_id}") if term is None else term

    def text(self, term_id: TermId) -> str:
        """The term of an id in N-Triples form. Raises KeyError like `term`."""
        return term_text(self.term(term_id))

    def _intern_literal(self, literal: Literal) -> TermId:
        known = self._written.get(literal)
        if known is not None:
            return known
        normal = normalise(literal)
        if normal is literal:
            return self._add(literal)
        known = self._ids.get(normal) or self._add(normal)
        if len(self._written) >= CACHE_SIZE:
            self._written.clear()
        self._written[literal] = known
        return known

    def _add(self, term: Term) -> TermId:
        fresh = self._next_id()
        kind, number, exact, quality = IRI_VALUE if isinstance(term, NamedNode) else term_value(term)
        columns = self._columns
        columns.kind[fresh] = kind
        if quality or exact:  # else the rest is 0, as in most strings
            columns.number[fresh] = number
            columns.exact[fresh] = exact
            columns.quality[fresh] = quality
        self._terms.append(term)
        self._ids[term] = fresh
        return fresh

    def _next_id(self) -> TermId:
        fresh = len(self._terms)
        if fresh >= len(self._columns.kind):
            self._reserve(fresh + 1)
        return fresh

    def _reserve(self, length: int) -> None:
        if length > MAX_TERMS:
            raise LimitError(length, MAX_TERMS, "distinct terms")
        capacity = len(self._columns.kind)
        if length <= capacity:
            return
        grown = _columns(max(length, 2 * capacity))
        old = self._columns
        grown.kind[:capacity] = old.kind
        grown.number[:capacity] = old.number
        grown.exact[:capacity] = old.exact
        grown.quality[:capacity] = old.quality
        self._columns = grown


def term_text(term: Term) -> str:
    """A term in N-Triples form. `str` of a triple is its three terms without the brackets of a triple term."""
    if not isinstance(term, Triple):
        return str(term)
    return f"<<( {term.subject} {term.predicate} {term_text(term.object)} )>>"


def parse_term(text: str) -> Term:
    """The one term that an N-Triples text holds. Raises ValueError when it holds something else."""
    try:
        quads = list(parse(f"<urn:s> <urn:p> {text} .", RdfFormat.N_TRIPLES))
    except SyntaxError as error:
        raise ValueError(f"not a term in N-Triples form: {text}") from error
    if len(quads) != 1:
        raise ValueError(f"not one term in N-Triples form: {text}")
    term: Term = quads[0].object
    return term


def _refuse_blank_nodes(triple: Triple) -> None:
    for part in (triple.subject, triple.predicate, triple.object):
        if isinstance(part, BlankNode):
            raise ValueError("a triple term that holds a blank node is not supported")
        if isinstance(part, Triple):
            _refuse_blank_nodes(part)
