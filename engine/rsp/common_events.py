"""Event patterns of several queries as one: equal EVENT definitions are one source of rows, and so are those that
differ in constants only.

In the flow: queries with MATCH → **their plans over common sources**, and what is looked for in the streams for
these. A common source has a column for each constant; behind it each plan has a filter for its own, so that plans which
differ in constants only can be lifted to one (flow/sharing).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TypeAlias

from pyoxigraph import Literal, NamedNode, Variable

from oxiseq.engine.flow import plan as p
from oxiseq.engine.flow.sharing.opening import opened_patterns
from oxiseq.engine.patterns.plan import GpmRequest, StreamPlan, compile_stream
from oxiseq.engine.rsp.event_mappings import Source
from oxiseq.engine.rsp.plan import EventPlan, RspPlan
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.grammar.algebra import Call, Gpm, Group, TriplePattern
from oxiseq.grammar.scope import GpmParts

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

    simple = parts.kb is None and not parts.in_place and not parts.stateful and len(plain) == len(elements)
    pattern = Group(opened_patterns(plain, taken)) if simple else parts.pattern
    slots = tuple(map(_slot, range(len(constants))))
    made = replace(
        parts,
        gpm=Gpm("", "", pattern),
        pattern=pattern,
        variables=(*parts.variables, *slots),
        certain=parts.certain | {*slots},
    )
    return (made, constants) if simple else (parts, [])
