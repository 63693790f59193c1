"""SPARQL that a store in Python refuses: an error with place, caret and hint, as those of our own languages."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from oxiseq.engine.errors import QueryError
from oxiseq.grammar.over_sparql import Kind, refusal


class SparqlError(QueryError, SyntaxError):  # type: ignore[misc]  # its text is always there
    """A SPARQL query or update that is not accepted. It is a SyntaxError, too: pyoxigraph's stores raise that."""


def explaining(method: Callable[..., Any], kind: Kind) -> Callable[..., Any]:
    """A store's `query` or `update`; where it raises SyntaxError this raises SparqlError."""

    def asked(*args: Any, **named: Any) -> Any:
        try:
            return method(*args, **named)
        except SyntaxError as error:
            text = args[0] if args else named.get(kind)
            if not isinstance(text, str):
                raise
            raise _explained(refusal(text, error, kind), text) from None

    return asked


def _explained(told: QueryError, text: str) -> SparqlError:
    found = SparqlError(told.message, told.span, text, hint=told.hint, expected=told.expected, code=told.code)
    found.msg = str(told)  # what Python shows of a SyntaxError in a traceback, not str()
    return found
