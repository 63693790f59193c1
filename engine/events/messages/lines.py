"""Logs of messages in N-Triples and N-Quads → blocks of whole messages."""

from __future__ import annotations

from collections.abc import Iterator
from typing import IO, Final

from oxiseq.engine.events.assembler import Block
from oxiseq.engine.events.messages.columns import DELIMITER
from oxiseq.engine.kernels.memory.scan import PADDING
from oxiseq.grammar.byte_order import MARK

BLOCK_BYTES: Final = 1 << 18


def line_blocks(content: IO[bytes]) -> Iterator[tuple[Block, int]]:
    """Blocks, and the number of the first line of each. One is longer than BLOCK_BYTES only where a message is."""
    rest, line, fresh = b"", 1, True
    while piece := content.read(max(BLOCK_BYTES, len(rest))):
        text = rest + piece
        cut = last_delimiter(text, max(0, len(rest) - len(b"\nMESSAGE")))
        if cut:
            yield _block(text[:cut], fresh), line
            line += text.count(b"\n", 0, cut)
            fresh = False
        rest = text[cut:]
    if rest:
        yield _block(rest if rest.endswith(b"\n") else rest + b"\n", fresh), line


def last_delimiter(text: bytes, begin: int) -> int:
    """Where the line behind the last delimiter of text[begin:] begins; 0: there is none."""
    stop = len(text)
    while (at := text.rfind(b"MESSAGE", begin, stop)) >= 0:
        start = text.rfind(b"\n", 0, at) + 1
        end = text.find(b"\n", at)
        if end >= 0 and DELIMITER.fullmatch(text, start, end):
            return end + 1
        stop = at
    return 0


def _block(text: bytes, fresh: bool) -> Block:
    return Block(text + bytes(PADDING), len(text), len(MARK) if fresh and text.startswith(MARK) else 0)
