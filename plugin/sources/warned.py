"""Warnings with the line from which oxiseq was called, however many calls lie between.

Warnings that a query gets about its events: late ones, those that it ignores because its language cannot take
them (CEQL takes tuple events only, EP-SPARQL none that start after they end; semantics.md 3 and 5), and columns that
can never have the type that a CEQL query needs.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from types import FrameType
from typing import Final, NamedTuple, TypeAlias

from pyoxigraph import Triple

from oxiseq.engine.events.batch import EventBatch
from oxiseq.engine.events.encode import decode_events, encode_events
from oxiseq.engine.events.faults import Faults
from oxiseq.engine.events.row_graphs import row_graphs
from oxiseq.engine.events.time import to_datetime
from oxiseq.engine.events.tuples import TupleRows
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.grammar.arguments import public

# --- warned ----------------------------------------------------------------------------------------------

_OURS = __name__.partition(".")[0]


def warn_caller(message: str, category: type[Warning]) -> None:
    """Warn of the line in somebody else's code that has led here."""
    frame: FrameType | None = sys._getframe()
    level = 0
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] == _OURS:
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level + 1)


# --- ignored ---------------------------------------------------------------------------------------------

_TOLD: Final = 3
"""Most columns whose reason a warning gives."""


class IgnoredWarning(UserWarning):
    """Events that the language of a query cannot take have been ignored."""


@public
class LateWarning(UserWarning):
    """Events of a stream came behind its watermark, so that no match has them.

    >>> import warnings
    >>> import oxiseq
    >>> text = "SELECT ?s FROM STREAM S <urn:s> WHERE { SEQ(A) DEFINE GPM A ON S { ?s ?p ?o } }"
    >>> events = iter([("<urn:a> <urn:b> 1 .", 20), ("<urn:a> <urn:b> 2 .", 10)])
    >>> with warnings.catch_warnings(record=True) as told:
    ...     warnings.simplefilter("always")
    ...     _ = oxiseq.run(text, {"S": events})
    >>> told[0].category is oxiseq.LateWarning
    True
    """


def warn_of_late(late: int, events: int) -> None:
    """Warn of the late ones among events that were pushed together."""
    if late:
        warn_caller(
            f"{late:,} of {events:,} events were late, so no match has them: sort them by time first, or register the "
            "queries with lateness=, as '5s'",
            LateWarning,
        )


class ColumnWarning(UserWarning):
    """A column holds something else than the query compares it with."""


def warn_of(faults: Faults, before: int = 0) -> None:
    """Warn of those that came after the first `before`, if there are some."""
    count = faults.count - before
    if count <= 0:
        return
    named = faults.first[before:][:_TOLD]
    more = [f"and {count - len(named):,} more"] * (count > len(named))
    warn_caller(f"ignored: {'; '.join([*named, *more])}", IgnoredWarning)


# --- late ------------------------------------------------------------------------------------------------

LateBatch: TypeAlias = EventBatch | TupleRows


class LateEvent(NamedTuple):
    """An event that was older than its stream's watermark: the stream's IRI, its time in microseconds, its graph."""

    stream: str
    time_us: int
    graph: tuple[Triple, ...]

    @property
    def time(self) -> datetime:
        """Its time, in UTC."""
        return to_datetime(self.time_us)


def late_events(late: Iterable[tuple[str, LateBatch]], terms: TermDictionary, vocab: str = "") -> list[LateEvent]:
    """Batches of late events, one by one; `vocab`: the namespace of the names in tables."""
    return [LateEvent(iri, time, graph) for iri, batch in late for time, graph in graphs(batch, terms, vocab)]


def graphs(batch: LateBatch, terms: TermDictionary, vocab: str = "") -> Iterator[tuple[int, tuple[Triple, ...]]]:
    """(time in µs, triples) of each event."""
    return decode_events(batch, terms) if isinstance(batch, EventBatch) else row_graphs(batch, vocab)


def as_graphs(batch: LateBatch, terms: TermDictionary, vocab: str = "") -> EventBatch:
    """The same events as RDF."""
    return batch if isinstance(batch, EventBatch) else encode_events(row_graphs(batch, vocab), terms)


# --- unread ----------------------------------------------------------------------------------------------


class UnreadStreamWarning(UserWarning):
    """Events are given of a stream that the query does not read."""


def unread(name: str, streams: Mapping[str, str]) -> str:
    """The warning; `streams`: those that the query reads, name in the query → IRI."""
    reads = ", ".join(f"<{iri}>" if short == iri else f"{short} <{iri}>" for short, iri in streams.items())
    return f"the query reads no stream {name!r}: its events are left out; the query reads {reads or 'no stream'}"


def warn_unread(name: str, streams: Mapping[str, str]) -> None:
    """Warn."""
    warn_caller(unread(name, streams), UnreadStreamWarning)
