"""Queries run by the automaton, with the reference's predicates for what the other half of the engine does."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
from loaded import load
from pyoxigraph import Literal
from reference.ceql import ComplexEvent
from reference.tuples import TupleEvent
from reference.values import holds

from oxiseq.engine.cea.events import MarkedEvents
from oxiseq.engine.cea.listed import FoundEvents
from oxiseq.engine.cea.memory import Capacities
from oxiseq.engine.cea.plan import CeaPlan, as_words, compile_ceql
from oxiseq.engine.cea.run import CeaRun
from oxiseq.grammar.ceql_algebra import AttributeWindow
from oxiseq.grammar.scope import expression_variables


class Driven:
    """A run that takes tuple events; partitions are numbered as they come."""

    def __init__(self, text: str, capacities: Capacities | None = None) -> None:
        self.plan = compile_ceql(load(text, "ceql"))
        self.run = CeaRun(self.plan, capacities)
        query = self.plan.query
        vocab = query.vocab or ""
        asked = {v for atom in self.plan.letters for p in atom.predicates for v in expression_variables(p)}
        self._asked = {variable: vocab + variable.value for variable in sorted(asked, key=str)}
        self._by = [vocab + attribute.value for attribute in (query.partition.by if query.partition else ())]
        windowed = isinstance(query.window, AttributeWindow)
        self._window = vocab + query.window.attribute.value if windowed else None
        self._partitions: dict[tuple[object, ...], int] = {}
        self._symbols: dict[tuple[object, ...], int] = {}
        self._words = np.zeros((0, self.plan.runner.words), np.uint64)
        """Of each symbol which atoms it satisfies."""

    def feed(self, events: Sequence[TupleEvent]) -> FoundEvents:
        return self.run.feed(self.marked(events))

    def marked(self, events: Sequence[TupleEvent]) -> MarkedEvents:
        attribute = None
        if self._window is not None:
            attribute = np.array([self._number(e, self._window) for e in events], np.float64)
        symbol = np.array([self._symbol(e) for e in events], np.int64)
        times = np.array([e.time for e in events], np.int64)
        partition = np.array([self._partition(e) for e in events], np.int64)
        return MarkedEvents(self._words[symbol], times, partition, attribute)

    def _symbol(self, event: TupleEvent) -> int:
        """The number of the atoms that it satisfies; events alike in what is asked are looked at once."""
        given = [event.values.get(name) for name in self._asked.values()]
        key = (event.type, *given)
        if key not in self._symbols:
            values = {v: value for v, value in zip(self._asked, given, strict=True) if value is not None}
            satisfied = [
                n
                for n, atom in enumerate(self.plan.letters)
                if event.type == atom.type and all(holds(p, values) for p in atom.predicates)
            ]
            self._symbols[key] = len(self._words)
            words = as_words(sum(1 << n for n in satisfied), self.plan.runner.words)
            self._words = np.vstack([self._words, words])
        return self._symbols[key]

    def _partition(self, event: TupleEvent) -> int:
        values = tuple([event.values.get(name) for name in self._by])
        if None in values:
            return -1
        if values not in self._partitions:
            number = self._partitions[values] = len(self._partitions)
            self.run.begin_partitions(np.array([number]), number + 1)
        return self._partitions[values]

    def _number(self, event: TupleEvent, window: str) -> float:
        value = event.values.get(window)
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
