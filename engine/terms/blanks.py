"""The knowledge base's blank nodes that a run has met.

Where it stands: answers of the KB → **ids** that stay the same while a run goes on, from one version of the KB to the
next and, saved with the run, from one process to the next. So rows that are kept join with what is asked later.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.engine.terms.saved import KnownTerms, SavedTerms, State


class KbBlanks:
    """Ids in the order in which they were met. A run that holds them knows them again if the KB brings them again."""

    def __init__(self, terms: TermDictionary) -> None:
        self._terms = terms
        self._met: dict[int, None] = {}

    def id(self, label: str) -> int:
        """Of the blank node with this label in the store."""
        known = self._terms.kb_blank(label)
        self._met[known] = None
        return known

    @property
    def ids(self) -> NDArray[np.uint32]:
        """All of them, for `TermDictionary.register`."""
        return np.fromiter(self._met, np.uint32, len(self._met))

    def save(self, terms: SavedTerms) -> State:
        """All of them."""
        return {"ids": terms.ids(self.ids)}

    def restore(self, state: State, terms: KnownTerms) -> None:
        """Know them again."""
        self._met = dict.fromkeys(terms.ids(state["ids"]).tolist())
