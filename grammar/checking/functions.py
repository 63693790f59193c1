"""Functions called by IRI: the store must know them, or it fails when the first event comes."""

from __future__ import annotations

from collections.abc import Iterator

from oxiseq.grammar.algebra import Ask, Expression, FunctionCall
from oxiseq.grammar.checking.scope import all_expressions
from oxiseq.grammar.errors import Finding
from oxiseq.grammar.finding_tools import close_name, error
from oxiseq.grammar.functions import CASTS, GEO_FUNCTIONS, GEOSPARQL
from oxiseq.grammar.places import Overview
from oxiseq.grammar.scope import subexpressions


def check_functions(seen: Overview) -> Iterator[Finding]:
    """Casts and extension functions anywhere in the query."""
    for e in everywhere(seen):
        yield from check_function(e)


def check_function(e: Expression) -> Iterator[Finding]:
    """A call by IRI, if it is one."""
    if isinstance(e, FunctionCall):
        iri = e.function.value
        if iri in CASTS and (len(e.args) != 1 or e.distinct):
            yield error("function", f"the cast <{iri}> takes one argument", e.span)
        elif iri not in CASTS and iri not in GEO_FUNCTIONS:
            known = GEO_FUNCTIONS if iri.startswith(GEOSPARQL) else CASTS
            hint = close_name(iri, known, "a function with an IRI is a cast to an XSD type or a GeoSPARQL function")
            yield error("function", f"there is no function <{iri}>", e.span, hint)


def everywhere(seen: Overview) -> Iterator[Expression]:
    """Every expression of the query with its subexpressions."""
    for gpm in seen.query.gpms:
        yield from all_expressions(gpm)
    form = seen.query.form
    if not isinstance(form, Ask):
        for column in form.columns or ():
            if column.expression is not None:
                yield from subexpressions(column.expression)
