"""SUPPRESS: what it knows of each key, from the first row to the last (semantics.md 2.6c).

In the flow: rows in the order in which they are decided → **those that no emitted one covers** → columns, LIMIT.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from oxiseq.engine.kernels.matches.records import NO_LIMIT
from oxiseq.engine.kernels.output.suppressing import NEVER, suppress
from oxiseq.engine.terms.dictionary import AnyIds, TermDictionary
from oxiseq.engine.terms.saved import KnownTerms, SavedTerms, State
from oxiseq.grammar.algebra import SUPPRESSED, Expression, Suppression
from oxiseq.grammar.scope import match_parts

I64 = NDArray[np.int64]
Ids = NDArray[np.uint32]
_FEW: Final = 1 << 10
"""Keys that are kept without a look whether they are still of use."""


class Emitted(NamedTuple):
    """Of some rows those that are emitted: their numbers, ascending, and how many SUPPRESS has dropped before each."""

    rows: I64
    dropped: I64


def texts_of(rows: Ids, terms: TermDictionary) -> list[list[str]]:
    """The values of rows by which those of one time are put in order; of what is unbound the first."""
    return [[terms.text(i) if i else "" for i in row] for row in rows.tolist()]


class Suppressor:
    """The rows of one query. width: ids of a key; limit: emitted rows of a share at the most, None: all; shown: the
    expressions of its columns."""

    def __init__(self, suppression: Suppression, width: int, limit: int | None, shown: Iterable[Expression]) -> None:
        self._interval, self._width = suppression.interval, width
        self._counts = any(SUPPRESSED in match_parts(e) for e in shown)
        """Whether the query tells how many have been dropped."""
        self._limit = NO_LIMIT if limit is None else limit
        self._known: dict[bytes, tuple[int, int]] = {}
        """By key when its last row was emitted (µs), and how many have been dropped since."""
        self._most = _FEW

    def emitted(self, at: I64, keys: Ids, shares: I64) -> Emitted:
        """at: i64[n] µs, ascending; keys: u32[n, width]; shares: i64[n], below n, equal for rows that LIMIT counts
        together."""
        if not len(at):
            return Emitted(np.zeros(0, np.int64), np.zeros(0, np.int64))
        distinct, number = np.unique(keys, axis=0, return_inverse=True)
        names = [row.tobytes() for row in distinct] if self._width else [b""]
        had = [self._known.get(name, (NEVER, 0)) for name in names]
        last, dropped = np.array(had, np.int64).reshape(-1, 2).T.copy()
        kept = np.zeros((len(at), 2), np.int64)
        number = number.reshape(-1).astype(np.int64) if self._width else np.zeros(len(at), np.int64)
        used = np.zeros(len(at), np.int64)
        count = suppress(at, number, shares, self._interval, self._limit, last, dropped, used, kept)
        for name, *now in zip(names, last.tolist(), dropped.tolist(), strict=True):
            if now[0] != NEVER:
                self._known[name] = now[0], now[1]
        if len(self._known) > self._most:
            self._forget(int(at[-1]))
        return Emitted(np.ascontiguousarray(kept[:count, 0]), np.ascontiguousarray(kept[:count, 1]))

    def _forget(self, now: int) -> None:
        """Drop keys that cover nothing from now on, and of which nothing is to be told."""
        self._known = {
            name: (last, dropped)
            for name, (last, dropped) in self._known.items()
            if now - last < self._interval or (self._counts and dropped)
        }
        self._most = max(_FEW, 2 * len(self._known))

    def __len__(self) -> int:
        return len(self._known)

    # --- saved ----------------------------------------------------------------------------------------

    def _keys(self) -> Ids:
        """u32[known, width]."""
        return np.frombuffer(b"".join(self._known), np.uint32).reshape(len(self._known), self._width)

    def held_ids(self) -> Iterator[AnyIds]:
        """The terms of its keys."""
        yield self._keys()

    def save(self, terms: SavedTerms) -> State:
        """What it knows of its keys."""
        last, dropped = np.array([*self._known.values()], np.int64).reshape(-1, 2).T
        return {"keys": terms.ids(self._keys()), "last": last.copy(), "dropped": dropped.copy()}

    def restore(self, state: State, terms: KnownTerms) -> None:
        """Continue with saved keys."""
        last, dropped = state["last"].tolist(), state["dropped"].tolist()
        rows = np.asarray(terms.ids(state["keys"]), np.uint32).reshape(len(last), self._width)
        self._known = {row.tobytes(): known for row, known in zip(rows, zip(last, dropped, strict=True), strict=True)}
