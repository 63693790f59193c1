"""A query over windows and streams that are given whole, as files or lists."""

from __future__ import annotations

from collections.abc import Callable

from oxiseq.driving import Driver
from oxiseq.engine.kb import StoreKb
from oxiseq.engine.output.batch import MatchBatch
from oxiseq.engine.rsp.plan import UNSAID, RspOptions, compile_rsp
from oxiseq.engine.run.rsp import RspRun
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.grammar.rsp_algebra import RspQuery
from oxiseq.knowledge import Kb, kb_store
from oxiseq.rsp.answer import AnswerShape
from oxiseq.rsp.answers import WindowAnswers
from oxiseq.times import Clock


class RspReplay(Driver[MatchBatch]):
    """The query and its streams. `start`, `lateness` in microseconds; `clock`: how answers tell their times."""

    def __init__(
        self, query: RspQuery, kb: Kb, said: RspOptions = UNSAID, start: int | None = None, lateness: int = 0,
        clock: Clock = Clock.MICROSECONDS,
    ) -> None:  # fmt: skip
        terms = TermDictionary()
        plan = compile_rsp(query, terms, said)
        self.run = RspRun(plan, terms, StoreKb(kb_store(kb)), start, lateness)
        self.shape = AnswerShape(plan, terms, clock)
        super().__init__(self.run, terms, {iri: iri for iri in plan.streams})

    def matches(self, progress: Callable[[], None] | None = None) -> WindowAnswers:
        batch = MatchBatch.concat(list(self.batches(progress)), len(self.shape.variables))
        return WindowAnswers(self.shape, batch, self.run.events, self.late)
