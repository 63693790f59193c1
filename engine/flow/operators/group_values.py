"""Values that a Group keeps in Python: numbers of too many digits for the kernel, the values of GROUP_CONCAT.

By group: the bytes of its key's ids (u32).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from fractions import Fraction
from typing import Final

import numpy as np
from pyoxigraph import BaseDirection, Literal

from oxiseq.engine import kinds
from oxiseq.engine.expressions.values import Value, read, term_of, to_double, to_float
from oxiseq.engine.flow.delta import I64, Ids
from oxiseq.engine.kernels.flow import groups as g
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.engine.terms.saved import KnownTerms, SavedTerms, State
from oxiseq.engine.terms.texts import Term
from oxiseq.grammar.records import dataclass

_ONE: Final = 10**18
_ENTRY_SIZE: Final = 200
"""Bytes of a dictionary's entry, a guess."""


class Kept(ABC):
    """Values of one column, by group."""

    def __init__(self, place: int, terms: TermDictionary) -> None:
        self.place = place
        self._terms = terms

    @property
    @abstractmethod
    def size(self) -> int:
        """About how large it is, in bytes."""

    @abstractmethod
    def take(self, keys: Ids, ids: Ids, weight: I64) -> None:
        """Values (u32[n]) come, or go, in groups with these keys (u32[n, k], C-contiguous)."""

    @abstractmethod
    def save(self, terms: SavedTerms) -> State:
        """The kept values."""

    @abstractmethod
    def restore(self, state: State, terms: KnownTerms) -> None:
        """Continue from a saved state; for one that has nothing."""


# --- numbers ----------------------------------------------------------------------------------------


class Numbers(Kept):
    """By group the sum of the integers and decimals that the columns of terms do not hold exactly."""

    def __init__(self, place: int, terms: TermDictionary) -> None:
        super().__init__(place, terms)
        self._totals: dict[bytes, Fraction] = {}

    @property
    def size(self) -> int:
        return _ENTRY_SIZE * len(self._totals)

    def take(self, keys: Ids, ids: Ids, weight: I64) -> None:
        columns = self._terms.columns
        kind = columns.kind[ids]
        strange = (kind == kinds.INTEGER) | (kind == kinds.DECIMAL)
        strange &= columns.quality[ids] & kinds.EXACT_INTEGER == 0
        for i in np.flatnonzero(strange).tolist():
            key = keys[i].tobytes()
            total = self.total(key) + int(weight[i]) * Fraction(read(self._terms.term(int(ids[i]))).number)
            if total:
                self._totals[key] = total
            else:
                self._totals.pop(key, None)

    def total(self, key: bytes) -> Fraction:
        """The sum in a group."""
        return self._totals.get(key, Fraction(0))

    def save(self, terms: SavedTerms) -> State:
        keys = terms.ids(_ids(b"".join(self._totals)))
        return {"keys": keys, "totals": [str(total) for total in self._totals.values()]}

    def restore(self, state: State, terms: KnownTerms) -> None:
        totals = [Fraction(text) for text in state["totals"]]
        self._totals = dict(zip(_keys(terms.ids(state["keys"]), len(totals)), totals, strict=True))


@dataclass(frozen=True, slots=True)
class Exact:
    """Numbers added up: how many of each kind, and the exact sum."""

    count: int
    decimals: int
    floats: int
    doubles: int
    total: Fraction

    @classmethod
    def of(cls, words: I64, wide: I64, more: Fraction) -> Exact:
        """What the kernel has of a column of a group, all of which are finite, and lacks. `wide` is not read if
        `words` names none."""
        total = more + _whole(words[g.INT0 : g.INT1 + 1]) + Fraction(_whole(words[g.DEC0 : g.DEC2 + 1]), _ONE)
        count, decimals = int(words[g.BOUND]), int(words[g.DECIMALS])
        if not words[g.WIDE]:
            return cls(count, decimals, 0, 0, total)
        total += Fraction(_whole(wide[g.FIRST : g.END]), 2**1074)
        return cls(count, decimals, int(wide[g.FLOATS]), int(wide[g.DOUBLES]), total)


def _whole(words: I64) -> int:
    """A number in two's complement, lowest word first."""
    return int.from_bytes(words.tobytes(), "little", signed=True)


def result(exact: Exact, *, mean: bool) -> Term | None:
    """SUM, or AVG, which is SUM divided by COUNT; None where the store has an error: an integer of more than 64 bits, a
    decimal of more than 128 in units of 10^-18."""
    total, count = exact.total, exact.count
    if exact.doubles:
        number = to_double(total)
        return term_of(Value(kinds.DOUBLE, number / count if mean else number))
    if exact.floats:
        with np.errstate(over="ignore", under="ignore"):
            number = to_float(total)
            return term_of(Value(kinds.FLOAT, float(np.float32(number) / np.float32(count)) if mean else number))
    units = total * (_ONE if exact.decimals else 1)
    most = 2**127 if exact.decimals else 2**63
    if units.denominator != 1 or not -most <= units < most:
        return None
    if mean:
        cut = abs(total) * _ONE // count
        return term_of(Value(kinds.DECIMAL, Fraction(-cut if total < 0 else cut, _ONE)))
    return term_of(Value(kinds.DECIMAL if exact.decimals else kinds.INTEGER, total))


# --- texts ------------------------------------------------------------------------------------------


class Listed(Kept):
    """By group each value and how often it is there, 0 (unbound) too: for GROUP_CONCAT."""

    def __init__(self, place: int, terms: TermDictionary) -> None:
        super().__init__(place, terms)
        self._weights: dict[bytes, dict[int, int]] = {}

    @property
    def size(self) -> int:
        return _ENTRY_SIZE * (len(self._weights) + sum(map(len, self._weights.values())))

    def take(self, keys: Ids, ids: Ids, weight: I64) -> None:
        size = keys.itemsize * keys.shape[1]
        data = keys.tobytes()
        for i, (term, often) in enumerate(zip(ids.tolist(), weight.tolist(), strict=True)):
            key = data[size * i : size * (i + 1)]
            weights = self._weights.setdefault(key, {})
            now = weights.get(term, 0) + often
            if now:
                weights[term] = now
            else:
                del weights[term]
                if not weights:
                    del self._weights[key]

    def text(self, key: bytes, separator: str) -> int:
        """The id of GROUP_CONCAT's result: the values in the order of their texts, each as often as it is there. As in
        the store all must be strings, else there is an error (0); if all are of one language the result is."""
        each: list[tuple[str, str, str, int]] = []
        for term, often in self._weights.get(key, {}).items():
            if often < 0:
                continue
            if self._terms.columns.kind[term] not in (kinds.STRING, kinds.LANGSTRING):
                return 0
            literal = self._terms.term(term)
            assert isinstance(literal, Literal)
            each.append((literal.value, literal.language or "", _direction(literal), often))
        each.sort()
        text = separator.join([value for value, _, _, often in each for _ in range(often)])
        tags = {(language, direction) for _, language, direction, _ in each}
        language, direction = tags.pop() if len(tags) == 1 else ("", "")
        if not language:
            return self._terms.intern(Literal(text))
        side = BaseDirection(direction) if direction else None
        return self._terms.intern(Literal(text, language=language, direction=side))

    def ids(self) -> Ids:
        """The ids of values."""
        return np.array([term for weights in self._weights.values() for term in weights], np.uint32)

    def save(self, terms: SavedTerms) -> State:
        keys = terms.ids(_ids(b"".join(self._weights)))
        weights = [often for each in self._weights.values() for often in each.values()]
        counts = np.array([len(each) for each in self._weights.values()], np.int64)
        return {"keys": keys, "counts": counts, "ids": terms.ids(self.ids()), "weights": np.array(weights, np.int64)}

    def restore(self, state: State, terms: KnownTerms) -> None:
        counts = state["counts"]
        pairs = list(zip(terms.ids(state["ids"]).tolist(), state["weights"].tolist(), strict=True))
        ends = np.cumsum(counts).tolist()
        starts = [0, *ends[:-1]]
        each = [dict(pairs[start:end]) for start, end in zip(starts, ends, strict=False)]
        self._weights = dict(zip(_keys(terms.ids(state["keys"]), len(counts)), each, strict=True))


def _direction(literal: Literal) -> str:
    return "" if literal.direction is None else str(literal.direction)


def _ids(keys: bytes) -> Ids:
    return np.frombuffer(keys, np.uint32).copy()


def _keys(ids: Ids, count: int) -> list[bytes]:
    """The keys of so many groups, one after the other."""
    size = len(ids) // count if count else 0
    return [ids[size * i : size * (i + 1)].tobytes() for i in range(count)]
