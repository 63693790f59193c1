"""Queries run by the automaton, with the reference's predicates for what the other half of the engine does."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
from pyoxigraph import Literal
from reference.ceql import ComplexEvent
from reference.tuples import TupleEvent
from reference.values import holds

from oxiseq.engine.cea.memory import Capacities
from oxiseq.engine.cea.plan import CeaPlan, as_words, compile_ceql
from oxiseq.engine.cea.run import CeaRun, FoundEvents, MarkedEvents
from oxiseq.grammar import load
from oxiseq.grammar.ceql_algebra import AttributeWindow


class Driven:
    """A run that takes tuple events; partitions are numbered as they come."""

    def __init__(self, text: str, capacities: Capacities | None = None) -> None:
        self.plan = compile_ceql(load(text, "ceql"))
        self.run = CeaRun(self.plan, capacities)
        self._partitions: dict[tuple[object, ...], int] = {}
        self._symbols: dict[tuple[object, ...], np.ndarray] = {}

    def feed(self, events: Sequence[TupleEvent]) -> FoundEvents:
        return self.run.feed(self.marked(events))

    def marked(self, events: Sequence[TupleEvent]) -> MarkedEvents:
        window = self.plan.query.window
        attribute = None
        if isinstance(window, AttributeWindow):
            attribute = np.array([self._number(e, window) for e in events], np.float64)
        symbol = np.array([self._symbol(e) for e in events], np.uint64).reshape(len(events), self.plan.words)
        times = np.array([e.time for e in events], np.int64)
        return MarkedEvents(symbol, times, np.array([self._partition(e) for e in events], np.int64), attribute)

    def _symbol(self, event: TupleEvent) -> np.ndarray:
        key = (event.type, *event.values.items())
        if key not in self._symbols:
            values = event.attributes(self.plan.query.vocab or "")
            satisfied = [
                n
                for n, atom in enumerate(self.plan.atoms)
                if event.type == atom.type and all(holds(p, values) for p in atom.predicates)
            ]
            self._symbols[key] = as_words(sum(1 << n for n in satisfied), self.plan.words)
        return self._symbols[key]

    def _partition(self, event: TupleEvent) -> int:
        by = self.plan.query.partition.by if self.plan.query.partition else ()
        values = event.attributes(self.plan.query.vocab or "")
        if not set(by) <= values.keys():
            return -1
        return self._partitions.setdefault(tuple(values[a] for a in by), len(self._partitions))

    def _number(self, event: TupleEvent, window: AttributeWindow) -> float:
        value = event.attributes(self.plan.query.vocab or "").get(window.attribute)
        return float(value.value) if isinstance(value, Literal) else np.nan


Answer = tuple[int, int, frozenset[int]]


def answers(found: FoundEvents) -> list[Answer]:
    """Each complex event as (start, end, D)."""
    ends = found.offsets.tolist()
    positions = found.positions.tolist()
    return [
        (int(found.start[i]), int(found.end[i]), frozenset(positions[ends[i] : ends[i + 1]]))
        for i in range(len(found))
    ]


def holdings(plan: CeaPlan, found: FoundEvents, i: int) -> frozenset[tuple[str, int]]:
    """(variable, position) pairs of complex event i."""
    return frozenset(
        (name, int(found.positions[row]))
        for row in range(found.offsets[i], found.offsets[i + 1])
        for n, name in enumerate(plan.variables)
        if int(found.held[row, n >> 6]) >> (n & 63) & 1
    )


def as_answers(expected: Sequence[ComplexEvent]) -> Counter[Answer]:
    return Counter((c.start, c.end, c.positions) for c in expected)
