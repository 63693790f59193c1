"""Numbers of partitions: each combination of the values of PARTITION BY gets 0, 1, 2... when it is met first.

Values are equal as RDF terms in normal form are, whichever stream they come from (semantics.md 3), so a table's text
`x` and the literal `"x"` of an RDF event are of one partition, and 1 and 1.0 of two.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oxiseq.engine.terms.texts import Term

I64 = NDArray[np.int64]
_DENSE = 4
"""Combinations per row up to which a table of them is faster than sorting."""


class ValueNumbers:
    """Terms ↔ 0, 1, 2..."""

    def __init__(self) -> None:
        self._number: dict[Term, int] = {}

    def __len__(self) -> int:
        return len(self._number)

    def number(self, term: Term) -> int:
        """The number of a term in normal form."""
        return self._number.setdefault(term, len(self._number))

    def numbers(self, keys: Sequence[Any], known: dict[Any, int], term: Callable[[Any], Term]) -> I64:
        """Of values that are known by other keys; `term` gives the term of a key that is not in `known`."""
        for key in keys:
            if key not in known:
                known[key] = self.number(term(key))
        return np.array([known[key] for key in keys], np.int64)


class Partitions:
    """The partitions met so far, by the numbers of their values."""

    def __init__(self, attributes: int) -> None:
        self.values = [ValueNumbers() for _ in range(attributes)]
        self._pairs: list[dict[tuple[int, int], int]] = [{} for _ in range(attributes - 1)]

    def numbers(self, columns: Sequence[I64], count: int) -> I64:
        """i64[count]: the partition of each event. columns: per attribute the numbers of its values, -1 for none."""
        if not columns:
            return np.zeros(count, np.int64)
        found = columns[0]
        for column, known in zip(columns[1:], self._pairs, strict=True):
            found = _paired(found, column, known)
        return found


def _paired(a: I64, b: I64, known: dict[tuple[int, int], int]) -> I64:
    """One number for each pair, -1 where one is missing."""
    out = np.full(len(a), -1, np.int64)
    there = np.flatnonzero((a >= 0) & (b >= 0))
    if not len(there):
        return out
    width = int(b.max()) + 1
    keys = a[there] * width + b[there]
    distinct, inverse = distinct_numbers(keys, (int(a.max()) + 1) * width)
    numbers = [known.setdefault(divmod(int(key), width), len(known)) for key in distinct]  # type: ignore[arg-type]
    out[there] = np.array(numbers, np.int64)[inverse]
    return out


def distinct_numbers(keys: I64, bound: int) -> tuple[I64, I64]:
    """The distinct keys, ascending, and the place of each key among them; keys are below `bound`, not negative."""
    if bound > _DENSE * len(keys) + 1024:
        distinct, inverse = np.unique(keys, return_inverse=True)
        return distinct, inverse.astype(np.int64)
    met = np.zeros(bound, np.bool_)
    met[keys] = True
    distinct = np.flatnonzero(met)
    place = np.zeros(bound, np.int64)
    place[distinct] = np.arange(len(distinct))
    return distinct, place[keys]
