"""Terms of a saved state: ids mean something in one dictionary only, so a state is saved with the terms it names.

Each part of a run names to `SavedTerms` its arrays of ids; these are saved as they are, and
beside them, once for all, every term by its id. `KnownTerms` gives the same terms ids in the dictionary of the run
that continues, which may hold others already, and translates. Nothing in the engine depends on the size of an id.

Blank nodes have no text that means anything, but their serial numbers, by which some rows are ordered and from which
their labels are made (`TermDictionary.term`). They keep them if the dictionary has not given any of them; else they
get new ones in the same order. The KB's are saved with their labels in the store: where the dictionary knows such a
label already, it is that node.
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

    def state(self) -> State:
        """The terms named."""
        self._named[0] = False
        ids = np.flatnonzero(self._named)
        blank = self._terms.columns.kind[ids] == kinds.BLANK
        text, ends = self._terms.texts(ids[~blank])
        serial = self._terms.columns.exact[ids[blank]]
        order = np.argsort(serial)
        of_kb = {label: known for label, known in self._terms.kb_blanks.items() if self._named[known]}
        return {
            "ids": ids[~blank].astype(np.uint32),
            "text": text,
            "ends": ends,
            "blank": ids[blank][order].astype(np.uint32),
            "serial": serial[order],
            "blanks": self._terms.blanks_made,
            "kb": np.array([*of_kb.values()], np.uint32),
            "kb_labels": [*of_kb],
        }


class KnownTerms:
    """The terms of a saved state in another dictionary."""

    def __init__(self, state: State, terms: TermDictionary) -> None:
        ids, blank = state["ids"], state["blank"]
        most = max(int(ids.max(initial=0)), int(blank.max(initial=0)))
        self._numbers = np.zeros(most + 1, np.int64)
        try:
            self._numbers[ids] = terms.intern_texts(state["text"], state["ends"])
        except ValueError as error:
            raise SnapshotError(f"the saved state holds a text that is no term: {error}") from error
        labels, of_kb = state["kb_labels"], state["kb"]
        self._numbers[of_kb] = [terms.kb_blanks.get(label, 0) for label in labels]
        self._give_blanks(blank, state["serial"], int(state["blanks"]), terms)
        terms.name_kb_blanks(labels, self._numbers[of_kb].tolist())

    def _give_blanks(
        self, blank: NDArray[np.uint32], serial: NDArray[np.int64], made: int, terms: TermDictionary
    ) -> None:
        """Ids for the blank nodes that have none yet."""
        keeps = terms.skip_blanks(int(serial[0]) if len(serial) else 1, made)
        missing = self._numbers[blank] == 0
        self._numbers[blank[missing]] = terms.blanks(int(missing.sum()), serial[missing] if keeps else None)

    def ids(self, ids: NDArray[np.integer]) -> NDArray[np.uint32]:
        """What these ids are here; 0 is 0."""
        known: NDArray[np.uint32] = self._numbers[ids].astype(np.uint32)
        return known

    @property
    def numbers(self) -> NDArray[np.int64]:
        """By saved id the id here, for kernels."""
        return self._numbers


class SameTerms(KnownTerms):
    """The terms of the dictionary itself, for a state that continues beside the one that was saved."""

    def __init__(self, terms: TermDictionary) -> None:
        self._numbers = np.arange(len(terms))
