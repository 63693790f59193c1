"""Operators tick by tick, in one kernel: event patterns whose matches consume items (operators.md, 4.2).

In the flow: event mappings, their windows through stretches of ticks → **the matches, and their ticks** → the
rest of the plan, many ticks at once.

A plan whose `also` say which items are used up is cut in two: the operators that these need run tick by tick, and all
others take the rows of the first for many ticks at once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from oxiseq.engine.flow.delta import I64, Buffer, Delta
from oxiseq.engine.flow.events import Used
from oxiseq.engine.flow.flow import Driver
from oxiseq.engine.flow.occurring import Occurring
from oxiseq.engine.flow.operators.build import build
from oxiseq.engine.flow.plan import FlowPlan, Given, Sheet, below, inputs, renamed
from oxiseq.engine.kernels.flow import stepping as k
from oxiseq.engine.kernels.memory.growing import longer
from oxiseq.engine.kernels.memory.pointers import Pointers, Replaceable, call
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.engine.terms.saved import Stateful, part, value


class Cut(NamedTuple):
    """Two plans. first: its `also` are the whole plan's. kept: by name the operators of the first whose rows are given
    to the rest under that name."""

    first: FlowPlan
    rest: FlowPlan
    kept: dict[str, int]


def cut(plan: FlowPlan) -> Cut:
    """Cut a plan that has `also`."""
    forms = plan.forms
    inside = below(forms, plan.also)
    read = {c for place, form in enumerate(forms) if place not in inside for c in inputs(form)} & inside
    first, rest = Sheet(), Sheet()
    here, there = dict[int, int](), dict[int, int]()
    kept = dict[str, int]()
    for place, form in enumerate(forms):
        if place in inside:
            here[place] = first.add(renamed(form, here))
        else:
            there[place] = rest.add(renamed(form, there))
        if place in read:
            name = f"found {len(kept)}"
            kept[name] = here[place]
            there[place] = rest.add(Given(name, plan.widths[place], plan.raw[place]))
    also = tuple(here[place] for place in plan.also)
    return Cut(first.plan(also[0], also), rest.plan(there[plan.root]), kept)


class Found(NamedTuple):
    """Of some stretches. ticks: i64[stretches], how many ticks of each have been processed; rows: by name what has come
    and gone, the first of these ticks being 0."""

    ticks: I64
    rows: dict[str, Delta]


class _Events(NamedTuple):
    """One definition of events: its source, its rows, its stream."""

    out: Buffer
    rows: Occurring
    stream: int


class Stepping(Stateful):
    """The first part of a plan at work. streams: by an event's name the number of its stream."""

    made_of = value("_tick"), part("_nodes")

    def __init__(
        self,
        plan: Cut,
        used: Sequence[Used],
        occurring: Mapping[str, Occurring],
        streams: Mapping[str, int],
        terms: TermDictionary,
    ) -> None:
        first = plan.first
        self._nodes = build(first, terms)
        self._names = [form.name for form in first.forms if isinstance(form, Given)]
        sources = (node for node, form in zip(self._nodes, first.forms, strict=True) if isinstance(form, Given))
        self._events = [
            _Events(node.out, occurring[name], streams[name]) for name, node in zip(self._names, sources, strict=True)
        ]
        self._driver = Driver(self._nodes, terms)
        self._found = tuple(plan.kept)
        found = [self._nodes[place].out for place in plan.kept.values()]
        self._kept = [Buffer(out.width) for out in found]
        pairs = [(out.address, kept.address) for out, kept in zip(found, self._kept, strict=True)]
        self._pairs = np.array(pairs, np.int64)
        self._used = np.array(
            [
                (self._nodes[place].out.address, 2 * number, streams[name])
                for each, place in zip(used, first.also, strict=True)
                for number, name in enumerate(each.events)
            ],
            np.int64,
        )
        self._tick = 0
        """The next one."""

    def through(self, bounds: Mapping[str, tuple[I64, I64]], more: I64) -> Found:
        """Continue through stretches. bounds: by an event's name where its window begins and ends at each; more: how
        many further ticks each has. Raises LimitError."""
        for buffer in self._kept:
            buffer.clear()
        events = zip(self._names, self._events, strict=True)
        sources = [Replaceable(self._source(each.rows, *bounds[name])) for name, each in events]
        stepped = self._stepped(sources, more)
        memory = Pointers(stepped)
        while (answer := call(k.step_by_tick, memory)) != k.DONE:
            self._make_room(answer, int(stepped.scalars[k.WHICH]), sources)
        for source, each in zip(sources, self._events, strict=True):
            each.rows.going = source.arrays.going[: source.arrays.state[k.GOING]].copy()
            each.rows.forget()
        for node in self._nodes:
            node.out.clear()
        first, self._tick = self._tick, int(stepped.scalars[k.TICK])
        found = (buffer.delta for buffer in self._kept)
        rows = (Delta(delta.at - first, delta.weight, delta.rows) for delta in found)
        return Found(stepped.counts, dict(zip(self._found, rows, strict=True)))

    def _stepped(self, sources: Sequence[Replaceable[k.Source]], more: I64) -> k.Stepped:
        """The kernel's arguments."""
        scalars = np.zeros(k.SCALARS, np.int64)
        self._driver.ready()
        scalars[k.TICK], scalars[k.STEPS] = self._tick, self._driver.table.address
        given = [
            (source.address, each.out.address, each.stream) for source, each in zip(sources, self._events, strict=True)
        ]
        return k.Stepped(
            scalars,
            np.array(given, np.int64),
            self._pairs,
            self._used,
            more,
            np.zeros(len(more), np.int64),
        )

    def _make_room(self, answer: int, which: int, sources: Sequence[Replaceable[k.Source]]) -> None:
        """Serves the kernel's need."""
        if answer == k.NEED_FED:
            self._events[which].out.grow()
        elif answer == k.NEED_STEP:
            self._driver.go_on(which)
        elif answer == k.NEED_KEPT:
            self._kept[which].grow()
        else:
            sources[which].set(sources[which].arrays.grow("going"))

    @staticmethod
    def _source(occurring: Occurring, starts: I64, stops: I64) -> k.Source:
        row, at, weight = occurring.changes(starts, stops)
        rows, place, used, live = occurring.arrays
        state = np.zeros(k.SOURCE_STATE, np.int64)
        state[k.GOING], state[k.LIVE] = len(occurring.going), live
        going = longer(occurring.going, max(16, len(occurring.going)))
        return k.Source(rows, place, used, at, row, weight, starts, stops, going, state)

    # --- its memory ----------------------------------------------------------------------------------

    @property
    def records(self) -> int:
        """How many rows it keeps."""
        return sum(node.records for node in self._nodes)
