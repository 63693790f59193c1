"""A stream published as a Linked Data Event Stream (https://w3id.org/ldes): pages of TriG that are linked by TREE.

    root ─ tree:relation ─▶ page n: the events with offsets from n * PAGE on ─ tree:relation ─▶ page n + 1 ...
                                 └ tree:relation ─▶ the rest of page n, from an offset on, where its text is long

A member is an event: a named graph, and its time beside it as prov:generatedAtTime. Links are relative to the page, so
they work behind a proxy. The relations have no bounds: events may come late, so a later page may have earlier times.
"""

from __future__ import annotations

from functools import partial
from typing import Final

from pyoxigraph import NamedNode

from oxiseq.bridges.ldes import LDES, TREE
from oxiseq.engine.events.quads import GENERATED_AT
from oxiseq.engine.events.time import to_duration_literal
from oxiseq.grammar.records import dataclass
from oxiseq.journal import CursorError, StreamRecord
from oxiseq.live.streams import Streams

PAGE: Final = 500
"""Events of a page. A page of so many events never changes, until the stream's retention deletes it."""


LARGEST: Final = 8 << 20
"""Characters of the events of a page: the one that goes beyond is its last."""


@dataclass(frozen=True, slots=True)
class Page:
    """`complete`: no event will be added to it."""

    text: str
    complete: bool = False


def root(record: StreamRecord) -> Page:
    """Where a client begins: what the stream is, and a link to the first page that is kept."""
    stream = NamedNode(record.iri)
    text = f"{stream} a <{LDES}EventStream> ;\n  <{TREE}view> <> ;\n  <{LDES}timestampPath> {GENERATED_AT} .\n"
    text += _node(f"page={record.first // PAGE}")
    if record.keep.time is not None:
        text += f"<> <{LDES}retentionPolicy> <#retention> .\n<#retention> a <{LDES}RetentionPolicy> ;\n"
        text += f"  <{LDES}fullLogDuration> {to_duration_literal(record.keep.time)} .\n"
    return Page(text)


def page(streams: Streams, record: StreamRecord, number: int, since: int | None = None) -> Page | None:
    """Page `number`, or its rest from the offset `since` on; None where there is none yet. What the stream's retention
    has deleted of it is not in it: it has no members if that is all. Raises UnknownError, DamagedBatchError."""
    end = (number + 1) * PAGE
    start = number * PAGE if since is None else since
    if start > record.next or not number * PAGE <= start < end:
        return None
    first, until = max(start, record.first), min(end, record.next)
    try:
        text, reached = _members(streams, record, first, until)
    except CursorError:  # retention has deleted some of them meanwhile
        return page(streams, streams.get(record.iri), number, since)
    following = f"page={number}&from={reached}" if reached < until else f"page={number + 1}"
    if until <= reached < end:
        return Page(f"<> a <{TREE}Node> .\n{text}")
    return Page(f"{_node(following)}<> <{LDES}immutable> true .\n{text}", complete=True)


def _members(streams: Streams, record: StreamRecord, first: int, until: int) -> tuple[str, int]:
    """The events of some offsets as members, and the offset behind the last: not all where that would be too long."""
    stream, parts, size, offset = NamedNode(record.iri), list[str](), 0, first
    events = streams.named(record.iri, first, until, partial(member, record)) if first < until else ()
    for event in events:
        parts.append(f"{stream} <{TREE}member> <{member(record, offset)}> .\n{event}")
        size, offset = size + len(event), offset + 1
        if size > LARGEST:
            break
    return "".join(parts), offset


def member(record: StreamRecord, offset: int) -> str:
    """The IRI of an event: of a stream that is deleted and created again, the events have other IRIs."""
    separator = "/" if "#" in record.iri else "#"
    return f"{record.iri}{separator}event-{offset}-{record.created}"


def _node(following: str) -> str:
    """The page, and its link to another."""
    return f"<> a <{TREE}Node> ;\n  <{TREE}relation> [ a <{TREE}Relation> ; <{TREE}node> <?{following}> ] .\n"
