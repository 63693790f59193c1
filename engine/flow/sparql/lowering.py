"""A query over windows as a flow plan: WHERE, its solution modifiers, its output.

In the flow: a checked `RspQuery` → **Lowered**. The answers of a *plain* query (no aggregate, group, DISTINCT,
order, slice; no ASK) are full mappings, of which some columns are shown: rows are compared between instants by all.

NOW(), the evaluation instant's time, is allowed in what SELECT lists only (semantics.md 4). Such a column is no part of
the flow, where time alone changes nothing: it is computed when a row is emitted.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from pyoxigraph import Variable

from oxiseq.engine.errors import QueryError
from oxiseq.engine.flow import plan as p
from oxiseq.engine.flow.events import Used
from oxiseq.engine.flow.relations import Column, Hidden, Relation, Relations
from oxiseq.engine.flow.rewriting import placed, replaced
from oxiseq.engine.flow.sparql.around import Around, Lowered, Told
from oxiseq.engine.flow.sparql.asking import expressions_of
from oxiseq.engine.flow.sparql.existence import condition_mentions, grouped
from oxiseq.engine.flow.sparql.grounds import Scope
from oxiseq.engine.flow.sparql.groups import Groups
from oxiseq.engine.flow.sparql.rebuilding import apart, named_blanks
from oxiseq.engine.flow.sparql.selects import Listed, listed, name_of
from oxiseq.grammar.algebra import Aggregate, Call, Expression, Group, MatchPattern
from oxiseq.grammar.rsp_algebra import RspQuery
from oxiseq.grammar.scope import holds_exists, nested_elements, subexpressions, visible_variables

_HINT = "write it into what SELECT lists: (NOW() AS ?now)"


def late_columns(query: RspQuery, columns: Sequence[Listed], *, plain: bool) -> dict[Variable, Expression]:
    """The columns that get a value only when they are emitted, as expressions over the others; `plain`: over all
    variables of WHERE. Raises QueryError for NOW() elsewhere."""
    late: dict[Variable, Expression] = {}
    for column in columns:
        if not isinstance(column, tuple):
            continue
        expression, name = column
        if asks_now(expression) or condition_mentions(expression) & late.keys():
            late[name] = replaced(expression, dict[Expression, Expression](late.items()))
    if any(_elsewhere(query, late)):
        raise QueryError("NOW() is allowed only in what SELECT lists", query.span, query.text, hint=_HINT, code="now")
    shown = frozenset(c[1] if isinstance(c, tuple) else c for c in columns)
    for expression in [] if plain else late.values():
        for v in sorted(condition_mentions(expression) - shown, key=str):
            raise QueryError(
                f"an expression with NOW() reads ?{v.value}, which the rows do not have",
                query.span,
                query.text,
                hint=f"list ?{v.value}, too",
                code="now",
            )
    return late


def _elsewhere(query: RspQuery, late: dict[Variable, Expression]) -> Iterator[bool]:
    """Whether it is read where rows are found, grouped or sorted."""
    body = query.body
    inside = (e for e in nested_elements(Group((body,))) if e is not body)
    yield from map(asks_now, expressions_of(inside))
    keys = [k[0] if isinstance(k, tuple) else k for k in body.group_by]
    clauses = [*keys, *body.having, *(e for e, _ in body.order_by)]
    yield any(asks_now(e) or condition_mentions(e) & late.keys() for e in clauses)
    yield any(holds_exists(e) or any(isinstance(x, Aggregate) for x in subexpressions(e)) for e in late.values())


def asks_now(expression: Expression) -> bool:
    """Whether NOW() is in it."""
    return any(isinstance(e, Call) and e.name == "NOW" for e in subexpressions(expression))


def compile_where(query: RspQuery, around: Around) -> Lowered:
    """The plan of a checked query. Raises QueryError for NOW() elsewhere than in what SELECT lists, OxiseqError where
    GRAPH ?g may not be queried from the knowledge base."""
    return _Lowering(query, around).lowered()


class _Lowering:
    def __init__(self, query: RspQuery, around: Around) -> None:
        self._query = query
        self._sheet = p.Sheet()
        self._relations = Relations(self._sheet, by_pairs=around.alone)
        self._told = _told(query)
        now_asked = around.event is None  # else it is the clock's, as it is in a FILTER
        self._late = late_columns(query, self._told, plain=is_plain(query)) if now_asked else {}
        self._now = [c for c in self._told if name_of(c) not in self._late]
        body = replace(query.body, where=named_blanks(query.body.where)) if is_plain(query) else query.body
        self._body = apart(body)
        self._groups = Groups(self._relations, around, self._timed(around))
        self._scope = Scope(self._groups.default())

    def _timed(self, around: Around) -> MatchPattern | None:
        """The one MATCH of WHERE itself, where its rows carry times."""
        found = (e for e in self._body.where.elements if isinstance(e, MatchPattern))
        return None if around.timed is None else next(found)

    def lowered(self) -> Lowered:
        where = self._groups.group(self._body.where, self._scope)
        if self._query.form == "ASK":
            return self._asked(where)
        if is_plain(self._query):
            return self._plain(where)
        ordered = self._groups.selects.ordered(self._body, where, self._now, self._scope)
        ordered = self._groups.selects.sliced(ordered, self._body, sorts=True)
        ranks = tuple(p.Rank(ordered.relation.place(c), down) for c, down in ordered.order)
        return self._done(ordered.relation, len(self._now), ranks)

    def _asked(self, where: Relation) -> Lowered:
        """One row of width 0, if there is a solution."""
        body = replace(self._body, projection=(), distinct=False, order_by=())
        ordered = self._groups.selects.ordered(body, where, (), self._scope)
        found = self._groups.selects.sliced(ordered, body).relation
        return self._done(self._relations.distinct(found), 0, ())

    def _plain(self, where: Relation) -> Lowered:
        """Full mappings: the emitted columns, the other variables of WHERE, times."""
        names = [name_of(c) for c in self._now]
        inline = self._body.values.variables if self._body.values is not None else ()
        others = [v for v in dict.fromkeys([*visible_variables(self._body.where), *inline]) if v not in names]
        times = [c for c in where.columns if isinstance(c, Hidden)]
        columns = [*self._now, *others, *times]
        found = self._groups.selects.ordered(self._body, where, columns, self._scope).relation
        return self._done(found, len(found.columns), ())

    def _done(self, found: Relation, compared: int, order: tuple[p.Rank, ...]) -> Lowered:
        used = tuple(self._groups.used)
        also = tuple(each.node for each in used)
        plan = self._sheet.plan(found.node, also)
        if not p.is_consolidated(plan):  # rows that come and go within an instant are not emitted
            plan = self._sheet.plan(self._sheet.add(p.Consolidate(found.node)), also)
        times = [i for i, c in enumerate(found.columns) if isinstance(c, Hidden)]
        told = tuple(self._column(found, name_of(c)) for c in self._told)
        return Lowered(
            plan,
            replace(found, node=plan.root),
            compared,
            told,
            order,
            times[0] if times else None,
            tuple(map(_renumbered, used, plan.also)),
        )

    def _column(self, found: Relation, name: Column) -> Told:
        assert isinstance(name, Variable)
        if name not in self._late:
            return Told(name.value, found.place(name))
        places = {c: p.column(i) for i, c in enumerate(found.columns) if isinstance(c, Variable)}
        return Told(name.value, None, placed(self._late[name], places))


def _renumbered(used: Used, node: int) -> Used:
    return replace(used, node=node)


def _told(query: RspQuery) -> tuple[Listed, ...]:
    """The columns of the answer: SELECT's, for CONSTRUCT the template's variables."""
    if query.form == "CONSTRUCT":
        terms = (t for each in query.template for t in (each.subject, each.predicate, each.object))
        return tuple(dict.fromkeys(t for t in terms if isinstance(t, Variable)))
    return () if query.form == "ASK" else listed(query.body)


def is_plain(query: RspQuery) -> bool:
    """Whether rows are full mappings projected."""
    body = query.body
    if query.form == "ASK" or body.distinct or body.order_by or grouped(body):
        return False
    return body.limit is None and body.offset is None
