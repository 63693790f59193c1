"""GPMs that are more than basic graph patterns, at work: a batch of events comes, and goes again.

In the flow: rows of basic graph patterns by event, answers of the knowledge base → operators → **rows of the GPM by
event**. All rows of a batch come at one tick and go at the next, so between batches a plan keeps nothing but what the
knowledge base has answered.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray
from pyoxigraph import NamedNode

from oxiseq.engine import kinds
from oxiseq.engine.errors import LimitError, MappingsError
from oxiseq.engine.events.batch import EventBatch
from oxiseq.engine.events.time import to_text
from oxiseq.engine.flow.delta import Delta, Ids
from oxiseq.engine.flow.flow import Flow
from oxiseq.engine.flow.knowledge import Knowledge
from oxiseq.engine.kb_in_time import KbInTime
from oxiseq.engine.matching.conditions import ConditionFilter
from oxiseq.engine.patterns.operator_plan import OperatorGpm
from oxiseq.engine.terms.blanks import KbBlanks
from oxiseq.engine.terms.content import content_order
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.engine.terms.saved import Stateful, unsaved

_EVENT: Final = "urn:oxiseq:event:"
_NO_BLANKS: Final = np.zeros(0, np.uint32)
Found: TypeAlias = tuple[NDArray[np.int64], Ids]
"""event i64[k] ascending, values u32[k, columns]"""


class OperatorMatcher(Stateful):
    """Answers one GPM."""

    made_of = unsaved("_flow"), unsaved("_knowledge"), unsaved("_blanks")

    def __init__(
        self,
        gpm: OperatorGpm,
        terms: TermDictionary,
        kb: KbInTime,
        blanks: KbBlanks,
        most_rows: int,
        chunk: int,
    ) -> None:
        self.gpm, self._terms, self._most_rows, self._chunk = gpm, terms, most_rows, chunk
        self._kb, self._blanks = kb, blanks
        self._filter = ConditionFilter(gpm.conditions, gpm.columns, terms)
        self._events = np.zeros(0, np.uint32)
        """The terms of a step's events: their numbers, by which the rows of different events stay apart."""
        self._begin()
        terms.register(self)

    def _begin(self) -> None:
        self._flow: Flow | None = None  # a query among others may never need its own
        self._tick = 0
        asked = [form for _, form in self.gpm.asked]
        self._of_kb = _NO_BLANKS
        self._knowledge = Knowledge((), asked, self._kb, self._blanks, self._terms, self.gpm.part) if asked else None

    def _work(self, fed: Iterable[tuple[int, Delta]]) -> Delta:
        """A step of the plan, at this tick."""
        if self._flow is None:
            self._flow = Flow(self.gpm.flow, self._terms)
            self._flow.bound(self._terms.bounds.made, self._terms.bounds.reads)
        for place, delta in fed:
            self._flow.feed(place, delta)
        return self._flow.step(self._tick)

    def match(self, batch: EventBatch, leaves: Sequence[Found]) -> Found:
        """Its occurrences, kept columns only. leaves: the rows of its basic graph patterns. Raises LimitError
        for too many rows of one event, KbError."""
        self._know()
        parts = [self._piece(batch, leaves, low) for low in range(0, len(batch), self._chunk)]
        event, values = (
            (np.concatenate(column) for column in zip(*parts, strict=True))
            if parts
            else (np.zeros(0, np.int64), np.zeros((0, len(self.gpm.columns)), np.uint32))
        )
        keep = self._filter.keep(values)
        return event[keep], np.ascontiguousarray(values[keep][:, list(self.gpm.keep)])

    def _know(self) -> None:
        """The knowledge base's new answers, if they have changed, go into the plan."""
        answers = None if self._knowledge is None else self._knowledge.changed()
        if answers is None:
            return
        assert self._knowledge is not None
        places = (place for place, _ in self.gpm.asked)
        self._work(zip(places, self._knowledge.changes(answers, self._tick), strict=True))
        self._tick += 1
        self._of_kb = self._by_label(answers.tables)

    def _by_label(self, tables: Sequence[Ids]) -> Ids:
        """The knowledge base's blank nodes among some rows, in the order of their labels there: what else is known of
        them depends on the events of a run."""
        every = np.unique(np.concatenate([table.reshape(-1) for table in tables]))
        here = frozenset(every[self._terms.columns.kind[every] == kinds.BLANK].tolist())
        known = sorted((label, blank) for label, blank in self._terms.kb_blanks.items() if blank in here)
        return np.array([blank for _, blank in known], np.uint32)

    def _piece(self, batch: EventBatch, leaves: Sequence[Found], low: int) -> Found:
        high = min(low + self._chunk, len(batch))
        try:
            return self._step(batch, leaves, low, high)
        except LimitError:
            self._again()
        return self._one_by_one(batch, leaves, low, high)

    def _one_by_one(self, batch: EventBatch, leaves: Sequence[Found], low: int, high: int) -> Found:
        """To find the event of which there is too much."""
        found: list[Found] = []
        for event in range(low, high):
            try:
                found.append(self._step(batch, leaves, event, event + 1))
            except LimitError as error:
                self._again()
                raise MappingsError(error.given, error.limit, self._where(batch, event), event) from None
        events, values = zip(*found, strict=True)
        return np.concatenate(events), np.concatenate(values)

    def _again(self) -> None:
        """The plan has taken in a part: another one."""
        self._begin()
        self._know()

    def _where(self, batch: EventBatch, event: int) -> str:
        return f"mappings of GPM {self.gpm.name} on the event at {to_text(int(batch.time[event]))}"

    def _step(self, batch: EventBatch, leaves: Sequence[Found], low: int, high: int) -> Found:
        names, tick = self._names(high - low), self._tick
        told = self._work((place, _come_and_go(rows, tick)) for place, rows in self._rows(leaves, names, low, high))
        self._tick += 2
        come = told.rows[: np.searchsorted(told.at, tick, "right")]
        event = np.searchsorted(names, come[:, 0])
        if len(event) > self._most_rows:
            self._bounded(batch, event + low)
        values = np.ascontiguousarray(come[:, 1:])
        order = content_order(event, values, self._terms, self._of_kb)
        return event[order] + low, values[order]

    def _rows(self, leaves: Sequence[Found], names: Ids, low: int, high: int) -> Iterator[tuple[int, Ids]]:
        """The rows for each source."""
        if self.gpm.every is not None:
            yield self.gpm.every, names.reshape(-1, 1)
        for place, number in self.gpm.sources:
            event, values = leaves[number]
            first, last = np.searchsorted(event, (low, high))
            if first < last:
                width = self.gpm.leaves[number].width
                rows = np.empty((last - first, width + 1), np.uint32)
                rows[:, :-1] = values[first:last, :width]
                rows[:, -1] = names[event[first:last] - low]
                yield place, rows

    def _bounded(self, batch: EventBatch, event: NDArray[np.int64]) -> None:
        counts = np.bincount(event)
        most = int(counts.argmax())
        if counts[most] > self._most_rows:
            raise MappingsError(self._most_rows + 1, self._most_rows, self._where(batch, most), most)

    def _names(self, count: int) -> Ids:
        """As many terms, ascending."""
        if count > len(self._events):
            size = min(max(count, 2 * len(self._events)), self._chunk)
            self._events = np.sort(
                np.array([self._terms.constant(NamedNode(f"{_EVENT}{i}")) for i in range(size)], np.uint32)
            )
        return self._events[:count]


def _come_and_go(rows: Ids, tick: int) -> Delta:
    """Rows that come at a tick and go at the next."""
    count = len(rows)
    at, weight = np.full(2 * count, tick), np.ones(2 * count, np.int64)
    at[count:] += 1
    weight[count:] = -1
    return Delta(at, weight, np.concatenate([rows, rows]))
