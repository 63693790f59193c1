"""A query over the store alone as operators over its quads.

In the flow: a checked `RspQuery` without windows → **StorePlan** → run.py.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from pyoxigraph import Variable

from oxiseq.engine.errors import QueryError
from oxiseq.engine.expressions.blank_nodes import with_shared_blank_nodes
from oxiseq.engine.flow import plan as p
from oxiseq.engine.flow.sparql import Around, Lowered, compile_where
from oxiseq.grammar.records import dataclass
from oxiseq.grammar.rsp_algebra import RspQuery
from oxiseq.grammar.windows.texts import render_rsp


@dataclass(frozen=True, slots=True)
class StorePlan:
    """flow: its root's rows are the answer, each as often as SPARQL says: for SELECT its columns, for CONSTRUCT full
    mappings, for ASK one row without columns if the answer is true. `told`: by column of the answer (of CONSTRUCT the
    template's variables) its name and its place in those rows."""

    query: RspQuery
    flow: p.FlowPlan
    told: tuple[tuple[str, int], ...]
    names: tuple[str, ...]
    """The columns of the root by the names that they have in the answers to `asks`, empty for those that it lacks."""
    asks: str
    """What the store is queried instead: a SELECT or an ASK."""

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the answer's columns."""
        return tuple(name for name, _ in self.told)


def compile_over_store(query: RspQuery, size: Callable[[p.Quads], int] | None = None) -> StorePlan:
    """size: about how many quads agree with a pattern. Raises QueryError for NOW(), whose value changes though nothing
    else does."""
    around = Around(
        default_graphs=query.default_graphs, named_graphs=query.named_graphs, asks_kb=False, alone=True, size=size
    )
    try:
        lowered = compile_where(with_shared_blank_nodes(query), around)
    except QueryError as error:  # windows allow NOW() in some places
        raise _changing(query) if error.code == "now" else error from None
    if any(each.place is None for each in lowered.told):
        raise _changing(query)
    places = [each.place for each in lowered.told if each.place is not None]
    if query.form == "SELECT":
        told = tuple((each.name, i) for i, each in enumerate(lowered.told))
        names = tuple(name for name, _ in told)
        return StorePlan(query, _shown(lowered, places), told, names, render_rsp(query))
    told = tuple(zip((t.name for t in lowered.told), places, strict=True))
    names = tuple(c.value if isinstance(c, Variable) else "" for c in lowered.relation.columns)
    asks = (
        query
        if query.form == "ASK"
        else replace(query, form="SELECT", template=(), body=replace(query.body, projection=None))
    )
    return StorePlan(query, lowered.plan, told, names, render_rsp(asks))


def sources_of(plan: StorePlan) -> tuple[p.Quads | p.Graphs, ...]:
    """The patterns that it reads: while none of their quads comes or goes its answer stays."""
    return tuple(dict.fromkeys(form for form in plan.flow.forms if isinstance(form, p.Quads | p.Graphs)))


def _changing(query: RspQuery) -> QueryError:
    return QueryError(
        "NOW() has another value at each moment, though nothing changes",
        query.span,
        query.text,
        hint="leave it out: each change says when it was made",
        code="now",
    )


def _shown(lowered: Lowered, places: list[int]) -> p.FlowPlan:
    """With the columns that are shown as root; rows that come and go at once are left out."""
    plan = lowered.plan
    if places == list(range(plan.widths[plan.root])):
        return plan
    pick = p.Pick(plan.root, tuple((place,) for place in places))
    forms = (*plan.forms, pick, p.Consolidate(len(plan.forms)))
    width = len(places)
    return p.FlowPlan(forms, (*plan.widths, width, width), len(forms) - 1, (*plan.raw, (), ()), plan.also)
