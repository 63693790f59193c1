"""The knowledge base's blank nodes, by their labels in the store.

Where it stands: answers of the KB → **ids** that stay the same while a run goes on, from one version of the KB to the
next and, saved with the run, from one process to the next. So rows that are kept join with what is asked later.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.engine.terms.saved import KnownTerms, SavedTerms, State


class KbBlanks:
    """Labels and ids. Never forgets a label: the KB could bring it again."""

    def __init__(self, terms: TermDictionary) -> None:
        self._terms = terms
        self._ids: dict[str, int] = {}

    def id(self, label: str) -> int:
        """Of the blank node with this label."""
        known = self._ids.get(label)
        if known is None:
            known = self._ids[label] = self._terms.blank()
        return known

    @property
    def ids(self) -> NDArray[np.uint32]:
        """All of them, for `TermDictionary.register`."""
        return np.fromiter(self._ids.values(), np.uint32, len(self._ids))

    def save(self, terms: SavedTerms) -> State:
        """All of them."""
        return {"labels": [*self._ids], "ids": terms.ids(self.ids)}

    def restore(self, state: State, terms: KnownTerms) -> None:
        """Know them again."""
        self._ids = dict(zip(state["labels"], terms.ids(state["ids"]).tolist(), strict=True))
