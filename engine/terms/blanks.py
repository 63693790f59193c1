"""The knowledge base's blank nodes that a run knows.

In the flow: answers of the KB → **ids** that stay the same while a run continues, from one version of the KB to the
next and, saved with the run, from one process to the next. So rows that are kept join with later answers.

Answers that are kept and the state of the run hold them, and beside these it holds those that were met last. Another
that is neither in the KB any more nor in a row that is kept is forgotten with its id.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from pyoxigraph import BlankNode

from oxiseq.engine import kinds
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.engine.terms.saved import KnownTerms, SavedTerms, State, Stateful
from oxiseq.engine.terms.texts import Term

MOST_HELD: Final = 1024
"""So many are known again though nothing else has held them for a while."""


class KbBlanks(Stateful):
    """Ids in the order in which they were met. A run that holds them knows them again if the KB brings them again."""

    def __init__(self, terms: TermDictionary) -> None:
        self._terms = terms
        self._met: dict[int, int] = {}
        """By id the serial number, which shows whether the id has been given to another since."""
        self._generation = terms.generation
        self._restored = np.zeros(0, np.uint32)
        """Held until the KB has answered: its answers are not saved."""
        self._asked = True

    def id(self, label: str) -> int:
        """Of the blank node with this label in the store."""
        self._asked = True
        known = self._terms.kb_blank(label)
        serial = int(self._terms.columns.exact[known])
        if self._met.get(known) != serial:
            self._met.pop(known, None)  # the last one
            self._met[known] = serial
        return known

    def rows(self, solutions: Sequence[Sequence[Any]], width: int) -> NDArray[np.uint32]:
        """Terms that the KB has answered, None for unbound, as ids: u32[n, width]. The dictionary holds them."""
        ids: dict[Any, int] = {None: 0}
        flat = [ids[t] if t in ids else ids.setdefault(t, self._id_of(t)) for row in solutions for t in row]
        rows = np.array(flat, np.uint32).reshape(len(solutions), width)
        self._terms.hold(rows)
        return rows

    def _id_of(self, term: Term) -> int:
        return self.id(term.value) if isinstance(term, BlankNode) else self._terms.intern(term)

    @property
    def ids(self) -> NDArray[np.uint32]:
        """All of them."""
        if self._generation != self._terms.generation:
            self._generation = self._terms.generation
            kind, serials = self._terms.columns.kind, self._terms.columns.exact
            self._met = {i: n for i, n in self._met.items() if kind[i] == kinds.BLANK and serials[i] == n}
        return np.fromiter(self._met, np.uint32, len(self._met))

    def held_ids(self) -> Iterator[NDArray[np.uint32]]:
        """Those that nothing else may hold (see `TermDictionary.register`)."""
        if self._asked:
            self._restored = self._restored[:0]
        yield self._restored
        yield self.ids[-MOST_HELD:]

    def save(self, terms: SavedTerms) -> State:
        """All of them."""
        return {"ids": terms.ids(self.ids)}

    def restore(self, state: State, terms: KnownTerms) -> None:
        """Know them again."""
        self._restored, self._asked = terms.ids(state["ids"]), False
        serials = self._terms.columns.exact[self._restored]
        self._generation = self._terms.generation
        self._met = dict(zip(self._restored.tolist(), serials.tolist(), strict=True))
