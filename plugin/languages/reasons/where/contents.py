"""What windows hold at an instant, and in which of their events a triple is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import field

import numpy as np
from pyoxigraph import NamedNode, Triple

from oxiseq.engine.events.batch import EventBatch
from oxiseq.engine.events.encode import decode_events
from oxiseq.engine.rsp.items import Items, WindowRange
from oxiseq.grammar.records import dataclass
from oxiseq.grammar.rsp_algebra import NamedWindow, RspQuery
from oxiseq.languages.reasons.read import History, Span, within

Ids = tuple[int, int, int]


@dataclass(slots=True)
class Held:
    """A window's events at an instant. `first`: the number of the first among its stream's."""

    window: NamedWindow
    first: int
    batch: EventBatch
    history: History
    _places: dict[Ids, list[int]] = field(default_factory=dict)

    @property
    def stream(self) -> str:
        return self.window.stream.value

    @property
    def triples(self) -> int:
        """How many different ones."""
        return len(self._index())

    def events_with(self, triple: Ids) -> list[int]:
        """The events in the window that have a triple, by their number in the window."""
        return self._index().get(triple, [])

    def time(self, event: int) -> int:
        return int(self.batch.time[event])

    def graph(self, event: int) -> tuple[Triple, ...]:
        one = self.batch.slice(event, event + 1)
        return next((tuple(graph) for _, graph in decode_events(one, self.history.terms)), ())

    def _index(self) -> dict[Ids, list[int]]:
        if not self._places and self.batch.triples:
            event = np.repeat(np.arange(len(self.batch)), np.diff(self.batch.offset))
            columns = (column.tolist() for column in self.batch.ids)
            for number, *triple in zip(event.tolist(), *columns, strict=True):
                places = self._places.setdefault((triple[0], triple[1], triple[2]), [])
                if not places or places[-1] != number:
                    places.append(number)
        return self._places


class Contents:
    """Windows at one instant."""

    def __init__(self, windows: Sequence[Held]) -> None:
        self.windows = windows

    @classmethod
    def at(cls, query: RspQuery, history: History, instant: int) -> Contents:
        """Of a query over windows."""
        return cls([_held(query, window, history, instant) for window in query.windows])

    @classmethod
    def within(cls, history: History, span: Span) -> Contents:
        """The events of all streams in a span of time, as the default graph."""
        found = []
        for iri, batch in history.batches.items():
            first = 0 if span.since is None else int(np.searchsorted(batch.time, span.since))
            found.append(Held(NamedWindow(NamedNode(iri), ()), first, within(batch, span), history))
        return cls(found)

    def named(self, name: NamedNode) -> Held | None:
        """The window of a name."""
        return next((held for held in self.windows if held.window.name == name), None)

    @property
    def default(self) -> tuple[Held, ...]:
        """Those that are the default graph."""
        return tuple(held for held in self.windows if held.window.name is None)


def _held(query: RspQuery, window: NamedWindow, history: History, at: int) -> Held:
    batch = history.batches[window.stream.value]
    items = Items(False)
    items.add(batch)
    bounds = items.places(WindowRange(window.operators, query.language == "rsepql"), np.array([at]))
    start, stop = (int(places[0]) for places in bounds)
    return Held(window, start, batch.slice(start, stop), history)


def distinct(sources: Iterator[tuple[str, Held, int]]) -> list[tuple[str, Held, int]]:
    """Each event of each name once."""
    found: dict[tuple[str, str, int], tuple[str, Held, int]] = {}
    for name, held, event in sources:
        found.setdefault((name, held.stream, held.first + event), (name, held, event))
    return list(found.values())
