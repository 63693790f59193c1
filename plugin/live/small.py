"""The usual small body, one event in N-Quads or a graph, straight to its blob.

Reading a file of any size takes tables and a dictionary; to set these up for five quads takes longer than to read
them. So what is plainly one event is packed here, with the same bytes as by the long way (tested); anything else,
every fault included, is left to it.
"""

from __future__ import annotations

import struct
from typing import Final

from pyoxigraph import BlankNode, DefaultGraph, Literal, NamedNode, Quad, RdfFormat, Triple, parse

from oxiseq.engine.errors import EventError
from oxiseq.engine.events.quads import GENERATED_AT
from oxiseq.engine.events.time import to_microseconds
from oxiseq.journal.envelope import Summary, seal_with
from oxiseq.journal.events import KIND

LARGEST: Final = 4096
"""Bytes of a body beyond which the long way is taken."""
_MOST: Final = 40
"""Triples of an event, so that a code takes one byte."""
_DEFAULT: Final = DefaultGraph()
_PLAIN: Final = frozenset(f"http://www.w3.org/2001/XMLSchema#{name}" for name in ("string", "integer"))
"""Datatypes whose texts, when short and plain, go into the dictionary unchanged."""


def read_one(body: bytes) -> tuple[bytes, int] | None:
    """The blob of the one event of a body, and its time (µs); None where that is not plain."""
    try:
        quads = list(parse(body, RdfFormat.N_QUADS))
        dated = [quad for quad in quads if quad.graph_name == _DEFAULT]
        graph = [quad for quad in quads if quad.graph_name != _DEFAULT]
        if len(dated) != 1 or not _is_event(dated[0], graph):
            return None
        time = dated[0].object
        if not isinstance(time, Literal):
            return None
        at = to_microseconds(time)
        blob = pack_one([quad.triple for quad in graph], at)
        return None if blob is None else (blob, at)
    except (SyntaxError, EventError, ValueError):
        return None


def pack_one(graph: list[Triple], time: int) -> bytes | None:
    """The blob of an event of this time (µs); None where it is not small or not plain."""
    plain = (
        0 < len(graph) <= _MOST
        and len(set(graph)) == len(graph)
        and all(isinstance(triple.subject, NamedNode | BlankNode) and _is_plain(triple.object) for triple in graph)
    )
    return _packed(graph, time) if plain else None


def _is_event(dated: Quad, graph: list[Quad]) -> bool:
    """Whether the graph is the one that has the time."""
    name = dated.subject
    if dated.predicate != GENERATED_AT or not isinstance(name, NamedNode):
        return False
    return all(quad.graph_name == name for quad in graph)


def _is_plain(term: object) -> bool:
    if not isinstance(term, Literal):
        return isinstance(term, NamedNode | BlankNode)
    if term.language is not None or term.datatype.value not in _PLAIN:
        return False
    if term.datatype.value.endswith("integer"):
        digits = term.value.removeprefix("-")
        return digits.isascii() and digits.isdecimal() and len(digits) < 16 and (digits[0] != "0" or term.value == "0")
    return term.value.isascii() and term.value.isprintable() and '"' not in term.value and "\\" not in term.value


def _packed(graph: list[Triple], time: int) -> bytes:
    """As in journal/events.py: terms are numbered as they first appear, column by column."""
    numbers: dict[object, int] = {}
    texts: list[bytes] = []
    blanks = 0
    codes = []
    columns = ([t.subject for t in graph], [t.predicate for t in graph], [t.object for t in graph])
    for term in (term for column in columns for term in column):
        code = numbers.get(term)
        if code is None:
            if isinstance(term, BlankNode):
                blanks += 1
                code = -blanks
            else:
                texts.append(str(term).encode())
                code = len(texts)
            numbers[term] = code
        codes.append(code)
    text = b"".join(texts)
    body = b"".join(
        [
            struct.pack("<iiiiBqi", len(graph), len(texts), len(text), blanks, 1, time, len(graph)),
            struct.pack("<i", blanks) if blanks else b"",
            struct.pack(f"<{len(codes)}b", *codes),
            struct.pack(f"<{len(texts)}i", *map(len, texts)),
            text,
        ]
    )
    return seal_with(KIND, Summary(1, time, time), body)
