"""Marks of RDF events: what `_:e a :R ; :a v` says of each (semantics.md 3).

    EventBatch ─ pivot ─▶ a row of term ids per event ─ stack machine ─▶ facts ─▶ symbols

What the machine cannot decide, the exact evaluator does. Events whose graph is no tuple event's are left out
(events/faults.py): by the marker, or by who holds other ids (the server, when events arrive; `why`) and asks
`faults_in`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray
from pyoxigraph import NamedNode, Variable

from oxiseq.engine import kinds
from oxiseq.engine.cea.events import Marks
from oxiseq.engine.cea.facts import FactPlan, LeafMachine, compile_facts, symbols
from oxiseq.engine.cea.plan import CeaPlan
from oxiseq.engine.events.batch import EventBatch
from oxiseq.engine.events.faults import Unfit
from oxiseq.engine.kernels.cea import facts as kernels
from oxiseq.engine.kernels.memory.pointers import AS_I64, AS_U32, plain
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.grammar.ceql_algebra import AttributeWindow, summed_attributes

I64 = NDArray[np.int64]
RDF_TYPE: Final = NamedNode("http://www.w3.org/1999/02/22-rdf-syntax-ns#type")


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


# --- events that are no tuple events ------------------------------------------------------------------


def unfit(stream: str, time: I64, fault: I64, attributes: Sequence[Variable]) -> Unfit:
    """The faulty events of a batch, from the result of `faults_in`."""
    return Unfit(stream, time, fault != 0, lambda row: f"is no tuple event: {_why(int(fault[row]), attributes)}")


def _why(fault: int, attributes: Sequence[Variable]) -> str:
    if fault == kernels.MANY_SUBJECTS:
        return "its triples have several subjects; make one event of each"
    slot = fault - kernels.MANY_VALUES
    what = "types" if slot == 0 else f"values of {attributes[slot - 1].value}"
    return f"it has two {what}; a tuple has one of each"


def asked_of(plan: CeaPlan) -> tuple[Variable, ...]:
    """The attributes that a query reads."""
    query = plan.query
    by = query.partition.by if query.partition is not None else ()
    window = (query.window.attribute,) if isinstance(query.window, AttributeWindow) else ()
    return tuple(dict.fromkeys((*compile_facts(plan.letters).attributes, *by, *window, *summed_attributes(query))))


def predicates(vocab: str, attributes: Sequence[Variable], terms: TermDictionary) -> I64:
    """Ids of rdf:type and of the attributes' predicates."""
    iris = [RDF_TYPE, *(NamedNode(vocab + a.value) for a in attributes)]
    return np.array([terms.constant(iri) for iri in iris], np.int64)


def pivoted(batch: EventBatch, asked: I64, types: I64) -> tuple[I64, I64, I64 | None]:
    """For each event the attributes it has of those needed (`kernels.pivot`), the number of its type, and what is wrong
    with it; None: nothing is with any."""
    count = len(batch)
    values = np.zeros((count, 1 + len(asked)), np.int64)
    type_of, fault = np.empty(count, np.int64), np.zeros(count, np.int64)
    subject, predicate, object_ = (plain(column, AS_U32) for column in batch.ids)
    offset = plain(batch.offset, AS_I64)
    faulty = kernels.pivot(offset, subject, predicate, object_, asked, types, values, type_of, fault)
    return values, type_of, fault if faulty else None


def faults_in(vocab: str, attributes: Sequence[Variable], batch: EventBatch, terms: TermDictionary) -> I64 | None:
    """What is wrong with each event of a batch coded in `terms`, 0 for nothing; None: nothing is with any."""
    return pivoted(batch, predicates(vocab, attributes, terms), np.zeros(0, np.int64))[2]
