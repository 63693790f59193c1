"""Checks of aggregates over the complex events that end at one event: SELECT, GROUP BY and HAVING of CEQL."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from pyoxigraph import Variable

from oxiseq.grammar.algebra import Aggregate, Expression, Span
from oxiseq.grammar.ceql_algebra import CeqlQuery, Totals, column_names, keys_of, measured_variable, variables
from oxiseq.grammar.errors import Finding
from oxiseq.grammar.finding_tools import at_pattern, close_name, error, listing
from oxiseq.grammar.scope import subexpressions


def check_totals(query: CeqlQuery, text: str) -> Iterator[Finding]:
    """Each name in SELECT and HAVING is defined, and no clause selects complex events that are not returned."""
    totals = query.totals
    if totals is None:
        return
    known: list[str] = []
    held = variables(query.formula)
    for column in totals.columns:
        if column.name in known:
            yield error("select", f"two columns are called {column.name}", column.span, "give one another name by AS")
        yield from _expression(query, column.expression, column.span, text)
        known.append(column.name)
    if totals.having is not None:
        yield from _expression(query, totals.having, totals.having_span, text)
        for name in column_names(totals.having):
            if name.value not in known:
                place = at_pattern(rf"\b{re.escape(name.value)}\b", totals.having_span, text)
                hint = f"write an attribute after a variable: SUM({held[-1]}[{name.value}])"
                yield error("select", f"no column is called {name.value}", place, close_name(name.value, known, hint))
    yield from _keys(query, totals, text)
    hint = "aggregates give one row for each event at which complex events end; HAVING filters these: leave this out"
    for code, word, clause in (
        ("order", "ORDER BY", query.order),
        ("limit", "LIMIT", query.limit),
        ("sample", "SAMPLE", query.sample),
    ):
        if clause is not None:
            yield error(code, f"{word} selects single complex events, but aggregates use them all", clause.span, hint)


def check_aggregates(expression: Expression, held: Sequence[str]) -> Iterator[Finding]:
    """Each aggregate is of an attribute of what one of these variables holds, or counts that."""
    for part in subexpressions(expression):
        match part:
            case Aggregate(name, Variable(value=variable)) if name != "COUNT":
                hint = f"write {name}({variable}[price]); COUNT({variable}) is the number of its events"
                if variable not in held:
                    hint = f"write {name}({held[-1]}[{variable}]), of the events that {held[-1]} holds"
                yield error("select", f"{name} needs the values of an attribute", part.span, hint)
            case Aggregate():
                asked = measured_variable(part)
                if asked is not None and asked not in held:
                    hint = close_name(asked, held, f"WHERE has {', '.join(held)}")
                    yield error("select", f"WHERE has no {asked}", part.span, hint)


def _expression(query: CeqlQuery, expression: Expression, span: Span, text: str) -> Iterator[Finding]:
    assert query.totals is not None
    yield from check_aggregates(expression, variables(query.formula))
    for key in keys_of(expression):
        if key not in query.totals.by:
            place = at_pattern(rf"(?<!\w)\[\s*{re.escape(key.value)}\s*\]", span, text)
            hint = f"add GROUP BY [{key.value}]"
            yield error("group", f"[{key.value}] is not in GROUP BY", place, hint)


def _keys(query: CeqlQuery, totals: Totals, text: str) -> Iterator[Finding]:
    by = query.partition.by if query.partition is not None else ()
    for number, key in enumerate(totals.by):
        place = at_pattern(rf"\[\s*{re.escape(key.value)}\s*\]", totals.by_span, text)
        if key not in by:
            known = f"groups are partitions: GROUP BY takes {listing(f'[{v.value}]' for v in by)}"
            hint = known if by else f"groups are partitions: add PARTITION BY [{key.value}]"
            yield error("group", f"PARTITION BY does not name [{key.value}]", place, hint)
        elif key in totals.by[:number]:
            yield error("group", f"GROUP BY names [{key.value}] twice", place, "once is enough")
