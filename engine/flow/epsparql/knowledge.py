"""The knowledge base as rows without a time: its default graph, with what the loader has inferred by RDFS, and answers
of GRAPH patterns.

In the flow: the store → **rows** → a running plan. It is queried when a run begins and again when another version of it
holds; a run knows the blank nodes again (`KbBlanks`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
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
Knowledge: TypeAlias = dict[str, Ids]
"""Of one version: by question, a SELECT, its solutions, held."""
INFERRED: Final = "urn:oxiseq:inferred"
"""The graph of RDFS's consequences, as kb_loader names it."""


def triples_asked(pattern: Constants) -> str:
    """The question for the triples, stated or inferred, that have a pattern's constants."""
    shown = " ".join(f"?{name}" if t is None else str(t) for t, name in zip(pattern, "spo", strict=True))
    binds = " ".join(f"BIND({t} AS ?{name})" for t, name in zip(pattern, "spo", strict=True) if t is not None)
    return f"SELECT DISTINCT ?s ?p ?o WHERE {{ {_either(shown)} {binds} }}"


def patterns_of(plan: p.FlowPlan) -> Iterable[Constants]:
    """The constants of its triple patterns."""
    every = dict.fromkeys(form.parts for form in plan.forms if isinstance(form, p.Triples))
    return [tuple(None if isinstance(part, int | Variable) else part for part in each) for each in every]


class KnowledgeReader:
    """A `Reader` of all that operators will want."""

    def __init__(self, plans: Sequence[Lowered], terms: TermDictionary, blanks: KbBlanks) -> None:
        self._plans, self._terms, self._blanks = plans, terms, blanks

    @property
    def _widths(self) -> dict[str, int]:
        """By question how many columns its answer has."""
        found: dict[str, int] = {}
        for lowered in self._plans:
            found |= dict.fromkeys(map(triples_asked, patterns_of(lowered.plan)), 3)
            found |= {content.asked: content.width for _, content in lowered.timeless if content.asked}
        return found

    @property
    def texts(self) -> tuple[str, ...]:
        """The query texts."""
        return tuple(self._widths)

    def answer(self, kb: KnowledgeBase) -> Knowledge:
        """Ask for it."""

        def rows(text: str, width: int) -> Ids:
            return self._blanks.rows([tuple(s[i] for i in range(width)) for s in kb.solutions(text)], width)

        return {text: rows(text, width) for text, width in self._widths.items()}

    def saved(self, made: Knowledge, terms: SavedTerms) -> State:
        """For a snapshot."""
        return {
            "questions": [*made],
            "shapes": [list(rows.shape) for rows in made.values()],
            "rows": [terms.ids(rows) for rows in made.values()],
        }

    def restored(self, state: State, terms: KnownTerms) -> Knowledge:
        """What `saved` was given."""
        known: Knowledge = {}
        for question, (count, width), rows in zip(state["questions"], state["shapes"], state["rows"], strict=True):
            known[question] = terms.ids(rows).reshape(int(count), int(width))
            self._terms.hold(known[question])
        return known


def _either(pattern: str) -> str:
    """In the default graph or among what is inferred."""
    return f"{{ {{ {pattern} }} UNION {{ GRAPH <{INFERRED}> {{ {pattern} }} }} }}"
