"""Languages that are not translated into each other: which part of the query the other one lacks, and its span."""

from __future__ import annotations

from oxiseq.grammar.errors import QueryError
from oxiseq.grammar.languages import AnyQuery, Syntax
from oxiseq.grammar.translating.translation import refused


def apart(query: AnyQuery, source: Syntax[AnyQuery], target: Syntax[AnyQuery], hint: str) -> QueryError:
    """Why `query` is not shown in `target`, at the part of it that the other language lacks."""
    what, span = (f"a query of {source.title}", query.span) if source.own is None else source.own(query)
    wants = target.about or f"{target.title} queries differently"
    message = f"{source.name} is not translated to {target.name}: {wants}, not {what}"
    return refused(message, span, str(getattr(query, "text", "")), hint)
