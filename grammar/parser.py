"""Text → algebra.

Where it stands: the first step of the flow. `parse` reads a SPAseq text with a LALR parser (built from
`spaseq.lark` and `sparql.lark` on first use, about 0.2 s, then a few milliseconds per query) and gives the
algebra or a `QueryError` with its place. It does not ask whether names mean something: `checks` does.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

from lark import Lark, Token, Tree
from lark.exceptions import UnexpectedInput

from oxiseq.grammar.algebra import NOWHERE, Query
from oxiseq.grammar.build_spaseq import SpaseqBuilder
from oxiseq.grammar.errors import QueryError
from oxiseq.grammar.syntax_errors import explain


@cache
def spaseq_parser() -> Lark:
    """The LALR parser, built once per process."""
    return Lark.open(
        str(Path(__file__).with_name("spaseq.lark")),
        parser="lalr",
        lexer="contextual",
        propagate_positions=True,
        maybe_placeholders=False,
    )


def parse(text: str) -> Query:
    """Read a SPAseq query (semantics.md 2.1).

    Raises `QueryError` where the text is not SPAseq, uses an undeclared prefix, an unknown function or a
    clause that is not supported yet.

    >>> query = parse('''SELECT * FROM STREAM S1 <http://e/s>
    ...     WHERE { SEQ(A) DEFINE GPM A ON S1 { ?s ?p ?o } }''')
    >>> query.streams[0].iri.value
    'http://e/s'
    """
    read = tree(text)
    try:
        return SpaseqBuilder(text).query(read)
    except RecursionError:
        raise QueryError("the query is nested too deeply", NOWHERE, text, code="depth") from None


def tree(text: str) -> Tree[Token]:
    """The parse tree of a text."""
    try:
        return spaseq_parser().parse(text)
    except UnexpectedInput as unexpected:
        raise explain(unexpected, text) from None
