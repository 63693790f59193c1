"""Relations whose rows pair only where their times agree: EP-SPARQL's SEQ, EQUALS and what is optional or excluded in
time (operators.md, 4.3; semantics.md 5).

Where it stands: relations with hidden columns for times → `InTime(relations, order)`, whose joins, OPTIONAL, MINUS and
EXISTS see such pairs alone. For instance, with x for the left and y for the right side:

    SEQ                 Before(x.end, y.start)
    EQUALS, EQUALSOPTIONAL  Same((x.start, x.end), (y.start, y.end))
    OPTIONALSEQ         After(x.start, y.end): what is optional lies before
    OPTIONAL, MINUS, EXISTS  After(x.end, y.end, meeting=True)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from oxiseq.engine.flow import plan as p
from oxiseq.engine.flow.relations import Column, Hidden, Relation, Relations


@dataclass(frozen=True, slots=True)
class Time:
    """A time of a relation's rows: two columns that nothing else is, one behind the other."""

    upper: Hidden
    lower: Hidden


@dataclass(frozen=True, slots=True)
class Interval:
    """From when to when a row holds."""

    start: Time
    end: Time

    @property
    def columns(self) -> tuple[Hidden, ...]:
        """All four."""
        return self.start.upper, self.start.lower, self.end.upper, self.end.lower


@dataclass(frozen=True, slots=True)
class Before:
    """The time of the left row lies before that of the right, or (`meeting`) is the same."""

    left: Time
    right: Time
    meeting: bool = False


@dataclass(frozen=True, slots=True)
class After:
    """The time of the left row lies behind that of the right, or (`meeting`) is the same."""

    left: Time
    right: Time
    meeting: bool = False


@dataclass(frozen=True, slots=True)
class Same:
    """Both rows have the same interval."""

    left: Interval
    right: Interval


Order: TypeAlias = Before | After | Same


class InTime(Relations):
    """What can be made of relations that pair in some order."""

    def __init__(self, relations: Relations, order: Order) -> None:
        super().__init__(relations.sheet)
        self._plainly, self._order = relations, order

    def hidden(self) -> Hidden:
        """A column that nothing else is."""
        return self._plainly.hidden()

    def _paired(self, a: Relation, b: Relation, sure: Sequence[Column], loose: Sequence[Column]) -> int:
        match self._order:
            case Same(left, right):
                one = p.Arrange(a.node, a.places([*sure, *left.columns]), a.places(loose))
                other = p.Arrange(b.node, b.places([*sure, *right.columns]), b.places(loose))
                return self.sheet.add(p.Join(self.sheet.add(one), self.sheet.add(other)))
            case Before(left, right, meeting):
                first, second = _timed(a, left, sure, loose), _timed(b, right, sure, loose)
                return self.sheet.add(p.Follow(first, second, "ALL", meeting))
            case After(left, right, meeting):
                first, second = _timed(b, right, sure, loose), _timed(a, left, sure, loose)
                node = self.sheet.add(p.Follow(first, second, "ALL", meeting))
                width = len(b.columns)
                places = (*range(width, width + len(a.columns)), *range(width))
                return self.sheet.add(p.Pick(node, tuple((i,) for i in places)))

    @staticmethod
    def _plain(a: Relation, b: Relation) -> bool:
        """Keys alone do not say what agrees."""
        return False


def _timed(a: Relation, time: Time, sure: Sequence[Column], loose: Sequence[Column]) -> p.Timed:
    return p.Timed(a.node, a.place(time.upper), a.places(sure), a.places(loose))


def interval(relations: Relations) -> Interval:
    """Names for the columns of a new interval."""
    return Interval(*(Time(relations.hidden(), relations.hidden()) for _ in range(2)))


def lasting(relations: Relations, a: Relation, of: Interval, least: int, most: int) -> Relation:
    """The rows whose interval lasts so many microseconds, both bounds included."""
    form = p.Lasting(a.node, a.place(of.start.upper), a.place(of.end.upper), least, most)
    return Relation(relations.sheet.add(form), a.columns, a.certain)
