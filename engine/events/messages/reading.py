"""Logs of messages in any of their formats → event batches."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import IO, Final, cast

from pyoxigraph import NamedNode, RdfFormat

from oxiseq.engine.events.assembler import BATCH_EVENTS, Block
from oxiseq.engine.events.batch import EventBatch
from oxiseq.engine.events.bytes import DAMAGED, ByteSource
from oxiseq.engine.events.contexts import NO_CONTEXTS, Contexts
from oxiseq.engine.events.messages.announced import RDF_FORMATS, MessageFormat
from oxiseq.engine.events.messages.columns import MessageColumns, read_columns
from oxiseq.engine.events.messages.jsonld import jsonld_messages
from oxiseq.engine.events.messages.lines import line_blocks
from oxiseq.engine.events.messages.times import events_of
from oxiseq.engine.events.messages.turtle import Messages, turtle_messages
from oxiseq.engine.events.report import OnError, ReadReport
from oxiseq.engine.terms.dictionary import TermDictionary

_LINES: Final = (RdfFormat.N_TRIPLES, RdfFormat.N_QUADS)
_TOGETHER: Final = 1024
"""Messages that are read as N-Quads at a time, at least."""


def read_message_file(
    path: Path,
    terms: TermDictionary,
    report: ReadReport,
    *,
    format: MessageFormat,
    time_predicate: NamedNode,
    on_error: OnError,
    contexts: Contexts = NO_CONTEXTS,
) -> Iterator[EventBatch]:
    """The events of a log, plain or gzip; `report` is kept up to date. Of damaged gzip data the message that is cut off
    is left out. Raises EventError (with `on_error="stop"`) and OSError."""
    with ByteSource(path) as source:
        report.bytes_total = source.size
        content = cast(IO[bytes], source)
        try:
            for batch in read_messages(content, terms, report, on_error, format, time_predicate, None, contexts):
                report.bytes_read = source.position
                yield batch
        except DAMAGED as error:
            report.fault(None, f"damaged gzip data, the rest cannot be read: {error}", on_error)
    report.bytes_read = report.bytes_total


def read_messages(
    content: IO[bytes],
    terms: TermDictionary,
    report: ReadReport,
    on_error: OnError,
    format: MessageFormat,
    time_predicate: NamedNode,
    time: int | None = None,
    contexts: Contexts = NO_CONTEXTS,
) -> Iterator[EventBatch]:
    """The events of a log in batches of at most BATCH_EVENTS; times.py says when a message is, `time` (µs) when one is
    that states none. `report` counts. Raises EventError with `on_error="stop"`."""

    def fault(line: int | None, reason: str) -> None:
        report.fault(line, reason, on_error)

    for columns in message_columns(content, terms, format, contexts):
        report.quads += len(columns.subject)
        batch = events_of(columns, terms, time_predicate, fault, time)
        terms.hold(*batch.ids)
        report.events += len(batch)
        for start in range(0, len(batch), BATCH_EVENTS):
            yield batch.slice(start, start + BATCH_EVENTS)


def message_columns(
    content: IO[bytes], terms: TermDictionary, format: MessageFormat, contexts: Contexts = NO_CONTEXTS
) -> Iterator[MessageColumns]:
    """The messages of a log with their graphs, some at a time."""
    rdf = RDF_FORMATS[format]
    if rdf in _LINES:
        for block, line in line_blocks(content):
            yield read_columns(block, terms, line, rdf)
        return
    parsed = jsonld_messages(content, contexts) if rdf == RdfFormat.JSON_LD else turtle_messages(content, rdf)
    broken: Exception | None = None
    while broken is None:
        some: list[Messages] = []
        count = 0
        try:
            for each in parsed:
                some.append(each)  # keeps what came before an error
                count += len(each.lines)
                if count >= _TOGETHER:
                    break
        except DAMAGED as error:
            broken = error
        if some:
            yield _columns(some, terms)
        elif broken is None:
            return
    raise broken


def _columns(messages: list[Messages], terms: TermDictionary) -> MessageColumns:
    columns = read_columns(Block.of(b"".join(each.text for each in messages)), terms, 1, None)
    columns.line[:] = [line for each in messages for line in each.lines]
    at = 0
    for each in messages:
        if each.fault is not None:
            columns.faults[at] = each.lines[0], each.fault
        at += len(each.lines)
    return columns
