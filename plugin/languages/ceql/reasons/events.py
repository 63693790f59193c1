"""The events of a CEQL query's streams in their order, and the conditions on them: types, attributes, partitions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from pyoxigraph import NamedNode, Triple, Variable

from oxiseq.engine.cea.faults import RDF_TYPE, asked_of, faults_in, unfit
from oxiseq.engine.cea.plan import CeaPlan
from oxiseq.engine.events.batch import EventBatch
from oxiseq.engine.events.encode import decode_events
from oxiseq.engine.events.faults import Faults
from oxiseq.engine.terms.texts import Term
from oxiseq.grammar.records import dataclass
from oxiseq.languages.reasons.bounds import FREE, Bounds
from oxiseq.languages.reasons.read import History

I64 = NDArray[np.int64]


def tuples_of(plan: CeaPlan, history: History) -> tuple[History, Faults]:
    """A history without the events that are no tuple events, and those."""
    return without_faults(plan.query.vocab or "", asked_of(plan), history)


def without_faults(vocab: str, asked: Sequence[Variable], history: History) -> tuple[History, Faults]:
    """The same where these attributes are needed."""
    faults, batches = Faults(), dict(history.batches)
    for iri, batch in history.batches.items():
        fault = faults_in(vocab, asked, batch, history.terms)
        if fault is not None:
            wrong = unfit(iri, batch.time, fault, asked)
            faults = faults.more(wrong)
            batches[iri] = batch.take(wrong.fit)
    return replace(history, batches=batches), faults


@dataclass(frozen=True, slots=True)
class Events:
    """All events by position: in order of time, then of FROM, then of arrival (semantics.md 3). `stream`: the number of
    each one's stream."""

    plan: CeaPlan
    history: History
    batch: EventBatch
    stream: I64
    bounds: Bounds = FREE

    @classmethod
    def of(cls, plan: CeaPlan, history: History, bounds: Bounds = FREE) -> Events:
        """Those of a history."""
        iris = list(dict.fromkeys(plan.streams))
        parts = [history.batches[iri] for iri in iris]
        whole = EventBatch.concat(parts)
        number = np.repeat([plan.streams.index(iri) for iri in iris], [len(part) for part in parts]).astype(np.int64)
        order = np.lexsort((number, whole.time))
        return cls(plan, history, whole.take(order), number[order], bounds)

    def __len__(self) -> int:
        return len(self.batch)

    @property
    def time(self) -> I64:
        return self.batch.time

    def type_is(self, iri: str) -> NDArray[np.bool_]:
        """Whether each event is of a type."""
        mine: NDArray[np.bool_] = self._ids(RDF_TYPE) == self.history.terms.constant(NamedNode(iri))
        return mine

    def values(self, attributes: Sequence[Variable]) -> I64:
        """i64[n, attributes]: ids of terms, 0 for none."""
        vocab = self.plan.query.vocab or ""
        columns = [self._ids(NamedNode(vocab + a.value)) for a in attributes]
        return np.stack(columns, axis=1) if columns else np.zeros((len(self), 0), np.int64)

    def _ids(self, predicate: NamedNode) -> I64:
        """What each event has of a predicate."""
        batch, found = self.batch, np.zeros(len(self), np.int64)
        there = np.flatnonzero(batch.predicate == self.history.terms.constant(predicate))
        found[np.searchsorted(batch.offset, there, "right") - 1] = batch.object[there]
        return found

    def mapping(self, attributes: Sequence[Variable], row: I64) -> dict[Variable, Term]:
        """Of a row of `values`."""
        term = self.history.terms.term
        return {a: term(i) for a, i in zip(attributes, row.tolist(), strict=True) if i}

    def named(self, attributes: Sequence[Variable], position: int) -> Mapping[str, Term | None]:
        """The values of attributes at a position, None for those that the event lacks."""
        mapping = self.mapping(attributes, self.values(attributes)[position])
        return {a.value: mapping.get(a) for a in attributes}

    def partition(self, position: int) -> I64:
        """Which events are of the partition of the event at a position: their positions, ascending."""
        by = self.plan.query.partition
        if by is None:
            return np.arange(len(self))
        values = self.values(by.by)
        found: I64 = np.flatnonzero((values == values[position]).all(axis=1))
        return found

    def graph(self, position: int) -> tuple[Triple, ...]:
        """The triples of an event."""
        one = self.batch.slice(position, position + 1)
        return next((tuple(graph) for _, graph in decode_events(one, self.history.terms)), ())
