"""What the values of events add to weights: sums as columns of numbers of 64 bits, least and largest values as labels.

In the flow: ids of the values of events → **columns** → weights (kernels/matches/weights.py) → **aggregates** → rows.
A sum is exact: a value is d · 2^(62 j) / 10^k summed over some (k, j), each of which is a column of its own, made when
it is first needed and forgotten when no window has such a value any more. All doubles need 35 of them, two each;
decimals of 64 bits have one for each number of digits behind the point, at most 15; longer ones have one for each 18
digits there, and integers for each 62 bits. So there are few columns whatever comes, and what is not summed follows
from the value alone, not from what came with it.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Final, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from pyoxigraph import BlankNode

from oxiseq.engine import kinds
from oxiseq.engine.expressions.totals import KINDS, TOO_MANY, BagTotal, CountTotal, SumTotal, Total
from oxiseq.engine.expressions.values import read
from oxiseq.engine.kernels.matches import weights as w
from oxiseq.engine.kernels.terms import order
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.engine.terms.order import Key, Places, order_key
from oxiseq.engine.terms.saved import KnownTerms, SavedTerms, State, Stateful, part
from oxiseq.grammar.algebra import Aggregate
from oxiseq.grammar.records import dataclass

I64 = NDArray[np.int64]
U64 = NDArray[np.uint64]

MOST_MEASURES: Final = 6
"""Whose flags a weight has room for."""
WEIGHED: Final = frozenset(["COUNT", "SUM", "AVG", "MIN", "MAX"])
"""Aggregates that have columns."""
_DIGITS: Final = 18
"""Of a long decimal in a column; more than `kinds.MAX_SCALE`."""
_MOST_FRACTIONS: Final = 56
"""Columns for what is behind the point. A decimal of more than 1,008 digits there makes the sums that it is in unbound,
as an integer beyond `_MOST_WHOLE` columns does, 2^4154."""
_MOST_WHOLE: Final = 67
MOST_LIMBS: Final = 72
"""Of weights: 64 hold what is below 2^4096, the others values and sums of it."""
BLOCK_BITS: Final = 62
"""Of an integer or a double in a column."""
_MISSING, _ERROR, _NAN, _PLUS, _MINUS = (1 << bit for bit in range(len(KINDS), len(KINDS) + 5))
_FLAGS: Final = len(KINDS) + 5
"""Of a measure: which kinds of numbers it met; a value that is missing; one that is no number; NaN, INF, -INF."""
_THERE: Final = -1
_FIRST_FLAG: Final = 1
assert w.PRESENT == 1 << _FIRST_FLAG - 1
assert w.HUGE.bit_length() > _FIRST_FLAG + _FLAGS * MOST_MEASURES
Column: TypeAlias = tuple[int, int, int]
"""Of a measure's values the digits at some (k, j); with k = -1 1 for each that is there."""


@dataclass(frozen=True, slots=True)
class Measure:
    """The events of a kind in matches, and what of their values is wanted. `attribute`: the number of a column of ids;
    None: events are counted as such."""

    attribute: int | None
    counted: bool
    summed: bool
    least: bool
    most: bool

    @classmethod
    def of(cls, attribute: int | None, aggregates: Iterable[str]) -> Measure:
        """For aggregates of these names over it."""
        names = set(aggregates)
        return cls(
            attribute, bool(names & {"COUNT", "AVG"}), bool(names & {"SUM", "AVG"}), "MIN" in names, "MAX" in names
        )


class Columns(NamedTuple):
    """Of n events: i64[n, sums + leasts], u64[n]."""

    values: I64
    flags: U64


@dataclass(frozen=True, slots=True)
class Weight:
    """A weight as Python's numbers."""

    flags: int
    count: int
    sums: list[int]
    leasts: list[int]

    @classmethod
    def of(cls, words: U64, form: I64) -> Weight:
        """Of u64[words] of this form. What is beyond numbers is TOO_MANY."""
        limbs, sums = int(form[w.LIMBS]), int(form[w.SUMS])
        numbers = [
            int.from_bytes(words[1 + i * limbs : 1 + (i + 1) * limbs].tobytes(), "little", signed=True)
            for i in range(1 + sums)
        ]
        flags = int(words[0])
        leasts = words[1 + (1 + sums) * limbs :].view(np.int64).tolist()
        return cls(flags, TOO_MANY if flags & w.HUGE else numbers[0], numbers[1:], leasts)


class Sums(NamedTuple):
    """Of n groups: the kind of the sum (i64, kinds.*); whether it is an error; 0, or the NaN or INF that it is (f64);
    how many values there are, 1 where only the sum is wanted; and the exact sums of the finite ones as fractions."""

    kind: I64
    failed: NDArray[np.bool_]
    special: NDArray[np.float64]
    events: list[int]
    numerators: list[int]
    denominator: int


class Measures(Stateful):
    """The columns of some measures."""

    made_of = (part("_of_labels", "labels"),)

    def __init__(self, measures: Sequence[Measure], terms: TermDictionary) -> None:
        self.measures = tuple(measures)
        self._terms = terms
        self._sums: dict[Column, int] = {}
        """The columns of sums that there are; more may come."""
        for m, measure in enumerate(measures):
            for column in ((m, _THERE, 0), (m, 0, 0)):
                if measure.counted if column[1] == _THERE else measure.summed:
                    self._sums[column] = len(self._sums)
        self._labels = [
            (m, _Labels(sign, terms))
            for m, measure in enumerate(measures)
            for sign in (1, -1)
            if (measure.least if sign > 0 else measure.most)
        ]

    @property
    def sums(self) -> int:
        """How many columns of sums there are."""
        return len(self._sums)

    def keep(self, used: NDArray[np.bool_]) -> I64:
        """Forget the columns of sums that are not `used`, bool[sums]; those that are always there stay. The numbers
        that the others had."""
        kept = [i for (_, k, j), i in self._sums.items() if used[i] or (k, j) in ((_THERE, 0), (0, 0))]
        columns = [*self._sums]
        self._sums = {columns[i]: place for place, i in enumerate(kept)}
        return np.array(kept, np.int64)

    @property
    def leasts(self) -> int:
        """How many columns of least values there are, behind those."""
        return len(self._labels)

    def masks(self, held: NDArray[np.bool_]) -> tuple[NDArray[np.uint8], U64]:
        """u8[n, sums + leasts], u64[n]: which columns and flags an event adds to that is of measures `held`,
        bool[n, measures]."""
        of = [m for m, _, _ in self._sums] + [m for m, _ in self._labels]
        shifts = np.array([_FIRST_FLAG + _FLAGS * m for m in range(len(self.measures))], np.uint64)
        flags = np.uint64((1 << _FLAGS) - 1) << shifts
        return np.ascontiguousarray(held[:, of], np.uint8), (held * flags).sum(axis=1, dtype=np.uint64)

    def of(self, ids: I64) -> Columns:
        """The columns of events whose attributes have these ids, i64[n, attributes]; 0: none. `sums` may have grown."""
        flags = np.zeros(len(ids), np.uint64)
        found: dict[Column, I64] = {}
        for m, measure in enumerate(self.measures):
            if measure.attribute is None:
                found[m, _THERE, 0] = np.ones(len(ids), np.int64)
                continue
            mine = ids[:, measure.attribute]
            if measure.counted:
                found[m, _THERE, 0] = (mine != 0).astype(np.int64)
            bits = np.where(mine == 0, _MISSING, 0)
            if measure.summed:
                bits |= self._summed(m, mine, found)
            flags |= bits.astype(np.uint64) << np.uint64(_FIRST_FLAG + _FLAGS * m)
        values = np.zeros((len(ids), self.sums + self.leasts), np.int64)
        for column, digits in found.items():
            values[:, self._sums[column]] = digits
        for place, (m, labels) in enumerate(self._labels, self.sums):
            attribute = self.measures[m].attribute
            assert attribute is not None
            values[:, place] = labels.of(ids[:, attribute])
        return Columns(values, flags)

    # --- values → digits --------------------------------------------------------------------------------

    def _summed(self, m: int, ids: I64, found: dict[Column, I64]) -> I64:
        """Enter the digits of these values; the flags of each."""
        columns = self._terms.columns
        kind, exact, exactly = columns.kind[ids], columns.exact[ids], columns.quality[ids] & kinds.EXACT_INTEGER != 0
        flags = np.where(kind == 0, 0, _ERROR)
        whole = exactly & (kind == kinds.INTEGER)
        if whole.any():
            flags[whole] = _flag(kinds.INTEGER)
            self._enter((m, 0, 0), whole, exact, found)
        if whole.all():
            return flags
        decimal = exactly & (kind == kinds.DECIMAL)
        flags[decimal] = _flag(kinds.DECIMAL)
        scale = columns.quality[ids] >> kinds.SCALE_SHIFT
        for k in np.unique(scale[decimal]).tolist():
            self._enter((m, k, 0), decimal & (scale == k), exact, found)
        binary = (kind == kinds.DOUBLE) | (kind == kinds.FLOAT)
        for of_kind in (kinds.DOUBLE, kinds.FLOAT):
            flags[kind == of_kind] = _flag(of_kind)
        if binary.any():
            self._enter_binary(m, binary, columns.number[ids], found, flags)
        for row in np.flatnonzero(~(whole | decimal | binary) & (kind != 0)).tolist():
            self._enter_other(m, row, int(ids[row]), found, flags)
        return flags

    def _enter(self, column: Column, rows: NDArray[np.bool_], digits: I64, found: dict[Column, I64]) -> None:
        """Enter the digits of these rows."""
        rows = rows & (digits != 0)
        if not rows.any():
            return
        self._sums.setdefault(column, len(self._sums))
        if column not in found:
            found[column] = np.zeros(len(digits), np.int64)
        found[column][rows] = digits[rows]

    def _enter_binary(
        self, m: int, rows: NDArray[np.bool_], numbers: NDArray[np.float64], found: dict[Column, I64], flags: I64
    ) -> None:
        """Doubles and floats: 53 bits, in one or two columns of 62."""
        flags[rows & np.isnan(numbers)] |= _NAN
        flags[rows & (numbers == math.inf)] |= _PLUS
        flags[rows & (numbers == -math.inf)] |= _MINUS
        rows = rows & np.isfinite(numbers)
        share, exponent = np.frexp(np.where(rows, numbers, 0.0))
        bits = np.ldexp(np.abs(share), 53).astype(np.uint64)
        exponent = exponent.astype(np.int64) - 53
        j = exponent // BLOCK_BITS
        shift = (exponent - BLOCK_BITS * j).astype(np.uint64)
        sign = np.where(share < 0, -1, 1)
        low = sign * ((bits << shift) & np.uint64((1 << BLOCK_BITS) - 1)).astype(np.int64)
        high = sign * (bits >> (np.uint64(BLOCK_BITS) - shift)).astype(np.int64)
        for at in np.unique(j[rows]).tolist():
            self._enter((m, 0, at), rows & (j == at), low, found)
            self._enter((m, 0, at + 1), rows & (j == at), high, found)

    def _enter_other(self, m: int, row: int, value: int, found: dict[Column, I64], flags: I64) -> None:
        """An integer or decimal of more than 64 bits, or no number."""
        number = read(self._terms.term(value))
        if number.kind not in (kinds.INTEGER, kinds.DECIMAL) or isinstance(number.number, float):
            return
        whole, rest = divmod(Fraction(number.number), 1)
        blocks = _blocks(abs(whole))
        fractions = _fractions(rest)
        if blocks is None or fractions is None:
            return  # an error
        flags[row] = _flag(number.kind)
        here, sign = np.arange(len(flags)) == row, -1 if whole < 0 else 1
        for j, digits in enumerate(blocks):
            self._enter((m, 0, j), here, np.full(len(flags), sign * digits, np.int64), found)
        for i, digits in enumerate(fractions, 1):
            self._enter((m, _DIGITS * i, 0), here, np.full(len(flags), digits, np.int64), found)

    # --- weights → aggregates ---------------------------------------------------------------------------

    def total(self, aggregate: Aggregate, m: int | None, weight: Weight) -> Total:
        """An aggregate over the events of a measure, or with None over matches."""
        if aggregate.name == "COUNT":
            counted = CountTotal(True)
            counted.add(1, weight.count if m is None else self.events(m, weight))
            return counted
        assert m is not None
        if self.measures[m].attribute is None:  # SUM of how many there are in each match
            summed = SumTotal(False, self._terms)
            summed.put(Fraction(self.events(m, weight)), {kinds.INTEGER: 1}, (), failed=False)
            return summed
        flags = weight.flags >> (_FIRST_FLAG + _FLAGS * m)
        if aggregate.name in ("MIN", "MAX"):
            return self._extreme(aggregate, m, flags & _MISSING != 0, weight)
        total = SumTotal(aggregate.name == "AVG", self._terms)
        count = self.events(m, weight) if aggregate.name == "AVG" else 1
        kind = max((i for i in range(len(KINDS)) if flags >> i & 1), default=None)
        special = [value for flag, value in ((_NAN, 0.0), (_PLUS, math.inf), (_MINUS, -math.inf)) if flags & flag]
        total.put(
            sum((Fraction(weight.sums[i]) * _unit(column) for column, i in self.columns_of(m)), Fraction(0)),
            {} if kind is None else {KINDS[kind]: count},
            special,
            failed=flags & (_ERROR | _MISSING) != 0,
        )
        return total

    def numbers(self, name: str, m: int | None, weights: U64, form: I64) -> tuple[int, NDArray[np.bool_]]:
        """Which number of a weight COUNT or SUM is (`number_of`), and of which of n weights it is one by itself, an
        integer."""
        if name == "COUNT" and m is None:
            return 0, np.ones(len(weights), np.bool_)
        assert m is not None
        if name == "COUNT" or self.measures[m].attribute is None:
            return 1 + self._sums[m, _THERE, 0], np.ones(len(weights), np.bool_)
        if name != "SUM":
            return 0, np.zeros(len(weights), np.bool_)
        flags = weights[:, 0] >> np.uint64(_FIRST_FLAG + _FLAGS * m) & np.uint64((1 << _FLAGS) - 1)
        whole = flags & ~np.uint64(_flag(kinds.INTEGER)) == 0
        found = self._sums[m, 0, 0]
        for _, i in self.columns_of(m):
            if i != found:
                number, fits = number_of(1 + i, weights, form)
                whole &= fits & (number == 0)
        return 1 + found, whole

    def summed(self, name: str, m: int, weights: U64, form: I64) -> Sums:
        """SUM or AVG of the values of a measure, of n weights."""
        flags = self._flags(m, weights)
        kind, failed, _ = self.kinds_of(m, weights)
        special = np.zeros(len(flags))
        special[flags & _PLUS != 0], special[flags & _MINUS != 0] = math.inf, -math.inf
        special[(flags & _NAN != 0) | (flags & _PLUS != 0) & (flags & _MINUS != 0)] = math.nan
        events = [1] * len(flags)
        if name == "AVG":
            events = large_numbers(self.counting(m), weights, form)
        limbs = int(form[w.LIMBS])
        used = [(c, i) for c, i in self.columns_of(m) if weights[:, 1 + (1 + i) * limbs : 1 + (2 + i) * limbs].any()]
        denominator = math.lcm(*(_unit(column).denominator for column, _ in used))
        numerators = [0] * len(flags)
        for column, i in used:
            times = int(_unit(column) * denominator)
            more = large_numbers(1 + i, weights, form)
            numerators = [total + times * number for total, number in zip(numerators, more, strict=True)]
        return Sums(kind, failed, special, events, numerators, denominator)

    def _flags(self, m: int, weights: U64) -> I64:
        return (weights[:, 0] >> np.uint64(_FIRST_FLAG + _FLAGS * m)).view(np.int64) & (1 << _FLAGS) - 1

    def kinds_of(self, m: int, weights: U64) -> tuple[I64, NDArray[np.bool_], NDArray[np.bool_]]:
        """Of n weights: the kinds of sums of a measure (kinds.*), which are errors, and which have no NaN or INF."""
        flags = self._flags(m, weights)
        kind = np.full(len(flags), kinds.INTEGER)
        for each in KINDS:
            kind[flags & _flag(each) != 0] = each
        return kind, flags & (_ERROR | _MISSING) != 0, flags & (_NAN | _PLUS | _MINUS) == 0

    def counting(self, m: int) -> int:
        """Which number of a weight says how many values there are, of measures that are counted."""
        return 1 + self._sums[m, _THERE, 0]

    def extremes(self, name: str, m: int, weights: U64, form: I64) -> NDArray[np.uint32]:
        """MIN or MAX of n weights: ids, 0 where it is unbound."""
        place, labels = self._labelled(name, m)
        numbers = weights[:, words_of(form) - self.leasts + place].view(np.int64)
        bits = weights[:, 0] >> np.uint64(_FIRST_FLAG + _FLAGS * m)
        there = (numbers != w.NO_VALUE) & (bits & np.uint64(_MISSING) == 0)
        return np.where(there, labels.values(numbers), 0).astype(np.uint32)

    def _labelled(self, name: str, m: int) -> tuple[int, _Labels]:
        sign = 1 if name == "MIN" else -1
        return next((i, labels) for i, (of, labels) in enumerate(self._labels) if of == m and labels.sign == sign)

    def events(self, m: int, weight: Weight) -> int:
        """How many values there are, of measures that are counted."""
        return weight.sums[self._sums[m, _THERE, 0]]

    def columns_of(self, m: int) -> Iterator[tuple[Column, int]]:
        """Of a measure's values: what the column is of, and which of the sums it is."""
        return ((column, i) for column, i in self._sums.items() if column[0] == m and column[1] != _THERE)

    def _extreme(self, aggregate: Aggregate, m: int, failed: bool, weight: Weight) -> Total:
        place, labels = self._labelled(aggregate.name, m)
        bag = BagTotal(aggregate, self._terms)
        if failed:
            bag.add(0, 1)
        if weight.leasts[place] != w.NO_VALUE:
            bag.add(int(labels.values(np.array([weight.leasts[place]], np.int64))[0]), 1)
        return bag

    # --- their state ------------------------------------------------------------------------------------

    @property
    def _of_labels(self) -> list[_Labels]:
        return [labels for _, labels in self._labels]

    def relabelled(self) -> list[tuple[int, I64, I64]]:
        """Of the columns of least values whose labels have changed since the last call: number, labels before,
        ascending, and now."""
        changed = ((place, labels.take_changes()) for place, (_, labels) in enumerate(self._labels))
        return [(place, *change) for place, change in changed if change is not None]

    @property
    def labels(self) -> int:
        """How many values may be least."""
        return sum(len(labels.numbers) for _, labels in self._labels)

    def begin(self) -> None:
        """No weight has a least value."""
        for _, labels in self._labels:
            labels.forget(np.zeros(0, np.int64))

    def forget(self, used: Sequence[I64]) -> None:
        """Only these labels of each column of least values are still in use."""
        for (_, labels), mine in zip(self._labels, used, strict=True):
            labels.forget(mine)

    def save(self, terms: SavedTerms) -> State:
        """Its columns and labels."""
        return {**super().save(terms), "sums": np.array([*self._sums], np.int64).reshape(self.sums, 3)}

    def restore(self, state: State, terms: KnownTerms) -> None:
        """Continue with those of a saved state."""
        self._sums = {(m, k, j): i for i, (m, k, j) in enumerate(state["sums"].tolist())}
        super().restore(state, terms)


class _Labels(Stateful):
    """Numbers for terms, in their order, with room between them for others. `sign`: 1 if the least are wanted, -1 if
    the largest are, then the largest term has the least number; of equal terms the one with the least text has it."""

    def __init__(self, sign: int, terms: TermDictionary) -> None:
        self.sign = sign
        self._terms = terms
        self._put({})

    def _put(self, numbers: Mapping[int, int]) -> None:
        """Have these labels by ids, ascending."""
        self.numbers = dict(numbers)
        self._before: dict[int, int] | None = None
        self._ids = {self._key(i): i for i in numbers}
        self._places = Places([*self._ids], [*numbers.values()])

    @property
    def ids(self) -> I64:
        """The terms that have one."""
        return np.array([*self.numbers], np.int64)

    def of(self, ids: I64) -> I64:
        """Their labels; NO_VALUE for 0."""
        distinct, place = np.unique(ids, return_inverse=True)
        for i in distinct.tolist():
            if i and i not in self.numbers:
                self._add(i)
        return np.array([self.numbers[i] if i else w.NO_VALUE for i in distinct.tolist()], np.int64)[place]

    def values(self, numbers: I64) -> I64:
        """The terms of labels; of other numbers some term, or 0."""
        distinct, place = np.unique(numbers, return_inverse=True)
        keys, fine = self._places.keys, self._places.fine
        found = [bisect_left(fine, number) for number in distinct.tolist()]
        return np.array([self._ids[keys[at]] if at < len(fine) else 0 for at in found], np.int64)[place]

    def take_changes(self) -> tuple[I64, I64] | None:
        """Labels before, ascending, and now, if some have changed since the last call."""
        before, self._before = self._before, None
        if before is None:
            return None
        pairs = sorted((number, self.numbers[i]) for i, number in before.items())
        old, new = np.array(pairs, np.int64).reshape(len(pairs), 2).T
        return old, new

    def forget(self, used: I64) -> None:
        """Only these are still in use."""
        kept = np.isin(np.array(self._places.fine, np.int64), used).tolist()
        ids = (self._ids[key] for key in self._places.keys)
        self._put({i: self.numbers[i] for i, stays in zip(ids, kept, strict=True) if stays})

    def held_ids(self) -> Iterable[I64]:
        return (self.ids,)

    def save(self, terms: SavedTerms) -> State:
        ids = [self._ids[key] for key in self._places.keys]
        return {"ids": terms.ids(np.array(ids, np.int64)), "numbers": np.array(self._places.fine, np.int64)}

    def restore(self, state: State, terms: KnownTerms) -> None:
        self._put(dict(zip(terms.ids(state["ids"]).tolist(), state["numbers"].tolist(), strict=True)))

    def _add(self, i: int) -> None:
        """Between its neighbours; where there is no room all get other numbers."""
        key = self._key(i)
        number = self._places.label(key)
        if not number:
            self._before = self._before or dict(self.numbers)
            self._places.spread()
            number = self._places.label(key)
            for known, new in zip(self._places.keys, self._places.fine, strict=True):
                if known != key:
                    self.numbers[self._ids[known]] = new
        self.numbers[i], self._ids[key] = number, i

    def _key(self, i: int) -> _Placed:
        term = self._terms.term(i)
        if isinstance(term, BlankNode):
            return _Placed(self.sign, (order.BLANK, int(self._terms.columns.exact[i])), "")
        return _Placed(self.sign, order_key(term), str(term))


@dataclass(frozen=True, slots=True)
class _Placed:
    sign: int
    key: Key
    text: str

    def __lt__(self, other: _Placed) -> bool:
        if self.key == other.key:
            return self.text < other.text
        return self.key < other.key if self.sign > 0 else other.key < self.key


def words_of(form: I64) -> int:
    """How many words a weight of a form has."""
    return int(1 + (1 + form[w.SUMS]) * form[w.LIMBS] + form[w.LEASTS])


def new_form(limbs: int, measures: Measures) -> I64:
    """The form of weights of these measures, with so many limbs, or as many as there may be."""
    return np.array([min(limbs, MOST_LIMBS), measures.sums, measures.leasts, limbs >= MOST_LIMBS], np.int64)


def reformed(array: U64, before: I64, form: I64, kept: I64) -> U64:
    """Lines of weights of another form: numbers have more limbs, or fewer that suffice; the first sums are those that
    had the numbers `kept`."""
    words = words_of(before)
    old = array.reshape(len(array), array.shape[1] // words, words)
    leasts = int(before[w.LEASTS])
    made = np.zeros((*old.shape[:2], words_of(form)), np.uint64)
    made[..., 0] = old[..., 0]
    made[..., made.shape[2] - leasts :] = old[..., old.shape[2] - leasts :]
    limbs, size = int(before[w.LIMBS]), int(form[w.LIMBS])
    same = min(limbs, size)
    for i, number in enumerate([0, *(1 + kept).tolist()]):
        to, at = 1 + i * size, 1 + number * limbs
        made[..., to : to + same] = old[..., at : at + same]
        fill = (old[..., at + limbs - 1].view(np.int64) >> 63).view(np.uint64)
        made[..., to + same : to + size] = fill[..., None]
    return made.reshape(len(array), made.shape[1] * made.shape[2])


def number_of(i: int, weights: U64, form: I64) -> tuple[I64, NDArray[np.bool_]]:
    """Number i of weights, and where it is one of 64 bits."""
    limbs = int(form[w.LIMBS])
    numbers = weights[:, 1 + i * limbs : 1 + (i + 1) * limbs].view(np.int64)
    return numbers[:, 0], (numbers[:, 1:] == (numbers[:, :1] >> 63)).all(axis=1)


def large_numbers(i: int, weights: U64, form: I64) -> list[int]:
    """Number i of weights."""
    limbs = int(form[w.LIMBS])
    numbers = np.ascontiguousarray(weights[:, 1 + i * limbs : 1 + (i + 1) * limbs]).tobytes()
    size = 8 * limbs
    return [int.from_bytes(numbers[at : at + size], "little", signed=True) for at in range(0, len(numbers), size)]


def _flag(kind: int) -> int:
    return 1 << KINDS.index(kind)


def _unit(column: Column) -> Fraction:
    _, k, j = column
    power = Fraction(1 << BLOCK_BITS * j) if j >= 0 else Fraction(1, 1 << -BLOCK_BITS * j)
    return Fraction(power, 10**k)


def _blocks(whole: int) -> list[int] | None:
    """A number from 0 on in blocks of 62 bits, the least first; None: it has too many."""
    if whole.bit_length() > BLOCK_BITS * _MOST_WHOLE:
        return None
    mask = (1 << BLOCK_BITS) - 1
    return [whole >> at & mask for at in range(0, whole.bit_length(), BLOCK_BITS)]


def _fractions(rest: Fraction) -> list[int] | None:
    """The digits of a decimal of less than 1, in columns; None: it has too many."""
    found: list[int] = []
    while rest:
        if len(found) == _MOST_FRACTIONS:
            return None
        digits, rest = divmod(rest * 10**_DIGITS, 1)
        found.append(int(digits))
    return found
