"""SPARQL text as tokens, for what must be known before the store parses it.

The one doubtful place of SPARQL's lexis is `<`: in `?a<?b && ?c>?d` it is an operator, and what looks like an
IRI is none. So nothing that is about safety rests on these tokens alone: see `guards`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

from oxiseq.grammar.name_chars import NAME_CHARS
from oxiseq.grammar.records import dataclass

_HIDING = r"""
    (?P<comment>\#[^\r\n]*)
  | (?P<iri><[^<>"{}|^`\\\x00-\x20]*>)
  | (?P<string>'''(?:(?:''?)?(?:[^'\\]|\\.))*+''' | \"{3}(?:(?:""?)?(?:[^"\\]|\\.))*+\"{3}
              | '(?:[^'\\\r\n]|\\.)*+' | "(?:[^"\\\r\n]|\\.)*+")
"""
"""What braces may be within."""


@cache
def _token() -> re.Pattern[str]:
    """Any token. It is made when the first text is read: that takes 10 ms."""
    return re.compile(
        rf"""
        (?P<blank>\s+)
      | {_HIDING}
      | (?P<variable>[?$][{NAME_CHARS}]+)
      | (?P<name>[^\W\d_][{NAME_CHARS}.\-]*)?:(?:[{NAME_CHARS}:.\-]|%[0-9A-Fa-f]{{2}}|\\.)*
      | (?P<word>@?[^\W\d_][{NAME_CHARS}]*)
      | (?P<mark><<\(|\)>>|<<|>>|[{{}}()\[\]!]|.)
        """,
        re.VERBOSE | re.DOTALL,
    )


_BRACE = re.compile(rf"[{{}}] | \\. | {_HIDING}", re.VERBOSE | re.DOTALL)
_OPENING = frozenset(["{", "(", "[", "<<", "<<(", "{|"])
_CLOSING = frozenset(["}", ")", "]", ">>", ")>>"])


@dataclass(frozen=True, slots=True)
class Token:
    """A token that is neither blank nor comment; `kind` is iri, string, variable, name, word or mark, or block (see
    `outline`)."""

    kind: str
    text: str
    start: int
    end: int

    def is_word(self, *words: str) -> bool:
        """Whether it is one of these keywords (given in capitals)."""
        return self.kind == "word" and self.text.upper() in words


def tokens(text: str) -> Iterator[Token]:
    """All tokens in order; text that is no SPARQL yields single characters."""
    for found in _token().finditer(text):
        kind = found.lastgroup or "name"
        if kind not in ("blank", "comment"):
            yield Token(kind, found[0], found.start(), found.end())


def outline(text: str) -> Iterator[Token]:
    """The tokens outside of braces; what is in a pair of braces is one, of kind block, with them. One that is not
    closed goes to the end."""
    at = 0
    while (found := _token().match(text, at)) is not None:
        kind, at = found.lastgroup or "name", found.end()
        if found[0] == "{":
            kind, at = "block", _closed(text, found.start())
        if kind not in ("blank", "comment"):
            yield Token(kind, text[found.start() : at], found.start(), at)


def _closed(text: str, start: int) -> int:
    """Behind the brace that closes the one at `start`."""
    level = 0
    for found in _BRACE.finditer(text, start):
        if found[0] == "{":
            level += 1
        elif found[0] == "}":
            level -= 1
            if level == 0:
                return found.end()
    return len(text)


def depth(text: str) -> int:
    """How deep brackets and negations are nested, at most."""
    deepest = open_ = negations = 0
    for token in tokens(text):
        if token.kind == "mark" and token.text == "!":
            negations += 1
        else:
            negations = 0
        if token.text in _OPENING:
            open_ += 1
        elif token.text in _CLOSING:
            open_ = max(0, open_ - 1)
        deepest = max(deepest, open_ + negations)
    return deepest
