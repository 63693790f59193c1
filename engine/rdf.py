"""RDF texts of strangers: every door reads them by this module, never by pyoxigraph's parser itself.

In the flow: bytes or a file → **guarded** → pyoxigraph's parser → quads.

What its parser would choke on is refused before it sees it: here the depth of JSON, XML and triple terms, in jsonld.py
what contexts multiply.

pyoxigraph expands the entities that an RDF/XML document declares, wherever its DOCTYPE is, and has no switch for
that: each may name the one before ten times, so that a kilobyte grows to gigabytes. Such a document is refused before
the parser sees the declaration. The parser takes UTF-8 only and the two words only as they are looked for here, so no
other encoding, comment or order hides them; a document that has them in this order and declares nothing (both within a
comment, say) is refused too. A word, a literal or a line beyond pyoxigraph's buffer is a MemoryError there; it is the
text's fault, so it is a syntax error here.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any, Final, TypeAlias, cast

import numpy as np
import pyoxigraph
from pyoxigraph import Quad, RdfFormat

from oxiseq.engine.attended import is_attended, looking
from oxiseq.engine.jsonld import FewContexts, check_contexts
from oxiseq.engine.kernels.memory import nesting
from oxiseq.engine.kernels.memory.nesting import json_depth, xml_depth
from oxiseq.grammar.byte_order import unmarked

Content: TypeAlias = bytes | str | IO[bytes] | None

JSON: Final = (RdfFormat.JSON_LD, RdfFormat.STREAMING_JSON_LD)
MOST_ELEMENTS: Final = 256
"""Depth of RDF/XML: the parser's time for an element grows with it."""
MOST_JSON: Final = 256
"""Depth of JSON-LD."""
MOST_VALUES: Final = 16_000_000
"""Values of JSON-LD within one another, each counted as often as it is within an object: the parser keeps each so
often, in about 100 bytes..."""
DEEP: Final = 2
"""...and for all of a text so many more for each byte: it takes about a microsecond each."""
MOST_TRIPLE_TERMS: Final = 50
"""Depth of triple terms, as in queries."""
LARGEST: Final = 128 << 20
"""Bytes of a document of JSON-LD that has contexts within it: it is read as a whole to count them."""
_LEAST: Final = 512
"""Bytes within which nothing is deep."""
_LONG: Final = 1 << 16
"""Bytes that are parsed without looking for the client."""
_FEW: Final = 1 << 8
"""Quads that are."""
_LONGEST_LINK: Final = 1 << 20
_SPACE: Final = rb"(?:[ \t\r\n]|#[^\r\n]*+)*+"
_TERM: Final = rb"(?:<[^>]*+>|\[[ \t\r\n]*+\]|(?:[^\s<>\"'()\[\]{}#\\]|\\.)++)"
_WITHIN: Final = re.compile(rb"<<\(" + _SPACE + _TERM + _SPACE + _TERM + _SPACE + rb"(?=<<\()|\)>>")
"""The beginning of a triple term whose object is one, and the end of one."""
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
    return _quads(pyoxigraph.parse(guarded(content, format), format, **options))


def rewritten(content: bytes | str, format: RdfFormat, into: RdfFormat) -> bytes:
    """All statements of a text in N-Triples or N-Quads, written while it is parsed, without a step in Python for each.
    Raises SyntaxError, and ValueError for named graphs that `into` cannot have."""
    try:
        quads = pyoxigraph.parse(guarded(content, format), format)
        text = pyoxigraph.serialize(_quads(quads) if is_attended() else quads, format=into)
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
        if path is not None and (known := format or _by_ending(path)) is not None:
            with Path(path).open("rb") as file:
                method(guarded(file, known), known, **options)
        elif path is not None:
            method(content, format, path=path, **options)
        else:
            content = content if format is None else guarded(content, format)
            method(waited_for(content, format), format, **options)
    except MemoryError as error:
        raise as_syntax_error(error) from error


def waited_for(content: Content, format: RdfFormat | None) -> Any:
    """A document that has been guarded, to be read piece by piece if that shows whether its client is there yet: one
    whose words are short, for of a long one the parser begins again with each piece."""
    if not (isinstance(content, bytes) and len(content) > _LONG and is_attended()):
        return content
    at, end = 0, b"," if format in JSON else b"\n"
    while len(content) - at > _LONG:
        if (found := content.rfind(end, at, at + _LONG)) < 0:
            return content
        at = found + 1
    return Attended(content)


def guarded(content: Content, format: RdfFormat) -> Any:
    """The content, if it may be parsed; of a file what refuses to be read on. Raises RefusedTextError."""
    if content is None:
        return content
    if isinstance(content, str):
        content = _as_bytes(content)
    if isinstance(content, bytes):
        content = unmarked(content)
    else:
        if format in JSON:
            content = _in_memory(content)
        if not isinstance(content, bytes):
            return Guarded(content, format)
    if len(content) > _LEAST or format == RdfFormat.RDF_XML:
        Guarded(None, format).check(content)
    if format in JSON:
        _check_contexts(content)
    return content


def _as_bytes(piece: bytes | str) -> bytes:
    """A piece of a text, or of a file, which may be open as text. Raises RefusedTextError."""
    try:
        return piece.encode() if isinstance(piece, str) else piece
    except UnicodeEncodeError as error:  # pyoxigraph would take such a text for a file
        raise RefusedTextError(HALF) from error


class Attended:
    """Long bytes as a file whose `read` raises AbandonedError once nobody waits for them."""

    def __init__(self, content: bytes) -> None:
        self.content, self.read = content, looking(io.BytesIO(content).read)


def _in_memory(content: IO[bytes]) -> bytes | IO[bytes]:
    """A file of JSON-LD as bytes, whose contexts are counted; of a large one what refuses contexts within it."""
    gathered = bytearray()
    while len(gathered) <= LARGEST and (piece := _as_bytes(content.read(LARGEST + 1 - len(gathered)))):
        gathered += piece
    head = unmarked(bytes(gathered))
    return head if len(head) <= LARGEST else cast(IO[bytes], _Large(head, content))


class _Large:
    """A large file of JSON-LD, of which the beginning is read."""

    def __init__(self, head: bytes, rest: IO[bytes]) -> None:
        self._head, self._rest, self._contexts = io.BytesIO(head), rest, FewContexts()

    def read(self, size: int = -1) -> bytes:
        """The next bytes. Raises RefusedTextError."""
        piece = self._head.read(size) or _as_bytes(self._rest.read(size))
        if self._contexts.may_multiply(piece):
            raise RefusedTextError(
                f"JSON-LD with contexts within it has at most {LARGEST >> 20} MiB: write one context at the top"
            )
        return piece


def _check_contexts(content: bytes) -> None:
    try:
        check_contexts(content)
    except SyntaxError as error:
        raise RefusedTextError(str(error)) from None


def as_syntax_error(error: MemoryError) -> Exception:
    """What pyoxigraph says of a text that is too long for it; another MemoryError stays one."""
    return RefusedTextError(TOO_LONG) if "buffer maximal size" in str(error) else error


def _by_ending(path: str | Path) -> RdfFormat | None:
    return RdfFormat.from_extension(Path(path).suffix.removeprefix("."))


def _quads(parser: Iterator[Quad]) -> Iterator[Quad]:
    """A parser's quads, as long as somebody waits for them, also those behind a bad statement."""

    def following() -> Quad:
        try:
            return next(parser)
        except MemoryError as error:
            raise as_syntax_error(error) from error

    return iter(looking(following, _FEW), None)


class Guarded:
    """A file whose `read` raises RefusedTextError instead of handing out what the parser would choke on: entities of
    RDF/XML, and what is nested too deep."""

    def __init__(self, file: IO[bytes] | None, format: RdfFormat | None) -> None:
        """`format`: None for answers to queries in JSON."""
        self._file = file
        self._fresh = True
        self._looks = _looks_for(format) if format is not None else (_Depth(json_depth, MOST_JSON, "JSON").look,)

    def check(self, content: bytes) -> None:
        """Raise RefusedTextError for a document that `read` would not hand out."""
        for look in self._looks:
            look(content)

    def read(self, size: int = -1) -> bytes:
        """The next bytes."""
        assert self._file is not None
        piece = _as_bytes(self._file.read(size))
        if self._fresh and piece:
            self._fresh = False
            piece = unmarked(piece) or _as_bytes(self._file.read(size))
        self.check(piece)
        return piece


def _looks_for(format: RdfFormat) -> tuple[Callable[[bytes], None], ...]:
    if format == RdfFormat.RDF_XML:
        return _Entities().look, _Depth(xml_depth, MOST_ELEMENTS, "RDF/XML elements").look
    if format in JSON:
        return (_Depth(json_depth, MOST_JSON, "JSON-LD", weighed=True).look,)
    return (_TripleTerms().look,)


class _Entities:
    """Looks for declarations of entities."""

    def __init__(self) -> None:
        self._end = b""
        self._line = 1
        self._doctype = False

    def look(self, piece: bytes) -> None:
        """Raises RefusedTextError for one."""
        text, at = self._end + piece, 0
        if not self._doctype and (doctype := _DOCTYPE.search(text)) is not None:
            self._doctype, at = True, doctype.end()
        if self._doctype and (entity := _ENTITY.search(text, at)) is not None:
            line = self._line + text.count(b"\n", 0, entity.start())
            raise RefusedTextError(ENTITIES, (None, line, None, None))
        self._line += text.count(b"\n", 0, max(0, len(text) - _OVERLAP))
        self._end = text[-_OVERLAP:]


class _Depth:
    """Measures how deep brackets or tags are nested, `of` what; of JSON-LD also how much is (`weighed`)."""

    def __init__(self, kernel: Callable[..., None], most: int, of: str, *, weighed: bool = False) -> None:
        self._kernel, self._most, self._of, self._weighed = kernel, most, of, weighed
        self._state = np.zeros(nesting.STATE_WORDS, np.int64)
        self._size = 0

    def look(self, piece: bytes) -> None:
        """Raises RefusedTextError beyond the depth, or where much is nested deep."""
        self._size += len(piece)
        self._kernel(np.frombuffer(piece, np.uint8), self._state)
        state = self._state
        if state[nesting.DEEPEST] > self._most:
            raise RefusedTextError(f"{self._of} nested more than {self._most} deep: write it flatter")
        largest, weight = state[nesting.LARGEST_PART], state[nesting.WEIGHT]
        if self._weighed and (largest > MOST_VALUES or weight > MOST_VALUES + DEEP * self._size):
            raise RefusedTextError(
                f"more than {MOST_VALUES:,} values of {self._of} within one another, each counted as often as it is "
                "within an object: write a list of smaller objects, or N-Quads"
            )


class _TripleTerms:
    """Looks for triple terms within triple terms: pyoxigraph's parser calls itself for each, until its stack is
    full."""

    def __init__(self) -> None:
        self._depth, self._end = 0, b""

    def look(self, piece: bytes) -> None:
        """Raises RefusedTextError for too many within each other."""
        if not self._end and b"<<" not in piece and not piece.endswith(b"<"):
            return
        text = self._end + piece
        for found in _WITHIN.finditer(text):
            self._depth = 0 if found[0] == b")>>" else self._depth + 1
            if self._depth >= MOST_TRIPLE_TERMS:
                raise RefusedTextError(f"triple terms nested more than {MOST_TRIPLE_TERMS} deep are not read")
        last = text.rfind(b"<<(")
        last = len(text) - 2 if last < 0 else last
        self._end = text[max(last, len(text) - _LONGEST_LINK, 0) :]
