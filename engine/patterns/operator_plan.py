"""A GPM that is more than a basic graph pattern, as operators over the rows of basic ones (operators.md, 7.2).

In the flow: GpmParts → **OperatorGpm** → operators.py. The pattern is compiled as `GRAPH ?event { P }` over a
dataset whose named graphs are events: so each event is matched by itself, sub-queries and empty groups included, and
all events of a batch in one step. GRAPH inside P is about the knowledge base.
"""

from __future__ import annotations

from pyoxigraph import Variable

from oxiseq.engine.flow.plan import Asked, FlowPlan, Given, Graphs
from oxiseq.engine.flow.relations import Relations
from oxiseq.engine.flow.sparql import Around, compile_where
from oxiseq.engine.matching.conditions import Condition, condition
from oxiseq.engine.patterns.leaves import EventLeaves, Leaf
from oxiseq.grammar.algebra import GraphPattern, Group, SubSelect
from oxiseq.grammar.records import dataclass
from oxiseq.grammar.rsp_algebra import RspQuery
from oxiseq.grammar.scope import GpmParts, visible_variables

_EVENT = Variable("oxiseq_event")
"""A variable that no pattern uses."""


@dataclass(frozen=True, slots=True)
class OperatorGpm:
    """A GPM as a plan whose root has the event's term and then `columns`, all visible variables; answers are distinct
    over them."""

    request: int
    name: str
    flow: FlowPlan
    columns: tuple[Variable, ...]
    keep: tuple[int, ...]
    """Columns that are passed on."""
    conditions: tuple[Condition, ...]
    sources: tuple[tuple[int, int], ...]
    """Places of the plan's sources, and which of the leaves feeds each."""
    leaves: tuple[Leaf, ...]
    """Its basic graph patterns."""
    every: int | None
    """The place of the source that gets each event, also one in which nothing is found; None: there is none."""
    first_leaf: int = 0
    """The number of its first leaf among what the match kernel answers."""

    @property
    def part(self) -> str:
        """The name of what it reads of the KB among what others read."""
        return f"GPM {self.name}, {self.request}"

    @property
    def asked(self) -> tuple[tuple[int, Asked], ...]:
        """Places of the sources that the knowledge base feeds, and their queries."""
        return tuple((i, form) for i, form in enumerate(self.flow.forms) if isinstance(form, Asked))


def compile_operators(request: int, name: str, parts: GpmParts, keep: tuple[Variable, ...]) -> OperatorGpm:
    """The plan of a GPM; `keep`: the variables that are passed on."""
    columns = visible_variables(parts.pattern)
    made: list[EventLeaves] = []

    def leaves(relations: Relations) -> EventLeaves:
        made.append(EventLeaves(relations))
        return made[-1]

    where = Group((GraphPattern(_EVENT, parts.pattern),))
    query = RspQuery("rspql", "SELECT", SubSelect((_EVENT, *columns), where, distinct=True), ())
    plan = compile_where(query, Around(leaves=leaves, event=_EVENT)).plan
    known = {leaf.source: leaf for each in made for leaf in each.found.values()}
    fed = [(place, known[form.name]) for place, form in enumerate(plan.forms) if isinstance(form, Given)]
    every = [place for place, form in enumerate(plan.forms) if isinstance(form, Graphs)]
    return OperatorGpm(
        request,
        name,
        plan,
        columns,
        tuple(columns.index(v) for v in keep),
        tuple(condition(e) for e in parts.filters),
        tuple((place, number) for number, (place, _) in enumerate(fed)),
        tuple(leaf for _, leaf in fed),
        every[0] if every else None,
    )
