"""Terms of a saved state: ids mean something in one dictionary only, so a state is saved with the terms it names.

Each part of a run tells `SavedTerms` which of its arrays hold ids; these stand in the saved state as they are, and
beside them, once for all, every term by its id. `KnownTerms` gives the same terms ids in the dictionary of the run
that goes on, which may hold others already, and translates. Nothing in the engine depends on the size of an id.

Blank nodes have no text that means anything, but their serial numbers, by which some rows are ordered and from which
their labels are made (`TermDictionary.term`). They keep them if the dictionary has not given any of them; else they
get new ones in the same order.
"""

from __future__ import annotations

from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from oxiseq.engine import kinds
from oxiseq.engine.errors import SnapshotError
from oxiseq.engine.terms.dictionary import TermDictionary

State: TypeAlias = dict[str, Any]
"""A saved state: arrays, numbers, texts, None, and lists and dictionaries of them, the keys of which are texts."""
_Array = TypeVar("_Array", bound=NDArray[np.integer])


class SavedTerms:
    """Collects the ids that a state names."""

    def __init__(self, terms: TermDictionary) -> None:
        self._terms = terms
        self._named = np.zeros(len(terms), np.bool_)

    def ids(self, ids: _Array) -> _Array:
        """The same array, all of which are ids."""
        self._named[ids] = True
        return ids

    def named(self, ids: NDArray[np.uint32]) -> NDArray[np.bool_]:
        """Which of these ids the state has named so far."""
        return self._named[ids]

    def state(self) -> State:
        """The terms named."""
        self._named[0] = False
        ids = np.flatnonzero(self._named)
        blank = self._terms.columns.kind[ids] == kinds.BLANK
        text, ends = self._terms.texts(ids[~blank])
        serial = self._terms.columns.exact[ids[blank]]
        order = np.argsort(serial)
        return {
            "ids": ids[~blank].astype(np.uint32), "text": text, "ends": ends,
            "blank": ids[blank][order].astype(np.uint32), "serial": serial[order], "blanks": self._terms.blanks_made,
        }  # fmt: skip


class KnownTerms:
    """The terms of a saved state in another dictionary: `same` where it applies, then `give_blanks`, then `ids`."""

    def __init__(self, state: State, terms: TermDictionary) -> None:
        self._terms = terms
        self._blank, self._serial = state["blank"], state["serial"]
        ids = state["ids"]
        most = max(int(ids.max(initial=0)), int(self._blank.max(initial=0)))
        self._numbers = np.zeros(most + 1, np.int64)
        try:
            self._numbers[ids] = terms.intern_texts(state["text"], state["ends"])
        except ValueError as error:
            raise SnapshotError(f"the saved state holds a text that is no term: {error}") from error
        self._keeps = terms.skip_blanks(int(self._serial[0]) if len(self._serial) else 1, int(state["blanks"]))

    def same(self, blank: int, known: int) -> None:
        """A saved blank node is one that the dictionary has already."""
        self._numbers[blank] = known

    def give_blanks(self) -> None:
        """Ids for all other blank nodes."""
        missing = self._numbers[self._blank] == 0
        serial = self._serial[missing] if self._keeps else None
        self._numbers[self._blank[missing]] = self._terms.blanks(int(missing.sum()), serial)

    def ids(self, ids: NDArray[np.integer]) -> NDArray[np.uint32]:
        """What these ids are here; 0 is 0."""
        known: NDArray[np.uint32] = self._numbers[ids].astype(np.uint32)
        return known

    @property
    def numbers(self) -> NDArray[np.int64]:
        """By saved id the id here, for kernels."""
        return self._numbers
