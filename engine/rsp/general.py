"""A query's answer at an instant, whatever it asks: windows filled, event patterns evaluated, WHERE asked of Oxigraph.

Where it stands: complete events in order → items, event mappings → windows at an instant → **full rows**.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from oxiseq.engine.events.batch import EventBatch
from oxiseq.engine.kb_in_time import KbInTime
from oxiseq.engine.matching.fallback import content_order
from oxiseq.engine.matching.matcher import StreamMatcher
from oxiseq.engine.rsp.dataset import Dataset
from oxiseq.engine.rsp.growing import Change, Growing, grows, rows_of
from oxiseq.engine.rsp.items import Content, Held, Items, oldest
from oxiseq.engine.rsp.mappings import Events, Stored, codes, evaluate
from oxiseq.engine.rsp.plan import MatchPlan, RspPlan
from oxiseq.engine.rsp.reports import FullRows
from oxiseq.engine.terms.blanks import KbBlanks
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.engine.terms.saved import KnownTerms, SavedTerms, State
from oxiseq.grammar.rsp_algebra import Report

_PER_TRIPLE: Final = 700
"""Bytes of a triple in the store and where it is counted, without its terms."""


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
        self._dataset = Dataset(plan, terms, kb, self._blanks)
        by_name = {stored.plan.name: stored for stored in self._stored}
        of_window = {event.name: self._contents[event.content] for event in plan.events}
        whole = plan.direct and plan.report is Report.RSTREAM
        self._growing = [
            Growing(m, by_name, of_window) if grows(m, plan) and not whole else None for m in plan.matches
        ]
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

    @property
    def changes(self) -> bool:
        """Whether what is new and what is gone is known without the whole answer: then call `change`."""
        return self._plan.direct and self._growing[0] is not None

    def change(self, at: int) -> Change:
        """What is new at an instant, what is gone; instants rise."""
        self._move(at)
        (growing,) = self._growing
        assert growing is not None  # `changes` says so
        change = growing.step()
        self._forget()
        return change

    def answer(self, at: int) -> FullRows:
        """The full rows at an instant, in no order but that of ORDER BY; instants rise."""
        self._move(at)
        found = self._matches()
        rows = self._direct(found[0]) if self._plan.direct else self._asked(found)
        self._forget()
        return rows

    def _move(self, at: int) -> None:
        """Windows go on to a time."""
        for number, (content, plan) in enumerate(zip(self._contents, self._plan.contents, strict=True)):
            items = self._items[content.stream]
            left, entered = content.move(items, at)
            if plan.stored:
                self._dataset.leave(number, items.graphs(*left))
                self._dataset.enter(number, items.graphs(*entered))

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

    def _direct(self, found: Events | Change) -> FullRows:
        assert isinstance(found, Events)  # else `change` is called
        return _distinct(self._plan.matches[0], found)

    def _asked(self, found: Sequence[Events | Change]) -> FullRows:
        asked = self._plan.asked
        assert asked is not None
        self._dataset.kb.refresh()
        self._tell(found)
        values, rows = self._dataset.solutions(asked.over(self._dataset.kb.names), asked.width, asked.with_row)
        spans = [self._dataset.spans[row] for row in rows]
        return FullRows(values, np.array(spans, np.int64).reshape(len(values), 2 if asked.with_row else 0))

    def _tell(self, found: Sequence[Events | Change]) -> None:
        """Tell the store the mappings of each MATCH."""
        for number, each in enumerate(found):
            if isinstance(each, Events):
                self._dataset.set_rows(number, _distinct(self._plan.matches[number], each))
            else:
                self._dataset.drop_rows(number, each.gone)
                self._dataset.add_rows(number, each.new)

    def in_order(self, rows: FullRows) -> FullRows:
        """As they are told: as ORDER BY says, else by their terms, then by their times."""
        if len(rows) < 2 or (self._plan.asked is not None and self._plan.asked.ordered):
            return rows
        if rows.span.shape[1]:
            rows = rows.take(np.lexsort((rows.span[:, 0], rows.span[:, 1])))
        return rows.take(content_order(np.zeros(len(rows), np.int64), rows.values, self._terms, self._blanks.ids))

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
        yield self._blanks.ids

    @property
    def state(self) -> dict[str, int]:
        """Numbers of live records."""
        return {
            "items": sum(items.end - items.first for items in self._items),
            "triples": self._dataset.triples,
            "mappings": sum(map(len, self._stored)),
            "matches": sum(len(growing) for growing in self._growing if growing is not None),
        }

    @property
    def bytes(self) -> int:
        """About how large it is."""
        arrays = sum(items.bytes for items in self._items) + sum(stored.bytes for stored in self._stored)
        return arrays + _PER_TRIPLE * self._dataset.triples

    def save(self, terms: SavedTerms) -> State:
        """Its state between instants."""
        return {
            "items": [items.save(terms) for items in self._items],
            "contents": [[c.start, c.stop] for c in self._contents],
            "stored": [stored.save(terms) for stored in self._stored],
            "used": list(self._used),
            "kb": self._blanks.save(terms),
        }

    def restore(self, state: State, terms: KnownTerms) -> None:
        """Go on from a saved state."""
        for items, saved in zip(self._items, state["items"], strict=True):
            items.restore(saved, terms)
        for stored, saved in zip(self._stored, state["stored"], strict=True):
            stored.restore(saved, terms)
        self._used = [used.copy() for used in state["used"]]
        self._blanks.restore(state["kb"], terms)
        for number, (content, plan) in enumerate(zip(self._contents, self._plan.contents, strict=True)):
            content.start, content.stop = (int(x) for x in state["contents"][number])
            if plan.stored:
                self._dataset.enter(number, self._items[content.stream].graphs(content.start, content.stop))
        for number, growing in enumerate(self._growing):
            if growing is not None:
                change = growing.step()
                if not self._plan.direct:
                    self._dataset.add_rows(number, change.new)


def _distinct(match: MatchPlan, events: Events) -> FullRows:
    """Each mapping once, with its times where they count."""
    rows = rows_of(match, events)
    keyed = np.concatenate([rows.values.astype(np.int64), rows.span], axis=1)
    if len(keyed) < 2:
        return rows
    kept = np.sort(np.unique(codes(keyed), return_index=True)[1])
    return rows.take(kept)
