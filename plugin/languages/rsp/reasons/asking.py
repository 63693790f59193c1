"""Parts of a query over windows, answered at given instants."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from oxiseq.engine.kb import KnowledgeBase
from oxiseq.engine.order.watermarks import AFTER_ALL
from oxiseq.engine.output.batch import MatchBatch
from oxiseq.engine.rsp.held import Held
from oxiseq.engine.rsp.plan import UNSAID, RspOptions, RspPlan, compile_rsp
from oxiseq.engine.rsp.schedule import Schedule
from oxiseq.engine.run.rsp import RspRun
from oxiseq.grammar.algebra import Group, SubSelect
from oxiseq.grammar.records import dataclass
from oxiseq.grammar.rsp_algebra import Report, RspQuery
from oxiseq.languages.reasons.bounds import FREE, Bounds
from oxiseq.languages.reasons.read import History
from oxiseq.languages.reasons.where.subject import rows
from oxiseq.languages.reasons.why import MOST, Answers
from oxiseq.languages.reasons.working import worked


@dataclass(frozen=True, slots=True)
class Source:
    """A query and its data."""

    query: RspQuery
    history: History
    kb: KnowledgeBase
    bounds: Bounds = FREE

    def told(self, said: RspOptions) -> list[int]:
        """When (µs) the unchanged query emits each of its answers, as many as may be examined."""
        times: list[int] = self._run(self.query, said)[1].time.tolist()
        return times

    def part(self, where: Group, instants: Sequence[int]) -> dict[int, Answers]:
        """Instant → all rows of a part of WHERE there, up to `MOST`; none for instants without rows."""
        return self._rows(replace(_plain(self.query), body=SubSelect(None, where, limit=MOST)), instants)

    def whole(self, instants: Sequence[int]) -> dict[int, Answers]:
        """The rows of the whole query there, its aggregates and modifiers with it."""
        body = replace(self.query.body, limit=1) if self.query.form == "ASK" else self.query.body
        return self._rows(replace(_plain(self.query), body=body), instants)

    def _rows(self, query: RspQuery, instants: Sequence[int]) -> dict[int, Answers]:
        plan, batch = self._run(query, RspOptions(None, tuple(instants), None))
        found: dict[int, Answers] = {}
        for at in np.unique(batch.time).tolist():
            mine = rows(plan.columns, batch.values[batch.time == at], self.history.terms)
            found[at] = Answers(mine, len(mine) >= MOST)
        return found

    def _run(self, query: RspQuery, said: RspOptions = UNSAID) -> tuple[RspPlan, MatchBatch]:
        history = self.history
        plan = compile_rsp(query, history.terms, said)
        run = RspRun(plan, history.terms, self.kb)
        found, _ = worked(run, plan.streams, history, self.bounds, self.bounds.matches)
        return plan, MatchBatch.concat(found, len(plan.columns))


def _plain(query: RspQuery) -> RspQuery:
    """A SELECT of all rows at each instant, without consumption."""
    return replace(query, form="SELECT", template=(), report=Report.RSTREAM, into=None, consume=None, when=None)


def instants_of(plan: RspPlan, history: History) -> NDArray[np.int64]:
    """Those at which the query is answered; of its periods those at which the windows hold something else."""
    batches = [history.batches[stream] for stream in plan.streams]
    contents = [replace(content, asked=False, default=False) for content in plan.contents]
    held = Held(contents, [None] * len(batches), Schedule(plan.rhythm))
    for stream, batch in enumerate(batches):
        held.add(stream, batch)
    return held.due(batches, AFTER_ALL, ended=True).at
