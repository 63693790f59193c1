"""The terms of a store as ids, blank nodes by the labels that the store has for them."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from itertools import islice
from typing import Final

import numpy as np
from pyoxigraph import BlankNode, Literal, NamedNode, Triple

from oxiseq.engine.flow.delta import Ids
from oxiseq.engine.terms.dictionary import TermDictionary, blanks_in, relabelled
from oxiseq.engine.terms.texts import Term

_AT_ONCE: Final = 1 << 16
"""Terms that are looked up at a time."""


class StoreTerms:
    """A dictionary of its own: other ids than those of streams."""

    def __init__(self) -> None:
        self.dictionary = TermDictionary(nests=True)
        self._named: dict[int, Term] = {}
        """Terms that have a meaning in their store only: blank nodes, triple terms that hold some."""
        self._nodes: dict[str, BlankNode] = {}
        """The store's blank nodes by the labels that the dictionary has for them."""

    def id(self, term: Term) -> int:
        """Of a term as the store has it."""
        if isinstance(term, BlankNode):
            known = self.dictionary.kb_blank(str(term))
            if known not in self._named:
                self._named[known] = term
                self._nodes[self.dictionary.text(known)[2:]] = term
            return known
        if not isinstance(term, Triple) or not any(True for _ in blanks_in(term)):
            return self.dictionary.intern(term)
        return self.dictionary.intern_nested(term, {node: self.id(node) for node in blanks_in(term)})

    def ids(self, terms: Iterable[Term]) -> Ids:
        """Of many: u32 in their order."""
        coming = iter(terms)
        found = [np.zeros(0, np.uint32)]
        while some := list(islice(coming, _AT_ONCE)):
            known = self._known(dict.fromkeys(some))
            found.append(np.fromiter(map(known.__getitem__, some), np.uint32, len(some)))
        return np.concatenate(found)

    def _known(self, terms: Collection[Term]) -> dict[Term, int]:
        """Of different terms. IRIs and literals are looked up together, by their texts."""
        known = self.dictionary.intern_different([term for term in terms if isinstance(term, NamedNode | Literal)])
        if len(known) < len(terms):
            known |= {term: self.id(term) for term in terms if term not in known}
        return known

    def term(self, known: int) -> Term:
        """Of an id."""
        named = self._named.get(known)
        if named is not None:
            return named
        term = self.dictionary.term(known)
        return relabelled(term, lambda node: self._nodes.get(node.value, node)) if isinstance(term, Triple) else term

    def decoded(self, rows: Ids) -> list[tuple[Term | None, ...]]:
        """Rows of terms, None where they are unbound."""
        terms: dict[int, Term | None] = {0: None}
        for known in np.unique(rows).tolist():
            if known:
                terms[known] = self.term(known)
        return [tuple(terms[i] for i in row) for row in rows.tolist()]

    def encoded(self, rows: Iterable[Iterable[Term | None]], width: int) -> Ids:
        """The other way about: u32[rows, width]."""
        if not width:
            return np.zeros((sum(1 for _ in rows), 0), np.uint32)
        every = [term for row in rows for term in row]
        known = self._known(dict.fromkeys(term for term in every if term is not None))
        return np.array([0 if term is None else known[term] for term in every], np.uint32).reshape(-1, width)

    def collect_if_due(self) -> None:
        """Free what nothing holds, now and then; see `TermDictionary`."""
        before = self.dictionary.generation
        self.dictionary.collect_if_due()
        if self.dictionary.generation != before:
            live = frozenset(self.dictionary.kb_blanks.values())
            self._named = {known: term for known, term in self._named.items() if known in live}
            self._nodes = {self.dictionary.text(k)[2:]: n for k, n in self._named.items() if isinstance(n, BlankNode)}
