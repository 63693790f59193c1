"""A block of lines in two: those that are statements of the usual form, and the others, each with its number.

In the flow: a block that Oxigraph did not take as a whole → **usual lines**, for its bulk load, and other lines, to
be read one by one. Of a thousand lines with one fault 999 need no Python object.

The usual form is narrower than N-Quads: a space between terms, IRIs of plain ASCII, strings without escapes, no blank
nodes, no comments. Who takes a line for usual promises little: Oxigraph reads it, and may still refuse it.
"""

from __future__ import annotations

import re
from typing import Final

from oxiseq.grammar.records import dataclass

SHARE: Final = 16
"""One line in so many may be unusual."""
_PATH: Final = rb"(?:[\w.~!$&'()*+,;=:@/-]++|%[0-9A-Fa-f]{2})*+"
_QUERY: Final = rb"(?:[\w.~!$&'()*+,;=:@/?-]++|%[0-9A-Fa-f]{2})*+"
_IRI: Final = (
    rb"<[A-Za-z][A-Za-z0-9+.-]*+:"
    rb"(?://[\w.~-]*+(?::[0-9]*+)?+(?:/" + _PATH + rb")?+|/?+(?:[\w.~!$&'()*+,;=:@-]" + _PATH + rb")?+)"
    rb"(?:\?" + _QUERY + rb")?+(?:#" + _QUERY + rb")?+>"
)
_STRING: Final = (  # well-formed UTF-8 (table 3-7 of the Unicode standard) without escapes and control characters
    rb'"(?:[\t !#-\[\]-~]++|[\xC2-\xDF][\x80-\xBF]|\xE0[\xA0-\xBF][\x80-\xBF]|[\xE1-\xEC\xEE\xEF][\x80-\xBF]{2}'
    rb"|\xED[\x80-\x9F][\x80-\xBF]|\xF0[\x90-\xBF][\x80-\xBF]{2}|[\xF1-\xF3][\x80-\xBF]{3}"
    rb'|\xF4[\x80-\x8F][\x80-\xBF]{2})*+"'
)
_OBJECT: Final = b"(?:" + _IRI + b"|" + _STRING + rb"(?:\^\^" + _IRI + b"|@[A-Za-z]{2,3}(?:-[A-Za-z]{2})?)?)"
_TRIPLE: Final = _IRI + b" " + _IRI + b" " + _OBJECT + b" "
_LINES: Final = {
    graphs: re.compile(b"(?:" + _TRIPLE + (b"(?:" + _IRI + b" )?" if graphs else b"") + rb"\.\r?\n)*+", re.ASCII)
    for graphs in (False, True)
}
"""As many usual lines as follow each other, by whether they may have graphs."""


@dataclass(frozen=True, slots=True)
class Parted:
    """`usual`: the text of `lines` statements. `others`: further lines as a text, `numbers`: theirs in the block, from
    0."""

    usual: bytes
    lines: int
    others: bytes
    numbers: list[int]


def parted(block: bytes, *, graphs: bool) -> Parted | None:
    """A block of whole lines in two; `graphs`: whether statements may have graphs (N-Quads).

    None where many lines are not usual, or some end in CR alone: the block is then to be read line by line.
    """
    if block.count(b"\r") != block.count(b"\r\n"):
        return None
    text = block if block.endswith(b"\n") else block + b"\n"
    total = text.count(b"\n")
    usual, others, numbers, line, at = list[bytes](), list[bytes](), list[int](), 0, 0
    while True:
        found = _LINES[graphs].match(text, at)
        assert found is not None  # it matches nothing at least
        usual.append(found[0])
        if (end := found.end()) == len(text):
            break
        line += text.count(b"\n", at, end)
        at = text.index(b"\n", end) + 1
        others.append(text[end:at])
        numbers.append(line)
        line += 1
        if len(numbers) > total // SHARE + 1:
            return None
    return Parted(b"".join(usual), total - len(numbers), b"".join(others), numbers)
