"""The run of a plan about the order of events: by the runner that the plan has."""

from __future__ import annotations

from typing import TypeAlias

from oxiseq.engine.cea.plan import DeterminisedSets
from oxiseq.engine.kb import KnowledgeBase
from oxiseq.engine.matches.paging import Page
from oxiseq.engine.matches.plan import AnySequencePlan
from oxiseq.engine.plan.joined import Lowered
from oxiseq.engine.run.joined import JoinedRun
from oxiseq.engine.run.query import QueryRun
from oxiseq.engine.run.tuples import TupleRun
from oxiseq.engine.terms.dictionary import TermDictionary

SequenceRuns: TypeAlias = QueryRun | TupleRun | JoinedRun


def run_of(
    plan: AnySequencePlan,
    terms: TermDictionary,
    kb: KnowledgeBase | None,
    start: int | None = None,
    lateness: int = 0,
    page: Page | None = None,
) -> SequenceRuns:
    """A run that has seen nothing. `start`: the t of tumbling windows, and for CEQL the time before which it sees no
    event; `lateness` in µs; `page`: of determinised sets, those of live keys are compiled for one."""
    if isinstance(plan.runner, DeterminisedSets):
        return TupleRun(plan, terms, start, lateness, page=page)
    assert kb is not None, "live keys may ask the KB"
    if isinstance(plan.runner, Lowered):
        return JoinedRun(plan, terms, kb, start, lateness)
    return QueryRun(plan, terms, kb, start, lateness)
