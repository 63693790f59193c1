"""The knowledge base as rows without a time: its default graph, with what the loader has inferred by RDFS, and answers
of GRAPH patterns.

In the flow: the store → **rows** → a running plan. It is queried when a run begins and again when another version of it
holds; a run knows the blank nodes again (`KbBlanks`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray
from pyoxigraph import Literal, NamedNode

from oxiseq.engine.flow.epsparql.algebra import Place, Plan, TimelessPlan, TriplePlan, everything
from oxiseq.engine.flow.epsparql.rows import Column
from oxiseq.engine.kb import KnowledgeBase
from oxiseq.engine.terms.blanks import KbBlanks
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.engine.terms.saved import KnownTerms, SavedTerms, State

Ids: TypeAlias = NDArray[np.uint32]
Asking: TypeAlias = Callable[[str, int], Ids]
"""A SELECT query's text, the number of its columns → its solutions."""
INFERRED: Final = "urn:oxiseq:inferred"
"""The graph of RDFS's consequences, as kb_loader names it."""


class Knowledge:
    """The answers of one version of the KB: `ask`, or a dictionary of earlier answers."""

    def __init__(self, known: dict[str, Ids], ask: Asking | None = None) -> None:
        self.known = known
        """By question the rows, held."""
        self._asking = ask

    def triples(self, places: tuple[Place, Place, Place]) -> Ids:
        """u32[n, 3]: the triples, stated or inferred, that have a pattern's constants."""
        pattern = " ".join(
            str(p) if isinstance(p, NamedNode | Literal) else f"?{name}" for p, name in zip(places, "spo", strict=True)
        )
        binds = " ".join(
            f"BIND({p} AS ?{name})" for p, name in zip(places, "spo", strict=True) if isinstance(p, NamedNode | Literal)
        )
        return self._ask(f"SELECT DISTINCT ?s ?p ?o WHERE {{ {_either(pattern)} {binds} }}", ("s", "p", "o"))

    def answer(self, text: str, columns: Sequence[Column]) -> Ids:
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

    def _ask(self, text: str, names: Sequence[str]) -> Ids:
        if text not in self.known:
            assert self._asking is not None, "every answer is known"
            self.known[text] = self._asking(text, len(names))
        return self.known[text]


class KnowledgeReader:
    """A `Reader` of all that operators will want."""

    def __init__(self, plans: Sequence[Plan], terms: TermDictionary, blanks: KbBlanks) -> None:
        self._plans, self._terms, self._blanks = plans, terms, blanks

    @property
    def texts(self) -> tuple[str, ...]:
        """The query texts."""
        noted = Knowledge({}, lambda _, width: np.zeros((1, width), np.uint32))
        noted.ask_all(self._plans)
        return tuple(noted.known)

    def answer(self, kb: KnowledgeBase) -> Knowledge:
        """Ask for it."""

        def ask(text: str, width: int) -> Ids:
            return self._blanks.rows([tuple(s[i] for i in range(width)) for s in kb.solutions(text)], width)

        asked = Knowledge({}, ask)
        asked.ask_all(self._plans)
        return Knowledge(asked.known)

    def saved(self, made: Knowledge, terms: SavedTerms) -> State:
        """For a snapshot."""
        return {
            "questions": [*made.known],
            "shapes": [list(rows.shape) for rows in made.known.values()],
            "rows": [terms.ids(rows) for rows in made.known.values()],
        }

    def restored(self, state: State, terms: KnownTerms) -> Knowledge:
        """What `saved` was given."""
        known: dict[str, Ids] = {}
        for question, (count, width), rows in zip(state["questions"], state["shapes"], state["rows"], strict=True):
            known[question] = terms.ids(rows).reshape(int(count), int(width))
            self._terms.hold(known[question])
        return Knowledge(known)


def _either(pattern: str) -> str:
    """In the default graph or among what is inferred."""
    return f"{{ {{ {pattern} }} UNION {{ GRAPH <{INFERRED}> {{ {pattern} }} }} }}"
