"""Event mappings (µ, t1, t2): FIRST, LAST, SEQ and its selections (RSEP-QL, Eq. 4 to 11; semantics.md 4).

Where it stands: the mappings that EVENT patterns have on each item, found once when it comes → those of a window at an
instant → **an event pattern's mappings**, with the items that justify each. Everything is columns.

The left operand of SEQ is evaluated on what lies before each second mapping starts (Eq. 7, W*). All that this part
depends on is the moment at which the second mapping starts, so a pattern is evaluated *before moments*: each of its
mappings comes with the number of the moment before which it holds. A pattern without FIRST, LAST and selections holds
the same mappings before a moment as ever, less those that end too late: it is evaluated once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray
from pyoxigraph import Variable

from oxiseq.engine.errors import LimitError
from oxiseq.engine.rsp.plan import EventPlan, MatchPlan
from oxiseq.engine.terms.saved import KnownTerms, SavedTerms, State
from oxiseq.grammar.algebra import Choice, EventName, EventPattern, FirstOf, Following, LastOf

Ids = NDArray[np.uint32]
I64 = NDArray[np.int64]
MOST_PAIRS: Final = 50_000_000
"""Pairs of one SEQ at one instant, past which LimitError is raised."""
_FEW: Final = 4
"""Second mappings that are compared one by one."""
_NEVER: Final = np.iinfo(np.int64).max
_ALWAYS: Final = np.array([_NEVER])
"""The one moment that all items lie before."""


@dataclass(frozen=True, slots=True, eq=False)
class Events:
    """n event mappings. values: u32[n, variables], 0 unbound; start, end: i64[n]; items: i64[n, atoms], the places of
    the items that justify them, in the streams `of`."""

    variables: tuple[Variable, ...]
    certain: frozenset[Variable]
    values: Ids
    start: I64
    end: I64
    items: I64
    of: tuple[int, ...]

    def __len__(self) -> int:
        return len(self.start)

    def take(self, index: NDArray[np.integer] | NDArray[np.bool_]) -> Events:
        """Some of them."""
        return Events(
            self.variables, self.certain, self.values[index], self.start[index], self.end[index], self.items[index],
            self.of,
        )  # fmt: skip

    def columns(self, variables: Sequence[Variable]) -> Ids:
        """Values of some variables, u32[n, these]."""
        return np.ascontiguousarray(self.values[:, [self.variables.index(v) for v in variables]])


def codes(rows: NDArray[np.integer]) -> I64:
    """A number for each row, equal for equal rows: from 0 on, i64[rows]."""
    code = np.zeros(len(rows), np.int64)
    for column in rows.T:
        values, number = np.unique(column, return_inverse=True)
        code = np.unique(code * len(values) + number.reshape(-1), return_inverse=True)[1].reshape(-1)
    return code


def concat(one: Events, other: Events) -> Events:
    """Mappings of the same pattern, one after the other."""
    if not len(other):
        return one
    if not len(one):
        return other
    return Events(
        one.variables, one.certain, np.concatenate([one.values, other.values]),
        np.concatenate([one.start, other.start]), np.concatenate([one.end, other.end]),
        np.concatenate([one.items, other.items]), one.of,
    )  # fmt: skip


class Stored:
    """The mappings of one EVENT definition on the items from some place on."""

    def __init__(self, plan: EventPlan, stream: int) -> None:
        self.plan = plan
        self.stream = stream
        self._count = 0
        self._place = np.zeros(64, np.int64)
        self._time = np.zeros(64, np.int64)
        self._values = np.zeros((64, len(plan.variables)), np.uint32)

    def __len__(self) -> int:
        return self._count

    def add(self, place: I64, time: I64, values: Ids) -> None:
        """Mappings of further items, in the order of their places."""
        low, high = self._count, self._count + len(place)
        if high > len(self._place):
            size = max(high, 2 * len(self._place))
            self._place, self._time = np.resize(self._place, size), np.resize(self._time, size)
            wider = np.zeros((size, self._values.shape[1]), np.uint32)
            wider[:low] = self._values[:low]
            self._values = wider
        self._place[low:high], self._time[low:high], self._values[low:high] = place, time, values
        self._count = high

    def within(self, start: int, stop: int, used: I64) -> Events:
        """Those of the items in the places [start, stop) that have not been used; valid until more are added."""
        low, high = np.searchsorted(self._place[: self._count], (start, stop))
        time = self._time[low:high]
        found = Events(
            self.plan.variables, self.plan.certain, self._values[low:high], time, time, self._place[low:high, None],
            (self.stream,),
        )  # fmt: skip
        return found.take(~np.isin(self._place[low:high], used)) if len(used) else found

    def forget(self, before: int) -> None:
        """Nobody asks for items before this place."""
        gone = int(np.searchsorted(self._place[: self._count], before))
        if 2 * gone <= self._count:
            return
        kept = slice(gone, self._count)
        for name in ("_place", "_time", "_values"):
            setattr(self, name, getattr(self, name)[kept].copy())
        self._count -= gone
        if not self._count:
            self._place, self._time = np.zeros(64, np.int64), np.zeros(64, np.int64)
            self._values = np.zeros((64, self._values.shape[1]), np.uint32)

    @property
    def bytes(self) -> int:
        """How large its arrays are."""
        return self._place.nbytes + self._time.nbytes + self._values.nbytes

    def held_ids(self) -> Iterator[Ids]:
        """The terms of the mappings."""
        yield self._values[: self._count]

    def save(self, terms: SavedTerms) -> State:
        """All of them."""
        kept = slice(0, self._count)
        return {"place": self._place[kept].copy(), "time": self._time[kept].copy(),
                "values": terms.ids(self._values[kept].copy())}  # fmt: skip

    def restore(self, state: State, terms: KnownTerms) -> None:
        """Go on from a saved state."""
        self.add(state["place"], state["time"], terms.ids(state["values"]))


def evaluate(match: MatchPlan, atoms: Mapping[str, Events]) -> Events:
    """The mappings of a MATCH; `atoms`: those of its events by name. Raises LimitError."""
    return _before(match.pattern, atoms, _ALWAYS)[0]


def follow(left: Events, right: Events) -> Events:
    """`left SEQ right` without a selection (Eq. 7). Raises LimitError."""
    return _joined(left, right, *_pairs(left, right))


def is_plain(pattern: EventPattern) -> bool:
    """Whether its mappings before a moment are all of its mappings that end before it."""
    match pattern:
        case EventName():
            return True
        case Following(left, right, Choice.UNRESTRICTED):
            return is_plain(left) and is_plain(right)
        case _:
            return False


def _before(pattern: EventPattern, atoms: Mapping[str, Events], moments: I64) -> tuple[Events, I64]:
    """A pattern's mappings on the items before each of some moments, and the number of each one's moment. Moments are
    distinct and ascend."""
    match pattern:
        case _ if is_plain(pattern):
            found = _plain(pattern, atoms)
            place, moment = _cut(found.end, moments)
            return found.take(place), moment
        case FirstOf(inner) | LastOf(inner):
            latest = isinstance(pattern, LastOf)
            if is_plain(inner):
                found = _plain(inner, atoms)
                place, moment = _cut_to_best(found.end, moments, latest=latest)
                return found.take(place), moment
            found, moment = _before(inner, atoms, moments)
            kept = _best(moment, found.end, latest=latest)
            return found.take(kept), moment[kept]
        case Following(left, right, Choice.NAIVE):
            return _before(Following(LastOf(left), LastOf(right)), atoms, moments)
        case Following():
            return _sequence(pattern, atoms, moments)
    raise AssertionError(pattern)  # EventName is plain


def _plain(pattern: EventPattern, atoms: Mapping[str, Events]) -> Events:
    if isinstance(pattern, EventName):
        return atoms[pattern.name]
    assert isinstance(pattern, Following)  # `is_plain` has seen to it
    return follow(_plain(pattern.first, atoms), _plain(pattern.second, atoms))


def _sequence(pattern: Following, atoms: Mapping[str, Events], moments: I64) -> tuple[Events, I64]:
    """SEQ, SEQ^c, SEQ^r. What a second mapping is paired with does not depend on the moment, only whether it is there
    and, for a selection, which others are: so pairs are found once for all moments."""
    second, number, moment = _seconds(pattern.second, atoms, moments)
    first, a, b = _partners(pattern.first, second, atoms)
    chooses, latest = pattern.choice is not Choice.UNRESTRICTED, pattern.choice is Choice.RECENT
    if chooses:  # FIRST µ2(E1), or LAST µ2(E1), for each µ2
        kept = _best(b, first.end[a], latest=latest)
        a, b = a[kept], b[kept]
    able = np.isin(number, b)
    number, moment = number[able], moment[able]
    if chooses:  # the first E2, or the last, among those that are equal on the shared variables
        shared = [v for v in first.variables if v in second.variables]
        equals = codes(np.column_stack([moment, second.columns(shared)[number]]))
        kept = _best(equals, second.end[number], latest=latest)
        number, moment = number[kept], moment[kept]
    pair, of = _ranges(np.searchsorted(b, number), np.searchsorted(b, number, "right"))
    return _joined(first, second, a[pair], b[pair]), moment[of]


def _seconds(right: EventPattern, atoms: Mapping[str, Events], moments: I64) -> tuple[Events, I64, I64]:
    """Mappings of a right operand, and which of them are there before which moment: numbers of both."""
    if is_plain(right):
        found = _plain(right, atoms)
        return found, *_cut(found.end, moments)
    found, moment = _before(right, atoms, moments)
    return found, np.arange(len(found)), moment


def _partners(left: EventPattern, second: Events, atoms: Mapping[str, Events]) -> tuple[Events, I64, I64]:
    """The mappings of a left operand on what lies before second ones, and the pairs of both that agree, in the order of
    the second ones."""
    if is_plain(left):
        first = _plain(left, atoms)
        return first, *_pairs(first, second)
    starts, start = np.unique(second.start, return_inverse=True)
    first, moment = _before(left, atoms, starts)
    return first, *_pairs(first, second, (moment, start.reshape(-1)))


def _best(group: I64, end: I64, *, latest: bool) -> NDArray[np.bool_]:
    """Which have the first end in their group, or the last. Groups are small numbers."""
    best = np.full(int(group.max(initial=-1)) + 1, -_NEVER if latest else _NEVER)
    (np.maximum if latest else np.minimum).at(best, group, end)
    kept: NDArray[np.bool_] = end == best[group]
    return kept


def _cut(end: I64, moments: I64) -> tuple[I64, I64]:
    """The ends before each of the moments: numbers of both."""
    if moments is _ALWAYS:
        return np.arange(len(end)), np.zeros(len(end), np.int64)
    order = np.argsort(end, kind="stable")
    high = np.searchsorted(end[order], moments)
    place, moment = _ranges(np.zeros_like(high), high)
    return order[place], moment


def _cut_to_best(end: I64, moments: I64, *, latest: bool) -> tuple[I64, I64]:
    """Of the ends before each of the moments the first, or the last: numbers of all that are equal to it."""
    order = np.argsort(end, kind="stable")
    ends = end[order]
    before = np.searchsorted(ends, moments)
    some = np.flatnonzero(before)
    best = ends[before[some] - 1 if latest else np.zeros_like(some)]
    place, number = _ranges(np.searchsorted(ends, best), np.searchsorted(ends, best, "right"))
    return order[place], some[number]


def _ranges(low: I64, high: I64) -> tuple[I64, I64]:
    """The numbers in each range [low, high), one range after the other, and which range each is of."""
    sizes = np.maximum(high - low, 0)
    total = int(sizes.sum())
    if total > MOST_PAIRS:
        raise LimitError(total, MOST_PAIRS, "pairs of events of one SEQ")
    offset = np.cumsum(sizes) - sizes
    return np.repeat(low - offset, sizes) + np.arange(total), np.repeat(np.arange(len(sizes)), sizes)


def _pairs(left: Events, right: Events, moments: tuple[I64, I64] | None = None) -> tuple[I64, I64]:
    """Numbers of mappings that agree, the first of which ends before the second starts. `moments`: a number for each
    of the first and of the second ones, which must be equal too."""
    shared = [v for v in left.variables if v in right.variables]
    sure = [v for v in shared if v in left.certain and v in right.certain]
    loose = [v for v in shared if v not in sure]
    if not len(left) or not len(right):
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    mine, other = moments or (np.zeros(len(left), np.int64), np.zeros(len(right), np.int64))
    mine, other = np.column_stack([mine, left.columns(sure)]), np.column_stack([other, right.columns(sure)])
    a, b = (_pairs_of_few if len(right) <= _FEW else _pairs_of_many)(left, right, mine, other)
    if loose and len(a):
        x, y = left.columns(loose)[a], right.columns(loose)[b]
        agree = ((x == y) | (x == 0) | (y == 0)).all(axis=1)
        a, b = a[agree], b[agree]
    return a, b


def _pairs_of_few(left: Events, right: Events, mine: I64, other: I64) -> tuple[I64, I64]:
    """Each of a few second mappings is compared with all first ones; their keys: i64[n, k]."""
    found = []
    for j in range(len(right)):
        agrees = left.end < right.start[j]
        for column, value in zip(mine.T, other[j], strict=True):
            agrees &= column == value
        found.append(np.flatnonzero(agrees))
    return np.concatenate(found), np.repeat(np.arange(len(right)), [len(each) for each in found])


def _pairs_of_many(left: Events, right: Events, mine: I64, other: I64) -> tuple[I64, I64]:
    """By sorting the first mappings."""
    code = codes(np.concatenate([mine, other]))
    ends = np.unique(np.concatenate([left.end, right.start]))
    width = len(ends) + 1
    sought = code[len(left) :] * width
    first = code[: len(left)] * width + np.searchsorted(ends, left.end)
    order = np.argsort(first, kind="stable")
    low = np.searchsorted(first[order], sought)
    high = np.searchsorted(first[order], sought + np.searchsorted(ends, right.start))
    place, b = _ranges(low, high)
    return order[place], b


def _joined(left: Events, right: Events, a: I64, b: I64) -> Events:
    """µ1 ∪ µ2 of the pairs."""
    variables = tuple(dict.fromkeys([*left.variables, *right.variables]))
    values = np.zeros((len(a), len(variables)), np.uint32)
    for place, v in enumerate(variables):
        if v in left.variables:
            values[:, place] = left.values[a, left.variables.index(v)]
        if v in right.variables:
            mine = right.values[b, right.variables.index(v)]
            values[:, place] = np.where(mine != 0, mine, values[:, place])
    return Events(
        variables, left.certain | right.certain, values, left.start[a], right.end[b],
        np.concatenate([left.items[a], right.items[b]], axis=1), left.of + right.of,
    )  # fmt: skip
