"""The order of terms: that of ORDER BY in Oxigraph, made total (operators.md, 6).

    unbound < blank nodes < IRIs < literals < triple terms

Oxigraph compares literals by value where it can: numbers with numbers, each kind of dates with its own, durations; by
(lexical form, datatype, language) where it cannot. That is no order: 9 < 10 < "10a" < 9. So here literals fall into
classes, one after the other: numbers (NaN last), dateTimes, dates, times, gYears, gYearMonths, gMonths, gMonthDays,
gDays, durations, and all others by (lexical form, datatype, language). Within a class Oxigraph's order holds, and where
that leaves it open:

- Numbers are compared without rounding. For Oxigraph the decimal 0.1 is the double nearest to it; here it is less.
- Dates without a time zone are taken as UTC, and come before those with one at the same time.
- Durations are added to four days, as XML Schema says, and the first at which the sums differ decides.
- Blank nodes sort by age.

Values that are equal (1 and 1.0) rank equal; where a total order is wanted they go by their texts. Most is compared by
kernels (kernels/terms/order.py); `TermOrder` informs these about the few terms whose columns do not say enough.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import field
from fractions import Fraction
from typing import Any, Final, Generic, Protocol, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray
from pyoxigraph import BlankNode, Literal, NamedNode, Triple

from oxiseq.engine import kinds
from oxiseq.engine.kernels.memory.pointers import Replaceable, address_of, call
from oxiseq.engine.kernels.terms import order as k
from oxiseq.engine.terms.dictionary import AnyIds, TermDictionary
from oxiseq.engine.terms.normal import RDF_LANG_STRING, XSD
from oxiseq.engine.terms.texts import Term
from oxiseq.engine.terms.value import INT64_MAX, INT64_MIN, days_from_civil, term_value, zone_minutes
from oxiseq.grammar.records import dataclass

T = TypeVar("T")


class Ordered(Protocol):
    """What can be sorted."""

    def __lt__(self, other: Any, /) -> bool: ...


K = TypeVar("K", bound=Ordered)
Key: TypeAlias = tuple[Any, ...]
"""Of a term; keys are compared, and equal for equal values."""

_RDF: Final = RDF_LANG_STRING.removesuffix("langString")
_NAMES: Final = (XSD + "string", RDF_LANG_STRING, _RDF + "dirLangString")
_DAY: Final = 86_400


def order_key(term: Term | None) -> Key:
    """The sort key of a term in normal form. Blank nodes sort by their labels: they have no serial number here."""
    if term is None:
        return (k.UNBOUND,)
    if isinstance(term, BlankNode):
        return k.BLANK, term.value
    if isinstance(term, NamedNode):
        return k.IRI, term.value
    if isinstance(term, Triple):
        return k.TRIPLE, order_key(term.subject), order_key(term.predicate), order_key(term.object)
    kind, number, _, _ = term_value(term)
    if kind in (kinds.FLOAT, kinds.DOUBLE):
        return k.NUMBER, math.isnan(number), 0 if math.isnan(number) else number
    if kind in (kinds.INTEGER, kinds.DECIMAL):
        return k.NUMBER, False, Fraction(term.value)
    if kind in (kinds.DATETIME, kinds.OTHER):
        return _temporal_key(term)
    return k.TEXT, term.value, term.datatype.value, term.language or "", str(term)


# --- dates and durations ------------------------------------------------------------------------------

_ZONE: Final = r"(?P<zone>Z|[+-][0-9]{2}:[0-9]{2})?"
_CLOCK: Final = r"(?P<hour>[0-9]{2}):(?P<minute>[0-9]{2}):(?P<second>[0-9]{2}(?:\.[0-9]+)?)"
_YEAR: Final = r"(?P<year>-?[0-9]+)"
_MONTH, _DAY_OF = r"(?P<month>[0-9]{2})", r"(?P<day>[0-9]{2})"
_PATTERNS: Final = {
    XSD + name: (class_, re.compile(pattern + _ZONE))
    for name, class_, pattern in (
        ("dateTime", k.DATETIME, f"{_YEAR}-{_MONTH}-{_DAY_OF}T{_CLOCK}"),
        ("date", k.DATE, f"{_YEAR}-{_MONTH}-{_DAY_OF}"),
        ("time", k.TIME, _CLOCK),
        ("gYear", k.YEAR, _YEAR),
        ("gYearMonth", k.YEAR_MONTH, f"{_YEAR}-{_MONTH}"),
        ("gMonth", k.MONTH, f"--{_MONTH}"),
        ("gMonthDay", k.MONTH_DAY, f"--{_MONTH}-{_DAY_OF}"),
        ("gDay", k.DAY, f"---{_DAY_OF}"),
    )
}
_DURATION: Final = re.compile(
    r"(-?)P(?:([0-9]+)Y)?(?:([0-9]+)M)?(?:([0-9]+)D)?(?:T(?:([0-9]+)H)?(?:([0-9]+)M)?(?:([0-9]+(?:\.[0-9]+)?)S)?)?"
)
_FROM: Final = ((1969, 9), (1697, 2), (1903, 3), (1903, 7))
"""Months to which durations are added (XML Schema 1.1, part 2, 3.3.6.1; it has 1696, Oxigraph 1969)."""


def sort_by(items: list[T], keys: Callable[[T], Sequence[Any]], descending: Sequence[bool]) -> None:
    """Sort in place by several keys of each item, the first one first, each of them ascending or descending. Ties keep
    their order."""
    for place in range(len(descending) - 1, -1, -1):
        items.sort(key=lambda item: keys(item)[place], reverse=descending[place])


def _temporal_key(literal: Literal) -> Key:
    """Class, then seconds, then whether it has a time zone; of a duration the seconds from four days on."""
    found = _PATTERNS.get(literal.datatype.value)
    if found is None:
        return k.DURATION, *_duration(literal.value)
    class_, pattern = found
    match = pattern.fullmatch(literal.value)
    assert match is not None  # term_value has read it
    part = match.groupdict()
    year, month, day = (int(part.get(name) or default) for name, default in (("year", 1972), ("month", 1), ("day", 1)))
    seconds = Fraction(days_from_civil(year, month, day) * _DAY - zone_minutes(part["zone"]) * 60)
    seconds += int(part.get("hour") or 0) * 3600 + int(part.get("minute") or 0) * 60 + Fraction(part.get("second") or 0)
    return class_, seconds, part["zone"] is not None


def _duration(text: str) -> tuple[Fraction, ...]:
    match = _DURATION.fullmatch(text)
    assert match is not None  # term_value has read it
    sign = -1 if match.group(1) else 1
    years, months, days, hours, minutes = (int(match.group(i) or 0) for i in range(2, 7))
    seconds = sign * (days * _DAY + hours * 3600 + minutes * 60 + Fraction(match.group(7) or 0))
    months = sign * (12 * years + months)
    return tuple(seconds + _DAY * _days_until(year, month, months) for year, month in _FROM)


def _days_until(year: int, month: int, months: int) -> int:
    """How long so many months are from the first of a month on."""
    years, index = divmod(month - 1 + months, 12)
    return days_from_civil(year + years, index + 1, 1) - days_from_civil(year, month, 1)


# --- passed to the kernels ---------------------------------------------------------------------------------

_STEP: Final = 1 << 32
_MOST: Final = 1 << 61


@dataclass(slots=True)
class Places(Generic[K]):
    """Numbers for keys, in their order, with room between them for others."""

    keys: list[K] = field(default_factory=list)
    fine: list[int] = field(default_factory=list)
    """Ascending, from 1 to _MOST."""

    def label(self, key: K) -> int:
        """The number of a key, 0 if there is no room between its neighbours."""
        i = bisect_left(self.keys, key)
        if i < len(self.keys) and self.keys[i] == key:
            return self.fine[i]
        low = self.fine[i - 1] if i else 0
        high = self.fine[i] if i < len(self.fine) else _MOST
        label = _between(low, high, first=i == 0, last=i == len(self.fine))
        if label:
            self.keys.insert(i, key)
            self.fine.insert(i, label)
        return label

    def spread(self) -> None:
        """Numbers with room between them, in the same order."""
        step = _MOST // (len(self.fine) + 1)
        self.fine = [step * (i + 1) for i in range(len(self.fine))]


def _between(low: int, high: int, first: bool, last: bool) -> int:
    """A number strictly between two, 0 if there is none. At the ends in steps: there most are added."""
    if high - low < 2:
        return 0
    if last and not first:
        return min(low + _STEP, (low + high) // 2) if high - low <= 2 * _STEP else low + _STEP
    if first and not last and high > 2 * _STEP:
        return high - _STEP
    return (low + high) // 2


@dataclass(frozen=True, slots=True)
class _Hard:
    """A hard term: its text, to know it again when ids are given again; its place."""

    text: str
    class_: int
    coarse: int
    below: bool
    key: Key


class TermOrder:
    """The order of a dictionary's terms. It holds no ids: those that are freed it forgets, whoever
    compares terms holds them. Not safe for several threads."""

    def __init__(self, terms: TermDictionary) -> None:
        self._terms = terms
        self._hard: dict[int, _Hard] = {}
        self._buckets: dict[tuple[int, int, bool], Places[Key]] = {}
        self._generation = terms.generation
        self._texts = [np.frombuffer(bytearray(name.encode()), np.uint8) for name in _NAMES]
        names = np.array([[address_of(text), len(text)] for text in self._texts], np.int64)
        self._memory = Replaceable(k.OrderArrays.allocate(ids=1)._replace(names=names))

    @property
    def _arrays(self) -> k.OrderArrays:
        return self._memory.arrays

    @property
    def pointers(self) -> Replaceable[k.OrderArrays]:
        """The pointer table for kernels (`L` of kernels/terms/order.py), always the same. Ask for it again when the
        dictionary has freed ids: they are forgotten then."""
        if self._generation != self._terms.generation:
            self._forget_freed()
        return self._memory

    def prepare(self, ids: AnyIds) -> None:
        """Have kernels able to compare these terms."""
        wanted = np.require(ids, np.uint32, ("C", "W")).reshape(-1)
        found = np.zeros(len(wanted), np.uint32)
        count = int(call(k.hard_terms, self._terms, self.pointers, wanted, found))
        if not count:
            return
        if len(self._arrays.known) < len(self._terms):
            self._memory.set(self._arrays.grow("ids", max(len(self._terms), 2 * len(self._arrays.known))))
        for term_id in np.unique(found[:count]).tolist():
            self._learn(term_id)

    def sorted(self, ids: AnyIds, *, total: bool = True) -> NDArray[np.uint32]:
        """The ids in term order; equal values by their texts, or (not `total`) in their given order."""
        self.prepare(ids)
        out = np.array(ids, np.uint32)
        call(k.sort_terms, self._terms, self.pointers, out, np.zeros(len(out), np.uint32), total)
        return out

    def ranks(self, ids: AnyIds, *, total: bool = False) -> NDArray[np.int64]:
        """i64 for each of the ids (of any shape), by which they can be sorted: equal for equal values, or (`total`) for
        the same terms alone. They mean something beside each other only."""
        distinct, inverse = np.unique(ids, return_inverse=True)
        order = self.sorted(distinct, total=total)
        ranks = np.zeros(len(order), np.int64)
        call(k.rank_sorted, self._terms, self.pointers, order, ranks, total)
        by_id = np.empty(len(order), np.int64)
        by_id[np.searchsorted(distinct, order)] = ranks
        found: NDArray[np.int64] = by_id[inverse].reshape(np.shape(ids))
        return found

    # --- hard terms ---------------------------------------------------------------------------------

    def _learn(self, term_id: int) -> None:
        hard = self._hard[term_id] = self._place(term_id)
        name = (hard.class_, hard.coarse, hard.below)
        bucket = self._buckets.setdefault(name, Places())
        label = bucket.label(hard.key)
        if not label:
            self._spread(name, term_id)
            label = bucket.label(hard.key)
        self._write(term_id, hard, label)

    def _write(self, term_id: int, hard: _Hard, label: int) -> None:
        arrays = self._arrays
        arrays.known[term_id], arrays.coarse[term_id] = hard.class_, hard.coarse
        arrays.fine[term_id] = label - 2 * _MOST if hard.below else label + kinds.ZONED

    def _spread(self, name: tuple[int, int, bool], but: int) -> None:
        """Give the terms of a bucket other numbers, in the same order."""
        bucket = self._buckets[name]
        bucket.spread()
        for term_id, hard in self._hard.items():
            if term_id != but and (hard.class_, hard.coarse, hard.below) == name:
                self._write(term_id, hard, bucket.fine[bisect_left(bucket.keys, hard.key)])

    def _place(self, term_id: int) -> _Hard:
        term = self._terms.term(term_id)
        key = order_key(term)
        text = self._terms.text(term_id)
        class_ = int(key[0])
        if class_ == k.NUMBER:
            number = self._terms.columns.number[term_id]
            return _Hard(text, class_, int(number.view(np.int64)), bool(key[2] < float(number)), key)
        if class_ == k.TRIPLE:
            return _Hard(text, class_, 0, False, key)
        coarse = math.floor(key[1] * 1_000_000)
        return _Hard(text, class_, min(max(coarse, INT64_MIN), INT64_MAX), False, key)

    def _forget_freed(self) -> None:
        """Ids that have been freed, and maybe given to other terms since."""
        self._generation = self._terms.generation
        live: dict[int, _Hard] = {}
        for term_id, hard in self._hard.items():
            kept = self._terms.columns.kind[term_id] != kinds.NONE and self._terms.text(term_id) == hard.text
            if kept:
                live[term_id] = hard
            else:
                self._arrays.known[term_id] = 0
        if len(live) < len(self._hard):
            self._hard = live
            self._keep_used()

    def _keep_used(self) -> None:
        """Drop the keys that no term has any more; the others keep their numbers."""
        used: dict[tuple[int, int, bool], set[Key]] = {}
        for hard in self._hard.values():
            used.setdefault((hard.class_, hard.coarse, hard.below), set()).add(hard.key)
        before, self._buckets = self._buckets, {}
        for name, keys in used.items():
            pairs = [pair for pair in zip(before[name].keys, before[name].fine, strict=True) if pair[0] in keys]
            self._buckets[name] = Places([key for key, _ in pairs], [label for _, label in pairs])
