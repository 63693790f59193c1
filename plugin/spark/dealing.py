"""Events are dealt to the buckets that own a value which they show for the key.

In the flow: decoded events → **dealer** → packed rows, shuffled by bucket → bucket.

A bucket gets whole events. One that shows values of several buckets goes to each of them; its *home* is the first: only
there it is reported if it is late. What no pattern of the query matches goes nowhere.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from typing import NamedTuple
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from oxiseq.engine import kinds
from oxiseq.engine.events.batch import EventBatch, offsets
from oxiseq.engine.matching.bgp import basic_patterns, canonical
from oxiseq.engine.patterns.matcher import StreamMatcher
from oxiseq.engine.patterns.plan import GpmRequest, compile_stream
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.engine.terms.places import numbered
from oxiseq.spark.work import Work

Ids = NDArray[np.uint32]


class Dealt(NamedTuple):
    """The events of a bucket, and which of them have their home there."""

    bucket: int
    events: EventBatch
    home: NDArray[np.bool_]


class Dealer:
    """Deals the events of one stream."""

    def __init__(self, work: Work, stream: int) -> None:
        self._buckets = work.order.buckets
        self._terms = work.terms
        self._instants = work.correlation.instants
        requests = _once((r.request for r in work.correlation.routes if r.stream == stream), work.terms)
        self._keyed = [bool(request.keep) for request in requests]
        self._matcher = StreamMatcher(compile_stream(requests, work.terms), work.terms, work.kb) if requests else None

    def deal(self, batch: EventBatch) -> Iterator[Dealt]:
        """The shares of the buckets; every event in its order. Raises LimitError."""
        if self._buckets == 1:
            yield Dealt(0, batch, np.ones(len(batch), np.bool_))
            return
        event, bucket = self._places(batch)
        first = np.ones(len(event), np.bool_)
        first[1:] = event[1:] != event[:-1]
        for number in range(self._buckets):
            mine = bucket == number
            share, home = event[mine], first[mine]
            if self._instants:
                yield Dealt(number, *_among_all(batch, share, home))
            elif len(share):
                yield Dealt(number, batch.take(share), home)

    def _places(self, batch: EventBatch) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """(event, bucket) pairs, ascending, each once."""
        found = [np.zeros(0, np.int64)]
        n = self._buckets
        for keyed, rows in zip(self._keyed, self._matcher.match(batch) if self._matcher else (), strict=False):
            if not keyed:
                found.append((np.unique(rows.event)[:, None] * n + np.arange(n)).ravel())
                continue
            whole = rows.values.all(axis=1)
            found.append(rows.event[whole] * n + owners(rows.values[whole], n, self._terms))
        pairs = np.sort(np.concatenate(found), kind="stable")  # soon done: each pattern's ascend
        pairs = pairs[np.diff(pairs, prepend=-1) != 0]
        return pairs // n, pairs % n


def _once(requests: Iterable[GpmRequest], terms: TermDictionary) -> list[GpmRequest]:
    """Those that differ by more than the names of variables that are not the key's."""
    found: dict[Hashable, GpmRequest] = {}
    for request in requests:
        parts = request.parts
        patterns = None if parts.in_place or parts.filters else basic_patterns(parts.pattern)
        if not patterns:
            found[request.name] = request
            continue
        instance, numbers = canonical(patterns, terms)
        found.setdefault((instance, *(numbers[v] for v in request.keep)), request)
    return [*found.values()]


def _among_all(
    batch: EventBatch, share: NDArray[np.int64], home: NDArray[np.bool_]
) -> tuple[EventBatch, NDArray[np.bool_]]:
    """All events of a batch, those that are not in `share` without triples."""
    own = batch.take(share)
    sizes, whole = np.zeros(len(batch), np.int64), np.zeros(len(batch), np.bool_)
    sizes[share], whole[share] = np.diff(own.offset), home
    return EventBatch(batch.time, offsets(sizes), *own.ids), whole


def owners(keys: Ids, buckets: int, terms: TermDictionary) -> NDArray[np.int64]:
    """The bucket of each key, one a row: the same in every process. Blank nodes, which are their event's own, are one
    value here."""
    if not len(keys):
        return np.zeros(0, np.int64)
    if keys.shape[1] == 1:
        flat, number = numbered(keys[:, 0], len(terms))
        distinct, inverse = flat[:, None], number - 1
    else:
        distinct, inverse = np.unique(keys, axis=0, return_inverse=True)
        flat = distinct.ravel()
    data, ends = terms.texts(flat)
    text, places = data.tobytes(), ends.tolist()
    blank = (terms.columns.kind[flat] == kinds.BLANK).tolist()
    width = distinct.shape[1]
    found = np.empty(len(distinct), np.int64)
    for row in range(len(distinct)):
        check = 0
        for at in range(row * width, (row + 1) * width):
            check = crc32(b"_" if blank[at] else text[places[at] : places[at + 1]], check)
        found[row] = check % buckets
    return found[inverse.reshape(-1)]
