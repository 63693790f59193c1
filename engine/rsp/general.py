"""A query's answers at any instants, whatever its windows are: those of many instants at once.

Where it stands: complete events in order → items, event mappings → windows through the instants → what comes into them
and what goes, of events and of event mappings → operators (engine/flow) → **full rows to tell**.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from oxiseq.engine.events.batch import EventBatch
from oxiseq.engine.flow.cutting import cut
from oxiseq.engine.flow.delta import I64
from oxiseq.engine.flow.leaves import Moves
from oxiseq.engine.flow.occurring import Occurring
from oxiseq.engine.flow.plan import Given
from oxiseq.engine.flow.standing import Standing
from oxiseq.engine.flow.stepping import Stepping
from oxiseq.engine.kb_in_time import KbInTime
from oxiseq.engine.patterns.matcher import StreamMatcher
from oxiseq.engine.rsp.full_rows import FullRows
from oxiseq.engine.rsp.items import Content, Held, Items, oldest
from oxiseq.engine.rsp.plan import EventPlan, RspPlan
from oxiseq.engine.rsp.schedule import Schedule, Stretches
from oxiseq.engine.rsp.steady import full_rows
from oxiseq.engine.terms.blanks import KbBlanks
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.engine.terms.saved import KnownTerms, SavedTerms, State
from oxiseq.engine.windows import Window

_NO_EVENTS: Final = EventBatch.empty()
_NO_PLACES: Final = np.zeros(0, np.int64)
_TOLD: Final = Window(None)
"""Of a flow that is told what its windows hold."""


class GeneralAnswers:
    """All that changes for a query that is answered so."""

    def __init__(self, plan: RspPlan, terms: TermDictionary, kb: KbInTime, blanks: KbBlanks) -> None:
        self._plan = plan
        self._terms = terms
        self._blanks = blanks
        """Of the KB, wherever it is asked."""
        self._items = [Items(any(c.stream == s and c.stored for c in plan.contents)) for s in range(len(plan.streams))]
        self._contents = [Content(c.stream, c.window) for c in plan.contents]
        self._matchers = [
            None if request is None else StreamMatcher(request, terms, kb, blanks=blanks)
            for request in plan.requests
        ]
        windows = [_TOLD for _ in plan.contents]
        flow = plan.flow
        parts = cut(flow.plan) if flow.used else None
        rest = flow.plan if parts is None else parts.rest
        self._standing = Standing(rest, plan.report, flow.compared, windows, kb, blanks, terms)
        named = {form.name for form in flow.plan.forms if isinstance(form, Given)}
        self._events = {e.name: e for e in plan.events if e.name in named}
        """By name; those that no MATCH names are left out."""
        self._occurring = {n: Occurring(e.rows.given(items=plan.consumes)) for n, e in self._events.items()}
        streams = {name: self._stream(event) for name, event in self._events.items()}
        self._brings = [[e for e in self._events.values() if streams[e.name] == n] for n in range(len(plan.streams))]
        """By stream the events that its items bring."""
        self._stepping = None if parts is None else Stepping(parts, flow.used, self._occurring, streams, terms)
        """What MATCH finds, if it uses its items up."""

    def add(self, batches: Sequence[EventBatch]) -> None:
        """Complete events by stream, in order of time. Raises LimitError, KbError."""
        for stream, batch in enumerate(batches):
            last = self._last(stream)
            kept = batch if last is None else batch.slice(0, int(batch.time.searchsorted(last, "right")))
            if len(kept):
                self._add(stream, kept)

    def _last(self, stream: int) -> int | None:
        """The last time of which a window on a stream wants events; None: there is none."""
        ends = [c.window.end for c in self._contents if c.stream == stream]
        return None if None in ends else max((end for end in ends if end is not None), default=None)

    def _add(self, stream: int, batch: EventBatch) -> None:
        items, matcher = self._items[stream], self._matchers[stream]
        place = items.end
        items.add(batch)
        if matcher is None:
            return
        found = matcher.match(batch)
        for event in self._brings[stream]:
            rows, end = found[event.request], self._contents[event.content].window.end
            if not len(rows.event):
                continue
            high = len(rows.event) if end is None else int(batch.time[rows.event].searchsorted(end, "right"))
            at = rows.event[:high]
            self._occurring[event.name].add(place + at, batch.time[at], rows.values[:high])

    def _stream(self, event: EventPlan) -> int:
        return self._plan.contents[event.content].stream

    @property
    def windows(self) -> Held:
        """What windows hold at a time."""
        return Held(self._items, self._contents)

    def told(self, stretches: Stretches, schedule: Schedule) -> tuple[Stretches, I64, FullRows]:
        """The full rows to tell at some instants, in the order in which they are told: the instants at which the
        answer may be another, the number of each row's among them, and the rows. Raises LimitError, KbError."""
        times = stretches.at
        before = [content.stop for content in self._contents]
        bounds = [content.through(self._items[content.stream], times) for content in self._contents]
        of_events = {name: bounds[event.content] for name, event in self._events.items()}
        if self._stepping is None:
            given = {name: self._occurring[name].move(*of_events[name], 0) for name in self._events}
        else:
            ticks, given = self._stepping.through(of_events, schedule.further_of(stretches))
            if (ticks > 1).any():
                bounds = [(np.repeat(starts, ticks), np.repeat(stops, ticks)) for starts, stops in bounds]
                stretches = schedule.divided(stretches, ticks)
        number, values = self._standing.move(self._moves(before, bounds, len(stretches)), given)
        found = full_rows(self._plan, number, values, self._blanks.ids, self._terms)
        self._forget()
        return stretches, *found

    def _moves(self, before: Sequence[int], bounds: Sequence[tuple[I64, I64]], instants: int) -> Moves:
        """What comes into windows that held what is before some places."""
        batches, places, at = list[EventBatch](), list[I64](), list[I64]()
        low = np.empty((instants, len(bounds)), np.int64)
        for number, (first, (starts, stops)) in enumerate(zip(before, bounds, strict=True)):
            plan, low[:, number] = self._plan.contents[number], starts
            if not plan.stored:
                batches.append(_NO_EVENTS)
                places.append(_NO_PLACES)
                at.append(_NO_PLACES)
                continue
            first, last = max(first, int(starts[0])), int(stops[-1])
            batches.append(EventBatch.concat(list(self._items[plan.stream].graphs(first, last))))
            places.append(np.arange(first, first + len(batches[-1])))
            at.append(stops.searchsorted(places[-1], "right"))
        return Moves(batches, places, at, low)

    def _forget(self) -> None:
        """What no window asks for any more. The graphs of events that are in all windows that will have them: these
        know them by now."""
        for stream, items in enumerate(self._items):
            items.forget(oldest(self._contents, stream, items.end))
            if not items.keeps:
                continue
            waiting = (c for c in self._contents if c.stream == stream and not c.settled)
            items.forget_graphs(min((c.stop for c in waiting), default=items.end))

    # --- what it holds ------------------------------------------------------------------------------

    def held_ids(self) -> Iterator[NDArray[np.uint32]]:
        """The terms of all that it may still look at."""
        for items in self._items:
            yield from items.held_ids()
        for rows in self._occurring.values():
            yield rows.held_ids()
        yield from self._standing.held_ids()
        if self._stepping is not None:
            yield from self._stepping.held_ids()

    @property
    def state(self) -> dict[str, int]:
        """Numbers of live records."""
        standing, stepping = self._standing.state, self._stepping
        rows = standing["rows"] + (0 if stepping is None else stepping.records)
        return {
            "items": sum(items.end - items.first for items in self._items),
            "mappings": sum(map(len, self._occurring.values())),
            **standing, "rows": rows,
        }  # fmt: skip

    @property
    def bytes(self) -> int:
        """About how large it is."""
        arrays = sum(items.bytes for items in self._items) + sum(rows.bytes for rows in self._occurring.values())
        return arrays + self._standing.bytes + (0 if self._stepping is None else self._stepping.bytes)

    def save(self, terms: SavedTerms) -> State:
        """Its state between instants."""
        return {
            "items": [items.save(terms) for items in self._items],
            "contents": [content.save() for content in self._contents],
            "events": [rows.save(terms) for rows in self._occurring.values()],
            "standing": self._standing.save(terms),
            "stepping": None if self._stepping is None else self._stepping.save(terms),
        }

    def restore(self, state: State, terms: KnownTerms) -> None:
        """Go on from a saved state."""
        for items, saved in zip(self._items, state["items"], strict=True):
            items.restore(saved, terms)
        for occurring, saved in zip(self._occurring.values(), state["events"], strict=True):
            occurring.restore(saved, terms)
        for content, saved in zip(self._contents, state["contents"], strict=True):
            content.restore(saved)
        self._standing.restore(state["standing"], terms)
        if self._stepping is not None:
            self._stepping.restore(state["stepping"], terms)
