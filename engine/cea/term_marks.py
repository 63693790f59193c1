"""Marks of RDF events: what `_:e a :R ; :a v` says of each (semantics.md 3).

    EventBatch ─ pivot ─▶ a row of term ids per event ─ stack machine ─▶ facts ─▶ symbols

What the machine cannot decide, the exact evaluator does.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from pyoxigraph import NamedNode, Variable

from oxiseq.engine import kinds
from oxiseq.engine.cea.facts import FactPlan
from oxiseq.engine.cea.faults import pivoted, predicates
from oxiseq.engine.cea.machine import LeafMachine
from oxiseq.engine.cea.marks import Marks, symbols
from oxiseq.engine.events.batch import EventBatch
from oxiseq.engine.terms.dictionary import TermDictionary


class TermMarker:
    """Marks events of one query. `vocab`: the namespace of attributes; `window`: the attribute of WITHIN; `summed`:
    those that aggregates are of. `attributes`: all that it reads."""

    def __init__(
        self,
        facts: FactPlan,
        vocab: str,
        terms: TermDictionary,
        by: Sequence[Variable] = (),
        window: Variable | None = None,
        summed: Sequence[Variable] = (),
    ) -> None:
        self._facts = facts
        self._terms = terms
        extra = (*by, *([window] if window is not None else ()), *summed)
        self.attributes = tuple(dict.fromkeys((*facts.attributes, *extra)))
        slots = {a: 2 + i for i, a in enumerate(self.attributes)}
        self._window = None if window is None else slots[window]
        self._kept = [slots[a] for a in (*by, *summed)]
        self._asked = predicates(vocab, self.attributes, terms)
        self._types = np.array([terms.constant(NamedNode(t)) for t in facts.types], np.int64)
        self._machine = LeafMachine(facts, tuple(range(len(facts.leaves))), slots, terms)

    def mark(self, batch: EventBatch) -> Marks:
        """The marks of the events, in their order. Those that are no tuple events have no type and no partition."""
        count = len(batch)
        values, type_of, fault = pivoted(batch, self._asked, self._types)
        facts = np.zeros((count, self._facts.words), np.uint64)
        self._machine.mark(values, type_of, self._terms.columns, self._terms.term, facts)
        symbol, window = symbols(self._facts, facts, type_of), self._window_values(values)
        return Marks(symbol, batch.time, window, values[:, self._kept], fault)

    def _window_values(self, values: NDArray[np.int64]) -> NDArray[np.float64] | None:
        if self._window is None:
            return None
        columns, ids = self._terms.columns, values[:, self._window]
        kind = columns.kind[ids]
        numeric = (kind >= kinds.INTEGER) & (kind <= kinds.DOUBLE)
        return np.where(numeric, columns.number[ids], np.nan)
