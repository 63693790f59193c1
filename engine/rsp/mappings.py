"""Event mappings (µ, t1, t2): FIRST, LAST, SEQ and its selections (RSEP-QL, Eq. 4 to 11; semantics.md 4).

Where it stands: the mappings that EVENT patterns have on each item, found once when it comes → those of a window at an
instant → **an event pattern's mappings**, with the items that justify each. Everything is columns.
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
    return _evaluate(match.pattern, atoms)


def _evaluate(pattern: EventPattern, atoms: Mapping[str, Events]) -> Events:
    match pattern:
        case EventName(name):
            return atoms[name]
        case FirstOf(inner):
            return first(_evaluate(inner, atoms))
        case LastOf(inner):
            return last(_evaluate(inner, atoms))
        case Following(left, right, choice):
            return follow(_evaluate(left, atoms), _evaluate(right, atoms), choice)


def first(events: Events) -> Events:
    """Those that end earliest (Eq. 5)."""
    return events.take(events.end == events.end.min()) if len(events) else events


def last(events: Events) -> Events:
    """Those that end latest (Eq. 6)."""
    return events.take(events.end == events.end.max()) if len(events) else events


def follow(left: Events, right: Events, choice: Choice) -> Events:
    """`left SEQ right` (Eq. 7), or one of its selections (Eq. 9 to 11)."""
    if choice is Choice.NAIVE:
        left, right = last(left), last(right)
    a, b = _pairs(left, right)
    if choice in (Choice.CHRONOLOGICAL, Choice.RECENT) and len(b):
        kept = _chosen(left, right, b, recent=choice is Choice.RECENT)
        a, b = a[kept], b[kept]
    return _joined(left, right, a, b)


def _pairs(left: Events, right: Events) -> tuple[I64, I64]:
    """Numbers of mappings that agree, the first of which ends before the second starts."""
    shared = [v for v in left.variables if v in right.variables]
    sure = [v for v in shared if v in left.certain and v in right.certain]
    loose = [v for v in shared if v not in sure]
    if not len(left) or not len(right):
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    if len(right) <= _FEW:
        a, b = _pairs_of_few(left, right, sure)
    else:
        a, b = _pairs_of_many(left, right, sure)
    if loose and len(a):
        x, y = left.columns(loose)[a], right.columns(loose)[b]
        agree = ((x == y) | (x == 0) | (y == 0)).all(axis=1)
        a, b = a[agree], b[agree]
    return a, b


def _pairs_of_few(left: Events, right: Events, sure: Sequence[Variable]) -> tuple[I64, I64]:
    """Each of a few second mappings is compared with all first ones."""
    places = [(left.variables.index(v), right.variables.index(v)) for v in sure]
    found = []
    for j in range(len(right)):
        agrees = left.end < right.start[j]
        for mine, other in places:
            agrees &= left.values[:, mine] == right.values[j, other]
        found.append(np.flatnonzero(agrees))
    return np.concatenate(found), np.repeat(np.arange(len(right)), [len(each) for each in found])


def _pairs_of_many(left: Events, right: Events, sure: Sequence[Variable]) -> tuple[I64, I64]:
    """By sorting the first mappings."""
    code = codes(np.concatenate([left.columns(sure), right.columns(sure)]))
    moments = np.unique(np.concatenate([left.end, right.start]))
    width = len(moments) + 1
    mine = code[: len(left)] * width + np.searchsorted(moments, left.end)
    order = np.argsort(mine, kind="stable")
    low = np.searchsorted(mine[order], code[len(left) :] * width)
    high = np.searchsorted(mine[order], code[len(left) :] * width + np.searchsorted(moments, right.start))
    sizes = np.maximum(high - low, 0)
    total = int(sizes.sum())
    if total > MOST_PAIRS:
        raise LimitError(total, MOST_PAIRS, "pairs of events of one SEQ")
    b = np.repeat(np.arange(len(right)), sizes)
    offset = np.cumsum(sizes) - sizes
    return order[np.repeat(low - offset, sizes) + np.arange(total)], b


def _chosen(left: Events, right: Events, b: I64, *, recent: bool) -> NDArray[np.bool_]:
    """Which pairs have the first, or the last, of the second mappings that can be paired and are equal on the
    variables shared with the first."""
    shared = [v for v in left.variables if v in right.variables]
    able = np.unique(b)
    ends = right.end[able]
    code = codes(right.columns(shared)[able])
    best = np.full(int(code.max()) + 1, np.iinfo(np.int64).min if recent else np.iinfo(np.int64).max)
    (np.maximum if recent else np.minimum).at(best, code, ends)
    chosen = np.zeros(len(right), np.bool_)
    chosen[able[ends == best[code]]] = True
    kept: NDArray[np.bool_] = chosen[b]
    return kept


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
