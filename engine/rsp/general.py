"""A query's answer at an instant, whatever its windows are and whenever it is answered.

Where it stands: complete events in order → items, event mappings → windows at an instant → what comes into them and
what goes, of events and of event mappings → operators (engine/flow) → **full rows to tell**.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from oxiseq.engine.events.batch import EventBatch
from oxiseq.engine.flow.occurring import Occurring, used_items
from oxiseq.engine.flow.plan import Asked, Patterns, draws_in_turn
from oxiseq.engine.flow.standing import Standing
from oxiseq.engine.kb_in_time import KbInTime
from oxiseq.engine.matching.matcher import StreamMatcher
from oxiseq.engine.rsp.full_rows import FullRows
from oxiseq.engine.rsp.items import Content, Held, Items, oldest
from oxiseq.engine.rsp.plan import EventPlan, RspPlan
from oxiseq.engine.rsp.steady import full_rows
from oxiseq.engine.terms.blanks import KbBlanks
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.engine.terms.saved import KnownTerms, SavedTerms, State
from oxiseq.engine.windows import Window

_TOLD: Final = Window(None)
"""Of a flow that is told what its windows hold."""


class GeneralAnswers:
    """All that changes for a query that is answered so."""

    def __init__(self, plan: RspPlan, terms: TermDictionary, kb: KbInTime, blanks: KbBlanks) -> None:
        self._plan = plan
        self._terms = terms
        streams = range(len(plan.streams))
        self._blanks = blanks
        """Of the KB, wherever it is asked."""
        self._items = [Items(any(c.stream == s and c.stored for c in plan.contents)) for s in streams]
        self._contents = [Content(c.stream, c.window) for c in plan.contents]
        self._matchers = [
            None if request is None else StreamMatcher(request, terms, kb, blanks=blanks)
            for request in plan.requests
        ]
        self.settled = not plan.volatile
        """Whether the last answer stays while the windows hold the same: it has no volatile function, and it has
        consumed nothing."""
        windows = [_TOLD for _ in plan.contents]
        flow = plan.flow
        self._standing = Standing(flow.plan, plan.report, flow.compared, windows, kb, blanks, terms)
        self._events = {e.name: e for e in plan.events if e.name in self._standing.given}
        """By name; those that no MATCH names are left out."""
        self._occurring = {n: Occurring(e.rows.given(items=plan.consumes)) for n, e in self._events.items()}

        each_alone = plan.consumes or not plan.rhythm.every_instant or draws_in_turn(flow.plan)
        self.at_once = not each_alone and not any(isinstance(form, Patterns | Asked) for form in flow.plan.forms)
        """Whether it is answered at all instants of a batch at once (`told_through`): MATCH is all that it asks."""

    def add(self, batches: Sequence[EventBatch]) -> None:
        """Complete events by stream, in order of time. Raises LimitError, KbError."""
        for stream, (batch, items, matcher) in enumerate(zip(batches, self._items, self._matchers, strict=True)):
            if not len(batch):
                continue
            place = items.end
            items.add(batch)
            if matcher is not None:
                found = matcher.match(batch)
                for name, event in self._events.items():
                    if self._stream(event) == stream:
                        rows = found[event.request]
                        self._occurring[name].add(place + rows.event, batch.time[rows.event], rows.values)

    def _stream(self, event: EventPlan) -> int:
        return self._plan.contents[event.content].stream

    @property
    def windows(self) -> Held:
        """What windows hold at a time."""
        return Held(self._items, self._contents)

    def told(self, at: int) -> FullRows:
        """The full rows to tell at an instant, in the order in which they are told; instants rise. Raises LimitError,
        KbError."""
        self._standing.know()  # before windows go on: an error of the KB loses nothing
        rows = self._flown(self._move(at))
        if self._plan.consumes:
            self._consume()
        self._forget()
        return rows

    def told_through(self, times: NDArray[np.int64]) -> tuple[NDArray[np.int64], FullRows]:
        """The same at several instants, distinct and ascending: when, and what. Raises LimitError."""
        bounds = [content.through(self._items[content.stream], times) for content in self._contents]
        given = {name: self._occurring[name].move(*bounds[event.content], 0) for name, event in self._events.items()}
        at, values = self._standing.give(given, len(times))
        at, rows = full_rows(self._plan, at, values, self._blanks.ids, self._terms)
        self._forget_graphs()
        self._forget()
        return times[at], rows

    def _forget(self) -> None:
        for stream, items in enumerate(self._items):
            items.forget(oldest(self._contents, stream, items.end))

    def _forget_graphs(self) -> None:
        """Of events that are in all windows that will have them: these know them by now."""
        for stream, items in enumerate(self._items):
            items.forget_graphs(min((c.stop for c in self._contents if c.stream == stream), default=items.end))

    def _move(self, at: int) -> list[EventBatch]:
        """Windows go on to a time; by content the events that come in."""
        entered = []
        for content, plan in zip(self._contents, self._plan.contents, strict=True):
            items = self._items[content.stream]
            low, high = content.move(items, at)
            entered.append(EventBatch.concat(list(items.graphs(low, high))) if plan.stored else EventBatch.empty())
        self._forget_graphs()
        return entered

    def _flown(self, entered: Sequence[EventBatch]) -> FullRows:
        contents = self._contents
        given = {}
        for name, event in self._events.items():
            content = contents[event.content]
            given[name] = self._occurring[name].move(np.array([content.start]), np.array([content.stop]), 0)
        places = [content.stop - len(batch) for content, batch in zip(contents, entered, strict=True)]
        values = self._standing.move(entered, places, [content.start for content in contents], given)
        at = np.zeros(len(values), np.int64)
        return full_rows(self._plan, at, values, self._blanks.ids, self._terms)[1]

    def _consume(self) -> None:
        """The items that justified a mapping are not used again."""
        self.settled = not self._plan.volatile
        for used in self._plan.flow.used:
            changes = self._standing.rows(used.node)
            for number, name in enumerate(used.events):
                stream, places = self._stream(self._events[name]), used_items(changes, number)
                if len(places):
                    self.settled = False
                    for other, event in self._events.items():
                        if self._stream(event) == stream:
                            self._occurring[other].consume(places)

    # --- what it holds ------------------------------------------------------------------------------

    def held_ids(self) -> Iterator[NDArray[np.uint32]]:
        """The terms of all that it may still look at."""
        for items in self._items:
            yield from items.held_ids()
        for rows in self._occurring.values():
            yield rows.held_ids()
        yield from self._standing.held_ids()

    @property
    def state(self) -> dict[str, int]:
        """Numbers of live records."""
        return {
            "items": sum(items.end - items.first for items in self._items),
            "mappings": sum(map(len, self._occurring.values())),
            **self._standing.state,
        }

    @property
    def bytes(self) -> int:
        """About how large it is."""
        arrays = sum(items.bytes for items in self._items) + sum(rows.bytes for rows in self._occurring.values())
        return arrays + self._standing.bytes

    def save(self, terms: SavedTerms) -> State:
        """Its state between instants."""
        return {
            "items": [items.save(terms) for items in self._items],
            "contents": [[c.start, c.stop] for c in self._contents],
            "events": [rows.save(terms) for rows in self._occurring.values()],
            "standing": self._standing.save(terms),
        }

    def restore(self, state: State, terms: KnownTerms) -> None:
        """Go on from a saved state."""
        for items, saved in zip(self._items, state["items"], strict=True):
            items.restore(saved, terms)
        for occurring, saved in zip(self._occurring.values(), state["events"], strict=True):
            occurring.restore(saved, terms)
        for content, (start, stop) in zip(self._contents, state["contents"], strict=True):
            content.start, content.stop = int(start), int(stop)
        self._standing.restore(state["standing"], terms)
