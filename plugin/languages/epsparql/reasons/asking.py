"""Parts of an EP-SPARQL query, answered over whole streams."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from oxiseq.engine.events.faults import Faults
from oxiseq.engine.flow.epsparql.query import compile_intervals
from oxiseq.engine.flow.epsparql.stamps import Stamps
from oxiseq.engine.kb import KnowledgeBase
from oxiseq.engine.output.batch import MatchBatch
from oxiseq.engine.run.intervals import IntervalRun
from oxiseq.grammar.algebra import Group, Select
from oxiseq.grammar.ep_algebra import EpQuery
from oxiseq.grammar.records import dataclass
from oxiseq.languages.reasons.bounds import FREE, Bounds
from oxiseq.languages.reasons.read import History
from oxiseq.languages.reasons.where.subject import rows
from oxiseq.languages.reasons.why import MOST, Answers
from oxiseq.languages.reasons.working import worked

_INSTANTS = 256
"""Instants between two checks of the number of rows."""


def intervals_of(history: History) -> tuple[History, Faults]:
    """A history without the events that are no intervals, and those."""
    faults, batches, stamps = Faults(), dict(history.batches), Stamps(history.terms)
    for iri, batch in history.batches.items():
        wrong = stamps.unfit(iri, batch, stamps.starts(batch).wrong)
        if wrong is not None:
            faults = faults.more(wrong)
            batches[iri] = batch.take(wrong.fit)
    return replace(history, batches=batches), faults


@dataclass(frozen=True, slots=True)
class Source:
    """A query, its rules and its data."""

    query: EpQuery
    rules: tuple[EpQuery, ...]
    history: History
    kb: KnowledgeBase
    bounds: Bounds = FREE

    def part(self, where: Group) -> Answers:
        """The rows of a part of WHERE, up to a few more than `MOST`: later ones are not read."""
        query = self.query
        return self._rows(EpQuery(Select(None), where, query.streams, query.prefixes, query.base), MOST)

    def whole(self) -> Answers:
        """The rows that are emitted."""
        return self._rows(self.query, self.bounds.matches)

    def _rows(self, query: EpQuery, most: int | None) -> Answers:
        history = self.history
        plan = compile_intervals(query, self.rules, tuple(history.batches))
        run = IntervalRun(plan, history.terms, self.kb)
        found, more = worked(run, plan.streams, history, self.bounds, most, _INSTANTS)
        batch = MatchBatch.concat(found, len(plan.variables))
        first = batch.event_time[batch.ends[:-1]] if len(batch) else np.zeros(0, np.int64)
        spans = np.stack([first, batch.time], axis=1)
        return Answers(rows((v.value for v in plan.variables), batch.values, history.terms, spans), more)
