"""How large a query's text may be, which is counted while it is read: what comes behind costs nothing then.

In the flow: the lexer's tokens → **counted** → the parser.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from lark import Token

from oxiseq.grammar.errors import QueryError
from oxiseq.grammar.terms import span_of

MOST_TOKENS: Final = 100_000
"""Words, names, numbers and marks of a query."""
MOST_GPMS: Final = 2_000
"""As many as a sequence has positions at most (engine/sequence/positions.py)."""
MOST_DEPTH: Final = 256
"""Brackets in brackets."""
_OPENING: Final = frozenset("([{")
_CLOSING: Final = frozenset(")]}")


class SizeError(Exception):
    """A text is too large at a token."""

    def __init__(self, token: Token, code: str, message: str) -> None:
        super().__init__(message)
        self.token, self.code, self.message = token, code, message

    def of(self, text: str) -> QueryError:
        """As an error of this text."""
        return QueryError(self.message, span_of(self.token), text, code=self.code)


class Sizes:
    """Counts tokens as they pass (lark calls that a postlexer)."""

    always_accept = ()

    def process(self, stream: Iterator[Token]) -> Iterator[Token]:
        """The same tokens. Raises SizeError."""
        gpms = depth = 0
        for count, token in enumerate(stream, 1):
            if count > MOST_TOKENS:
                what = "words, names, numbers and marks"
                raise SizeError(
                    token, "size", f"the query is too large: {count:,} {what}, at most {MOST_TOKENS:,} allowed"
                )
            if token in _OPENING:
                depth += 1
                if depth > MOST_DEPTH:
                    what = f"{depth} brackets, at most {MOST_DEPTH} allowed"
                    raise SizeError(token, "depth", f"the query is nested too deeply: {what}")
            elif token in _CLOSING:
                depth -= 1
            elif token.type == "_DEFINE":
                gpms += 1
                if gpms > MOST_GPMS:
                    what = f"{gpms:,} graph patterns, at most {MOST_GPMS:,} allowed"
                    raise SizeError(token, "size", f"the query is too large: {what}")
            yield token
