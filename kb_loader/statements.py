"""The valid statements of an RDF file; invalid ones are reported and skipped.

In the line formats a bad line is left out, in Turtle and TriG a bad statement (engine/turtle). RDF/XML and JSON-LD are
one tree: behind its first fault the rest of the file is left out, in N3 where pyoxigraph's parser cannot continue.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterator
from typing import IO, TypeAlias, cast

from pyoxigraph import BlankNode, DefaultGraph, Literal, NamedNode, Quad, RdfFormat, Triple

from oxiseq.engine.errors import syntax_reason
from oxiseq.engine.rdf import parse
from oxiseq.engine.turtle import Flaw, valid_statements
from oxiseq.kb_loader.lines import blocks, line_ends, until_cut_off, valid_lines
from oxiseq.kb_loader.quarantine import LONGEST, Fault, cut_off
from oxiseq.kb_loader.sources import BROKEN, LINE_FORMATS, Source

_TURTLE = (RdfFormat.TURTLE, RdfFormat.TRIG)
_NO_GOING_ON = (RdfFormat.RDF_XML, RdfFormat.JSON_LD)
Term: TypeAlias = NamedNode | BlankNode | Literal | Triple
SKOLEM = "urn:oxiseq:genid:"
"""Skolemised blank nodes are this, their file's scope, "-" and their label (without one: "/" and a number)."""
_RANDOM = re.compile(r"[0-9a-f]{24,32}")
"""A label of pyoxigraph's own making."""


def statements(
    source: Source, content: IO[bytes], tell: Callable[[Fault], None], *, skolemise: bool = False
) -> Iterator[Quad]:
    """The valid statements, blank nodes scoped to the file. Faults go to `tell`, also a file that cannot be read on.

    `content` is the unpacked file.
    """
    assert source.format is not None
    lines = source.format in LINE_FORMATS
    read = _valid_lines if lines else _valid_turtle if source.format in _TURTLE else _valid
    return scoped(read(content, source.format, source.base, tell), source.scope, skolemise, numbered=not lines)


def _valid_lines(content: IO[bytes], format: RdfFormat, base: str, tell: Callable[[Fault], None]) -> Iterator[Quad]:
    line = 1
    for block in until_cut_off(blocks(content), tell):
        yield from valid_lines(block, line, format, base, tell)
        line += line_ends(block)


def _valid_turtle(content: IO[bytes], format: RdfFormat, base: str, tell: Callable[[Fault], None]) -> Iterator[Quad]:
    def told(flaw: Flaw) -> None:
        tell(Fault(flaw.line, flaw.last, flaw.reason, flaw.text[:LONGEST]))

    try:
        for quads in valid_statements(content, format, base, told):
            yield from quads
    except BROKEN as error:
        tell(cut_off(error))


def _valid(content: IO[bytes], format: RdfFormat, base: str, tell: Callable[[Fault], None]) -> Iterator[Quad]:
    lines = _Lines(content)
    parser = parse(cast(IO[bytes], lines), format=format, base_iri=base)
    before: tuple[int | None, int | None] | None = None
    while True:
        try:
            yield from parser
            return
        except SyntaxError as error:
            place = error.lineno, error.offset
            # at the same place again, or at none: it would not end
            final = format in _NO_GOING_ON or place == before or error.lineno is None
            reason = syntax_reason(error)
            tell(
                Fault(
                    error.lineno or lines.line,
                    error.end_lineno or lines.line,
                    f"{reason}; the rest of the file is left out" * final or reason,
                )
            )
            if final:
                return
            before = place
        except BROKEN as error:
            tell(cut_off(error))
            return


class _Lines(io.RawIOBase):
    """Content that is returned by lines, so that the line is known where pyoxigraph stops: of RDF/XML it does not
    say it. A text goes up to the "<" behind it, which is returned before the rest of its line."""

    def __init__(self, content: IO[bytes]) -> None:
        self._content = content
        self._rest = b""
        self._begun, self._inside = 0, False
        """Lines that have begun, and whether the last of them continues."""

    @property
    def line(self) -> int:
        """The line that the parser has read last."""
        return max(1, self._begun - bool(self._rest))

    def readable(self) -> bool:
        """Yes."""
        return True

    def read(self, size: int = -1, /) -> bytes:
        """At most `size` bytes of one line; none at the end."""
        if self._rest:
            part = self._rest
            self._rest = b""
            return part
        part = self._content.readline(size)
        if not self._inside and part:
            self._begun += 1
            tag = part.find(b"<") + 1
            if tag and not part[: tag - 1].strip():
                part, self._rest = part[:tag], part[tag:]
        self._inside = bool(part) and not (part + self._rest).endswith(b"\n")
        return part


def scoped(quads: Iterator[Quad], scope: str, skolemise: bool, *, numbered: bool = False) -> Iterator[Quad]:
    """Blank nodes renamed so that those of two files differ, the same in each load; or made IRIs.

    `numbered`: those without a label, which pyoxigraph gives a random one, are numbered as they come.
    """
    names: dict[str, BlankNode | NamedNode] = {}

    def renamed(node: BlankNode) -> BlankNode | NamedNode:
        found = names.get(node.value)
        if found is None:
            if numbered and _RANDOM.fullmatch(node.value):
                label = f"{scope}/{len(names)}" if skolemise else f"n{scope}-{len(names)}"
            else:
                label = f"{scope}-{node.value}" if skolemise else f"f{scope}-{node.value}"
            found = NamedNode(SKOLEM + label) if skolemise else BlankNode(label)
            names[node.value] = found
        return found

    for quad in quads:
        subject, object_, graph = quad.subject, quad.object, quad.graph_name
        if BlankNode in (type(subject), type(object_), type(graph)) or type(object_) is Triple:
            yield Quad(
                renamed(subject) if isinstance(subject, BlankNode) else subject,
                quad.predicate,
                _object(object_, renamed),
                renamed(graph) if isinstance(graph, BlankNode) else graph,
            )
        else:
            yield quad


def _object(term: Term, renamed: Callable[[BlankNode], BlankNode | NamedNode]) -> Term:
    if isinstance(term, BlankNode):
        return renamed(term)
    if isinstance(term, Triple):
        subject = renamed(term.subject) if isinstance(term.subject, BlankNode) else term.subject
        return Triple(subject, term.predicate, _object(term.object, renamed))
    return term


def in_graph(quads: Iterator[Quad], graph: NamedNode | None) -> Iterator[Quad]:
    """Statements of the default graph moved to `graph`, if there is one."""
    if graph is None:
        return quads
    default = DefaultGraph()
    return (Quad(q.subject, q.predicate, q.object, graph) if q.graph_name == default else q for q in quads)
