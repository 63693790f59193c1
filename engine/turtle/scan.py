"""Where the statements of Turtle and TriG text begin and end.

Of valid text the units are exact: a "." ends a statement unless it is in a string, an IRI, a comment, a number or a
name. Of other text they are a guess, which `valid.py` corrects: a quote that is not closed ends with its line.
"""

from __future__ import annotations

import re
from enum import Enum
from typing import Final, NamedTuple

LONGEST_TOKEN: Final = 1 << 24
"""Bytes of a string or IRI at most; pyoxigraph takes no longer ones."""
_SPACE: Final = rb"(?:[ \t\r\n]++|\#[^\r\n]*+)"
_LONG: Final = (  # without (?!...), which fails within (...)*+ before Python 3.11.5
    rb'"""(?:[^"\\]++|\\.|"{1,2}+(?:[^"\\]|\\.))*+"""' + rb"|'''(?:[^'\\]++|\\.|'{1,2}+(?:[^'\\]|\\.))*+'''"
)
_BLANKS: Final = re.compile(_SPACE + rb"*+")
_UNIT: Final = re.compile(
    rb"""(?:
   [ \t\r\n;,]++ | \#[^\r\n]*+
 | <<\(?+ | <[^<>"\r\n]*+>
 | """
    + _LONG
    + rb"""
 | "(?!"")(?:[^"\\\r\n]++|\\[^\r\n])*+" | '(?!'')(?:[^'\\\r\n]++|\\[^\r\n])*+'
 | [+-]?(?:[0-9]++\.?+[0-9]*+[eE][+-]?[0-9]++|[0-9]*+\.[0-9]++|[0-9]++)
 | (?:[\w:%\-\x80-\xff]|\\.)(?:[\w:%\-\x80-\xff]++|\\.|\.++(?=[\w:%\-\x80-\xff\\]))*+
 | @[A-Za-z0-9-]*+ | \{\| | \|\} | [^.{}<"']
)*+([.{}<"']|\Z)""",
    re.VERBOSE | re.DOTALL,
)
"""Tokens up to what may end a unit: a dot or brace that is none of theirs, or a quote or "<" that nothing closes."""
_DIRECTIVE: Final = re.compile(
    rb"(?:PREFIX" + _SPACE + rb"++[^\s:<>\"']*+:" + _SPACE + rb"*+<[^<>\"\s]*+>"
    rb"|BASE" + _SPACE + rb"*+<[^<>\"\s]*+>"
    rb"|VERSION" + _SPACE + rb"*+(?:\"[^\"\r\n]*+\"|'[^'\r\n]*+'))",
    re.IGNORECASE,
)
"""SPARQL's directives, which have no dot at their end."""
_OPENING: Final = re.compile(
    rb"(?:GRAPH"
    + _SPACE
    + rb"*+)?+(<[^<>\"\s]*+>|\["
    + _SPACE
    + rb"*+\]|[^\s<>\"'{}\[\]();,#@]++)?+"
    + _SPACE
    + rb"*+\{\Z",
    re.IGNORECASE,
)
_BREAK: Final = re.compile(rb"[^\w.+:%\\\-\x80-\xff]")
_STRING: Final = re.compile(_LONG, re.DOTALL)
_START: Final = re.compile(rb"(?:^|\r)([ \t]*+)([^\s#;,.\])|^])", re.MULTILINE)
_PREFIX: Final = re.compile(rb"(?<![\w.\-\x80-\xff])([\w.\-\x80-\xff]*+):")
_LINE_END: Final = re.compile(rb"\r\n|\n|\r")


class Kind(Enum):
    """What a unit is."""

    STATEMENT = "statement"
    OPEN = "a graph's name and {"
    CLOSE = "}"


class Unit(NamedTuple):
    """A unit: the bytes `begin` to `end` of the text."""

    begin: int
    end: int
    kind: Kind


def next_unit(text: bytes, at: int, room: int | None, *, ended: bool, trig: bool) -> Unit | None:
    """The unit that begins at `at` or behind blanks there.

    None if there are only blanks, or if it does not end in the text although more may follow (not `ended`). A unit that
    has more than `room` bytes ends with the line there.
    """
    begin, stop = _end(_BLANKS, text, at, len(text)), len(text)
    if begin == stop:
        return None
    if room is not None and begin + room < stop:
        line_end = _LINE_END.search(text, begin + room)
        if line_end is not None:
            stop, ended = line_end.end(), True
    if directive := _DIRECTIVE.match(text, begin, stop):
        return Unit(begin, directive.end(), Kind.STATEMENT)
    at = begin
    while True:
        found = _UNIT.match(text, at, stop)
        assert found is not None  # it matches nothing, too
        mark, at = found[1], found.end()
        if at == stop and not ended:
            return None
        if not mark:
            return Unit(begin, stop, Kind.STATEMENT)
        if mark == b".":
            if not ended and _BREAK.search(text, at, stop) is None:
                return None  # it may be within a name or a number
            return Unit(begin, at, Kind.STATEMENT)
        if mark in b"{}":
            if trig:
                return _brace(begin, found.start(1), mark)
            continue
        behind = _after_open_quote(text, found.start(1), stop, ended=ended)
        if behind is None:
            return None
        if text[at:behind].rstrip().endswith(b"."):
            return Unit(begin, behind, Kind.STATEMENT)
        at = behind


def _brace(begin: int, at: int, mark: bytes) -> Unit:
    if mark == b"{":
        return Unit(begin, at + 1, Kind.OPEN)
    if at > begin:
        return Unit(begin, at, Kind.STATEMENT)  # a graph's last statement needs no dot
    return Unit(begin, at + 1, Kind.CLOSE)


def _after_open_quote(text: bytes, at: int, stop: int, *, ended: bool) -> int | None:
    """Where the line ends of a quote or "<" that nothing closes; None if more text may close it."""
    ends = _LINE_END.search(text, at, stop)
    if not ended:
        long = text[at : at + 3] in (b'"""', b"'''")
        if (ends is None or long) and stop - at <= LONGEST_TOKEN:
            return None
    return stop if ends is None else ends.start()


def _end(pattern: re.Pattern[bytes], text: bytes, at: int, stop: int) -> int:
    found = pattern.match(text, at, stop)
    assert found is not None  # it matches nothing, too
    return found.end()


def graph_name(opening: bytes) -> bytes | None:
    """The graph's name before an opening brace: b"" for the default graph, None if it is no name."""
    found = _OPENING.match(opening)
    return None if found is None else found[1] or b""


def prefixes_in(text: bytes) -> set[bytes]:
    """All that may be a prefix in it."""
    return set(_PREFIX.findall(text))


def restart(text: bytes, unit: Unit, line: int, *, in_strings: bool) -> int | None:
    """Where another statement seems to begin within a bad unit, not before its line number `line` (from 0), nor in
    its first line: at a line that is not indented more than the unit's first one. None: nowhere.

    `in_strings`: also in strings that go over several lines before `line`.
    """
    at = unit.begin
    for _ in range(max(line, 1)):
        end = _LINE_END.search(text, at, unit.end)
        if end is None:
            return None
        at = end.end()
    first = max(text.rfind(b"\n", 0, unit.begin), text.rfind(b"\r", 0, unit.begin)) + 1
    before = text[first : unit.begin]
    indent = len(before) - len(before.lstrip(b" \t"))
    strings = iter([] if in_strings else [s.span() for s in _STRING.finditer(text, unit.begin, unit.end)])
    low, high = next(strings, (unit.end, unit.end))
    for found in _START.finditer(text, at, unit.end):
        while high <= found.start():
            low, high = next(strings, (unit.end, unit.end + 1))
        if (len(found[1]) <= indent or found[2] in b"{}") and found.start() <= low:
            return found.start(1)
    return None


def long_string_before(text: bytes, unit: Unit, line: int) -> int | None:
    """The line (from 0) behind the beginning of the last string of several lines that begins before the unit's line
    number `line`, if there is one."""
    at, number, behind = unit.begin, 0, None
    for found in _STRING.finditer(text, unit.begin, unit.end):
        number += line_ends(text, at, found.start())
        at = found.start()
        if number >= line:
            break
        if line_ends(text, at, found.end()):
            behind = number + 1
    return behind


def line_ends(text: bytes, begin: int, end: int) -> int:
    """Line ends (LF, CR LF or CR) between two places."""
    returns = text.count(b"\r", begin, end)
    return text.count(b"\n", begin, end) + (returns - text.count(b"\r\n", begin, end) if returns else 0)


def without_comments(text: bytes, begin: int, end: int) -> int:
    """Where text[begin:end] ends without the blanks and lines of comments behind it."""
    end = begin + len(text[begin:end].rstrip())
    while True:
        line = max(text.rfind(b"\n", begin, end), text.rfind(b"\r", begin, end)) + 1
        if line <= begin or not text[line:end].lstrip().startswith(b"#"):
            return end
        end = line
        while text[end - 1] in b" \t\r\n":
            end -= 1
