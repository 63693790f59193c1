"""SPARQL over a store alone: SELECT, ASK and CONSTRUCT that read no stream.

In the flow: text → algebra → findings, as `parser` and `checks` do it for queries over windows, whose grammar holds
all of SPARQL. What a query over the store may not have are the clauses that are about streams.
"""

from __future__ import annotations

from collections.abc import Iterator

from oxiseq.grammar.algebra import Span
from oxiseq.grammar.checks import check, refuse
from oxiseq.grammar.errors import Finding, QueryError
from oxiseq.grammar.parser import parse
from oxiseq.grammar.rsp_algebra import RspQuery

_HINT = "register it with language='rspql'"


def load_over_store(text: str) -> RspQuery:
    """Parse and check; the first error is raised as `QueryError`.

    >>> load_over_store("SELECT ?s WHERE { ?s ?p ?o }").form
    'SELECT'
    """
    query = parse(text, "rspql")
    refuse(check_over_store(query, text))
    return query


def findings_over_store(text: str) -> tuple[Finding, ...]:
    """All that is wrong with a text or worth a look, in its order; of one that is no SPARQL the one error."""
    try:
        return check_over_store(parse(text, "rspql"), text)
    except QueryError as error:
        return (error.to_finding(),)


def check_over_store(query: RspQuery, text: str) -> tuple[Finding, ...]:
    """All findings, in the order of the text: those of queries over windows that are not about windows."""
    about = _about_streams(query)
    found = (f for f in check(query, text) if f.code != "stream")
    return (*(Finding("error", "stream", what, span, _HINT, text=text) for what, span in about), *found)


def _about_streams(query: RspQuery) -> Iterator[tuple[str, Span]]:
    if query.windows:
        yield "a query over the store reads no stream", query.windows[0].span
    elif query.report is not None or query.into is not None:
        yield "REGISTER is for queries that read streams", query.span
    elif query.when is not None or query.consume is not None or query.events:
        yield "REPORT, CONSUME and EVENT are for queries that read streams", query.span
