"""The events of a CEQL query's streams in their order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from pyoxigraph import NamedNode, Triple, Variable

from oxiseq.engine.cea.plan import CeaPlan
from oxiseq.engine.cea.term_marks import asked_of, faults_in, unfit
from oxiseq.engine.events.batch import EventBatch
from oxiseq.engine.events.encode import decode_events
from oxiseq.engine.events.faults import Faults
from oxiseq.engine.terms.texts import Term
from oxiseq.grammar.records import dataclass
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

    vocab: str
    history: History
    batch: EventBatch
    stream: I64

    @classmethod
    def of(cls, plan: CeaPlan, history: History) -> Events:
        """Those of a history."""
        parts = [history.batches[iri] for iri in dict.fromkeys(plan.streams)]
        whole = EventBatch.concat(parts)
        streams = [plan.streams.index(iri) for iri in dict.fromkeys(plan.streams)]
        number = np.repeat(streams, [len(part) for part in parts]).astype(np.int64)
        order = np.lexsort((number, whole.time))
        return cls(plan.query.vocab or "", history, whole.take(order), number[order])

    def time(self, position: int) -> int:
        """When the event at a position is (µs)."""
        return int(self.batch.time[position])

    def values(self, attributes: Sequence[str]) -> I64:
        """i64[n, attributes]: ids of terms, 0 for none."""
        batch, found = self.batch, np.zeros((len(self.batch), len(attributes)), np.int64)
        for column, attribute in enumerate(attributes):
            there = np.flatnonzero(batch.predicate == self.history.terms.constant(NamedNode(self.vocab + attribute)))
            found[np.searchsorted(batch.offset, there, "right") - 1, column] = batch.object[there]
        return found

    def named(self, attributes: Sequence[str], positions: Sequence[int]) -> list[Mapping[str, Term | None]]:
        """The values of attributes at positions, None for those that an event lacks."""
        term = self.history.terms.term
        rows = self.values(attributes)[np.array(positions, np.int64)].tolist()
        return [{a: term(i) if i else None for a, i in zip(attributes, row, strict=True)} for row in rows]

    def partition(self, by: Sequence[str], position: int) -> I64:
        """Which events are of the partition of the event at a position: their positions, ascending."""
        values = self.values(by)
        found: I64 = np.flatnonzero((values == values[position]).all(axis=1))
        return found

    def graph(self, position: int) -> tuple[Triple, ...]:
        """The triples of an event."""
        one = self.batch.slice(position, position + 1)
        return next((tuple(graph) for _, graph in decode_events(one, self.history.terms)), ())
