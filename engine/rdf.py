"""RDF texts of strangers: every door reads them by this module, never by pyoxigraph's parser itself.

In the flow: bytes or a file → **guarded** → pyoxigraph's parser → quads.

pyoxigraph expands the entities that an RDF/XML document declares, wherever its DOCTYPE is, and has no switch for
that: each may name the one before ten times, so that a kilobyte grows to gigabytes. Such a document is refused before
the parser sees the declaration. The parser takes UTF-8 only and the two words only as they are looked for here, so no
other encoding, comment or order hides them; a document that has them in this order and declares nothing (both within a
comment, say) is refused too. A word, a literal or a line beyond pyoxigraph's buffer is a MemoryError there; it is the
text's fault, so it is a syntax error here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any, Final, TypeAlias

import pyoxigraph
from pyoxigraph import Quad, RdfFormat

Content: TypeAlias = bytes | str | IO[bytes] | None

_DOCTYPE: Final = re.compile(rb"<!doctype", re.IGNORECASE)
_ENTITY: Final = re.compile(rb"<!ENTITY")
_OVERLAP: Final = len(b"<!DOCTYPE") - 1
ENTITIES: Final = (
    "RDF/XML that declares entities (<!ENTITY ...>) is not read, because a few lines of them can grow to gigabytes: "
    "write the values in place of &name;, or save the document as Turtle"
)
HALF: Final = "half a character (a lone surrogate) cannot be written as UTF-8"
TOO_LONG: Final = "a word, a literal or a line is longer than the 16 MiB that can be read: write shorter ones"


class RefusedTextError(SyntaxError):
    """A text that is not read, though it may be well-formed; `lineno` is known of entities."""


def parse(content: Content, format: RdfFormat, **options: Any) -> Iterator[Quad]:
    """As `pyoxigraph.parse`; reading continues after a bad statement, as there. Raises SyntaxError, ValueError,
    OSError."""
    return _Quads(pyoxigraph.parse(guarded(content, format), format, **options))


def rewritten(content: bytes | str, format: RdfFormat, into: RdfFormat) -> bytes:
    """All statements of a text in N-Triples or N-Quads, written while it is parsed, without a step in Python for each.
    Raises SyntaxError, and ValueError for named graphs that `into` cannot have."""
    try:
        text = pyoxigraph.serialize(pyoxigraph.parse(guarded(content, format), format), format=into)
    except MemoryError as error:
        raise as_syntax_error(error) from error
    assert text is not None  # it is only when a file is given
    return text


def load(
    method: Callable[..., None],
    content: Content = None,
    format: RdfFormat | None = None,
    *,
    path: str | Path | None = None,
    **options: Any,
) -> None:
    """Call a store's `load` or `bulk_load`. Raises SyntaxError, ValueError, OSError."""
    try:
        if path is not None and (format or _by_ending(path)) == RdfFormat.RDF_XML:
            with Path(path).open("rb") as file:
                method(GuardedXml(file), RdfFormat.RDF_XML, **options)
        elif path is not None:
            method(content, format, path=path, **options)
        else:
            method(content if format is None else guarded(content, format), format, **options)
    except MemoryError as error:
        raise as_syntax_error(error) from error


def guarded(content: Content, format: RdfFormat) -> Any:
    """The content, if it may be parsed; of a file what refuses to be read on. Raises RefusedTextError."""
    if isinstance(content, str):
        try:
            content = content.encode()
        except UnicodeEncodeError as error:  # pyoxigraph would take it for a file
            raise RefusedTextError(HALF) from error
    if format != RdfFormat.RDF_XML or content is None:
        return content
    if not isinstance(content, bytes):
        return GuardedXml(content)
    GuardedXml.check(content)
    return content


def as_syntax_error(error: MemoryError) -> Exception:
    """What pyoxigraph says of a text that is too long for it; another MemoryError stays one."""
    return RefusedTextError(TOO_LONG) if "buffer maximal size" in str(error) else error


def _by_ending(path: str | Path) -> RdfFormat | None:
    return RdfFormat.from_extension(Path(path).suffix.removeprefix("."))


class _Quads:
    """A parser's quads."""

    def __init__(self, parser: Iterator[Quad]) -> None:
        self._parser = parser

    def __iter__(self) -> Iterator[Quad]:
        return self

    def __next__(self) -> Quad:
        try:
            return next(self._parser)
        except MemoryError as error:
            raise as_syntax_error(error) from error


class GuardedXml:
    """A file of RDF/XML whose `read` raises RefusedTextError instead of handing out a declaration of an entity."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._end = b""
        self._line = 1
        self._doctype = False

    @classmethod
    def check(cls, content: bytes) -> None:
        """Raise RefusedTextError for a document that `read` would not hand out."""
        cls(None)._look(content)  # type: ignore[arg-type]  # nothing is read

    def read(self, size: int = -1) -> bytes:
        """The next bytes."""
        piece = self._file.read(size)
        self._look(piece)
        return piece

    def _look(self, piece: bytes) -> None:
        text, at = self._end + piece, 0
        if not self._doctype and (doctype := _DOCTYPE.search(text)) is not None:
            self._doctype, at = True, doctype.end()
        if self._doctype and (entity := _ENTITY.search(text, at)) is not None:
            line = self._line + text.count(b"\n", 0, entity.start())
            raise RefusedTextError(ENTITIES, (None, line, None, None))
        self._line += text.count(b"\n", 0, max(0, len(text) - _OVERLAP))
        self._end = text[-_OVERLAP:]
