"""Jelly, RDF's binary format: quads in protobuf frames, by pyjelly (`pip install oxiseq[jelly]`).

In the flow: file → **frames of quads** → assembler; batches → **quads** → file. Nothing imports this module but
open.py, when a file of this format is asked for. Streams of quads and of graphs are read; the format has no lines, so
faults have none, and after a malformed part the rest cannot be read.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import IO, Any, Final, cast

from pyjelly import jelly
from pyjelly.integrations.generic import generic_sink as sink
from pyjelly.integrations.generic.serialize import flat_stream_to_file
from pyjelly.parse.decode import Adapter, Decoder
from pyjelly.parse.ioutils import get_options_and_frames
from pyoxigraph import BlankNode, DefaultGraph, Literal, NamedNode, Quad, RdfFormat, Triple, parse

from oxiseq.engine.events.assembler import BATCH_EVENTS, EventAssembler
from oxiseq.engine.events.batch import EventBatch
from oxiseq.engine.events.bytes import ByteSource
from oxiseq.engine.events.quads import GENERATED_AT, run_assembler
from oxiseq.engine.events.report import OnError, ReadReport
from oxiseq.engine.events.write import opened, quads_text, replacing
from oxiseq.engine.terms.dictionary import TermDictionary

_BLOCK_QUADS: Final = 4096
_CACHED: Final = 1 << 14
_DEFAULT_GRAPH: Final = DefaultGraph()

# --- reading ----------------------------------------------------------------------------------------


def read_jelly(
    path: Path,
    terms: TermDictionary,
    report: ReadReport,
    *,
    time_predicate: NamedNode = GENERATED_AT,
    on_error: OnError = "stop",
    batch_events: int = BATCH_EVENTS,
) -> Iterator[EventBatch]:
    """The events of a file, plain or gzip, in batches of at most `batch_events`. Raises EventError and OSError."""
    return run_assembler(
        _read_blocks, path, terms, report, time_predicate=time_predicate, on_error=on_error, batch_events=batch_events
    )


def _read_blocks(
    source: ByteSource, assembler: EventAssembler, report: ReadReport, on_error: OnError
) -> Iterator[EventBatch]:
    stream, going_on = _quads(source), True
    while going_on:
        quads: list[Quad] = []
        try:
            quads.extend(islice(stream, _BLOCK_QUADS))  # keeps what came before an error
            going_on = len(quads) == _BLOCK_QUADS
        except OSError:
            raise
        except Exception as error:  # pyjelly and protobuf raise all sorts for malformed input
            report.fault(None, f"not readable as Jelly, the rest cannot be read: {error}", on_error)
            going_on = False
        report.bytes_read = source.position
        yield from assembler.read_quads(quads)


def _quads(source: ByteSource) -> Iterator[Quad]:
    content = io.BufferedReader(source)
    if not content.peek(1):
        return  # an empty gzip file
    options, frames = get_options_and_frames(cast(IO[bytes], content))
    if options.stream_types.physical_type == jelly.PHYSICAL_STREAM_TYPE_TRIPLES:
        raise ValueError("a stream of triples has no named graphs, hence no events")
    decoder = Decoder(adapter=_Terms(options))
    for frame in frames:
        for item in decoder.iter_rows(frame):
            if isinstance(item, Quad):
                yield item


class _Terms(Adapter):  # type: ignore[misc]  # pyjelly has no types for Mypy
    """What pyjelly decodes, as pyoxigraph's terms, which are checked when they are made."""

    def __init__(self, options: Any) -> None:
        super().__init__(options)
        self._named = lru_cache(_CACHED)(NamedNode)
        self._graph: Any = None

    def iri(self, iri: str) -> NamedNode:
        return self._named(iri)

    def bnode(self, bnode: str) -> BlankNode:
        return BlankNode(bnode)

    def literal(self, lex: str, language: str | None = None, datatype: str | None = None) -> Literal:
        if language is not None:
            return Literal(lex, language=language)
        return Literal(lex, datatype=None if datatype is None else NamedNode(datatype))

    def default_graph(self) -> DefaultGraph:
        return _DEFAULT_GRAPH

    def namespace_declaration(self, name: str, iri: str) -> None:
        """Prefixes have no meaning in the data."""

    def quoted_triple(self, terms: Iterable[Any]) -> Triple:
        return Triple(*terms)

    def quad(self, terms: Iterable[Any]) -> Quad:
        return Quad(*terms)

    def graph_start(self, graph_id: Any) -> None:
        self._graph = graph_id

    def triple(self, terms: Iterable[Any]) -> Quad:
        subject, predicate, object_ = terms
        return Quad(subject, predicate, object_, self._graph)

    def graph_end(self) -> None:
        self._graph = None


# --- writing ----------------------------------------------------------------------------------------


def write_jelly(
    batches: Iterable[EventBatch],
    terms: TermDictionary,
    path: Path,
    *,
    time_predicate: NamedNode = GENERATED_AT,
) -> int:
    """Write the events as a flat stream of quads, gzip if the name ends in `.gz`; returns how many.

    The file appears when all is written.
    """
    count = 0

    def quads() -> Iterator[sink.Quad]:
        nonlocal count
        for text in quads_text(batches, terms, time_predicate=time_predicate):
            count += 1
            for quad in parse(text, RdfFormat.N_QUADS):
                yield sink.Quad(_term(quad.subject), _term(quad.predicate), _term(quad.object), _term(quad.graph_name))

    with replacing(path) as part, opened(part, zipped=path.suffix == ".gz") as file:
        flat_stream_to_file(quads(), file)
    return count


@lru_cache(_CACHED)
def _term(term: Any) -> Any:
    """A term as pyjelly's."""
    if isinstance(term, NamedNode):
        return sink.IRI(term.value)
    if isinstance(term, BlankNode):
        return sink.BlankNode(term.value)
    if isinstance(term, Triple):
        return sink.Triple(_term(term.subject), _term(term.predicate), _term(term.object))
    if isinstance(term, DefaultGraph):
        return sink.DefaultGraph
    if term.language is not None:
        return sink.Literal(term.value, langtag=term.language)
    plain = term.datatype.value == "http://www.w3.org/2001/XMLSchema#string"
    return sink.Literal(term.value, datatype=None if plain else term.datatype.value)
