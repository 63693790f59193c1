"""A SPAseq query over streams that are given whole, as files or lists."""

from __future__ import annotations

from oxiseq.driving import Driver
from oxiseq.engine.plan.query import QueryPlan, compile_query
from oxiseq.engine.run.query import QueryRun
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.grammar.algebra import Query
from oxiseq.knowledge import Kb, knowledge_of
from oxiseq.spaseq.shape import spaseq_shape


class Replay(Driver):
    """A SPAseq query and its streams. `start`, `lateness` in microseconds."""

    def __init__(self, query: Query, kb: Kb, start: int | None = None, lateness: int = 0) -> None:
        terms = TermDictionary()
        self.plan: QueryPlan = compile_query(query, terms)
        run = QueryRun(self.plan, terms, knowledge_of(kb), start, lateness)
        super().__init__(run, spaseq_shape(self.plan, terms), {s.name: s.iri.value for s in query.streams})
