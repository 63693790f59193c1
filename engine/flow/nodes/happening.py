"""Rows that happen at some time: new rows meet kept ones (plan.Triples, Look, Cover, Lasting, Sometime,
TimeTerm)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np
from pyoxigraph import Literal, Variable

from oxiseq.engine.events.time import to_duration_literal, to_literal
from oxiseq.engine.flow import plan as p
from oxiseq.engine.flow.delta import I64, Buffer, Delta
from oxiseq.engine.flow.nodes.arrange import Arrange
from oxiseq.engine.flow.nodes.linear import RowByRow, listed
from oxiseq.engine.flow.nodes.node import Call, KernelNode, Node
from oxiseq.engine.flow.times import LATEST, NO_END, NO_START, times_at
from oxiseq.engine.kernels.flow import happening as h
from oxiseq.engine.kernels.flow import looking as k
from oxiseq.engine.kernels.flow.arrangement import MOST_LOOSE
from oxiseq.engine.kernels.flow.walking import ENTRY_AT
from oxiseq.engine.kernels.memory.pointers import Pointers, address_of
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.grammar.terms import XSD_INTEGER

_ORDERS: Final = {"ANY": k.ANY, "BEFORE": k.BEFORE, "BY": k.BY}
_WHAT: Final = {"PAIRS": k.PAIRS, "WITH": k.WITH, "WITHOUT": k.WITHOUT}
_START, _END = 0, 2
_FUNCTIONS: Final[Mapping[str, tuple[Callable[[I64, I64], I64], Callable[[int], Literal]]]] = {
    "getDURATION": (lambda start, end: end - start, to_duration_literal),
    "getSTARTTIME": (lambda start, end: start, to_literal),
    "getENDTIME": (lambda start, end: end, to_literal),
}


def triples(form: p.Triples, child: Buffer, terms: TermDictionary) -> Node:
    """The triples that a pattern accepts."""
    equal = [(place, terms.constant(term)) for place, term in form.equal if not isinstance(term, Variable)]
    longest = LATEST if form.longest is None else form.longest
    scalars, columns = np.array([0, longest, form.timed], np.int64), np.array(form.columns, np.int64)
    memory = Pointers(h.Accepting(scalars, _table(equal, 2), _table(form.same, 2), columns))
    return RowByRow(h.accept, 4 + len(form.columns), child, memory)


def _table(rows: Any, width: int) -> I64:
    return np.array(rows, np.int64).reshape(len(rows), width)


class Look(KernelNode):
    """It keeps no rows: it reads the arrangement, which has been stepped before."""

    def __init__(self, form: p.Look, child: Buffer, kept: Arrange) -> None:
        super().__init__(child.width + (kept.inputs[0].width if form.what == "PAIRS" else 0), (child,))
        self._kept = kept
        self._scalars = scalars = np.zeros(k.SCALARS, np.int64)
        scalars[k.ORDER], scalars[k.WHAT] = _ORDERS[form.order], _WHAT[form.what]
        scalars[k.LIMIT] = LATEST if form.limit is None else form.limit
        scalars[k.EARLIER], scalars[ENTRY_AT] = form.earlier, -1
        scalars[k.TIMED] = form.order != "ANY" or form.limit is not None
        loose = [np.array(part, np.int64) for part in (form.loose[:MOST_LOOSE], form.loose[MOST_LOOSE:])]
        self._memory = Pointers(k.Looking(scalars, np.array(form.key, np.int64), *loose))

    def call(self) -> Call:
        return Call(k.look, (self._memory, self.inputs[0], self._kept, self.out))

    def provide(self, answer: int) -> None:
        self._kept.make_room()

    def learn(self) -> None:
        """Rows without a time have come, or are no longer there: whether it has to look for them in whole chains."""
        if self._scalars[k.TIMED]:
            ends = times_at(self._kept.kept[0], _END)
            self._scalars[k.TIMELESS] = bool((ends == NO_END).any())


def cover(form: p.Cover, child: Buffer, clock: I64) -> Node:
    """Pairs with the interval of both."""
    scalars = np.zeros(5, np.int64)
    scalars[h.LONGEST] = LATEST if form.limit is None else form.limit
    scalars[[h.CLOCK, h.LEFT, h.RIGHT]] = address_of(clock), form.first, form.second
    memory = Pointers(h.Covering(scalars, *listed(form.columns)))
    return RowByRow(h.cover, 4 + len(form.columns), child, memory, held=clock)


def lasting(form: p.Lasting, child: Buffer) -> Node:
    """Rows that last long enough."""
    scalars = np.zeros(h.BOUNDS, np.int64)
    scalars[[h.BEGIN_AT, h.END_AT, h.LEAST, h.MOST]] = form.start, form.end, form.least, form.most
    return RowByRow(h.lasting, child.width, child, Pointers(h.Bounds(scalars)))


class TimeTerm(Node):
    def __init__(self, form: p.TimeTerm, child: Buffer, terms: TermDictionary) -> None:
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
