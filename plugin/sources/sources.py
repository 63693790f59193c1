"""What events are read from in Python: files, and (time, graph) pairs of whatever makes them.

Where it stands: a source → **batches** → replays, streams of a store.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any, Final, TypeAlias

from pyoxigraph import NamedNode

from oxiseq.engine.errors import EventError, OxiseqError
from oxiseq.engine.events.batch import EventBatch
from oxiseq.engine.events.encode import GraphLike, encode_events
from oxiseq.engine.events.open import open_events
from oxiseq.engine.events.quads import GENERATED_AT
from oxiseq.engine.events.report import OnError, ReadReport
from oxiseq.engine.events.time import Time
from oxiseq.engine.terms.dictionary import TermDictionary

Pairs: TypeAlias = Iterable[tuple[Time, GraphLike]]
Events: TypeAlias = str | Path | Pairs
"""A file of events, or (time, graph) pairs in order of arrival."""
Source: TypeAlias = Callable[[TermDictionary], Iterator[EventBatch]]
"""Gives batches that are coded in the dictionary."""
_PAIRS: Final = 4096
"""Pairs that are read at a time."""


def batches_of(
    events: Any, terms: TermDictionary, on_error: OnError = "stop", time_predicate: NamedNode = GENERATED_AT,
    report: Callable[[ReadReport], object] | None = None,
) -> Iterator[EventBatch]:  # fmt: skip
    """The events of a source, coded in `terms`. `report` is handed the running report of a file. Raises EventError,
    OxiseqError for what is no source; while reading EventError, TypeError."""
    if not isinstance(events, str | Path):
        return events(terms) if callable(events) else _pairs(_iterated(events), terms)
    reader = open_events(events, terms, time_predicate, on_error)
    if report is not None:
        report(reader.report)
    return iter(reader)


def _pairs(events: Pairs, terms: TermDictionary) -> Iterator[EventBatch]:
    remaining = iter(events)
    while part := list(islice(remaining, _PAIRS)):
        try:
            batch = encode_events(part, terms)
        except (TypeError, ValueError):
            for event in part:
                _check_pair(event)
            raise
        yield batch


def _iterated(events: Any) -> Pairs:
    if not isinstance(events, Iterable):
        raise OxiseqError(f"a stream is a file or (time, graph) pairs, not {events!r}")
    return events


def _check_pair(event: object) -> None:
    """Raise EventError for what is no (time, graph) pair."""
    if not isinstance(event, tuple | list) or len(event) != 2:
        raise EventError(None, None, f"an event is (time, graph), not {event!r}"[:200])
