"""The kept events of a stream as an RDF dataset, for SPARQL: made by a query, not when events come.

    log ─(since the last question)─▶ a pyoxigraph store in memory, one per stream ─▶ solutions

Each event is a named graph, `<urn:oxiseq:event:STREAM:OFFSET>` with the stream's IRI percent-encoded; the default graph
says of each one its time (prov:generatedAtTime) and its stream (`STREAM`). Each question first takes over what the log
has got and lost since the last one, so the answer is of what the log holds now, after a restart as well. A stream that
nobody reads for a while is released.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Final, cast
from urllib.parse import quote

import numpy as np
from pyoxigraph import NamedNode, QuerySolutions, RdfFormat
from pyoxigraph import Store as RdfStore

from oxiseq.engine.events.quads import GENERATED_AT
from oxiseq.engine.events.time import to_literal
from oxiseq.engine.expressions.times import FUNCTIONS
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.journal import CursorError, Journal, StreamRecord
from oxiseq.journal.log import Logged
from oxiseq.live.settings import BoundError

STREAM: Final = NamedNode("urn:oxiseq:stream")
"""The predicate between an event and its stream."""
_PART: Final = 4096
"""Events that are taken over in one go."""
_REMOVED: Final = 1000
"""Events that are removed in one go."""
_SAID: Final = 2
"""Triples about an event in the default graph."""
_TRIES: Final = 5


class EventGraphs:
    """Answers SPARQL queries over the events of a stream. Safe for many threads.

    `most`: triples that are held in memory for this, of all streams together; those read longest ago are released
    for others. `unasked`: seconds after which a stream is released.
    """

    def __init__(self, journal: Journal, most: int, unasked: float) -> None:
        self._journal, self._most, self._unasked = journal, most, unasked
        self._lock = threading.Lock()
        self._held: dict[str, _Graphs] = {}

    def query(
        self, iri: str, texts: Sequence[str], base: str, check: Callable[[], None] = lambda: None
    ) -> list[QuerySolutions]:
        """The answers of SELECT queries, each of one moment of the stream; `check` is called now and then, may raise.

        Raises UnknownError, BoundError when the events do not fit into memory, and what pyoxigraph raises.
        """
        with self._lock:
            graphs = self._held.get(iri)
            if graphs is None:
                graphs = self._held[iri] = _Graphs(self._journal, iri)
            graphs.asked = time.monotonic()
        with graphs.lock:
            graphs.refresh(lambda more: self._make_room(graphs, more), check)
            store = graphs.store
        # without the lock: it may take long, and changes come one transaction after the other
        return [cast("QuerySolutions", store.query(text, base_iri=base, custom_functions=FUNCTIONS)) for text in texts]

    def let_go(self) -> None:
        """Drops streams that nobody has read for a while: to be called now and then."""
        now = time.monotonic()
        with self._lock:
            self._held = {iri: held for iri, held in self._held.items() if now - held.asked < self._unasked}

    @property
    def size(self) -> int:
        """Triples in memory."""
        with self._lock:
            return sum(held.size for held in self._held.values())

    def _make_room(self, wanted: _Graphs, more: int) -> None:
        """Release other streams while there are too many triples, or will be with `more`. Raises BoundError when that
        is not enough."""
        with self._lock:
            others = sorted((g for g in self._held.values() if g is not wanted), key=lambda g: g.asked)
            size = more + sum(held.size for held in self._held.values())
            while size > self._most and others:
                gone = self._held.pop(others.pop(0).iri)
                size -= gone.size
            if size > self._most:
                self._held.pop(wanted.iri, None)
                raise BoundError(
                    f"the events of <{wanted.iri}> have more than {self._most} triples, the most that SPARQL "
                    "is answered on: let the stream keep fewer of them"
                )


class _Graphs:
    """The events of one stream with offsets from `first` to `next` - 1; `lock` is held while it changes."""

    def __init__(self, journal: Journal, iri: str) -> None:
        self.iri = iri
        self.lock = threading.Lock()
        self.asked = 0.0
        self._journal = journal
        self._name = event_name(iri, "")
        self._created = -1
        self._clear(0)

    def _clear(self, first: int) -> None:
        self.store = RdfStore()
        self.first = self.next = first
        self.size = 0
        self._sizes: deque[int] = deque()
        self._removed = 0

    def refresh(self, room: Callable[[int], None], check: Callable[[], None]) -> None:
        """Hold what the log holds now; `room` is notified of how many triples more will come at least.

        Raises UnknownError and what `room` and `check` raise: then less is held than the log has, and the next call
        continues from there."""
        for attempt in range(_TRIES):
            record = self._journal.streams.get(self.iri)
            try:
                self._drop(record)
                self._take(record, room, check)
                return
            except CursorError:  # retention was quicker
                if attempt == _TRIES - 1:
                    raise

    def _drop(self, record: StreamRecord) -> None:
        """Forget what the log has deleted: one by one, or all of it where that is quicker or frees the terms' texts."""
        gone = min(record.first, self.next) - self.first
        other = record.created != self._created or record.next < self.next
        if other or record.first > self.next or gone + self._removed > self.next - self.first:
            self._created = record.created
            self._clear(record.first)
            return
        last = self.first + gone
        while self.first < last:
            self._remove(min(_REMOVED, last - self.first))

    def _remove(self, count: int) -> None:
        """Forget the first events, in one transaction."""
        names = (f"<{self._name}{offset}>" for offset in range(self.first, self.first + count))
        self.store.update(" ;\n".join(f"DROP SILENT GRAPH {name} ; DELETE WHERE {{ {name} ?p ?o }}" for name in names))
        self.size -= sum(self._sizes.popleft() for _ in range(count))
        self.first += count
        self._removed += count

    def _take(self, record: StreamRecord, room: Callable[[int], None], check: Callable[[], None]) -> None:
        room(_SAID * (record.next - self.next))
        terms = TermDictionary()
        for logged in self._journal.log.read(self.iri, terms, since=self.next, until=record.next):
            for begin in range(0, len(logged.batch), _PART):
                part = slice(begin, begin + _PART)
                self._add(logged, part, terms)
                check()
                room(_SAID * (record.next - self.next))

    def _add(self, logged: Logged, part: slice, terms: TermDictionary) -> None:
        batch = logged.batch.slice(part.start, min(part.stop, len(logged.batch)))
        offsets = logged.offset[part].tolist()
        names = [f"<{self._name}{offset}>" for offset in offsets]
        said = [
            f"{name} {GENERATED_AT} {to_literal(at)} .\n{name} {STREAM} <{self.iri}> .\n"
            for name, at in zip(names, batch.time.tolist(), strict=True)
        ]
        distinct, inverse = np.unique(np.concatenate(batch.ids), return_inverse=True)
        data, ends = terms.texts(distinct)
        whole = data.tobytes()
        text = [whole[a:b].decode() for a, b in pairwise(ends.tolist())]
        sizes = np.diff(batch.offset)
        owner = np.repeat(np.arange(len(batch)), sizes).tolist()
        rows = zip(*(column.tolist() for column in np.split(inverse, 3)), owner, strict=True)
        lines = [f"{text[s]} {text[p]} {text[o]} {names[event]} .\n" for s, p, o, event in rows]
        for event in np.flatnonzero(sizes == 0).tolist():
            self.store.add_graph(NamedNode(names[event][1:-1]))
        self.store.load("".join(said + lines).encode(), RdfFormat.N_QUADS)
        counts = (sizes + _SAID).tolist()
        self._sizes.extend(counts)
        self.size += sum(counts)
        self.next = offsets[-1] + 1


def event_name(stream: str, offset: int | str) -> str:
    """The name of an event's graph."""
    return f"urn:oxiseq:event:{quote(stream, safe='')}:{offset}"
