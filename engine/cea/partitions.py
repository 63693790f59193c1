"""Numbers of partitions: each combination of the values of PARTITION BY gets 0, 1, 2... when it is met first.

Partitions of which the run remembers nothing are forgotten with their values, and the others numbered anew (`keep`):
whoever holds numbers is told the new ones, or forgets them when `renumbered` changes. A value that comes again is
then new; so a partition without partial matches must be as one that has never been (kernels/cea/ageing.py).

Values are equal as RDF terms in normal form are, whichever stream they come from (semantics.md 3), so a table's text
`x` and the literal `"x"` of an RDF event are of one partition, and 1 and 1.0 of two.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from pyoxigraph import BlankNode, Literal

from oxiseq.engine.kernels.cea import pairs
from oxiseq.engine.terms.saved import State
from oxiseq.engine.terms.texts import Term, read_term, term_text

I64 = NDArray[np.int64]
_DENSE = 4
"""Possible keys per row up to which a table of them is faster than sorting."""
_TERM: Final = 160
"""Bytes of a term without its text, and of its number: two Python objects and what the first one points at."""
_LOW: Final = (1 << 32) - 1


class ValueNumbers:
    """Terms ↔ 0, 1, 2..."""

    def __init__(self) -> None:
        self._number: dict[Term, int] = {}
        self._texts = 0

    def __len__(self) -> int:
        return len(self._number)

    @property
    def bytes(self) -> int:
        """About what the terms take."""
        return sys.getsizeof(self._number) + _TERM * len(self._number) + self._texts

    def number(self, term: Term) -> int:
        """The number of a term in normal form."""
        number = self._number.get(term)
        if number is None:
            number = self._number[term] = len(self._number)
            self._texts += _length(term)
        return number

    def keep(self, kept: I64) -> None:
        """Only the terms of these numbers, ascending, stay; they become 0, 1, 2..."""
        terms = list(self._number)
        self._number = {terms[old]: new for new, old in enumerate(kept.tolist())}
        self._texts = sum(map(_length, self._number))

    def save(self) -> NDArray[np.uint8]:
        """The texts of all terms, a line each; a blank node never comes again once its event has been seen."""
        lines = ("_" if isinstance(term, BlankNode) else term_text(term) for term in self._number)
        return np.frombuffer("".join(f"{line}\n" for line in lines).encode(), np.uint8)

    def restore(self, texts: NDArray[np.uint8]) -> None:
        """Go on with saved terms."""
        lines = texts.tobytes().decode().split("\n")[:-1]
        self._number = {BlankNode(f"past{n}") if line == "_" else read_term(line): n for n, line in enumerate(lines)}
        self._texts = sum(map(_length, self._number))

    def numbers(self, keys: Sequence[Any], known: dict[Any, int], term: Callable[[Any], Term]) -> I64:
        """Of values that are known by other keys; `term` gives the term of a key that is not in `known`."""
        for key in keys:
            if key not in known:
                known[key] = self.number(term(key))
        return np.array([known[key] for key in keys], np.int64)


def _length(term: Term) -> int:
    """Of the text of a term, where it may be long: PARTITION BY takes mostly literals."""
    return len(term.value) if isinstance(term, Literal) else 0


class PairNumbers:
    """Pairs of numbers below 2^31 ↔ 0, 1, 2..."""

    def __init__(self, capacity: int = 1024) -> None:
        self._capacity = capacity
        self._keys = np.zeros(capacity, np.int64)
        self._slots = np.zeros(2 * capacity, np.int32)
        self._count = np.zeros(1, np.int64)

    def __len__(self) -> int:
        return int(self._count[0])

    @property
    def bytes(self) -> int:
        """Of its arrays."""
        return self._keys.nbytes + self._slots.nbytes

    def keep(self, kept: I64, first: I64, second: I64) -> None:
        """Only the pairs of these numbers, ascending, stay; they become 0, 1, 2... `first` and `second` are the numbers
        on their left and right that stay, ascending, which become 0, 1, 2... too."""
        keys = self._keys[kept]
        self.restore(np.searchsorted(first, keys >> 32) << 32 | np.searchsorted(second, keys & _LOW))

    def halves(self, kept: I64) -> tuple[I64, I64]:
        """The distinct numbers on the left and on the right of these pairs, ascending."""
        keys = self._keys[kept]
        return np.unique(keys >> 32), np.unique(keys & _LOW)

    def save(self) -> I64:
        """The pairs by number."""
        return self._keys[: self._count[0]]

    def restore(self, keys: I64) -> None:
        """Go on with saved pairs."""
        room = max(self._capacity, 1 << (len(keys) - 1).bit_length() if len(keys) else 1)
        self._keys, self._slots = np.zeros(room, np.int64), np.zeros(2 * room, np.int32)
        self._keys[: len(keys)], self._count[0] = keys, len(keys)
        pairs.place_again(self._slots, self._keys, len(keys))

    def numbers(self, a: I64, b: I64) -> I64:
        """Of the pairs (a[i], b[i]); -1 where one is negative."""
        out = np.empty(len(a), np.int64)
        done = 0
        while (done := int(pairs.number_pairs(a, b, self._slots, self._keys, self._count, done, out))) < len(a):
            self._keys = np.concatenate([self._keys, np.zeros(len(self._keys), np.int64)])
            self._slots = np.zeros(2 * len(self._keys), np.int32)
            pairs.place_again(self._slots, self._keys, int(self._count[0]))
        return out


class Partitions:
    """The partitions that are known, by the numbers of their values. `renumbered`: how often those have changed."""

    renumbered = 0

    def __init__(self, attributes: int) -> None:
        self.values = [ValueNumbers() for _ in range(attributes)]
        self._pairs = [PairNumbers() for _ in range(attributes - 1)]

    def __len__(self) -> int:
        """How many there are; 0 without PARTITION BY."""
        return len(self._pairs[-1]) if self._pairs else sum(map(len, self.values))

    @property
    def records(self) -> int:
        """Values and combinations of them."""
        return sum(map(len, self.values)) + sum(map(len, self._pairs))

    @property
    def bytes(self) -> int:
        """About what they take."""
        return sum([each.bytes for each in self.values]) + sum([each.bytes for each in self._pairs])

    def keep(self, kept: I64) -> None:
        """Only the partitions of these numbers, ascending, stay, with their values; they become 0, 1, 2..."""
        for known, values in zip(reversed(self._pairs), reversed(self.values[1:]), strict=True):
            first, second = known.halves(kept)
            known.keep(kept, first, second)
            values.keep(second)
            kept = first
        self.values[0].keep(kept)
        self.renumbered += 1

    def save(self) -> State:
        """All values and pairs of them."""
        return {"values": [each.save() for each in self.values], "pairs": [each.save() for each in self._pairs]}

    def restore(self, state: State) -> None:
        """Go on from a saved state."""
        for values, texts in zip(self.values, state["values"], strict=True):
            values.restore(texts)
        for known, keys in zip(self._pairs, state["pairs"], strict=True):
            known.restore(keys)

    def numbers(self, columns: Sequence[I64], count: int) -> I64:
        """i64[count]: the partition of each event. columns: per attribute the numbers of its values, -1 for none."""
        if not columns:
            return np.zeros(count, np.int64)
        found = columns[0]
        for column, known in zip(columns[1:], self._pairs, strict=True):
            found = known.numbers(found, column)
        return found


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
