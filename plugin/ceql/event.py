"""One complex event as users see it, made from columns when somebody looks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from oxiseq.engine.cea.plan import CeaPlan
from oxiseq.engine.events.time import to_datetime, to_text
from oxiseq.engine.output.complex_events import ComplexEvents
from oxiseq.engine.terms.dictionary import TermDictionary


@dataclass(frozen=True, slots=True)
class ComplexShape:
    """What the complex events of one query have in common."""

    plan: CeaPlan
    terms: TermDictionary

    @property
    def variables(self) -> tuple[str, ...]:
        """Those of SELECT."""
        return self.plan.variables

    @property
    def words(self) -> int:
        """64-bit words of a set of variables."""
        return max(1, -(-len(self.plan.variables) // 64))

    @property
    def vocab(self) -> str:
        """The namespace of types, attributes and streams."""
        return self.plan.query.vocab or ""

    @property
    def reads(self) -> tuple[str, ...]:
        """The streams that the query reads."""
        return self.plan.streams

    @property
    def feeds(self) -> None:
        """Complex events go to no stream."""
        return None

    def match(self, batch: ComplexEvents, index: int) -> ComplexEvent:
        """One of a batch."""
        return ComplexEvent(self, batch, index)


class ComplexEvent:
    """One complex event: an interval and the set D of positions (CORE, PVLDB 2022).

    `start` and `end` are positions among all events of the query's streams, counted from 0 in order of time (those of
    one time in the order of FROM); `positions` is D, ascending. `events`: variable → its events as (stream IRI,
    microseconds), in order; also `match["x"]`.
    """

    __slots__ = ("_batch", "_index", "_shape")

    def __init__(self, shape: ComplexShape, batch: ComplexEvents, index: int) -> None:
        self._shape = shape
        self._batch = batch
        self._index = index

    @property
    def start(self) -> int:
        """The position of its first event."""
        return int(self._batch.start[self._index])

    @property
    def end(self) -> int:
        """The position of its last event."""
        return int(self._batch.end[self._index])

    @property
    def time(self) -> int:
        """The time of the last event, in microseconds since 1970 UTC."""
        return int(self._batch.time[self._index])

    @property
    def datetime(self) -> datetime:
        """`time` as a datetime in UTC."""
        return to_datetime(self.time)

    @property
    def positions(self) -> tuple[int, ...]:
        """The set D."""
        return tuple(self._batch.positions[self._rows].tolist())

    @property
    def held(self) -> Mapping[str, tuple[int, ...]]:
        """Variable → the positions that it holds; those that hold none are left out."""
        positions = self.positions
        return {v: tuple(positions[i] for i in rows) for v, rows in self._held().items()}

    @property
    def events(self) -> Mapping[str, tuple[tuple[str, int], ...]]:
        """Variable → its events, as (stream IRI, microseconds); those that hold none are left out."""
        streams = self._batch.event_stream[self._rows].tolist()
        times = self._batch.event_time[self._rows].tolist()
        names = self._shape.plan.streams
        return {v: tuple((names[streams[i]], times[i]) for i in rows) for v, rows in self._held().items()}

    def __getitem__(self, variable: str) -> tuple[tuple[str, int], ...]:
        """The events of a variable, perhaps none; KeyError if the query does not select it."""
        if variable not in self._shape.variables:
            known = ", ".join(self._shape.variables) or "none"
            raise KeyError(f"no variable {variable!r}; the query selects: {known}")
        return self.events.get(variable, ())

    @property
    def _rows(self) -> slice:
        return slice(int(self._batch.ends[self._index]), int(self._batch.ends[self._index + 1]))

    def _held(self) -> dict[str, list[int]]:
        """Variable → which of the positions it holds."""
        words = self._batch.held[self._rows].tolist()
        found = {
            name: [i for i, row in enumerate(words) if row[number >> 6] >> (number & 63) & 1]
            for number, name in enumerate(self._shape.variables)
        }
        return {name: rows for name, rows in found.items() if rows}

    def __repr__(self) -> str:
        held = " ".join(f"{v}={list(p)}" for v, p in self.held.items())
        return f"<ComplexEvent {to_text(self.time)} [{self.start}, {self.end}] {held}>"
