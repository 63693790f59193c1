"""A stream published as a Linked Data Event Stream (https://w3id.org/ldes): pages of TriG that are linked by TREE.

    root ─ tree:relation ─▶ page n: the events with offsets from n * PAGE on ─ tree:relation ─▶ page n + 1 ...

A member is an event: a named graph, and its time beside it as prov:generatedAtTime. Links are relative to the page, so
they work behind a proxy. The relations have no bounds: events may come late, so a later page may have earlier times.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from pyoxigraph import NamedNode

from oxiseq.bridges.ldes import LDES, TREE
from oxiseq.engine.events.quads import GENERATED_AT
from oxiseq.engine.events.time import to_duration_literal
from oxiseq.journal import CursorError, StreamRecord
from oxiseq.live.streams import Streams

PAGE: Final = 500
"""Events of a page. A page of so many events never changes, until the stream's retention deletes it."""


@dataclass(frozen=True, slots=True)
class Page:
    """`complete`: no event will be added to it."""

    text: str
    complete: bool = False


def root(record: StreamRecord) -> Page:
    """Where a client begins: what the stream is, and a link to the first page that is kept."""
    stream = NamedNode(record.iri)
    text = f"{stream} a <{LDES}EventStream> ;\n  <{TREE}view> <> ;\n  <{LDES}timestampPath> {GENERATED_AT} .\n"
    text += _node(record.first // PAGE)
    if record.keep.time is not None:
        text += f"<> <{LDES}retentionPolicy> <#retention> .\n<#retention> a <{LDES}RetentionPolicy> ;\n"
        text += f"  <{LDES}fullLogDuration> {to_duration_literal(record.keep.time)} .\n"
    return Page(text)


def page(streams: Streams, record: StreamRecord, number: int) -> Page | None:
    """Page `number`; None where there is none yet. What the stream's retention has deleted of it is not in it: it has
    no members if that is all. Raises UnknownError, DamagedBatchError."""
    start, end = number * PAGE, (number + 1) * PAGE
    if start > record.next:
        return None
    complete = end <= record.next
    text = _node(number + 1) if complete else f"<> a <{TREE}Node> .\n"
    if complete:
        text += f"<> <{LDES}immutable> true .\n"
    first, until = max(start, record.first), min(end, record.next)
    if first < until:
        names = [member(record, offset) for offset in range(first, until)]
        try:
            events = streams.named(record.iri, first, until, lambda offset: names[offset - first])
        except CursorError:  # retention has deleted some of them meanwhile
            return page(streams, streams.get(record.iri), number)
        stream = NamedNode(record.iri)
        text += "".join(
            f"{stream} <{TREE}member> <{name}> .\n{event}" for name, event in zip(names, events, strict=True)
        )
    return Page(text, complete)


def member(record: StreamRecord, offset: int) -> str:
    """The IRI of an event: of a stream that is deleted and created again, the events have other IRIs."""
    separator = "/" if "#" in record.iri else "#"
    return f"{record.iri}{separator}event-{offset}-{record.created}"


def _node(following: int) -> str:
    """The page, and its link to another."""
    return f"<> a <{TREE}Node> ;\n  <{TREE}relation> [ a <{TREE}Relation> ; <{TREE}node> <?page={following}> ] .\n"
