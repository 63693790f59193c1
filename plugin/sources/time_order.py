"""Finite inputs are sorted by time before a query sees them; an iterator is a stream and is read as it comes.

In the flow: a source → batches → **batches in order of time** → drivers (semantics.md 2.6a, inputs of `run`).

What is in order already passes unchanged. A source is read ahead up to AHEAD triples or rows; if it ends there it is
sorted in memory. One that is longer is read twice: first only to measure its disorder (how far an event lies behind an
earlier one), then through a reorder buffer that holds twice as much time as that. So memory depends on the disorder of
a file and not on its size.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sized
from itertools import chain
from pathlib import Path
from typing import Any, Final, TypeVar

import numpy as np
from pyoxigraph import NamedNode

from oxiseq.engine.events.batch import EventBatch
from oxiseq.engine.events.open import is_pipe
from oxiseq.engine.events.quads import GENERATED_AT
from oxiseq.engine.events.report import OnError, ReadReport
from oxiseq.engine.order.waiting import Piece, Waiting
from oxiseq.engine.order.watermarks import BEFORE_ALL
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.sources.sources import batches_of

P = TypeVar("P", bound=Piece)
AHEAD: Final = 1 << 22
"""Triples, or rows of a table, that are read ahead."""


def is_stream(events: object) -> bool:
    """Whether it can be read only once, or is the record of what came to a stream: such is read in order of arrival.
    A pipe is a stream; a file, and what has a length, is not."""
    if isinstance(events, str | Path):
        return is_pipe(Path(events))
    return not isinstance(events, Sized) or isinstance(events, Iterator)


def given_batches(
    events: Any,
    terms: TermDictionary,
    on_error: OnError = "stop",
    time_predicate: NamedNode = GENERATED_AT,
    report: Callable[[ReadReport], object] | None = None,
) -> Iterator[EventBatch]:
    """The events of a source as `batches_of` gives them; those of a finite one in order of time."""
    batches = batches_of(events, terms, on_error, time_predicate, report)
    if is_stream(events):
        return batches
    return in_time_order(batches, lambda: batches_of(events, TermDictionary(), "skip", time_predicate), terms)


def in_time_order(batches: Iterator[P], again: Callable[[], Iterator[P]], terms: TermDictionary) -> Iterator[P]:
    """The same events in order of time, those of one time in order of arrival. `again` reads the source once more; its
    terms need not be those of `terms`."""
    ahead, size = deque[P](), 0
    for batch in batches:
        ahead.append(batch)
        size += len(batch) + (batch.triples if isinstance(batch, EventBatch) else 0)
        if size > AHEAD:
            break
    whole = size <= AHEAD
    disorder = disorder_of(ahead if whole else again())
    source = chain(_popped(ahead), batches)
    yield from _sorted(source, disorder, terms) if disorder else source


def disorder_of(batches: Iterable[Piece]) -> int:
    """The longest time (µs) by which an event lies behind an earlier one; 0 for events in order."""
    newest, disorder = BEFORE_ALL, 0
    for batch in batches:
        time = batch.time
        if len(time) and (time[0] < newest or not (time[1:] >= time[:-1]).all()):
            peaks = np.maximum.accumulate(np.maximum(time, newest))
            disorder = max(disorder, int((peaks - time).max()))
        newest = max(newest, int(time.max())) if len(time) else newest
    return disorder


def _popped(ahead: deque[P]) -> Iterator[P]:
    while ahead:
        yield ahead.popleft()


def _sorted(batches: Iterable[P], disorder: int, terms: TermDictionary) -> Iterator[P]:
    """Through a buffer that is sorted again when it has doubled: each event is moved a few times only."""
    waiting, held, rest = Waiting[P](), 0, 0
    for batch in batches:
        if not len(batch):
            continue
        waiting.wait(batch)
        held += len(batch)
        if held > 2 * rest + AHEAD // 32:
            yield from _released(waiting, waiting.newest - disorder, terms)
            held = rest = sum(map(len, waiting.pending))
    if waiting.pending:
        yield from _released(waiting, waiting.newest + 1, terms)


def _released(waiting: Waiting[P], before: int, terms: TermDictionary) -> list[P]:
    released = waiting.up_to(before)
    for batch in (*released, *waiting.pending):
        if isinstance(batch, EventBatch):  # it may be a copy, which nobody has announced
            terms.hold(*batch.ids)
    return released
