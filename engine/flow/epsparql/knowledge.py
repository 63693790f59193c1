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
from pyoxigraph import Variable

from oxiseq.engine.flow import plan as p
from oxiseq.engine.flow.epsparql.lowering import Lowered
from oxiseq.engine.kb import KnowledgeBase
from oxiseq.engine.terms.blanks import KbBlanks
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.engine.terms.saved import KnownTerms, SavedTerms, State
from oxiseq.engine.terms.texts import Term

Constants: TypeAlias = tuple[Term | None, ...]
"""Subject, predicate, object of a pattern, None: any."""
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

    def triples(self, pattern: Constants) -> Ids:
        """u32[n, 3]: the triples, stated or inferred, that have a pattern's constants."""
        shown = " ".join(f"?{name}" if t is None else str(t) for t, name in zip(pattern, "spo", strict=True))
        binds = " ".join(f"BIND({t} AS ?{name})" for t, name in zip(pattern, "spo", strict=True) if t is not None)
        return self.ask(f"SELECT DISTINCT ?s ?p ?o WHERE {{ {_either(shown)} {binds} }}", 3)

    def ask_all(self, plans: Iterable[Lowered]) -> None:
        """Ask for everything that these plans will want, now."""
        for lowered in plans:
            for pattern in patterns_of(lowered.plan):
                self.triples(pattern)
            for _, content in lowered.timeless:
                if content.asked:
                    self.ask(content.asked, content.width)

    def ask(self, text: str, width: int) -> Ids:
        """u32[n, width]: the solutions of a SELECT query, in its order of columns."""
        if text not in self.known:
            assert self._asking is not None, "every answer is known"
            self.known[text] = self._asking(text, width)
        return self.known[text]


def patterns_of(plan: p.FlowPlan) -> Iterable[Constants]:
    """The constants of its triple patterns."""
    every = dict.fromkeys(form.parts for form in plan.forms if isinstance(form, p.Triples))
    return [tuple(None if isinstance(part, int | Variable) else part for part in each) for each in every]


class KnowledgeReader:
    """A `Reader` of all that operators will want."""

    def __init__(self, plans: Sequence[Lowered], terms: TermDictionary, blanks: KbBlanks) -> None:
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
