"""Text → parse tree, by lark's tables in a loop of our own: lark's makes objects for what no tree keeps, and takes
several times as long.

In the flow: tables (tables.py) → **`TreeParser`** → `Tree` → builders. lark itself reads only what is not of the
language, from its beginning: its exceptions know what could have been there. How large a text may be is counted while
it is read: what comes behind costs nothing then.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from oxiseq.grammar.algebra import NOWHERE, Span
from oxiseq.grammar.errors import QueryError, span_at
from oxiseq.grammar.name_chars import name_in
from oxiseq.grammar.records import dataclass
from oxiseq.grammar.slips.slip import Rule
from oxiseq.grammar.slips.syntax_errors import explain
from oxiseq.grammar.tables import ParseTables, Reduction, kept, without_namespace

if TYPE_CHECKING:
    from lark.exceptions import UnexpectedInput


# --- sizes -------------------------------------------------------------------------------------------


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


# --- trees -------------------------------------------------------------------------------------------


Start: TypeAlias = tuple[int, int, int] | None
"""Offset, line and column; None of what has no text."""
_END: Final = "$END"
_NOTHING: Final = "\0"
"""A character that no terminal begins with."""


class UnreadableError(Exception):
    """A text is not of the language; `unexpected` is what lark says of it."""

    def __init__(self, unexpected: UnexpectedInput) -> None:
        super().__init__(str(unexpected))
        self.unexpected = unexpected


class Lexeme(str):
    """What a terminal has read: the text, the terminal's name, and the place; 0 where it is of no text."""

    __slots__ = ("column", "end_pos", "kind", "line", "start_pos")
    kind: str
    start_pos: int
    line: int
    column: int
    end_pos: int

    def __new__(cls, kind: str, text: str, start: tuple[int, int, int] = (0, 0, 0), end: int = 0) -> Lexeme:
        """A lexeme of a terminal."""
        made = str.__new__(cls, text)
        made.kind, made.end_pos = kind, end
        made.start_pos, made.line, made.column = start
        return made


@dataclass(slots=True)
class Tree:
    """What a rule has read: the rule's name, what it keeps of its parts, and where it starts and ends."""

    kind: str
    children: list[Tree | Lexeme]
    start: Start = None
    end: int = 0

    @property
    def span(self) -> Span:
        """Its place in the text."""
        return NOWHERE if self.start is None else Span(self.start[0], self.end, *self.start[1:])


@dataclass(slots=True)
class ParserState:
    """What can follow: the pattern of the terminals, and for one of them what tells of a word that it is another's; for
    a terminal the next state or what ends before it, for a rule the state behind it."""

    terminals: re.Pattern[str]
    unless: dict[str, Callable[[str], re.Match[str] | None]]
    actions: dict[str, Any]


class TreeParser:
    """Reads texts of one grammar; its states are made when a text first comes there. `unexpected`: what lark says of a
    text, and of where it starts, that is not of the language."""

    def __init__(self, tables: ParseTables, unexpected: Callable[[str, str], UnexpectedInput]) -> None:
        self._tables, self._unexpected = tables, unexpected
        self._states: dict[int, ParserState] = {}
        self._reductions: dict[int, Reduction] = {}
        self._patterns: dict[int, tuple[re.Pattern[str], dict[str, Callable[[str], re.Match[str] | None]]]] = {}
        self._ignored = re.compile(tables.ignored)

    def read(self, text: str, start: str = "start") -> Tree:
        """The tree of a text. Raises SizeError, UnreadableError."""
        cuts: list[int] = []
        found = self._read(text, start, cuts)
        if found is None:
            for end in cuts:
                between = self._ignored.match(text, end).end() > end  # type: ignore[union-attr]  # it takes no text, too
                text = f"{text[:end]}{' ' if between else _NOTHING}{text[end + 1 :]}"
            raise UnreadableError(self._unexpected(text, start))
        return found

    def _read(self, text: str, start: str, cuts: list[int]) -> Tree | None:
        """None for a text that is not of the language. `cuts`: gets where names end that would go on if they held any
        character that is not of ASCII.

        A value's start and end are beside it on the stacks. They are those of all that the rule has read, brackets that
        it does not keep included; of a token that takes a tree's place its own.
        """
        at, last = self._tables.starts[start], self._tables.ends[start]
        known, kept, ascii = self._states, self._tables.kept, text.isascii()
        sizes = Sizes() if may_be_large(text) else None
        state = known.get(at) or self._state(at)
        states, values, starts, ends = [state], list[Any](), list[Start](), list[int]()
        place, line, line_start, newline = 0, 1, 0, text.find("\n")
        while True:
            match = state.terminals.match(text, place)
            if match is not None:
                kind: str = match.lastgroup  # type: ignore[assignment]  # each terminal is a group
                word: str = match[kind]
                place = match.end() - len(word)
                if not ascii and not word.isascii():
                    name = name_in(without_namespace(kind), word)
                    if name != word:
                        word = name
                        cuts.append(place + len(word))
                        if not word:
                            return None
                if kind in state.unless:
                    other = state.unless[kind](word)
                    kind = kind if other is None else other.lastgroup or kind
                if sizes is not None:
                    sizes.add(word, kind, place)
            elif self._ignored.fullmatch(text, place):
                word, kind, place = "", _END, len(text)
            else:
                return None
            action = state.actions.get(kind)
            while type(action) is Reduction:
                size = action.size
                if action.passes:
                    states.pop()
                elif size == 1:
                    states.pop()
                    values[-1], starts[-1], ends[-1] = _reduced(action, values[-1:], starts[-1], ends[-1])
                elif size:
                    begin, end = starts[-size], ends[-1]
                    if begin is None or not end:
                        begin, end = next(filter(None, starts[-size:]), None), max(ends[-size:])
                    value, begin, end = _reduced(action, values[-size:], begin, end)
                    del states[-size:]
                    values[-size:], starts[-size:], ends[-size:] = (value,), (begin,), (end,)
                else:
                    value, begin, end = _reduced(action, [], None, 0)
                    values.append(value)
                    starts.append(begin)
                    ends.append(end)
                at = states[-1].actions[action.origin]
                state = known.get(at) or self._state(at)
                states.append(state)
                if at == last and kind is _END:
                    return values[-1]  # type: ignore[no-any-return]
                action = state.actions.get(kind)
            if action is None:
                return None
            while 0 <= newline < place:
                line, line_start = line + 1, newline + 1
                newline = text.find("\n", line_start)
            begin = place, line, place - line_start + 1
            place += len(word)
            values.append(Lexeme(kept[kind], word, begin, place) if kind in kept else None)
            starts.append(begin)
            ends.append(place)
            state = known.get(action) or self._state(action)
            states.append(state)

    def _state(self, at: int) -> ParserState:
        actions: dict[str, Any] = self._tables.actions(at)
        for symbol, to in actions.items():
            if to < 0:
                actions[symbol] = self._reduction(-1 - to)
        made = self._states[at] = ParserState(*self._lexer(at), actions)
        return made

    def _lexer(self, at: int) -> tuple[re.Pattern[str], dict[str, Callable[[str], re.Match[str] | None]]]:
        number, pattern, unless = self._tables.lexer(at)
        if number not in self._patterns:
            others: dict[str, Callable[[str], re.Match[str] | None]] = {
                kind: re.compile(words).fullmatch for kind, words in unless.items()
            }
            self._patterns[number] = re.compile(f"(?>{self._tables.ignored})(?:{pattern})"), others
        return self._patterns[number]

    def _reduction(self, rule: int) -> Reduction:
        if rule not in self._reductions:
            self._reductions[rule] = self._tables.reduction(rule)
        return self._reductions[rule]


def _reduced(by: Reduction, parts: list[Any], start: Start, end: int) -> tuple[Any, Start, int]:
    """What parts between these places become: a tree, the one that takes its place, or children for another tree."""
    children = parts if by.kept is None else _children(parts, by.kept)
    if by.alone and len(children) == 1:
        value: Tree | Lexeme = children[0]
        if isinstance(value, Lexeme):
            return value, (value.start_pos, value.line, value.column), value.end_pos
        if value.start is None:
            value.start, value.end = start, end
        return value, start, end
    return Tree(by.name, children, start, end) if by.name else children, start, end


def _children(parts: list[Any], kept: tuple[tuple[int, bool], ...]) -> list[Any]:
    children: list[Any] | None = None
    for index, inlined in kept:
        part: Any = parts[index] if inlined else (parts[index],)
        if children is not None:
            children += part
        else:
            children = part if inlined else [*part]  # what grows to its right is not copied: no other rule has it
    return [] if children is None else children


@cache
def tree_parser(grammar: str) -> TreeParser:
    """The parser of a grammar of ours, made once per process."""
    return TreeParser(kept(grammar), partial(_unexpected, grammar))


def _unexpected(grammar: str, text: str, start: str) -> UnexpectedInput:
    from oxiseq.grammar.lalr import parser_of, unexpected  # noqa: PLC0415  a new process need not load lark

    return unexpected(parser_of(grammar), text, start)


def tree(text: str, grammar: str, rules: Sequence[Rule], comment: re.Pattern[str]) -> Tree:
    """The parse tree of a text by `parsing/{grammar}.lark`; `rules`: what is known of slips in it, `comment`: what one
    is. Raises QueryError."""
    try:
        return tree_parser(grammar).read(text)
    except SizeError as error:
        raise error.of(text) from None
    except UnreadableError as error:
        raise explain(error.unexpected, text, rules, comment) from None
