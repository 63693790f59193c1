"""Event batches → logs of messages; and messages of any quads → text.

Each message ends with its delimiter: one behind the last message adds none. In N-Quads and TriG an event is written as
in those formats without messages (engine/events/write.py): a named graph and its time. N-Triples and Turtle have no
graphs: there the time is stated of a node about which nothing else is stated. What is written is read back as the same
events.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from pyoxigraph import NamedNode, Quad, RdfFormat, parse, serialize

from oxiseq.engine.errors import EventError
from oxiseq.engine.events.batch import EventBatch
from oxiseq.engine.events.messages.announced import RDF_FORMATS, VERSION, MessageFormat
from oxiseq.engine.events.quads import GENERATED_AT, QuadFormat
from oxiseq.engine.events.write import opened, quads_text, replacing, triples_text
from oxiseq.engine.terms.dictionary import TermDictionary

_DELIMITER: Final = "MESSAGE\n"
_GRAPHLESS: Final = (RdfFormat.N_TRIPLES, RdfFormat.TURTLE)


def write_messages(
    batches: Iterable[EventBatch],
    terms: TermDictionary,
    path: Path,
    *,
    format: MessageFormat,
    time_predicate: NamedNode,
) -> int:
    """Write the events to a file, gzip if its name ends in `.gz`; returns how many. The file appears when all is
    written. Raises OSError and whatever reading the batches raises."""
    count = 0
    with replacing(path) as part, opened(part, zipped=path.suffix == ".gz") as file:
        file.write(head(format).encode())
        for text in messages_text(batches, terms, format=format, time_predicate=time_predicate):
            file.write(text.encode())
            count += 1
    return count


def head(format: QuadFormat | MessageFormat) -> str:
    """The header, before all events."""
    return f'VERSION "{VERSION}"\n' if format in RDF_FORMATS and format != "messages-ndjsonld" else ""


def events_text(
    batches: Iterable[EventBatch],
    terms: TermDictionary,
    *,
    format: QuadFormat | MessageFormat,
    time_predicate: NamedNode = GENERATED_AT,
) -> Iterator[str]:
    """The text of one event after the other, as messages or plain, without the header."""
    if format == "nquads" or format == "trig":
        return quads_text(batches, terms, format=format, time_predicate=time_predicate)
    return messages_text(batches, terms, format=format, time_predicate=time_predicate)


def messages_text(
    batches: Iterable[EventBatch], terms: TermDictionary, *, format: MessageFormat, time_predicate: NamedNode
) -> Iterator[str]:
    """The text of one message after the other, without the header."""
    rdf = RDF_FORMATS[format]
    if rdf in _GRAPHLESS:
        texts = triples_text(batches, terms, time_predicate=time_predicate)
    else:
        kind: QuadFormat = "trig" if rdf == RdfFormat.TRIG else "nquads"
        texts = quads_text(batches, terms, format=kind, time_predicate=time_predicate)
    for text in texts:
        yield _json(parse(text, RdfFormat.N_QUADS)) if rdf == RdfFormat.JSON_LD else text + _DELIMITER


def message_text(quads: Iterable[Quad], format: MessageFormat) -> str:
    """One message of any quads."""
    rdf = RDF_FORMATS[format]
    if rdf == RdfFormat.JSON_LD:
        return _json(quads)
    given = [quad.triple for quad in quads] if rdf in _GRAPHLESS else quads
    return (serialize(given, format=rdf) or b"").decode() + _DELIMITER


def _json(quads: Iterable[Quad]) -> str:
    """Raises EventError for triple terms."""
    try:
        text = (serialize(quads, format=RdfFormat.JSON_LD) or b"").decode()
    except OSError as error:
        raise EventError(None, None, f"an event cannot be written: {error}; choose another format") from error
    return "{}\n" if text == "[]" else f'{{"@graph":{text}}}\n'
