"""A query's answers at any instants, whatever its windows are: those of many instants at once.

In the flow: complete events in order → items, event mappings → windows through the instants → events and mappings that
enter and leave them → operators (engine/flow) → **full rows to emit**.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from oxiseq.engine.events.batch import EventBatch
from oxiseq.engine.flow.delta import I64
from oxiseq.engine.flow.knowledge import Knowledge
from oxiseq.engine.flow.leaves import Moves
from oxiseq.engine.flow.plan import Given
from oxiseq.engine.flow.standing import Standing
from oxiseq.engine.flow.stepping import Stepping, cut
from oxiseq.engine.kb_in_time import KbInTime
from oxiseq.engine.patterns.matcher import StreamMatcher
from oxiseq.engine.rsp.event_mappings import EventMappings, Source
from oxiseq.engine.rsp.full_rows import FullRows, full_rows
from oxiseq.engine.rsp.held import Held
from oxiseq.engine.rsp.plan import ContentPlan, EventPlan, RspPlan
from oxiseq.engine.rsp.schedule import Schedule, Stretches
from oxiseq.engine.terms.blanks import KbBlanks
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.engine.terms.saved import KnownTerms, State, Stateful, part, spread
from oxiseq.engine.window import Window
from oxiseq.grammar.rsp_algebra import Report

_NO_EVENTS: Final = EventBatch.empty()
_NO_PLACES: Final = np.zeros(0, np.int64)
TOLD: Final = Window(None)
"""Of a flow that gets the contents of its windows from outside."""


class GeneralAnswers(Stateful):
    """All that changes for a query that is answered so. held: its events; all else is derived from them, and
    `mappings`, their rows, if they have been found before."""

    made_of = spread("held"), spread("mappings"), part("_standing"), part("_stepping")

    def __init__(
        self,
        plan: RspPlan,
        terms: TermDictionary,
        kb: KbInTime,
        blanks: KbBlanks,
        held: Held,
        known: Knowledge | None,
        mappings: EventMappings | None = None,
    ) -> None:
        self._plan, self._terms, self._blanks = plan, terms, blanks
        self.held = held
        windows = [TOLD for _ in plan.contents]
        flow = plan.flow
        parts = cut(flow.plan) if flow.used else None
        rest = flow if parts is None else replace(flow, plan=parts.rest)
        self._standing = Standing(rest, plan.report, windows, kb, blanks, terms, known)
        named = {form.name for form in flow.plan.forms if isinstance(form, Given)}
        self._sources = [_source(plan, event) for event in plan.events if event.name in named]
        """Those that a MATCH names."""
        if mappings is None:
            asked = plan.requests
            matchers = [None if each is None else StreamMatcher(each, terms, kb, blanks=blanks) for each in asked]
            mappings = EventMappings(self._sources, matchers, held)
        self.mappings = mappings
        streams = {source.form.name: source.stream for source in self._sources}
        occurring = self.mappings.by_name
        self._stepping = None if parts is None else Stepping(parts, flow.used, occurring, streams, terms)
        """What MATCH finds, if it uses its items up."""
        self.too_many: Mapping[int, int] = {}
        """How many rows the last instants would have had of which none was emitted, by their times."""

    @property
    def rebuilds(self) -> bool:
        """Whether all its state can be made again of the events held."""
        return self._stepping is None and self.held.rebuilds

    @property
    def knowledge(self) -> Knowledge:
        """Its answers of the KB."""
        return self._standing.knowledge

    def add(self, batches: Sequence[EventBatch]) -> None:
        """Complete events by stream, in order of time. Raises LimitError, KbError."""
        self.mappings.add(batches)

    def take_up(self) -> None:
        """Restores the state after the events held and the last instant; the KB has not changed. Raises
        LimitError."""
        self.mappings.take_up()
        self.pass_over()

    def pass_over(self) -> None:
        """The same, where the rows of event patterns are known. Raises LimitError."""
        self.mappings.come_again()
        if not self.held.begun:
            return
        bounds = [(np.array([start]), np.array([stop])) for start, stop, _ in self.held.places]
        given, before = self.mappings.move(bounds, 0), [start for start, _, _ in self.held.places]
        self._standing.pass_over_moves(moves_of(self._plan.contents, self.held, before, bounds, 1), given)

    def told(self, stretches: Stretches) -> tuple[Stretches, I64, FullRows]:
        """The full rows to emit at some instants, in the order in which they are emitted: the instants at which the
        answer may be another, the number of each row's among them, and the rows. Raises LimitError, KbError."""
        held = self.held
        before = [content.stop for content in held.contents]
        bounds = held.through(stretches.at)
        if self._stepping is None:
            given = self.mappings.move(bounds, 0)
        else:
            of_events = {source.form.name: bounds[source.content] for source in self._sources}
            ticks, given = self._stepping.through(of_events, held.schedule.further_of(stretches))
            if (ticks > 1).any():
                bounds = [(np.repeat(starts, ticks), np.repeat(stops, ticks)) for starts, stops in bounds]
                stretches = held.schedule.divided(stretches, ticks)
        moves = moves_of(self._plan.contents, held, before, bounds, len(stretches))
        number, values = self._standing.move(moves, given)
        self.too_many = {int(stretches.at[place]): given for place, given in self._standing.too_many.items()}
        return stretches, *full_rows(self._plan, number, values, self._blanks.ids, self._terms)

    def forget(self) -> None:
        """What windows do not need any more is freed."""
        self.held.forget()
        self.mappings.forget()

    # --- its memory ----------------------------------------------------------------------------------

    @property
    def state(self) -> dict[str, int]:
        """Numbers of live records."""
        standing, stepping = self._standing.state, self._stepping
        rows = standing["rows"] + (0 if stepping is None else stepping.records)
        return {
            "items": len(self.held),
            "mappings": len(self.mappings),
            **standing,
            "rows": rows,
        }

    def restore(self, state: State, terms: KnownTerms) -> None:
        super().restore(state, terms)
        self.held.begun = self._standing.begun


def _source(plan: RspPlan, event: EventPlan) -> Source:
    form = event.rows.given(items=plan.consumes)
    return Source(event.content, plan.contents[event.content].stream, event.request, form)


def moves_of(
    contents: Sequence[ContentPlan], held: Held, before: Sequence[int], bounds: Sequence[tuple[I64, I64]], instants: int
) -> Moves:
    """What comes into windows that held what is before some places. contents: which of them store events."""
    batches, places, at = list[EventBatch](), list[I64](), list[I64]()
    low = np.empty((instants, len(bounds)), np.int64)
    for number, (first, (starts, stops)) in enumerate(zip(before, bounds, strict=True)):
        plan, low[:, number] = contents[number], starts
        if not plan.stored:
            batches.append(_NO_EVENTS)
            places.append(_NO_PLACES)
            at.append(_NO_PLACES)
            continue
        first, last = max(first, int(starts[0])), int(stops[-1])
        batches.append(EventBatch.concat(list(held.items[plan.stream].graphs(first, last))))
        places.append(np.arange(first, first + len(batches[-1])))
        at.append(stops.searchsorted(places[-1], "right"))
    return Moves(batches, places, at, low)


def repeated(
    report: Report, schedule: Schedule, stretches: Stretches, number: I64, rows: FullRows
) -> tuple[I64, FullRows]:
    """With the rows that RSTREAM repeats at the other ticks of stretches, where windows hold the same: the time of each
    row, and the rows. number: that of each row's stretch, ascending. Raises LimitError."""
    at = stretches.at[number]
    if report is not Report.RSTREAM or not len(rows) or not schedule.rhythm.ticks:
        return at, rows
    several = np.flatnonzero(stretches.until > stretches.at)
    if not len(several):
        return at, rows
    ends = np.searchsorted(number, np.arange(len(stretches) + 1))
    times, index = [at], [np.arange(len(rows))]
    for k in several[ends[several] < ends[several + 1]].tolist():
        low, high = int(ends[k]), int(ends[k + 1])
        again = schedule.again(stretches.slice(k, k + 1), high - low)
        times.append(np.repeat(again, high - low))
        index.append(np.tile(np.arange(low, high), len(again)))
    at, every = np.concatenate(times), np.concatenate(index)
    order = np.argsort(at, kind="stable")
    return at[order], rows.take(every[order])
