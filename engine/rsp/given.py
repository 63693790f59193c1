"""The mappings of a MATCH as rows that come and go, for the operators above it.

Where it stands: mappings at an instant, or how they have changed → **a delta**. Where rows carry times, a column behind
the variables says which.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray
from pyoxigraph import Literal, NamedNode

from oxiseq.engine.flow.delta import Delta, Ids
from oxiseq.engine.rsp.full_rows import FullRows
from oxiseq.engine.rsp.growing import Change
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.engine.terms.saved import KnownTerms, SavedTerms, State

_INTERVAL: Final = NamedNode("urn:oxiseq:interval")
"""Datatype of what stands for two times."""


class MatchRows:
    """The rows of one MATCH that are there."""

    def __init__(self, width: int, terms: TermDictionary) -> None:
        self._width, self._terms = width, terms
        self._there: dict[bytes, None] = {}

    def __len__(self) -> int:
        return len(self._there)

    def changed(self, change: Change) -> Delta:
        """What came and went, at tick 0. It need not be remembered: whoever tells changes remembers."""
        new, gone = self._rows(change.new), self._rows(change.gone)
        return _delta(gone, new)

    def whole(self, rows: FullRows) -> Delta:
        """The same of all rows of an instant, each once."""
        now = self._rows(rows)
        keys = [row.tobytes() for row in now]
        before, self._there = self._there, dict.fromkeys(keys)
        new = np.array([key not in before for key in keys], np.bool_)
        gone = [key for key in before if key not in self._there]
        return _delta(self._of_keys(gone), now[new])

    def _rows(self, rows: FullRows) -> Ids:
        if not rows.span.shape[1]:
            return rows.values
        times = [self._terms.intern(Literal(f"{a} {b}", datatype=_INTERVAL)) for a, b in rows.span.tolist()]
        return np.column_stack([rows.values, np.array(times, np.uint32)])

    def _of_keys(self, keys: list[bytes]) -> Ids:
        if not self._width:
            return np.zeros((len(keys), 0), np.uint32)
        return np.frombuffer(bytearray(b"".join(keys)), np.uint32).reshape(len(keys), self._width)

    # --- what it holds ------------------------------------------------------------------------------

    def held_ids(self) -> Ids:
        """The terms of the rows."""
        return self._of_keys([*self._there])

    def save(self, terms: SavedTerms) -> State:
        """The rows, in the order in which they came."""
        return {"rows": terms.ids(self.held_ids())}

    def restore(self, state: State, terms: KnownTerms) -> None:
        """Go on from a saved state."""
        self._there = dict.fromkeys(np.ascontiguousarray(row).tobytes() for row in terms.ids(state["rows"]))


def spans(ids: Ids, terms: TermDictionary) -> NDArray[np.int64]:
    """The times that a column says: i64[n, 2]."""
    texts = (terms.term(i) for i in ids.tolist())
    return np.array([t.value.split() for t in texts if isinstance(t, Literal)], np.int64).reshape(len(ids), 2)


def _delta(gone: Ids, new: Ids) -> Delta:
    count = len(gone) + len(new)
    weight = np.repeat(np.array([-1, 1]), (len(gone), len(new)))
    return Delta(np.zeros(count, np.int64), weight, np.concatenate([gone, new]))
