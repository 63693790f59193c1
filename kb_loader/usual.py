"""A block of lines in two: those that are statements of the usual form, and the others, each with its number.

In the flow: a block that Oxigraph did not take as a whole → **usual lines**, for its bulk load, and other lines, to
be read one by one. Of a thousand lines with one fault 999 need no Python object.

The usual form is narrower than N-Quads: a space between terms, IRIs of plain ASCII, strings without escapes, no blank
nodes, no comments. Who takes a line for usual promises little: Oxigraph reads it, and may still refuse it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache
from string import ascii_letters, digits, hexdigits
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from oxiseq.grammar.records import dataclass

SHARE: Final = 16
"""One line in so many may be unusual."""
_Way: TypeAlias = Callable[[str, str | Iterable[int], str], None]
"""A state, bytes, and the state that they lead to."""
_TERMS: Final = ("subject", "predicate", "object", "graph")
_PATH: Final = ascii_letters + digits + "._~!$&'()*+,;=:@/-"
_HOST: Final = ascii_letters + digits + ".-_~"


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
    from oxiseq.engine.kernels.events.lines import other_lines  # noqa: PLC0415  Numba is slow to import, and seldom needed

    if block.count(b"\r") != block.count(b"\r\n"):
        return None
    text = block if block.endswith(b"\n") else block + b"\n"
    total = text.count(b"\n")
    found = np.empty((total // SHARE + 1, 3), np.int64)
    count = int(other_lines(np.frombuffer(text, np.uint8), _table(graphs), found))
    if count < 0:
        return None
    places = found[:count].tolist()
    usual, behind = [], 0
    for _, first, last in places:
        usual.append(text[behind:first])
        behind = last
    usual.append(text[behind:])
    others = b"".join(text[first:last] for _, first, last in places)
    return Parted(b"".join(usual), total - count, others, [number for number, _, _ in places])


class _States:
    """States by name, made as they are named; 0 is a line's beginning, and where its end leads; 1 has no way out."""

    def __init__(self) -> None:
        self._numbers = {"line": 0, "unusual": 1}
        self._ways: list[tuple[int, int, int]] = []

    def way(self, state: str, bytes_: str | Iterable[int], to: str) -> None:
        for byte in bytes_.encode() if isinstance(bytes_, str) else bytes_:
            self._ways.append((self._number(state), byte, self._number(to)))

    def _number(self, name: str) -> int:
        return self._numbers.setdefault(name, len(self._numbers))

    def table(self) -> NDArray[np.uint8]:
        found = np.ones((len(self._numbers), 256), np.uint8)
        for state, byte, to in self._ways:
            found[state, byte] = to
        return found


@cache
def _table(graphs: bool) -> NDArray[np.uint8]:
    """(state, byte) → state."""
    states = _States()
    way = states.way
    way("line", "<", "subject scheme")
    for term, after in zip(_TERMS, ("predicate", "object", "object done", "stop"), strict=True):
        _iri(way, term)
        way(f"{term} end", " ", after)
    _iri(way, "datatype")
    way("datatype end", " ", "object done")
    way("predicate", "<", "predicate scheme")
    way("object", "<", "object scheme")
    way("object", '"', "string")
    _string(way)
    way("string end", " ", "object done")
    way("string end", "^", "caret")
    way("caret", "^", "datatype")
    way("datatype", "<", "datatype scheme")
    _language(way)
    way("object done", ".", "stop done")
    if graphs:
        way("object done", "<", "graph scheme")
    way("stop", ".", "stop done")
    way("stop done", "\n", "line")
    way("stop done", "\r", "return")
    way("return", "\n", "line")
    return states.table()


def _string(way: _Way) -> None:
    """Well-formed UTF-8 (table 3-7 of the Unicode standard) without escapes and control characters, up to a quote."""
    way("string", {*range(0x20, 0x7F), ord("\t")} - {*b'"\\'}, "string")
    way("string", '"', "string end")
    for first, last, to in (
        (0xC2, 0xDF, "1 more"),
        (0xE0, 0xE0, "E0"),
        (0xE1, 0xEC, "2 more"),
        (0xED, 0xED, "ED"),
        (0xEE, 0xEF, "2 more"),
        (0xF0, 0xF0, "F0"),
        (0xF1, 0xF3, "3 more"),
        (0xF4, 0xF4, "F4"),
    ):
        way("string", range(first, last + 1), to)
    for state, first, last, to in (
        ("E0", 0xA0, 0xBF, "1 more"),
        ("ED", 0x80, 0x9F, "1 more"),
        ("F0", 0x90, 0xBF, "2 more"),
        ("F4", 0x80, 0x8F, "2 more"),
        ("3 more", 0x80, 0xBF, "2 more"),
        ("2 more", 0x80, 0xBF, "1 more"),
        ("1 more", 0x80, 0xBF, "string"),
    ):
        way(state, range(first, last + 1), to)


def _language(way: _Way) -> None:
    """Tags of two or three letters, and a region of two."""
    way("string end", "@", "tag")
    for before, after in (
        ("tag", "tag 1"),
        ("tag 1", "tag 2"),
        ("tag 2", "tag 3"),
        ("region", "region 1"),
        ("region 1", "region 2"),
    ):
        way(before, ascii_letters, after)
    for tag in ("tag 2", "tag 3"):
        way(tag, "-", "region")
    for tag in ("tag 2", "tag 3", "region 2"):
        way(tag, " ", "object done")


def _iri(way: _Way, term: str) -> None:
    """An absolute IRI behind its "<", to the state `{term} end` behind its ">"."""

    def step(state: str, bytes_: str, to: str) -> None:
        way(f"{term} {state}", bytes_, f"{term} {to}")

    step("scheme", ascii_letters, "scheme on")
    step("scheme on", ascii_letters + digits + "+.-", "scheme on")
    step("scheme on", ":", "colon")
    step("colon", _PATH.replace("/", ""), "path")
    step("colon", "/", "slash")
    step("slash", _PATH.replace("/", ""), "path")
    step("slash", "/", "host")
    step("host", _HOST, "host")
    step("host", ":", "port")
    step("port", digits, "port")
    for state in ("host", "port"):
        step(state, "/", "path")
    step("path", _PATH, "path")
    step("query", _PATH + "?", "query")
    step("fragment", _PATH + "?", "fragment")
    for state in ("path", "query", "fragment"):
        step(state, "%", f"{state} hex")
        step(f"{state} hex", hexdigits, f"{state} hex on")
        step(f"{state} hex on", hexdigits, state)
    for state in ("colon", "slash", "host", "port", "path"):
        step(state, "?", "query")
        step(state, "#", "fragment")
    step("query", "#", "fragment")
    for state in ("colon", "slash", "host", "port", "path", "query", "fragment"):
        step(state, ">", "end")
