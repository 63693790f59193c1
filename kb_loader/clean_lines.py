"""The fast way for N-Triples and N-Quads without faults and blank nodes: Oxigraph parses and loads by itself.

Oxigraph's bulk load of a file is all or nothing, so a file that turns out to be none of these is read again, slowly.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from typing import IO, cast

from pyoxigraph import Store as RdfStore

from oxiseq.kb_loader.sources import Source

_NOT_A_STATEMENT = re.compile(rb"^[ \t\r]*(?:#|$)", re.MULTILINE)
_BLOCK = 1 << 22
"""Bytes read at a time."""


class _NotClean(Exception):
    """The file may have blank nodes."""


class _Counting(io.RawIOBase):
    """A file that counts the statements that pass. Raises _NotClean where `_:` stands."""

    def __init__(self, content: IO[bytes], watch: Callable[[int], None]) -> None:
        self.statements = 0
        self._content = content
        self._watch = watch
        self._block, self._at = memoryview(b""), 0

    def read(self, size: int = -1) -> bytes:
        """The next bytes, at most `size`."""
        if self._at == len(self._block):
            block = self._content.read(_BLOCK)
            if block:
                block += self._content.readline()  # whole lines
            if b"_:" in block:
                raise _NotClean
            lines = block.count(b"\n") + (not block.endswith(b"\n"))
            if block:
                ended = block.removesuffix(b"\n")
                self.statements += lines - sum(1 for _ in _NOT_A_STATEMENT.finditer(ended))
                self._watch(self.statements)
            self._block, self._at = memoryview(block), 0
        start, self._at = self._at, len(self._block) if size < 0 else min(len(self._block), self._at + size)
        return bytes(self._block[start : self._at])


def load_clean(store: RdfStore, source: Source, content: IO[bytes], watch: Callable[[int], None]) -> int | None:
    """Load the file; returns how many statements it has, or None if nothing is loaded as it is not clean.

    `watch` is called with the statements so far.
    """
    assert source.format is not None
    counting = _Counting(content, watch)
    try:
        store.bulk_load(cast(IO[bytes], counting), format=source.format, base_iri=source.path.resolve().as_uri())
    except (_NotClean, SyntaxError, OSError, EOFError, ValueError):  # told by the slow way, which reads it again
        return None
    return counting.statements
