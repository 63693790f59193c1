"""N-Triples and N-Quads in blocks of whole lines, and a block's valid statements.

A statement never goes over a line's end, so a bad line takes no other with it, and blocks can be read in any order:
in threads, or by Spark.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import IO, cast

from pyoxigraph import Quad, RdfFormat
from pyoxigraph import Store as RdfStore

from oxiseq.engine.errors import syntax_reason
from oxiseq.engine.rdf import load, parse
from oxiseq.kb_loader.quarantine import LONGEST, Fault, cut_off
from oxiseq.kb_loader.sources import BROKEN

BLOCK = 1 << 22
"""Bytes of a block, about."""
BIG_BLOCK = 1 << 25
"""Bytes of a block that Oxigraph loads at once."""
_READ = 1 << 16
_NOT_A_STATEMENT = re.compile(rb"^[ \t\r]*(?:#|$|VERSION)", re.MULTILINE)


def blocks(content: IO[bytes], size: int = BLOCK) -> Iterator[bytes]:
    """The content in blocks of whole lines (the last line's end may be missing).

    An error while reading (one of BROKEN) comes after the block of what was read before it.
    """
    reader = cast("Callable[[int], bytes]", getattr(content, "read1", content.read))
    held: list[bytes] = []
    length, error = 0, None
    while error is None:
        try:
            chunk = reader(_READ)
        except BROKEN as problem:
            chunk, error = b"", problem
        held.append(chunk)
        length += len(chunk)
        if not chunk or (length >= size and b"\n" in chunk):
            text = b"".join(held)
            end = text.rfind(b"\n") + 1 if chunk else len(text)
            if end:
                yield text[:end]
            held, length = [text[end:]], len(text) - end
            if not chunk:
                break
    if error is not None:
        raise error


def until_cut_off(read: Iterator[bytes], tell: Callable[[Fault], None]) -> Iterator[bytes]:
    """The content read, up to one of BROKEN, which goes to `tell`."""
    try:
        yield from read
    except BROKEN as error:
        tell(cut_off(error))


def line_ends(block: bytes) -> int:
    """How many line ends (LF, CR LF or CR) a block has."""
    returns = block.count(b"\r") - block.count(b"\r\n") if b"\r" in block else 0
    return block.count(b"\n") + returns


def valid_lines(block: bytes, line: int, format: RdfFormat, base: str, tell: Callable[[Fault], None]) -> list[Quad]:
    """The valid statements of a block whose first line has the number `line`; a bad line goes to `tell`."""
    try:
        return list(parse(block, format=format, base_iri=base))
    except SyntaxError as error:
        lines = block.splitlines(keepends=True)
        if len(lines) == 1:
            text = block[: 4 * LONGEST].decode("utf-8", "replace").rstrip("\r\n")[:LONGEST]
            tell(Fault(line, line, syntax_reason(error), text))
            return []
    half = len(lines) // 2
    return [
        *valid_lines(b"".join(lines[:half]), line, format, base, tell),
        *valid_lines(b"".join(lines[half:]), line + half, format, base, tell),
    ]


def load_clean(store: RdfStore, block: bytes, format: RdfFormat) -> int | None:
    """Have Oxigraph parse and load a block by itself, which leaves the GIL; returns how many statements it has.

    None, and nothing is loaded, if it has a fault, or blank nodes (Oxigraph would rename them).
    """
    if b"_:" in block or (b"\r" in block and block.count(b"\r") != block.count(b"\r\n")):
        return None
    try:
        load(store.bulk_load, block, format)
    except SyntaxError:
        return None
    lines = block.count(b"\n") + (not block.endswith(b"\n"))
    if block.startswith(b"<") + block.count(b"\n<") == lines:  # as nearly always; the search takes ten times as long
        return lines
    return lines - sum(1 for _ in _NOT_A_STATEMENT.finditer(block.removesuffix(b"\n")))
