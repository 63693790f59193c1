"""Text → parse tree, by lark's tables in a loop of our own: lark's makes objects for what no tree keeps, and takes
several times as long.

In the flow: lark's parser (tables.py) → **`TreeParser`** → `Tree` → builders. lark itself reads only what is not of the
language, from its beginning: its exceptions know what could have been there.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Any, Final, TypeAlias

from lark import Lark, Token
from lark.exceptions import UnexpectedInput
from lark.parsers.lalr_analysis import Shift

from oxiseq.grammar.algebra import NOWHERE, Span
from oxiseq.grammar.name_chars import name_in
from oxiseq.grammar.records import dataclass
from oxiseq.grammar.sizes import SizeError, Sizes
from oxiseq.grammar.slips.slip import Rule
from oxiseq.grammar.slips.syntax_errors import explain
from oxiseq.grammar.tables import lalr

Start: TypeAlias = tuple[int, int, int] | None
"""Offset, line and column; None of what has no text."""
_END: Final = "$END"
_NOTHING: Final = "\0"
"""A character that no terminal begins with."""


@dataclass(slots=True)
class Tree:
    """What a rule has read: the rule's name, what it keeps of its parts, and where it starts and ends."""

    data: str
    children: list[Tree | Token]
    start: Start = None
    end: int = 0

    @property
    def span(self) -> Span:
        """Its place in the text."""
        return NOWHERE if self.start is None else Span(self.start[0], self.end, *self.start[1:])


@dataclass(slots=True)
class Reduction:
    """What the end of a rule does: `size` values become one.

    `kept`: which of them, and whether the children of one stand for it; None for all as they are. `name`: of the tree,
    empty where its children will stand for it. `alone`: a single child takes the tree's place. `passes`: the one value
    stays as it is.
    """

    size: int
    kept: tuple[tuple[int, bool], ...] | None
    name: str
    alone: bool
    passes: bool
    origin: str


@dataclass(slots=True)
class ParserState:
    """What can follow: the pattern of the terminals, and for one of them what tells of a word that it is another's; for
    a terminal the next state or what ends before it, for a rule the state behind it."""

    terminals: re.Pattern[str]
    unless: dict[str, Callable[[str], str | None]]
    actions: dict[str, Any]


class TreeParser:
    """Reads texts of one grammar; its states are made when a text first comes there."""

    def __init__(self, lark: Lark) -> None:
        self._lark = lark
        self._states: dict[int, ParserState] = {}
        self._reductions: dict[int, Reduction] = {}
        parts: Iterator[Any] = (part for rule in lark.rules for part in rule.expansion)
        self._kept = {
            str(part.name): _without_namespace(part.name) for part in parts if part.is_term and not part.filter_out
        }
        """Of terminals that a tree can keep: what its tokens are called."""
        ignored = [each.pattern.to_regexp() for each in lark.terminals if each.name in lark.lexer_conf.ignore]
        self._ignored = re.compile(f"(?:{'|'.join(ignored)})*")

    def read(self, text: str, start: str = "start") -> Tree:
        """The tree of a text. Raises SizeError, and lark's UnexpectedInput."""
        cuts: list[int] = []
        found = self._read(text, start, cuts)
        if found is None:
            for end in cuts:
                between = self._ignored.match(text, end).end() > end  # type: ignore[union-attr]  # it takes no text, too
                text = f"{text[:end]}{' ' if between else _NOTHING}{text[end + 1 :]}"
            self._lark.parse(text, start=start)
            raise AssertionError("lark takes a text that its tables do not")
        return found

    def _read(self, text: str, start: str, cuts: list[int]) -> Tree | None:
        """None for a text that is not of the language. `cuts`: gets where names end that would go on if they held any
        character that is not of ASCII.

        A value's start and end are beside it on the stacks. They are those of all that the rule has read, brackets that
        it does not keep included; of a token that takes a tree's place its own.
        """
        table = self._table
        at, last = table.start_states[start], table.end_states[start]
        known, kept, skip, sizes = self._states, self._kept, self._ignored.match, Sizes()
        state = known.get(at) or self._state(at)
        states, values, starts, ends = [state], list[Any](), list[Start](), list[int]()
        place, line, line_start, newline = 0, 1, 0, text.find("\n")
        while True:
            place = skip(text, place).end()  # type: ignore[union-attr]  # it takes no text, too
            while 0 <= newline < place:
                line, line_start = line + 1, newline + 1
                newline = text.find("\n", line_start)
            match = state.terminals.match(text, place)
            if match is not None:
                word, kind = match[0], match.lastgroup or ""
                if not word.isascii():
                    name = name_in(_without_namespace(kind), word)
                    if name != word:
                        word = name
                        cuts.append(place + len(word))
                        if not word:
                            return None
                if kind in state.unless:
                    kind = state.unless[kind](word) or kind
                sizes.add(word, kind, place)
            elif place == len(text):
                word, kind = "", _END
            else:
                return None
            action = state.actions.get(kind)
            while isinstance(action, Reduction):
                if action.passes:
                    states.pop()
                else:
                    size = action.size
                    parts = values[len(values) - size :]
                    begin, end = (starts[-size], ends[-1]) if size else (None, 0)
                    if size > 1 and (begin is None or not end):
                        begin, end = next(filter(None, starts[-size:]), None), max(ends[-size:])
                    if size:
                        del states[-size:], values[-size:], starts[-size:], ends[-size:]
                    value, begin, end = _reduced(action, parts, begin, end)
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
            begin = place, line, place - line_start + 1
            place += len(word)
            values.append(_token(kept[kind], word, begin, place) if kind in kept else None)
            starts.append(begin)
            ends.append(place)
            state = known.get(action) or self._state(action)
            states.append(state)

    @property
    def _table(self) -> Any:
        return self._lark.parser.parser._parse_table

    def _state(self, at: int) -> ParserState:
        lexer = self._lark.parser.lexer.lexers[at]
        (pattern,) = lexer.scanner._mres
        unless = {kind: each.scanner.fullmatch for kind, each in lexer.callback.items()}
        found = self._table.states[at].items()
        actions = {str(name): to if action is Shift else self._reduction(to) for name, (action, to) in found}
        made = self._states[at] = ParserState(pattern, unless, actions)
        return made

    def _reduction(self, rule: Any) -> Reduction:
        if id(rule) not in self._reductions:
            origin, parts = str(rule.origin.name), rule.expansion
            kept = tuple(
                (index, not part.is_term and part.name.startswith("_"))
                for index, part in enumerate(parts)
                if not (part.is_term and part.filter_out)
            )
            whole = len(kept) == len(parts) and not any(inlined for _, inlined in kept)
            name = "" if origin.startswith("_") else _without_namespace(rule.alias or origin)
            alone = bool(rule.options.expand1 and not rule.alias)
            passes = len(parts) == 1 and (alone if whole else not name and kept == ((0, True),))
            made = Reduction(len(parts), None if whole else kept, name, alone, passes, origin)
            self._reductions[id(rule)] = made
        return self._reductions[id(rule)]


def _without_namespace(name: str) -> str:
    """A rule's or a terminal's name without what lark's import puts before it."""
    return str(name).replace("sparql__", "")


def _reduced(by: Reduction, parts: list[Any], start: Start, end: int) -> tuple[Any, Start, int]:
    """What parts between these places become: a tree, the one that takes its place, or children for another tree."""
    children = parts if by.kept is None else _children(parts, by.kept)
    if by.alone and len(children) == 1:
        value: Tree | Token = children[0]
        if isinstance(value, Token):
            return value, *_place_of(value)
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


def _place_of(token: Token) -> tuple[Start, int]:
    assert token.start_pos is not None and token.line is not None and token.column is not None
    return (token.start_pos, token.line, token.column), token.end_pos or 0


def _token(kind: str, word: str, start: tuple[int, int, int], end: int) -> Token:
    """A token, without what lark does to take its arguments in three ways."""
    token: Token = str.__new__(Token, word)
    token.type, token.end_pos = kind, end
    token.start_pos, token.line, token.column = start
    return token


@cache
def tree_parser(grammar: str) -> TreeParser:
    """The parser of a grammar of ours, made once per process."""
    return TreeParser(lalr(grammar))


def tree(text: str, grammar: str, rules: Sequence[Rule], comment: re.Pattern[str]) -> Tree:
    """The parse tree of a text by `parsing/{grammar}.lark`; `rules`: what is known of slips in it, `comment`: what one
    is. Raises QueryError."""
    try:
        return tree_parser(grammar).read(text)
    except SizeError as error:
        raise error.of(text) from None
    except UnexpectedInput as unexpected:
        raise explain(unexpected, text, rules, comment) from None
