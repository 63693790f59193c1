"""Graphs of the knowledge base, copied into the store in which events are queried (joined_exists.py)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field

import numpy as np
from numpy.typing import NDArray
from pyoxigraph import BlankNode, NamedNode, Quad, RdfFormat, Store, parse

from oxiseq.engine.kb import KnowledgeBase
from oxiseq.engine.kb_in_time import KbInTime, Materialised
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.engine.terms.saved import KnownTerms, SavedTerms, State
from oxiseq.engine.terms.texts import Term
from oxiseq.grammar.records import dataclass


@dataclass(frozen=True, slots=True, eq=False)
class CopiedGraphs:
    """Graphs of one version of the KB. A scratch store's events are in `store` while they are matched."""

    store: Store
    blank: Mapping[str, int] = field(default_factory=dict)
    """Labels of the KB's blank nodes in the copy → their ids, in the order of their labels in the KB."""
    blank_ids: NDArray[np.uint32] = field(default_factory=lambda: np.zeros(0, np.uint32))
    """Those ids as an array, held."""
    labels: Mapping[int, str] = field(default_factory=dict)
    """The other way round: id → label in the copy."""


class KbGraphs:
    """The KB's graphs that patterns name: a `Reader` that copies them into a store."""

    def __init__(self, kb: KnowledgeBase | None, named: Sequence[NamedNode], terms: TermDictionary) -> None:
        self._terms = terms
        self._named = tuple(named)
        self._nothing = CopiedGraphs(Store())
        self._copies: Materialised[CopiedGraphs] | None = None
        if kb is not None:
            (name,) = self.texts
            self._copies = KbInTime.of(kb).materialised(name, self)

    @property
    def now(self) -> CopiedGraphs:
        """The graphs of the KB version of the instant being processed. Raises KbError."""
        return self._nothing if self._copies is None else self._copies.now

    def answer(self, kb: KnowledgeBase) -> CopiedGraphs:
        """Copy them."""
        store = Store()
        fresh: dict[BlankNode, BlankNode] = {}
        blank: dict[str, int] = {}

        def renamed(term: Term) -> Term:
            """KB labels could be those of an event's blank nodes."""
            if not isinstance(term, BlankNode):
                return term
            if term not in fresh:
                fresh[term] = BlankNode(f"kb{len(fresh)}")
                blank[fresh[term].value] = self._terms.kb_blank(term.value)
            return fresh[term]

        for s, p, o, g in self._quads(kb):
            subject = renamed(s)
            assert isinstance(subject, (NamedNode, BlankNode))  # nothing else occurs there
            store.add(Quad(subject, p, renamed(o), g))
        labels = sorted(fresh, key=lambda node: node.value)
        return self._copied(store, {fresh[node].value: blank[fresh[node].value] for node in labels})

    def saved(self, made: CopiedGraphs, terms: SavedTerms) -> State:
        """The copy itself."""
        quads = made.store.dump(format=RdfFormat.N_QUADS)
        ids = terms.ids(made.blank_ids)
        return {"quads": np.frombuffer(quads or b"", np.uint8), "labels": [*made.blank], "ids": ids}

    def restored(self, state: State, terms: KnownTerms) -> CopiedGraphs:
        """The same copy."""
        store = Store()
        store.extend(parse(state["quads"].tobytes(), RdfFormat.N_QUADS))
        return self._copied(store, dict(zip(state["labels"], terms.ids(state["ids"]).tolist(), strict=True)))

    def _copied(self, store: Store, blank: Mapping[str, int]) -> CopiedGraphs:
        ids = np.array([*blank.values()], np.uint32)
        self._terms.hold(ids)
        return CopiedGraphs(store, blank, ids, {i: label for label, i in blank.items()})

    @property
    def texts(self) -> tuple[str, ...]:
        """The queries to the KB."""
        names = " ".join(map(str, self._named))
        return (f"SELECT ?s ?p ?o ?g {{ VALUES ?g {{ {names} }} GRAPH ?g {{ ?s ?p ?o }} }}",)

    def _quads(self, kb: KnowledgeBase) -> Iterator[tuple[Term, NamedNode, Term, NamedNode]]:
        (text,) = self.texts
        for solution in kb.solutions(text):
            if isinstance(solution["g"], NamedNode):
                yield solution["s"], solution["p"], solution["o"], solution["g"]
