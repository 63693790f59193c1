"""The run of a plan about the order of events: by the runner that the plan has.

Live keys are imported with this module, since SPAseq's first result waits for that; what only CEQL needs when it is
first needed (engine/extras.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias, overload

from oxiseq.engine.extras import needed
from oxiseq.engine.kb import KnowledgeBase
from oxiseq.engine.matches.plan import AnySequencePlan
from oxiseq.engine.plan.query import LiveKeys, QueryPlan
from oxiseq.engine.run.query import QueryRun
from oxiseq.engine.terms.dictionary import TermDictionary

if TYPE_CHECKING:
    from oxiseq.engine.cea.plan import CeaPlan
    from oxiseq.engine.matches.paging import Page
    from oxiseq.engine.plan import joined as lowered
    from oxiseq.engine.plan.joined import CeqlPlan, JoinedPlan
    from oxiseq.engine.run import joined, tuples
    from oxiseq.engine.run.joined import JoinedRun
    from oxiseq.engine.run.tuples import TupleRun
else:
    lowered = needed("oxiseq.engine.plan.joined")
    joined, tuples = needed("oxiseq.engine.run.joined"), needed("oxiseq.engine.run.tuples")

SequenceRuns: TypeAlias = "QueryRun | TupleRun | JoinedRun"


@overload
def run_of(
    plan: QueryPlan, terms: TermDictionary, kb: KnowledgeBase, start: int | None = None, lateness: int = 0
) -> QueryRun: ...


@overload
def run_of(
    plan: CeaPlan,
    terms: TermDictionary,
    kb: None = None,
    start: int | None = None,
    lateness: int = 0,
    page: Page | None = None,
) -> TupleRun: ...


@overload
def run_of(
    plan: QueryPlan | CeqlPlan | JoinedPlan,
    terms: TermDictionary,
    kb: KnowledgeBase | None,
    start: int | None = None,
    lateness: int = 0,
    page: Page | None = None,
) -> SequenceRuns: ...


def run_of(
    plan: AnySequencePlan,
    terms: TermDictionary,
    kb: KnowledgeBase | None = None,
    start: int | None = None,
    lateness: int = 0,
    page: Page | None = None,
) -> SequenceRuns:
    """A run that has seen nothing. `start`: the t of tumbling windows, and for CEQL the time before which it sees no
    event; `lateness` in µs; `page`: of determinised sets, those of live keys are compiled for one."""
    if isinstance(plan.runner, LiveKeys):
        assert kb is not None, "live keys may ask the KB"
        return QueryRun(plan, terms, kb, start, lateness)
    if isinstance(plan.runner, lowered.Lowered):
        assert kb is not None, "live keys may ask the KB"
        return joined.JoinedRun(plan, terms, kb, start, lateness)
    return tuples.TupleRun(plan, terms, start, lateness, page=page)
