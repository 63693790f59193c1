"""Queries over windows and the knowledge base as flow plans (operators.md, 4.1).

In the flow: grammar/rsp_algebra.py → **operators** (engine/flow/plan.py). In the order in which a query meets them:

    around.py       the facts on a query besides its text, and its compiled form
    rebuilding.py   patterns with other elements; blank nodes distinguished, the graphs that FROM NAMED leaves
    grounds.py      which graph a pattern is about, in which cases
    asking.py       patterns that the knowledge base answers as a whole
    leaves.py       triple patterns; paths.py: paths over windows; store_leaves.py: over a store followed quad by quad
    runs.py         joins: leaves, queries to the store, the rest
    groups.py       group graph patterns; existence.py: EXISTS; selects.py: sub-queries, aggregates
    lowering.py     the query: what is emitted
"""

from oxiseq.engine.flow.sparql.around import Around, Lowered, Matched, Told
from oxiseq.engine.flow.sparql.lowering import compile_where, is_plain

__all__ = ["Around", "Lowered", "Matched", "Told", "compile_where", "is_plain"]
