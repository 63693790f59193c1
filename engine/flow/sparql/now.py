"""NOW(): the evaluation instant's time, allowed in what SELECT lists only (semantics.md 4).

Such a column is no part of the flow, where time alone changes nothing: it is computed when a row is emitted.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pyoxigraph import Variable

from oxiseq.engine.errors import QueryError
from oxiseq.engine.flow.rewriting import replaced
from oxiseq.engine.flow.sparql.asking import expressions_of
from oxiseq.engine.flow.sparql.correlation import condition_mentions
from oxiseq.engine.flow.sparql.selects import Listed
from oxiseq.grammar.algebra import Aggregate, Call, Expression, Group
from oxiseq.grammar.rsp_algebra import RspQuery
from oxiseq.grammar.scope import holds_exists, nested_elements, subexpressions

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
