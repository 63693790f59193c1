"""Standing queries over a store: how each change of the store changes their answers (operators.md, 4.5).

plan.py      a SPARQL query over the store alone → operators
terms.py     the store's terms as ids
leaves.py    patterns: their quads, arranged for joins, shared by all queries; which of them a quad agrees with
run.py       a query at work: its answer, and what each change makes of it
asking.py    the store queried for a whole answer instead
standing.py  all queries of a store
"""

from oxiseq.engine.standing.asking import (
    Asker,
    Question,
    Solutions,
    asked,
    bare,
    check_rows,
    check_time,
    refused,
    solutions,
)
from oxiseq.engine.standing.leaves import Leaf, Leaves
from oxiseq.engine.standing.plan import StorePlan, compile_over_store, sources_of
from oxiseq.engine.standing.run import Limits, Told
from oxiseq.engine.standing.standing import ELSEWHERE, Asking, Outcome, Standing, Upheld
from oxiseq.engine.standing.terms import StoreTerms

__all__ = [
    "ELSEWHERE",
    "Asker",
    "Asking",
    "Leaf",
    "Leaves",
    "Limits",
    "Outcome",
    "Question",
    "Solutions",
    "Standing",
    "StorePlan",
    "StoreTerms",
    "Told",
    "Upheld",
    "asked",
    "bare",
    "check_rows",
    "check_time",
    "compile_over_store",
    "refused",
    "solutions",
    "sources_of",
]
