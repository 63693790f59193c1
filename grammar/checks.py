"""Checks: does a query that parses also mean something?

Where it stands: algebra → findings. Each pass of `CHECKS` looks at the whole query and yields `Finding`s,
errors (the query is refused) and lints; they run in this order, findings come out in the order of the
text. The rules are semantics.md 2; those of CEQL (semantics.md 3) stand in `checking.ceql`, those of
EP-SPARQL (5) in `checking.epsparql`, those of queries over windows (4 and 6) in `checking.rsp`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Literal, overload

from oxiseq.grammar.algebra import Query
from oxiseq.grammar.arguments import public
from oxiseq.grammar.ceql_algebra import CeqlQuery
from oxiseq.grammar.checking.ceql import CEQL_CHECKS
from oxiseq.grammar.checking.clauses import check_clauses
from oxiseq.grammar.checking.epsparql import EP_CHECKS
from oxiseq.grammar.checking.functions import check_functions
from oxiseq.grammar.checking.gap_bounds import check_gap_bounds
from oxiseq.grammar.checking.lints import lint
from oxiseq.grammar.checking.names import check_names
from oxiseq.grammar.checking.output import check_output
from oxiseq.grammar.checking.patterns import check_patterns
from oxiseq.grammar.checking.ranking import check_ranking
from oxiseq.grammar.checking.rsp import RSP_CHECKS
from oxiseq.grammar.checking.scope import check_scope
from oxiseq.grammar.checking.sequence import check_sequence
from oxiseq.grammar.checking.summary import check_summary
from oxiseq.grammar.ep_algebra import EpQuery
from oxiseq.grammar.errors import Finding
from oxiseq.grammar.languages import AnyQuery
from oxiseq.grammar.parser import parse
from oxiseq.grammar.places import Overview, overview
from oxiseq.grammar.rsp_algebra import RspLanguage, RspQuery

CHECKS: tuple[Callable[[Overview], Iterator[Finding]], ...] = (
    check_names,
    check_sequence,
    check_gap_bounds,
    check_clauses,
    check_patterns,
    check_scope,
    check_output,
    check_summary,
    check_ranking,
    check_functions,
    lint,
)


@public
def check(query: AnyQuery, text: str = "") -> tuple[Finding, ...]:
    """All findings, in the order of the text; errors before lints at the same place.

    `text` is what `query` was parsed from: with it findings point at a variable, not only at the clause
    that holds it, and can show their line.

    >>> import oxiseq
    >>> text = "SELECT ?x FROM STREAM S <urn:s> WHERE { SEQ(A) DEFINE GPM A ON S { ?s <urn:p> ?o } }"
    >>> for finding in oxiseq.check(oxiseq.parse(text), text):
    ...     print(finding.severity, finding.line, finding.column, finding.message)
    error 1 8 no GPM of SEQ binds ?x
    lint 1 45 without WITHIN a match may take for ever, and so may what is kept for it
    """
    try:
        found = dict.fromkeys(_findings(query, text))
    except RecursionError:
        return (Finding("error", "depth", "the query is nested too deeply", query.span, text=text),)
    ordered = sorted(found, key=lambda f: (f.span.start, f.severity != "error"))
    return tuple(replace(f, text=text) for f in ordered)


def _findings(query: AnyQuery, text: str) -> Iterator[Finding]:
    if isinstance(query, CeqlQuery):
        for check_ceql in CEQL_CHECKS:
            yield from check_ceql(query, text)
        return
    if isinstance(query, EpQuery):
        for check_ep in EP_CHECKS:
            yield from check_ep(query, text)
        return
    if isinstance(query, RspQuery):
        for check_rsp in RSP_CHECKS:
            yield from check_rsp(query, text)
        return
    seen = overview(query, text)
    for run in CHECKS:
        yield from run(seen)


@overload
def load(text: str, language: Literal["spaseq"] = "spaseq") -> Query: ...
@overload
def load(text: str, language: Literal["ceql"]) -> CeqlQuery: ...
@overload
def load(text: str, language: Literal["epsparql"]) -> EpQuery: ...
@overload
def load(text: str, language: RspLanguage) -> RspQuery: ...
@overload
def load(text: str, language: str) -> AnyQuery: ...
def load(text: str, language: str = "spaseq") -> AnyQuery:
    """Parse and check; the first error is raised as `QueryError`.

    >>> load("SELECT ?y FROM STREAM S <http://e/s> WHERE { SEQ(A) DEFINE GPM A ON S { ?s ?p ?o } }")
    Traceback (most recent call last):
    oxiseq.QueryError: no GPM of SEQ binds ?y
    line 1, column 8
      1 | SELECT ?y FROM STREAM S <http://e/s> WHERE { SEQ(A) DEFINE GPM A ON S { ?s ?p ?o } }
        |        ^^
    hint: it can be one of ?o, ?p, ?s
    """
    query = parse(text, language)
    for finding in check(query, text):
        if finding.severity == "error":
            raise finding.to_error()
    return query
