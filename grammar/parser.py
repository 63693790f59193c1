"""Text → algebra.

In the flow: the first step of the flow. `parse` has the language (languages.py) read a text and gives the algebra
or a `QueryError` with its place, in a few milliseconds. Our own languages read with `tree`: a LALR parser (SPAseq's is
built from `parsing/spaseq.lark` and `sparql.lark`, that of CEQL from `ceql.lark`, the others from `rsp.lark`, on first
use: tables.py). It does not ask whether names mean something: `checks` does.
"""

from __future__ import annotations

from typing import Literal, overload

from oxiseq.grammar.algebra import NOWHERE, Query
from oxiseq.grammar.arguments import public
from oxiseq.grammar.ceql_algebra import CeqlQuery
from oxiseq.grammar.ep_algebra import EpQuery
from oxiseq.grammar.errors import OxiseqError, QueryError
from oxiseq.grammar.garbage import uncollected
from oxiseq.grammar.languages import USUAL, AnyQuery, syntax_named
from oxiseq.grammar.rsp_algebra import RspLanguage, RspQuery


@overload
def parse(text: str, language: Literal["spaseq"] = "spaseq") -> Query: ...
@overload
def parse(text: str, language: Literal["ceql"]) -> CeqlQuery: ...
@overload
def parse(text: str, language: Literal["epsparql"]) -> EpQuery: ...
@overload
def parse(text: str, language: RspLanguage) -> RspQuery: ...
@overload
def parse(text: str, language: str) -> AnyQuery: ...
@public
def parse(text: str, language: str = USUAL) -> AnyQuery:
    """Read a query of SPAseq (semantics.md 2.1), CEQL (3), RSEP-QL (4), EP-SPARQL (5), continuous SPARQL (6) or of a
    language that a plug-in brings.

    Raises `QueryError` where the text is not of the language, uses an undeclared prefix or an unknown
    function; `OxiseqError` for an unknown language.

    >>> from oxiseq import parse
    >>> query = parse('''SELECT * FROM STREAM S1 <http://e/s>
    ...     WHERE { SEQ(A) DEFINE GPM A ON S1 { ?s ?p ?o } }''')
    >>> query.streams[0].iri.value
    'http://e/s'
    >>> parse("VOCAB <http://e/> SELECT * FROM S WHERE A; B AS b FILTER b[x > 1]", "ceql").formula.condition.name
    'b'
    """
    syntax = syntax_named(language)
    try:
        with uncollected():
            query: AnyQuery = syntax.parse(text)
    except RecursionError:
        raise QueryError("the query is nested too deeply", NOWHERE, text, code="depth") from None
    if query.language != syntax.name:
        raise OxiseqError(f"the language {syntax.name!r} parsed a query of {query.language!r}")
    return query
