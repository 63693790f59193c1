"""Logs of messages in Turtle and TriG → the quads of each message.

In the flow: bytes → **messages** → N-Quads for columns.py. Messages whose delimiters have lines of their own, as they
usually have, are parsed many at a time, each delimiter as a statement that no text has. Where that is a syntax error,
or the parser does not give back as many of these statements (a delimiter was in a string, or in the braces of a graph),
they are read one by one: engine/turtle finds where a statement ends; pyoxigraph parses each message by itself, with the
prefixes and the base that hold there.

In a message that cannot be parsed a delimiter in a line of its own behind the error ends it, whatever bracket or quote
may be open. Text read too far is read again, which uses up a budget that read text fills; without it
each such line ends a message. This bounds the time for text that is all faults.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from secrets import token_hex
from typing import IO, Final, NamedTuple

from pyoxigraph import RdfFormat, parse, serialize

from oxiseq.engine.errors import syntax_reason
from oxiseq.engine.rdf import as_syntax_error, guarded
from oxiseq.engine.turtle.scan import Kind, line_ends, next_unit, prefixes_in
from oxiseq.grammar.byte_order import MARK

_BLOCK: Final = 1 << 18
_SPACE: Final = re.compile(rb"(?:[ \t\r\n]++|#[^\r\n]*+)*+")
_DELIMITER: Final = re.compile(
    rb"MESSAGE(?![\w:.%\-\x80-\xff])|@message(?![\w-])(?:[ \t\r\n]++|#[^\r\n]*+)*+(\.)?", re.IGNORECASE
)
_PATIENCE: Final = 1 << 24
"""Bytes of bad messages that may be read again, at most in stock."""
_FILL: Final = 16
"""Bytes of patience for each byte that has been dealt with."""
_LONGEST_WORD: Final = 1 << 10
"""Bytes within which `@message` has its dot."""
_OWN_LINE: Final = re.compile(
    rb"^[ \t]*(?:MESSAGE|@message[ \t]*\.)[ \t]*(?:#[^\r\n]*)?\r?$", re.IGNORECASE | re.MULTILINE
)
_ENDS: Final = re.compile(rb"\n[ \t]*+(MESSAGE|@message[ \t]*+\.)[ \t]*+(?:#[^\r\n]*+)?\r?(?=\n|\Z)", re.IGNORECASE)
"""The same, but for the first line of a text: it is searched for four times as fast."""
_IN_BRACES: Final = 'a message ends within the braces of a graph: "}" expected before it'
_NAME: Final = b"<urn:oxiseq:message:%b>" % token_hex(16).encode()
"""Whoever writes a text cannot know it."""
_TRIPLE: Final = b"%b %b %b .\n" % (_NAME, _NAME, _NAME)
_QUAD: Final = b"%b %b %b %b .\n" % (_NAME, _NAME, _NAME, _NAME)
_GRAPH: Final = b"GRAPH %b { %b %b %b }\n" % (_NAME, _NAME, _NAME, _NAME)
"""A triple stands for a delimiter in Turtle, in TriG a graph: it cannot be within the braces of one."""
_END: Final = b"MESSAGE\n"
_LONGEST_PAUSE: Final = 1 << 10
"""Messages after which delimiters in lines of their own are searched for again; each search reads a block."""
_SHARE: Final = 64
"""Bytes of text for each prefix from which on all are declared, whether or not the text uses them."""
_NO_DOT: Final = '@message needs a "." behind it: @message . or MESSAGE'


class Messages(NamedTuple):
    """Messages in their order: N-Quads, with MESSAGE behind each, and the lines where they begin. Or one that is left
    out: no quads, the line of the fault and the reason."""

    text: bytes
    lines: Sequence[int]
    fault: str | None = None

    @classmethod
    def one(cls, quads: bytes, line: int) -> Messages:
        """A message of these quads, as N-Quads."""
        return cls(quads + _END, (line,))

    @classmethod
    def none(cls, line: int, fault: str) -> Messages:
        """A message that is left out."""
        return cls(_END, (line,), fault)


def turtle_messages(content: IO[bytes], format: RdfFormat) -> Iterator[Messages]:
    """The messages. Raises what reading `content` raises."""
    return _Log(content, trig=format == RdfFormat.TRIG).messages()


class _Log:
    """The text not read yet, and the prefixes declared before it."""

    def __init__(self, content: IO[bytes], *, trig: bool) -> None:
        self._content, self._trig = content, trig
        self._format = RdfFormat.TRIG if trig else RdfFormat.TURTLE
        self._text, self._begin, self._line = content.read(_BLOCK).removeprefix(MARK), 0, 1
        self._ended = not self._text
        self._prefixes: dict[str, str] = {}
        self._base: str | None = None
        self._patience = _PATIENCE
        self._alone = 0
        """Messages that are read one by one before many are tried again."""
        self._pause = 1
        """How many these are where there are no delimiters in lines of their own: twice as many each time."""

    def messages(self) -> Iterator[Messages]:
        """All of them."""
        while True:
            if (several := self._several()) is not None:
                yield several
                continue
            if (cut := self._cut()) is None:
                return
            end, behind, fault = cut
            text = self._text[self._begin : end]
            parsed = self._parsed(text)
            if fault is not None:
                parsed = Messages.none(self._line + line_ends(self._text, self._begin, end), fault)
            elif parsed.fault is not None:
                found = _OWN_LINE.search(text, _line_start(text, parsed.lines[0] - self._line))
                if found is not None:  # the fault before it swallowed it
                    self._patience -= end - self._begin
                    end, behind = self._begin + found.start(), self._begin + found.end()
            if behind < 0:  # the text has ended
                if parsed.text != _END or parsed.fault is not None:
                    yield parsed
                return
            yield parsed
            self._line += line_ends(self._text, self._begin, behind)
            self._go_on(behind)

    def _go_on(self, behind: int) -> None:
        self._patience = min(_PATIENCE, self._patience + _FILL * (behind - self._begin))
        self._begin = behind

    def _several(self) -> Messages | None:
        """The messages of a block whose delimiters have lines of their own; None if these are to be read one by one."""
        if self._alone:
            self._alone -= 1
            return None
        if not self._ended and len(self._text) - self._begin < _BLOCK:
            self._more()
        ends = list(_ENDS.finditer(self._text, self._begin))
        if ends and ends[-1].end() == len(self._text) and not self._ended:
            ends.pop()  # the line may go on
        if len(ends) < 2:
            self._alone, self._pause = self._pause, min(2 * self._pause, _LONGEST_PAUSE)
            return None
        self._pause = 1
        written = self._written(ends)
        if written is None:
            self._alone = len(ends)
            return None
        lines, at = [self._line], self._begin
        for found in ends:
            lines.append(lines[-1] + line_ends(self._text, at, found.end(1)))
            at = found.end(1)
        self._line = lines.pop()
        self._go_on(at)
        return Messages(written, lines)

    def _written(self, ends: Sequence[re.Match[bytes]]) -> bytes | None:
        """The messages up to the last one of these delimiters; None if they are no valid text, or a delimiter is in a
        string or a graph."""
        begin, parts = self._begin, [self._head(self._text[self._begin : ends[-1].start() + 1])]
        mark, told = (_GRAPH, _QUAD) if self._trig else (_TRIPLE, _TRIPLE)
        for found in ends:
            parts += [self._text[begin : found.start() + 1], mark]
            begin = found.end()
        text = b"".join(parts)
        parser = parse(text, format=self._format, base_iri=self._base)
        try:
            guarded(text, self._format)
            written = serialize(parser, format=RdfFormat.N_QUADS) or b""
        except (SyntaxError, MemoryError):
            return None
        if written.count(told) != len(ends):
            return None
        self._prefixes.update(parser.prefixes)
        self._base = parser.base_iri
        return written.replace(told, _END)

    def _cut(self) -> tuple[int, int, str | None] | None:
        """Where the message ends and its delimiter does (-1: the text does), and what is wrong with that. None: nothing
        is left."""
        at, depth = self._begin, 0
        while True:
            space = _SPACE.match(self._text, at)
            assert space is not None
            at = space.end()
            if (len(self._text) - at < _LONGEST_WORD and not self._ended) or at == len(self._text):
                if self._ended:
                    return (at, -1, None) if self._text else None
                at -= self._more()
                continue
            if self._patience < 0 and (found := _OWN_LINE.search(self._text, at)) is not None:
                return found.start(), found.end(), None
            if found := _DELIMITER.match(self._text, at):
                dotless = self._text[at : at + 1] == b"@" and not found[1]
                return at, found.end(), _NO_DOT if dotless else _IN_BRACES if depth else None
            unit = next_unit(self._text, at, None, ended=self._ended, trig=self._trig)
            if unit is None:
                at -= self._more()
                continue
            depth += (unit.kind is Kind.OPEN) - (unit.kind is Kind.CLOSE)
            at = unit.end

    def _more(self) -> int:
        """Read on; by how many bytes all places have moved."""
        moved = self._begin
        piece = self._content.read(max(_BLOCK, len(self._text) - moved))
        self._ended = not piece
        self._text, self._begin = self._text[moved:] + piece, 0
        return moved

    def _head(self, text: bytes) -> bytes:
        """The declarations of prefixes that it may use."""
        if _SHARE * len(self._prefixes) <= len(text):
            known = [(prefix.encode(), iri) for prefix, iri in self._prefixes.items()]
        else:
            known = [(p, iri) for p in prefixes_in(text) if (iri := self._prefixes.get(p.decode("utf-8", "replace")))]
        return b"".join(b"@prefix %b: <%b> . " % (prefix, iri.encode()) for prefix, iri in sorted(known))

    def _parsed(self, text: bytes) -> Messages:
        parser = parse(self._head(text) + text, format=self._format, base_iri=self._base)
        try:
            guarded(text, self._format)
            return Messages.one(serialize(parser, format=RdfFormat.N_QUADS) or b"", self._line)
        except (SyntaxError, MemoryError) as error:
            told = as_syntax_error(error) if isinstance(error, MemoryError) else error
            if not isinstance(told, SyntaxError):
                raise
            lines = line_ends(text, 0, len(text))
            line = min((told.lineno or 1) - 1, lines)
            return Messages.none(self._line + line, syntax_reason(told))
        finally:  # declarations in a bad message hold behind it, too
            self._prefixes.update(parser.prefixes)
            self._base = parser.base_iri


def _line_start(text: bytes, line: int) -> int:
    """Where the line number `line` (from 0) of the text begins."""
    at = 0
    for _ in range(line):
        found = text.find(b"\n", at)
        if found < 0:
            break
        at = found + 1
    return at
