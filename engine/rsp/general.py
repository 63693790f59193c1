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
from oxiseq.engine.flow.delta import Delta
from oxiseq.engine.flow.standing import Standing
from oxiseq.engine.kb_in_time import KbInTime
from oxiseq.engine.matching.matcher import StreamMatcher
from oxiseq.engine.rsp.full_rows import FullRows
from oxiseq.engine.rsp.given import MatchRows
from oxiseq.engine.rsp.growing import Change, Growing, grows, rows_of
from oxiseq.engine.rsp.items import Content, Held, Items, oldest
from oxiseq.engine.rsp.mappings import Events, Stored, codes, evaluate
from oxiseq.engine.rsp.plan import MatchPlan, RspPlan, match_name
from oxiseq.engine.rsp.steady import full_rows
from oxiseq.engine.terms.blanks import KbBlanks
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.engine.terms.saved import KnownTerms, SavedTerms, State
from oxiseq.engine.windows import Window

_TOLD: Final = Window(None)
"""Of a flow that is told what its windows hold."""


class GeneralAnswers:
    """All that changes for a query that is not answered incrementally."""

    def __init__(self, plan: RspPlan, terms: TermDictionary, kb: KbInTime) -> None:
        self._plan = plan
        self._terms = terms
        streams = range(len(plan.streams))
        self._blanks = KbBlanks(terms)
        """Of the KB, wherever it is asked."""
        self._items = [Items(any(c.stream == s and c.stored for c in plan.contents)) for s in streams]
        self._contents = [Content(c.stream, c.window) for c in plan.contents]
        self._matchers = [
            None if request is None else StreamMatcher(request, terms, kb, blanks=self._blanks)
            for request in plan.requests
        ]
        self._stored = [Stored(e, plan.contents[e.content].stream) for e in plan.events]
        self._used: list[NDArray[np.int64]] = [np.zeros(0, np.int64) for _ in streams]
        """By stream the places of items that justified an answer and are consumed."""
        self.settled = not plan.volatile
        """Whether the last answer stays while the windows hold the same: it has no volatile function, and it has
        consumed nothing."""
        windows = [_TOLD for _ in plan.contents]
        flow = plan.flow
        self._standing = Standing(flow.plan, plan.report, flow.compared, windows, kb, self._blanks, terms)
        self._given = [MatchRows(len(m.variables) + m.timed, terms) for m in plan.matches]
        by_name = {stored.plan.name: stored for stored in self._stored}
        of_window = {event.name: self._contents[event.content] for event in plan.events}
        self._growing = [Growing(m, by_name, of_window) if grows(m, plan) else None for m in plan.matches]
        """By MATCH; None where it is evaluated anew at each instant."""

    def add(self, batches: Sequence[EventBatch]) -> None:
        """Complete events by stream, in order of time. Raises LimitError, KbError."""
        for stream, (batch, items, matcher) in enumerate(zip(batches, self._items, self._matchers, strict=True)):
            if not len(batch):
                continue
            place = items.end
            items.add(batch)
            if matcher is not None:
                found = matcher.match(batch)
                for stored in self._stored:
                    if stored.stream == stream:
                        rows = found[stored.plan.request]
                        stored.add(place + rows.event, batch.time[rows.event], rows.values)

    @property
    def windows(self) -> Held:
        """What windows hold at a time."""
        return Held(self._items, self._contents)

    def told(self, at: int) -> FullRows:
        """The full rows to tell at an instant, in the order in which they are told; instants rise. Raises LimitError,
        KbError."""
        entered = self._move(at)
        found = self._matches()
        rows = self._flown(entered, found)
        self._forget()
        return rows

    def _move(self, at: int) -> list[EventBatch]:
        """Windows go on to a time; by content the events that come in."""
        entered = []
        for content, plan in zip(self._contents, self._plan.contents, strict=True):
            items = self._items[content.stream]
            _, (low, high) = content.move(items, at)
            entered.append(EventBatch.concat(list(items.graphs(low, high))) if plan.stored else EventBatch.empty())
        for stream, items in enumerate(self._items):
            items.forget_graphs(min((c.stop for c in self._contents if c.stream == stream), default=items.end))
        return entered

    def _matches(self) -> list[Events | Change]:
        """The mappings of each MATCH, or how they have changed."""
        atoms: dict[str, Events] = {}
        if None in self._growing:
            atoms = {stored.plan.name: self._atom(stored) for stored in self._stored}
        found = [
            evaluate(match, atoms) if growing is None else growing.step()
            for match, growing in zip(self._plan.matches, self._growing, strict=True)
        ]
        if self._plan.consumes:
            self._consume([events for events in found if isinstance(events, Events)])
        return found

    def _atom(self, stored: Stored) -> Events:
        content = self._contents[stored.plan.content]
        return stored.within(content.start, content.stop, self._used[stored.stream])

    def _consume(self, found: Sequence[Events]) -> None:
        """The items that justified a mapping are not used again."""
        self.settled = not self._plan.volatile and not any(map(len, found))
        for events in found:
            for atom, stream in enumerate(events.of):
                self._used[stream] = np.union1d(self._used[stream], events.items[:, atom])

    def _flown(self, entered: Sequence[EventBatch], found: Sequence[Events | Change]) -> FullRows:
        given = dict[str, Delta]()
        for number, (each, rows) in enumerate(zip(found, self._given, strict=True)):
            match = self._plan.matches[number]
            delta = rows.changed(each) if isinstance(each, Change) else rows.whole(_distinct(match, each))
            given[match_name(number)] = delta
        places = [content.stop - len(batch) for content, batch in zip(self._contents, entered, strict=True)]
        values = self._standing.move(entered, places, [content.start for content in self._contents], given)
        at = np.zeros(len(values), np.int64)
        return full_rows(self._plan, at, values, self._blanks.ids, self._terms)[1]

    def _forget(self) -> None:
        for stream, items in enumerate(self._items):
            before = oldest(self._contents, stream, items.end)
            items.forget(before)
            if len(self._used[stream]):
                self._used[stream] = self._used[stream][np.searchsorted(self._used[stream], before) :]
        for stored in self._stored:
            stored.forget(self._contents[stored.plan.content].start)

    # --- what it holds ------------------------------------------------------------------------------

    def held_ids(self) -> Iterator[NDArray[np.uint32]]:
        """The terms of all that it may still look at."""
        for items in self._items:
            yield from items.held_ids()
        for stored in self._stored:
            yield from stored.held_ids()
        for rows in self._given:
            yield rows.held_ids()
        yield from self._standing.held_ids()
        yield self._blanks.ids

    @property
    def state(self) -> dict[str, int]:
        """Numbers of live records."""
        return {
            "items": sum(items.end - items.first for items in self._items),
            "mappings": sum(map(len, self._stored)),
            "matches": sum(len(growing) for growing in self._growing if growing is not None),
            **self._standing.state,
        }

    @property
    def bytes(self) -> int:
        """About how large it is."""
        arrays = sum(items.bytes for items in self._items) + sum(stored.bytes for stored in self._stored)
        return arrays + self._standing.bytes

    def save(self, terms: SavedTerms) -> State:
        """Its state between instants."""
        return {
            "items": [items.save(terms) for items in self._items],
            "contents": [[c.start, c.stop] for c in self._contents],
            "stored": [stored.save(terms) for stored in self._stored],
            "used": list(self._used),
            "kb": self._blanks.save(terms),
            "given": [rows.save(terms) for rows in self._given],
            "standing": self._standing.save(terms),
        }

    def restore(self, state: State, terms: KnownTerms) -> None:
        """Go on from a saved state."""
        for items, saved in zip(self._items, state["items"], strict=True):
            items.restore(saved, terms)
        for stored, saved in zip(self._stored, state["stored"], strict=True):
            stored.restore(saved, terms)
        self._used = [used.copy() for used in state["used"]]
        self._blanks.restore(state["kb"], terms)
        for content, (start, stop) in zip(self._contents, state["contents"], strict=True):
            content.start, content.stop = int(start), int(stop)
        for rows, saved in zip(self._given, state["given"], strict=True):
            rows.restore(saved, terms)
        self._standing.restore(state["standing"], terms)
        for growing in self._growing:
            if growing is not None:
                growing.step()


def _distinct(match: MatchPlan, events: Events) -> FullRows:
    """Each mapping once, with its times where they count."""
    rows = rows_of(match, events)
    keyed = np.concatenate([rows.values.astype(np.int64), rows.span], axis=1)
    if len(keyed) < 2:
        return rows
    kept = np.sort(np.unique(codes(keyed), return_index=True)[1])
    return rows.take(kept)
