"""The operations of an update's text: which they are, and where their parts are.

Tokens decide it, which could be misled by a `<` in a condition. What they say is never the last word: the text that
is made of it (steps.py) is parsed by pyoxigraph, and is no SPARQL where a part does not end where they say.

SPARQL text as tokens, for what must be known before the store parses it.

The one doubtful place of SPARQL's lexis is `<`: in `?a<?b && ?c>?d` it is an operator, and what looks like an
IRI is none. So nothing that is about safety rests on these tokens alone: see `guards`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import Final, Literal, TypeAlias

from oxiseq.changes.limits import NotFollowedError
from oxiseq.grammar.name_chars import NAME_CHARS
from oxiseq.grammar.records import dataclass

# --- tokens ----------------------------------------------------------------------------------------------

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


# --- operations ------------------------------------------------------------------------------------------

Kind: TypeAlias = Literal[
    "insert data", "delete data", "modify", "load", "clear", "drop", "create", "add", "move", "copy"
]
_PROLOGUE: Final = {"PREFIX": ("name", "iri"), "BASE": ("iri",), "VERSION": ("string",)}
_BLANK: Final = re.compile(rf"_:[{NAME_CHARS}.\-]+")


@dataclass(frozen=True, slots=True)
class Operation:
    """An operation, which is `start` : `end` of the text. prologue: all PREFIX and BASE before it.

    data: the block of INSERT DATA and DELETE DATA. with_, delete, insert, using: the parts of a DELETE/INSERT; `where`
    is its group, and DELETE WHERE has the same block twice. graphs: IRIs as written, or DEFAULT, NAMED, ALL:
    one, or for ADD, MOVE and COPY from where and where to. Blocks have their braces.
    """

    kind: Kind
    start: int
    end: int
    prologue: str
    data: str = ""
    with_: str | None = None
    delete: Token | None = None
    insert: Token | None = None
    using: str = ""
    where: Token | None = None
    graphs: tuple[str, ...] = ()
    silent: bool = False


def operations(text: str) -> list[Operation]:
    """Those of an update. Raises NotFollowedError for what looks like none."""
    reader = _Reader(text)
    found = []
    while reader.prologue():
        found.append(reader.operation())
        if not reader.takes(";"):
            reader.end()
            break
    if len(found) > 1:
        _check_blanks(text, found)
    return found


def _check_blanks(text: str, found: list[Operation]) -> None:
    """Operations must not share the labels of blank nodes; rewritten ones have none."""
    seen: set[str] = set()
    for operation in found:
        labels = set(_BLANK.findall(text, operation.start, operation.end))
        if labels & seen:
            raise NotFollowedError("blank nodes of several operations have the same name")
        seen |= labels


class _Reader:
    """The tokens of a text outside of braces, one after the other. Everything raises NotFollowedError."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = list(outline(text))
        self._at = 0
        self._prologue = ""

    def prologue(self) -> bool:
        """What is before an operation; whether there is one."""
        while self._at < len(self._tokens):
            next_one = self._tokens[self._at]
            kinds = _PROLOGUE.get(next_one.text.upper()) if next_one.kind == "word" else None
            if kinds is None:
                return True
            first = self._next("word")
            for kind in kinds:
                last = self._next(kind)
            self._prologue += f"{self._text[first.start : last.end]}\n"
        return False

    def operation(self) -> Operation:
        """The next one."""
        first = self._next("word")
        word = first.text.upper()
        if word in ("WITH", "INSERT", "DELETE"):
            return self._modify(first, word)
        if word not in ("LOAD", "CLEAR", "DROP", "CREATE", "ADD", "MOVE", "COPY"):
            raise NotFollowedError(f"no operation: {word}")
        silent = self._word("SILENT")
        if word == "LOAD":
            graphs = [self._iri()]
            if self._word("INTO"):
                self._graph_word()
                graphs.append(self._iri())
        elif word == "CREATE":
            self._graph_word()
            graphs = [self._iri()]
        elif word in ("CLEAR", "DROP"):
            graphs = [self._one_of("DEFAULT", "NAMED", "ALL") or self._named()]
        else:
            graphs = [self._place()]
            if not self._word("TO"):
                raise NotFollowedError("TO is missing")
            graphs.append(self._place())
        kind: Kind = word.lower()  # type: ignore[assignment]  # one of them
        return Operation(kind, first.start, self._end, self._prologue, graphs=tuple(graphs), silent=silent)

    def _modify(self, first: Token, word: str) -> Operation:
        with_ = None
        if word == "WITH":
            with_ = self._iri()
            word = self._next("word").text.upper()
        elif self._word("DATA"):
            kind: Kind = "insert data" if word == "INSERT" else "delete data"
            block = self._next("block").text
            return Operation(kind, first.start, self._end, self._prologue, data=block)
        delete = insert = None
        if word == "DELETE" and with_ is None and self._word("WHERE"):
            both = self._next("block")
            return Operation("modify", first.start, self._end, self._prologue, delete=both, where=both)
        if word == "DELETE":
            delete = self._next("block")
        if word == "INSERT" or self._word("INSERT"):
            insert = self._next("block")
        if delete is insert:
            raise NotFollowedError("neither DELETE nor INSERT")
        using = self._using()
        if not self._word("WHERE"):
            raise NotFollowedError("WHERE is missing")
        where = self._next("block")
        return Operation(
            "modify",
            first.start,
            where.end,
            self._prologue,
            with_=with_,
            delete=delete,
            insert=insert,
            using=using,
            where=where,
        )

    def _using(self) -> str:
        """All graphs of USING."""
        clauses = []
        while self._word("USING"):
            clauses.append(f"USING {'NAMED ' if self._word('NAMED') else ''}{self._iri()} ")
        return "".join(clauses)

    def _place(self) -> str:
        """Of ADD, MOVE, COPY: a graph or DEFAULT."""
        if self._word("DEFAULT"):
            return "DEFAULT"
        self._word("GRAPH")
        return self._iri()

    def _named(self) -> str:
        self._graph_word()
        return self._iri()

    def _graph_word(self) -> None:
        if not self._word("GRAPH"):
            raise NotFollowedError("GRAPH is missing")

    def _one_of(self, *words: str) -> str:
        return next((word for word in words if self._word(word)), "")

    def _word(self, word: str) -> bool:
        """Whether it is the next token, which is then taken."""
        found = self._at < len(self._tokens) and self._tokens[self._at].is_word(word)
        self._at += found
        return found

    def takes(self, mark: str) -> bool:
        """The same of a mark."""
        found = self._at < len(self._tokens) and self._tokens[self._at].text == mark
        self._at += found
        return found

    def end(self) -> None:
        """There is nothing more."""
        if self._at < len(self._tokens):
            raise NotFollowedError("an operation has more words than expected")

    def _iri(self) -> str:
        return self._next("iri", "name").text

    def _next(self, *kinds: str) -> Token:
        if self._at >= len(self._tokens) or self._tokens[self._at].kind not in kinds:
            raise NotFollowedError(f"no {kinds[0]}")
        self._at += 1
        return self._tokens[self._at - 1]

    @property
    def _end(self) -> int:
        return self._tokens[self._at - 1].end


def parts(text: str, found: list[Operation], instead: list[str | None]) -> Iterator[str]:
    """The pieces of a text with something else for some of its operations."""
    done = 0
    for operation, other in zip(found, instead, strict=True):
        if other is not None:
            yield text[done : operation.start]
            yield other
            done = operation.end
    yield text[done:]
