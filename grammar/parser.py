"""Text → algebra.

Where it stands: the first step of the flow. `parse` reads a text with a LALR parser (SPAseq's is built from
`parsing/spaseq.lark` and `sparql.lark`, that of CEQL from `ceql.lark`, the others from `rsp.lark`, on first use:
tables.py) and gives the algebra or a `QueryError` with its place, in a few milliseconds. It does not ask whether names
mean something: `checks` does.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Final, Literal, overload

from lark import Lark, Token, Tree
from lark.exceptions import UnexpectedInput

from oxiseq.grammar.algebra import NOWHERE, Query
from oxiseq.grammar.arguments import public
from oxiseq.grammar.ceql_algebra import CeqlQuery
from oxiseq.grammar.ep_algebra import EpQuery
from oxiseq.grammar.errors import QueryError
from oxiseq.grammar.languages import AnyQuery, Language, known_language
from oxiseq.grammar.parsing.ceql import CeqlBuilder
from oxiseq.grammar.parsing.epsparql import EpBuilder
from oxiseq.grammar.parsing.rsp import RspBuilder
from oxiseq.grammar.parsing.spaseq import SpaseqBuilder
from oxiseq.grammar.rsp_algebra import RspLanguage, RspQuery
from oxiseq.grammar.slips.ceql import CEQL_COMMENT, CEQL_RULES
from oxiseq.grammar.slips.epsparql import EP_RULES
from oxiseq.grammar.slips.rsp import RSP_RULES
from oxiseq.grammar.slips.slip import Rule
from oxiseq.grammar.slips.spaseq import COMMENT, RULES
from oxiseq.grammar.slips.syntax_errors import explain
from oxiseq.grammar.tables import lalr

_RSP: Final[tuple[Language, ...]] = ("rspql", "spectra", "rsepql")
"""They share one grammar."""
_SLIPS: Final[Mapping[Language, tuple[Sequence[Rule], re.Pattern[str]]]] = {
    "spaseq": (RULES, COMMENT),
    "ceql": (CEQL_RULES, CEQL_COMMENT),
    "epsparql": (EP_RULES, COMMENT),
    **dict.fromkeys(_RSP, (RSP_RULES, COMMENT)),
}
"""What is known of slips in each language, and what a comment is."""


def lalr_parser(language: Language) -> Lark:
    """The LALR parser of a language, made once per process."""
    return _of_grammar("rsp" if language in _RSP else language)


_of_grammar = cache(lalr)


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
def parse(text: str, language: str = "spaseq") -> AnyQuery:
    """Read a query of SPAseq (semantics.md 2.1), CEQL (3), RSEP-QL (4), EP-SPARQL (5) or continuous SPARQL (6).

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
    known = known_language(language)
    read = tree(text, known)
    try:
        match known:
            case "ceql":
                return CeqlBuilder(text).query(read)
            case "epsparql":
                return EpBuilder(text).ep_query(read)
            case "rspql" | "spectra" | "rsepql":
                return RspBuilder(text, known).query(read)
            case "spaseq":
                return SpaseqBuilder(text).query(read)
    except RecursionError:
        raise QueryError("the query is nested too deeply", NOWHERE, text, code="depth") from None


def tree(text: str, language: Language = "spaseq") -> Tree[Token]:
    """The parse tree of a text."""
    try:
        return lalr_parser(language).parse(text)
    except UnexpectedInput as unexpected:
        rules, comment = _SLIPS[language]
        raise explain(unexpected, text, rules, comment) from None
