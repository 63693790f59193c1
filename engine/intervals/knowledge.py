"""The knowledge base as rows without a time: its default graph, with what the loader has inferred by RDFS, and answers
of GRAPH patterns.

Where it stands: the store → **rows** → nodes.py. Asked when a
run begins and again when the content has changed; a run knows the blank nodes again (`KbBlanks`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray
from pyoxigraph import BlankNode, Literal, NamedNode

from oxiseq.engine.intervals.plan import Place, Plan, TimelessPlan, TriplePlan, everything
from oxiseq.engine.intervals.rows import Column, Rows, empty, timeless
from oxiseq.engine.kb import KnowledgeBase
from oxiseq.engine.terms.blanks import KbBlanks
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.engine.terms.texts import Term

INFERRED: Final = "urn:oxiseq:inferred"
"""The graph of RDFS's consequences, as kb_loader names it."""


class Knowledge:
    """The content of one moment."""

    def __init__(self, kb: KnowledgeBase, terms: TermDictionary, blanks: KbBlanks) -> None:
        self._kb = kb
        self._terms = terms
        self._blanks = blanks
        self._ids: dict[Term, int] = {}
        self._known: dict[str, NDArray[np.uint32]] = {}
        self._has_triples = bool(len(self._ask(f"SELECT ?s WHERE {_either('?s ?p ?o')} LIMIT 1", ("s",))))

    def triples(self, places: tuple[Place, Place, Place]) -> Rows:
        """The triples, stated or inferred, that have a pattern's constants."""
        if not self._has_triples:
            return empty(3)
        pattern = " ".join(
            str(p) if isinstance(p, NamedNode | Literal) else f"?{name}"
            for p, name in zip(places, "spo", strict=True)
        )
        binds = " ".join(
            f"BIND({p} AS ?{name})" for p, name in zip(places, "spo", strict=True)
            if isinstance(p, NamedNode | Literal)
        )
        return timeless(self._ask(f"SELECT DISTINCT ?s ?p ?o WHERE {{ {_either(pattern)} {binds} }}", ("s", "p", "o")))

    def answer(self, text: str, columns: Sequence[Column]) -> NDArray[np.uint32]:
        """u32[n, columns]: the solutions of a SELECT query for these columns, in its order."""
        names = [getattr(c, "value", "") for c in columns]
        return self._ask(text, names)

    def ask_all(self, plans: Iterable[Plan]) -> None:
        """Ask for everything that these operators will want, now."""
        for plan in plans:
            for each in everything(plan):
                if isinstance(each, TriplePlan):
                    self.triples(each.places)
                elif isinstance(each, TimelessPlan) and each.asked:
                    self.answer(each.asked, each.columns)

    def _ask(self, text: str, names: Sequence[str]) -> NDArray[np.uint32]:
        if text not in self._known:
            self._known[text] = self._asked(text, names)
        return self._known[text]

    def _asked(self, text: str, names: Sequence[str]) -> NDArray[np.uint32]:
        rows = []
        for solution in self._kb.solutions(text):
            rows.append([self._id(solution[i]) for i in range(len(names))])
        found = np.array(rows, np.uint32).reshape(len(rows), len(names))
        self._terms.hold(found)
        return found

    def _id(self, term: Term | None) -> int:
        if term is None:
            return 0
        known = self._ids.get(term)
        if known is None:
            known = self._blanks.id(term.value) if isinstance(term, BlankNode) else self._terms.intern(term)
            self._ids[term] = known
        return known


def _either(pattern: str) -> str:
    """In the default graph or among what is inferred."""
    return f"{{ {{ {pattern} }} UNION {{ GRAPH <{INFERRED}> {{ {pattern} }} }} }}"
