"""Syntax errors in human words: what was found, what could have stood there, what was probably meant."""

from __future__ import annotations

from lark.exceptions import UnexpectedInput

from oxiseq.grammar.algebra import Span
from oxiseq.grammar.errors import QueryError


def explain(unexpected: UnexpectedInput, text: str) -> QueryError:
    """lark's exception as ours."""
    at = unexpected.pos_in_stream or 0
    return QueryError(
        "syntax error", Span(at, at + 1, max(unexpected.line, 1), max(unexpected.column, 1)), text
    )
