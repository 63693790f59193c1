"""How large a query's text may be, which is counted while it is read: what comes behind costs nothing then.

In the flow: a token of the text → **counted** → the parser (trees.py).
"""

from __future__ import annotations

from typing import Final

from oxiseq.grammar.errors import QueryError, span_at

MOST_TOKENS: Final = 100_000
"""Words, names, numbers and marks of a query."""
MOST_GPMS: Final = 2_000
"""As many as a sequence has positions at most (engine/sequence/positions.py)."""
MOST_DEPTH: Final = 256
"""Brackets in brackets."""
_OPENING: Final = frozenset("([{")
_CLOSING: Final = frozenset(")]}")


def may_be_large(text: str) -> bool:
    """Whether a text has to be counted: no token is shorter than one character, no definition than six."""
    longest = min(MOST_TOKENS, len("DEFINE") * MOST_GPMS)
    return len(text) > longest or sum(map(text.count, _OPENING)) > MOST_DEPTH


class SizeError(Exception):
    """A text is too large at a word of it."""

    def __init__(self, word: str, place: int, code: str, message: str) -> None:
        super().__init__(message)
        self.word, self.place, self.code, self.message = word, place, code, message

    def of(self, text: str) -> QueryError:
        """As an error of this text."""
        return QueryError(self.message, span_at(text, self.place, self.place + len(self.word)), text, code=self.code)


class Sizes:
    """What has been read of a text."""

    def __init__(self) -> None:
        self._tokens = self._gpms = self._depth = 0

    def add(self, word: str, kind: str, place: int) -> None:
        """Count a token. Raises SizeError."""
        self._tokens += 1
        if self._tokens > MOST_TOKENS:
            what = f"{self._tokens:,} words, names, numbers and marks, at most {MOST_TOKENS:,} allowed"
            raise SizeError(word, place, "size", f"the query is too large: {what}")
        if word in _OPENING:
            self._depth += 1
            if self._depth > MOST_DEPTH:
                what = f"{self._depth} brackets, at most {MOST_DEPTH} allowed"
                raise SizeError(word, place, "depth", f"the query is nested too deeply: {what}")
        elif word in _CLOSING:
            self._depth -= 1
        elif kind == "_DEFINE":
            self._gpms += 1
            if self._gpms > MOST_GPMS:
                what = f"{self._gpms:,} graph patterns, at most {MOST_GPMS:,} allowed"
                raise SizeError(word, place, "size", f"the query is too large: {what}")
