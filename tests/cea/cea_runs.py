"""Queries run by the automaton, with the reference's predicates for what the other half of the engine does."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
from loaded import load
from pyoxigraph import Literal, Variable
from reference.ceql import ComplexEvent
from reference.tuples import TupleEvent
from reference.values import holds

from oxiseq.engine.cea.events import MarkedEvents
from oxiseq.engine.cea.listed import FoundEvents
from oxiseq.engine.cea.memory import Capacities
from oxiseq.engine.cea.plan import CeaPlan, as_words, compile_ceql
from oxiseq.engine.cea.run import CeaRun
from oxiseq.grammar.algebra import Term
from oxiseq.grammar.ceql_algebra import AttributeWindow
from oxiseq.grammar.scope import expression_variables


class Driven:
    """A run that takes tuple events; partitions are numbered as they come."""

    def __init__(self, text: str, capacities: Capacities | None = None) -> None:
        self.plan = compile_ceql(load(text, "ceql"))
        self.run = CeaRun(self.plan, capacities)
        query = self.plan.query
        self._vocab = query.vocab or ""
        self._asked = sorted(
            {v for atom in self.plan.letters for p in atom.predicates for v in expression_variables(p)}, key=str
        )
        self._by = query.partition.by if query.partition else ()
        self._window = query.window.attribute if isinstance(query.window, AttributeWindow) else None
        self._partitions: dict[tuple[object, ...], int] = {}
        self._symbols: dict[tuple[object, ...], np.ndarray] = {}

    def feed(self, events: Sequence[TupleEvent]) -> FoundEvents:
        return self.run.feed(self.marked(events))

    def marked(self, events: Sequence[TupleEvent]) -> MarkedEvents:
        attribute = None
        if self._window is not None:
            attribute = np.array([self._number(e, self._window) for e in events], np.float64)
        symbol = np.array([self._symbol(e) for e in events], np.uint64).reshape(len(events), self.plan.runner.words)
        times = np.array([e.time for e in events], np.int64)
        return MarkedEvents(symbol, times, np.array([self._partition(e) for e in events], np.int64), attribute)

    def _value(self, event: TupleEvent, attribute: Variable) -> Term | None:
        return event.values.get(self._vocab + attribute.value)

    def _symbol(self, event: TupleEvent) -> np.ndarray:
        """The atoms that it satisfies; events alike in what is asked are looked at once."""
        values = {v: value for v in self._asked if (value := self._value(event, v)) is not None}
        key = (event.type, *values.items())
        if key not in self._symbols:
            satisfied = [
                n
                for n, atom in enumerate(self.plan.letters)
                if event.type == atom.type and all(holds(p, values) for p in atom.predicates)
            ]
            self._symbols[key] = as_words(sum(1 << n for n in satisfied), self.plan.runner.words)
        return self._symbols[key]

    def _partition(self, event: TupleEvent) -> int:
        values = tuple([self._value(event, attribute) for attribute in self._by])
        if None in values:
            return -1
        if values not in self._partitions:
            number = self._partitions[values] = len(self._partitions)
            self.run.begin_partitions(np.array([number]), number + 1)
        return self._partitions[values]

    def _number(self, event: TupleEvent, window: Variable) -> float:
        value = self._value(event, window)
        return float(value.value) if isinstance(value, Literal) else np.nan


Answer = tuple[int, int, frozenset[int]]


def answers(found: FoundEvents) -> list[Answer]:
    """Each complex event as (start, end, D)."""
    ends = found.offsets.tolist()
    positions = found.positions.tolist()
    return [
        (int(found.start[i]), int(found.end[i]), frozenset(positions[ends[i] : ends[i + 1]])) for i in range(len(found))
    ]


def holdings(plan: CeaPlan, found: FoundEvents, i: int) -> frozenset[tuple[str, int]]:
    """(variable, position) pairs of complex event i."""
    return frozenset(
        (name, int(found.positions[row]))
        for row in range(found.offsets[i], found.offsets[i + 1])
        for n, name in enumerate(plan.runner.variables)
        if int(found.held[row, n >> 6]) >> (n & 63) & 1
    )


def as_answers(expected: Sequence[ComplexEvent]) -> Counter[Answer]:
    return Counter((c.start, c.end, c.positions) for c in expected)
