"""Checks: does a query that parses also mean something?

In the flow: algebra → findings. A language's passes (`spaseq.checks`, `ceql.checks`, `epsparql.checks`,
`windows.checks`; the rules are semantics.md 2, 3, 5, 4 and 6) look at the whole query and yield `Finding`s, errors (the
query is refused) and lints; they come out in the order of the text.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Literal, overload

from oxiseq.grammar.algebra import Query
from oxiseq.grammar.arguments import public
from oxiseq.grammar.ceql_algebra import CeqlQuery
from oxiseq.grammar.ep_algebra import EpQuery
from oxiseq.grammar.errors import Finding
from oxiseq.grammar.garbage import uncollected
from oxiseq.grammar.languages import USUAL, AnyQuery, syntax_named
from oxiseq.grammar.parser import parse
from oxiseq.grammar.rsp_algebra import RspLanguage, RspQuery


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
    """
    try:
        with uncollected():
            found = dict.fromkeys(syntax_named(query.language).check(query, text))
    except RecursionError:
        return (Finding("error", "depth", "the query is nested too deeply", query.span, text=text),)
    ordered = sorted(found, key=lambda f: (f.span.start, f.severity != "error"))
    return tuple(replace(f, text=text) for f in ordered)


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
def load(text: str, language: str = USUAL) -> AnyQuery:
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
    refuse(check(query, text))
    return query


def refuse(findings: Iterable[Finding]) -> None:
    """Raise the first error as `QueryError`."""
    for finding in findings:
        if finding.severity == "error":
            raise finding.to_error()
