"""The checks of SPAseq (semantics.md 2)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from oxiseq.grammar.algebra import Ask, Expression, Query
from oxiseq.grammar.checking.clauses import check_clauses
from oxiseq.grammar.checking.every import check_every
from oxiseq.grammar.checking.gap_bounds import check_gap_bounds
from oxiseq.grammar.checking.habits import habits
from oxiseq.grammar.checking.lints import lint
from oxiseq.grammar.checking.names import check_names
from oxiseq.grammar.checking.negated_groups import check_negated_groups
from oxiseq.grammar.checking.output import check_output
from oxiseq.grammar.checking.patterns import check_patterns
from oxiseq.grammar.checking.ranking import check_ranking
from oxiseq.grammar.checking.scope import check_scope, pattern_expressions
from oxiseq.grammar.checking.sequence import check_sequence
from oxiseq.grammar.checking.summary import check_summary
from oxiseq.grammar.errors import Finding
from oxiseq.grammar.places import Overview, overview
from oxiseq.grammar.scope import subexpressions

CHECKS: Final[tuple[Callable[[Overview], Iterator[Finding]], ...]] = (
    check_names,
    check_sequence,
    check_negated_groups,
    check_gap_bounds,
    check_clauses,
    check_patterns,
    check_scope,
    check_output,
    check_summary,
    check_ranking,
    lint,
    habits,
)
_OF_ALL_GPMS: Final = (check_output, check_summary, check_ranking)
"""About variables that whatever GPM may bind."""


def check_spaseq(query: Query, text: str) -> Iterator[Finding]:
    """All of them over one overview of the query."""
    seen = overview(query, text)
    undefined = {place.name for place in seen.places} - seen.gpms.keys()  # what those would bind is not known
    for run in CHECKS:
        if not undefined or run not in _OF_ALL_GPMS:
            yield from run(seen)
    yield from check_every([(gpm.pattern, gpm.name) for gpm in query.gpms], _expressions(query), text)


def _expressions(query: Query) -> list[Expression]:
    columns = () if isinstance(query.form, Ask) else query.form.columns or ()
    summary = query.summary
    asked = [
        *(c.expression for c in columns if c.expression is not None),
        *(each.condition for each in query.filters),
        *(key[0] if isinstance(key, tuple) else key for key in summary.group_by),
        *summary.having,
        *(expression for expression, _ in summary.order_by),
    ]
    inside = (e for gpm in query.gpms for e in pattern_expressions(gpm.pattern))
    return [*inside, *(part for e in asked for part in subexpressions(e))]
