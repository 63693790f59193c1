"""Streams that are given and that the query does not read: left out with a warning, in every language."""

from __future__ import annotations

from collections.abc import Mapping

from oxiseq.sources.warned import warn_caller


class UnreadStreamWarning(UserWarning):
    """Events are given of a stream that the query does not read."""


def unread(name: str, streams: Mapping[str, str]) -> str:
    """The warning; `streams`: those that the query reads, name in the query → IRI."""
    reads = ", ".join(f"<{iri}>" if short == iri else f"{short} <{iri}>" for short, iri in streams.items())
    return f"the query reads no stream {name!r}: its events are left out; the query reads {reads or 'no stream'}"


def warn_unread(name: str, streams: Mapping[str, str]) -> None:
    """Warn."""
    warn_caller(unread(name, streams), UnreadStreamWarning)
