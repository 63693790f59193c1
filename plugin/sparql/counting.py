"""Counting rows in SPARQL results while pyoxigraph writes them.

pyoxigraph writes results natively, several times faster than rows could pass through Python; a row limit
therefore counts in what is written. Each counter relies on what its format can hold between rows only.
"""

from __future__ import annotations

import re
from typing import Protocol

from pyoxigraph import QueryResultsFormat


class RowCounter(Protocol):
    """Rows begun (JSON, XML) or ended (CSV, TSV) in all that was given so far."""

    rows: int

    def add(self, chunk: bytes) -> None:
        """The next bytes, cut anywhere."""
        ...


class TsvRows:
    """Line feeds are escaped within TSV terms; the first line is the header."""

    def __init__(self) -> None:
        self.rows = -1

    def add(self, chunk: bytes) -> None:
        """See RowCounter."""
        self.rows += chunk.count(b"\n")


class CsvRows:
    """Line feeds outside quotes; a doubled quote leaves and enters again."""

    def __init__(self) -> None:
        self.rows = -1
        self._quoted = False

    def add(self, chunk: bytes) -> None:
        """See RowCounter."""
        for index, part in enumerate(chunk.split(b'"')):
            if index:
                self._quoted = not self._quoted
            if not self._quoted:
                self.rows += part.count(b"\n")


class XmlRows:
    """`<result>`: within text a `<` is escaped."""

    _MARK = b"<result>"

    def __init__(self) -> None:
        self.rows = 0
        self._rest = b""

    def add(self, chunk: bytes) -> None:
        """See RowCounter."""
        text = self._rest + chunk
        self.rows += text.count(self._MARK)
        self._rest = text[-len(self._MARK) + 1 :]


class JsonRows:
    """Objects in an array: `[{` or `,{` outside strings, which pyoxigraph writes without blanks."""

    _STRING = re.compile(rb'"(?:[^"\\]++|\\.)*+"', re.DOTALL)
    _REST = re.compile(rb"(?:[^\"\\]++|\\.)*+", re.DOTALL)

    def __init__(self) -> None:
        self.rows = 0
        self._before = b""
        self._inside = False
        self._escaped = False

    def add(self, chunk: bytes) -> None:
        """See RowCounter."""
        if self._inside:
            chunk = self._after_string(chunk)
            if self._inside:
                return
        outside = self._STRING.sub(b"", chunk)
        begun = outside.find(b'"')
        if begun >= 0:
            self._inside = True
            tail = outside[begun + 1 :]
            self._escaped = self._REST.match(tail).end() < len(tail)  # type: ignore[union-attr]  # matches always
            outside = outside[:begun]
        text = self._before + outside
        self.rows += text.count(b"[{") + text.count(b",{")
        self._before = text[-1:]

    def _after_string(self, chunk: bytes) -> bytes:
        start = 1 if self._escaped and chunk else 0
        end = self._REST.match(chunk, start).end()  # type: ignore[union-attr]  # matches always
        if end < len(chunk) and chunk[end : end + 1] == b'"':
            self._inside = self._escaped = False
            return chunk[end + 1 :]
        if chunk:
            self._escaped = end < len(chunk)
        return b""


class NoRows:
    """Nothing to count."""

    rows = 0

    def add(self, chunk: bytes) -> None:
        """See RowCounter."""


def counter_of(format_: QueryResultsFormat) -> RowCounter:
    """A fresh counter for a format."""
    kinds: dict[QueryResultsFormat, type[TsvRows | CsvRows | XmlRows | JsonRows]] = {
        QueryResultsFormat.TSV: TsvRows,
        QueryResultsFormat.CSV: CsvRows,
        QueryResultsFormat.XML: XmlRows,
        QueryResultsFormat.JSON: JsonRows,
    }
    return kinds[format_]()
