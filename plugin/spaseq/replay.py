"""A SPAseq query over streams that are given whole, as files or lists."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from oxiseq.driving import Driver
from oxiseq.engine.events.time import to_microseconds
from oxiseq.engine.output.batch import MatchBatch
from oxiseq.engine.plan.query import QueryPlan, compile_query
from oxiseq.engine.run.query import QueryRun
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.grammar.algebra import Query
from oxiseq.knowledge import Kb, knowledge_of
from oxiseq.spaseq.formats import sorted_batch
from oxiseq.spaseq.match import Shape
from oxiseq.spaseq.matches import Matches


class Replay(Driver[MatchBatch]):
    """A SPAseq query and its streams."""

    def __init__(
        self, query: Query, kb: Kb, start: int | datetime | None = None, lateness: int = 0
    ) -> None:
        terms = TermDictionary()
        self.plan: QueryPlan = compile_query(query, terms)
        begin = None if start is None else to_microseconds(start)
        self.run = QueryRun(self.plan, terms, knowledge_of(kb), begin, lateness)
        self.shape = Shape(self.plan, terms)
        super().__init__(self.run, terms, {s.name: s.iri.value for s in query.streams})

    def matches(self, progress: Callable[[], None] | None = None) -> Matches:
        batch = sorted_batch(self.shape, self.batches(progress))
        return Matches(self.shape, batch, self.run.events, self.late)
