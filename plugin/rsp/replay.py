"""A query over windows and streams that are given whole, as files or lists."""

from __future__ import annotations

from oxiseq.driving import Driver
from oxiseq.engine.kb import StoreKb
from oxiseq.engine.rsp.plan import UNSAID, RspOptions, compile_rsp
from oxiseq.engine.run.rsp import RspRun
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.grammar.rsp_algebra import RspQuery
from oxiseq.knowledge import Kb, kb_store
from oxiseq.rsp.shape import rsp_shape


class RspReplay(Driver):
    """The query and its streams. `start`, `lateness` in microseconds."""

    def __init__(
        self, query: RspQuery, kb: Kb, said: RspOptions = UNSAID, start: int | None = None, lateness: int = 0
    ) -> None:
        terms = TermDictionary()
        plan = compile_rsp(query, terms, said)
        run = RspRun(plan, terms, StoreKb(kb_store(kb)), start, lateness)
        super().__init__(run, rsp_shape(plan, terms), {iri: iri for iri in plan.streams})
