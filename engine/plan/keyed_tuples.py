"""What complex events are correlated by (correlation.py): PARTITION BY.

In the flow: plan → **correlation** → (a cluster's router). A tuple event has one value of each attribute, so it
belongs to one partition, or to none; a complex event lies within one, and strategies, LIMIT, ORDER BY, SAMPLE and
aggregates are about those that end at one event.
"""

from __future__ import annotations

from pyoxigraph import NamedNode, Variable

from oxiseq.engine.patterns.plan import GpmRequest
from oxiseq.engine.plan.correlation import Correlation, Route
from oxiseq.engine.plan.joined import CeqlPlan
from oxiseq.grammar.algebra import Gpm, Group, TriplePattern
from oxiseq.grammar.scope import split_gpm


def tuple_correlation(plan: CeqlPlan) -> Correlation:
    """How the query's events can be dealt out."""
    query = plan.query
    if query.partition is None:
        return Correlation((), reason="its complex events have positions among all events", span=query.span)
    if query.consumption is not None and query.consumption.whole_query:
        reason = "CONSUME BY ANY forgets the partial matches of all partitions"
        return Correlation((), reason=reason, span=query.consumption.span)
    by = query.partition.by
    event = Variable("_".join(["event", *(v.value for v in by)]))  # no attribute's name
    patterns = (TriplePattern(event, NamedNode(f"{query.vocab}{v.value}"), v) for v in by)
    request = GpmRequest("partition", split_gpm(Gpm("partition", "", Group(tuple(patterns)))), by)
    return Correlation(by, tuple(Route(n, request) for n in range(len(plan.streams))), one_each=True)
