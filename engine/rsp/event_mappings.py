"""What event patterns have in windows: the mappings that items bring when they come, and take when they go.

In the flow: complete events in order → items (held.py) → **mappings, window by window** → a plan's `Given`.

Of several queries equal EVENT definitions are one source of rows, and so are those that differ in constants only: a
common source has a column for each constant; behind it each plan has a filter for its own, so that plans which differ
in constants only can be lifted to one (flow/sharing).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple, TypeAlias

from pyoxigraph import Literal, NamedNode, Variable

from oxiseq.engine.errors import MappingsError
from oxiseq.engine.events.batch import EventBatch
from oxiseq.engine.flow import plan as p
from oxiseq.engine.flow.delta import I64, Delta
from oxiseq.engine.flow.occurring import Occurring
from oxiseq.engine.flow.plan import Given
from oxiseq.engine.flow.sharing.lifting import opened_patterns
from oxiseq.engine.patterns.matcher import StreamMatcher
from oxiseq.engine.patterns.plan import GpmRequest, StreamPlan, compile_stream
from oxiseq.engine.rsp.held import Held
from oxiseq.engine.rsp.plan import EventPlan, RspPlan
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.engine.terms.saved import Stateful, part
from oxiseq.grammar.algebra import Call, Gpm, Group, TriplePattern
from oxiseq.grammar.scope import GpmParts


class Source(NamedTuple):
    """An event pattern: its window's content, its request among those of the stream. form: the source that it feeds."""

    content: int
    stream: int
    request: int
    form: Given


class EventMappings(Stateful):
    """Of some patterns over the same windows. matchers: by stream."""

    made_of = (part("by_name", "events"),)

    def __init__(self, sources: Sequence[Source], matchers: Sequence[StreamMatcher | None], held: Held) -> None:
        self._sources, self._matchers, self._held = sources, matchers, held
        self.by_name = {source.form.name: Occurring(source.form) for source in sources}
        self.beyond: dict[int, MappingsError] = {}
        """Times of events on which a pattern is beyond a limit, so that they have no rows; whoever notes them takes
        them out."""

    def add(self, batches: Sequence[EventBatch]) -> None:
        """Complete events by stream, in order of time: items, and their rows. Raises KbError."""
        for stream, batch in enumerate(batches):
            if len(batch):
                self._match(stream, *self._held.add(stream, batch))

    def take_up(self) -> None:
        """The rows of all items held."""
        for stream, items in enumerate(self._held.items):
            for place, batch in items.kept:
                self._match(stream, place, batch)

    def _match(self, stream: int, place: int, batch: EventBatch) -> None:
        """The rows of events, from a place on; nothing counts after the end of its window."""
        matcher = self._matchers[stream]
        if matcher is None or not len(batch):
            return
        found, beyond = matcher.match_within(batch)
        self.beyond |= {int(batch.time[event]): error for event, error in beyond.items()}
        for source in self._sources:
            rows = found[source.request] if source.stream == stream else None
            if rows is None or not len(rows.event):
                continue
            end = self._held.contents[source.content].window.end
            high = len(rows.event) if end is None else int(batch.time[rows.event].searchsorted(end, "right"))
            at = rows.event[:high]
            self.by_name[source.form.name].add(place + at, batch.time[at], rows.values[:high])

    def move(self, bounds: Sequence[tuple[I64, I64]], tick: int) -> dict[str, Delta]:
        """Windows continue: by content the places [start, stop) at each tick from `tick` on. The changes, by
        name."""
        return {s.form.name: self.by_name[s.form.name].move(*bounds[s.content], tick) for s in self._sources}

    def come_again(self) -> None:
        """Have windows hold nothing, before they move from where they are."""
        for source in self._sources:
            self.by_name[source.form.name].come_again(self._held.contents[source.content].start)

    def forget(self) -> None:
        """What has left the windows is not needed."""
        for rows in self.by_name.values():
            rows.forget()

    def __len__(self) -> int:
        return sum(map(len, self.by_name.values()))


Constant: TypeAlias = NamedNode | Literal


class CommonEvents:
    """The sources of some plans, whose windows are the same."""

    def __init__(self, streams: int) -> None:
        self._requests: list[list[GpmRequest]] = [[] for _ in range(streams)]
        self._known: dict[tuple[int, GpmParts, tuple[Variable, ...]], Source] = {}

    @property
    def sources(self) -> Sequence[Source]:
        """All of them."""
        return tuple(self._known.values())

    def requests(self, terms: TermDictionary) -> list[StreamPlan | None]:
        """What is looked for, by stream."""
        return [compile_stream(each, terms) if each else None for each in self._requests]

    def flow(self, plan: RspPlan) -> p.FlowPlan:
        """A plan over common sources."""
        whole, events = plan.flow.plan, {event.name: event for event in plan.events}
        sheet, places = p.Sheet(), dict[int, int]()
        for place, form in enumerate(whole.forms):
            if isinstance(form, p.Given) and form.name in events:
                places[place] = self._source(sheet, plan, events[form.name])
            else:
                places[place] = sheet.add(p.renamed(form, places))
        return sheet.plan(places[whole.root])

    def _source(self, sheet: p.Sheet, plan: RspPlan, event: EventPlan) -> int:
        stream = plan.contents[event.content].stream
        requests = plan.requests[stream]
        assert requests is not None  # this event is one of them
        parts, constants = _opened(requests.requests[event.request].parts)
        width = len(event.variables)
        slots = tuple(map(_slot, range(len(constants))))
        known = self._common(event.content, stream, parts, (*event.variables, *slots))
        node = sheet.add(known.form)
        if not constants:
            return node
        wanted = (Call("SAMETERM", (p.column(width + i), each)) for i, each in enumerate(constants))
        times = known.form.raw
        return sheet.pick(sheet.filtered(node, tuple(wanted)), tuple((i,) for i in (*range(width), *times)))

    def _common(self, content: int, stream: int, parts: GpmParts, keep: tuple[Variable, ...]) -> Source:
        key = content, parts, keep
        if key not in self._known:
            width, mine = len(keep), self._requests[stream]
            form = p.Given(f"event {len(self._known)}", width + 2, (width, width + 1))
            self._known[key] = Source(content, stream, len(mine), form)
            mine.append(GpmRequest(form.name, parts, keep))
        return self._known[key]


def _slot(number: int) -> Variable:
    """The placeholder of a constant of an event pattern."""
    return Variable(f"oxiseq_event_constant_{number}")


def _opened(parts: GpmParts) -> tuple[GpmParts, list[Constant]]:
    """A pattern with variables for the subjects and objects of its triple patterns, and these. What is matched besides
    sees none of them."""
    constants: list[Constant] = []
    elements = parts.pattern.elements
    plain = tuple(e for e in elements if isinstance(e, TriplePattern))

    def taken(term: Constant) -> Variable:
        constants.append(term)
        return _slot(len(constants) - 1)

    if parts.kb is not None or parts.in_place or parts.stateful or len(plain) != len(elements):
        return parts, []
    pattern = Group(opened_patterns(plain, taken))
    slots = tuple(map(_slot, range(len(constants))))
    made = replace(
        parts,
        gpm=Gpm("", "", pattern),
        pattern=pattern,
        variables=(*parts.variables, *slots),
        certain=parts.certain | {*slots},
    )
    return made, constants
