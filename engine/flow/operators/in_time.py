"""Rows that happen at some time, row by row.

A row's interval is four raw columns, its first. Its changes come at the instant at which it ends, those of a row
without a time (moments.NO_START, moments.NO_END) when the knowledge base changes. So a row finds all that may pair with
it among the rows at the end of its tick: later rows end later.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np
from pyoxigraph import Literal, Variable

from oxiseq.engine.events.time import to_duration_literal, to_literal
from oxiseq.engine.flow.delta import I64, Buffer, Delta
from oxiseq.engine.flow.operators.node import Node
from oxiseq.engine.flow.operators.rows import RowByRow, listed
from oxiseq.engine.flow.times import LATEST, times_at
from oxiseq.engine.kernels.flow import happening as h
from oxiseq.engine.kernels.flow.moments import NO_START
from oxiseq.engine.kernels.memory.pointers import Pointers, address_of
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.engine.terms.texts import Term
from oxiseq.grammar.records import dataclass
from oxiseq.grammar.terms import XSD_INTEGER

PREDICATE: Final = 5
"""Column of a triple's predicate, behind its interval and its subject."""


@dataclass(frozen=True, slots=True)
class Triples:
    """The triples that a pattern accepts, of rows (interval, subject, predicate, object, more): the interval and the
    columns at `columns`. equal: places of constants; same: places of equal terms; longest: of the interval; timed: not
    those without a time."""

    child: int
    columns: tuple[int, ...]
    equal: tuple[tuple[int, Term | Variable], ...] = ()
    same: tuple[tuple[int, int], ...] = ()
    longest: int | None = None
    timed: bool = False

    @property
    def parts(self) -> tuple[int | Term | Variable, ...]:
        """Of its rows the columns of subject, predicate and object, or their constants."""
        constants, other = dict(self.equal), {second: first for first, second in self.same}
        places = (other.get(place, place) for place in range(PREDICATE - 1, PREDICATE + 2))
        return tuple(constants[at] if at in constants else PREDICATE - 1 + self.columns.index(at) for at in places)


@dataclass(frozen=True, slots=True)
class Cover:
    """Rows with the least interval that holds those at `first` and `second`, as their first columns, and with others as
    Pick has them, if that lasts `limit` at most. Facts that ended before the instants in work do not change."""

    child: int
    first: int
    second: int
    columns: tuple[tuple[int, ...], ...]
    limit: int | None = None


@dataclass(frozen=True, slots=True)
class Sometime:
    """The rows with an interval before all others if they have a time: that they have happened, not when."""

    child: int


@dataclass(frozen=True, slots=True)
class TimeTerm:
    """The rows with a function of their interval behind them, as a term: getDURATION, getSTARTTIME, getENDTIME; number:
    in microseconds. Unbound if they have no time."""

    child: int
    function: str
    number: bool = False


@dataclass(frozen=True, slots=True)
class Lasting:
    """The rows whose interval from `start` to `end` lasts from `least` to `most` microseconds, both included. None of
    those whose start is after their end: they have no time."""

    child: int
    start: int
    end: int
    least: int
    most: int


_START, _END = 0, 2


_FUNCTIONS: Final[Mapping[str, tuple[Callable[[I64, I64], I64], Callable[[int], Literal]]]] = {
    "getDURATION": (lambda start, end: end - start, to_duration_literal),
    "getSTARTTIME": (lambda start, end: start, to_literal),
    "getENDTIME": (lambda start, end: end, to_literal),
}


def triples(form: Triples, child: Buffer, terms: TermDictionary) -> Node:
    """The triples that a pattern accepts."""
    equal = [(place, terms.constant(term)) for place, term in form.equal if not isinstance(term, Variable)]
    longest = LATEST if form.longest is None else form.longest
    scalars, columns = np.array([0, longest, form.timed], np.int64), np.array(form.columns, np.int64)
    memory = Pointers(h.Accepting(scalars, _table(equal, 2), _table(form.same, 2), columns))
    return RowByRow(h.accept, 4 + len(form.columns), child, memory)


def _table(rows: Any, width: int) -> I64:
    return np.array(rows, np.int64).reshape(len(rows), width)


def cover(form: Cover, child: Buffer, clock: I64) -> Node:
    """Pairs with the interval of both."""
    scalars = np.zeros(5, np.int64)
    scalars[h.LONGEST] = LATEST if form.limit is None else form.limit
    scalars[[h.CLOCK, h.LEFT, h.RIGHT]] = address_of(clock), form.first, form.second
    memory = Pointers(h.Covering(scalars, *listed(form.columns)))
    return RowByRow(h.cover, 4 + len(form.columns), child, memory, held=clock)


def lasting(form: Lasting, child: Buffer) -> Node:
    """Rows that last long enough."""
    scalars = np.zeros(h.BOUNDS, np.int64)
    scalars[[h.BEGIN_AT, h.END_AT, h.LEAST, h.MOST]] = form.start, form.end, form.least, form.most
    return RowByRow(h.lasting, child.width, child, Pointers(h.Bounds(scalars)))


class TimeTermNode(Node):
    def __init__(self, form: TimeTerm, child: Buffer, terms: TermDictionary) -> None:
        super().__init__(child.width + 1, (child,))
        self._terms = terms
        self._of, self._term = _FUNCTIONS[form.function]
        if form.number:
            self._term = _number

    def step(self) -> None:
        delta = self.inputs[0].delta
        start, end = times_at(delta.rows, _START), times_at(delta.rows, _END)
        timed = start != NO_START
        times, place = np.unique(self._of(start[timed], end[timed]), return_inverse=True)
        ids = self._terms.intern_all(map(self._term, times.tolist()))
        found = np.zeros(len(delta), np.uint32)
        found[timed] = ids[place.reshape(-1)]
        self._terms.hold(found)
        self.out.put(Delta(delta.at, delta.weight, np.column_stack([delta.rows, found])))


def _number(size: int) -> Literal:
    return Literal(str(size), datatype=XSD_INTEGER)
