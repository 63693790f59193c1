"""Operators tick by tick, in one kernel: event patterns whose items are used up by what is found (operators.md, 4.2).

Where it stands: event mappings, their windows through stretches of ticks → **what is found, and at which ticks** → the
rest of the plan, many ticks at once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from oxiseq.engine.flow.cutting import Cut
from oxiseq.engine.flow.delta import I64, Buffer, Delta, Ids
from oxiseq.engine.flow.events import Used
from oxiseq.engine.flow.nodes.build import build
from oxiseq.engine.flow.occurring import Occurring
from oxiseq.engine.flow.plan import Given
from oxiseq.engine.kernels.flow import stepping as k
from oxiseq.engine.kernels.memory.growing import longer
from oxiseq.engine.kernels.memory.pointers import Pointers
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.engine.terms.saved import KnownTerms, SavedTerms, State


class Found(NamedTuple):
    """Of some stretches. ticks: i64[stretches], how many ticks of each have been worked on; rows: by name what has come
    and gone, the first of these ticks being 0."""

    ticks: I64
    rows: dict[str, Delta]


class _Events(NamedTuple):
    """One definition of events: its source, its rows, its stream."""

    out: Buffer
    rows: Occurring
    stream: int


class Stepping:
    """The first part of a plan at work. streams: by an event's name the number of its stream."""

    def __init__(
        self, plan: Cut, used: Sequence[Used], occurring: Mapping[str, Occurring], streams: Mapping[str, int],
        terms: TermDictionary,
    ) -> None:  # fmt: skip
        first = plan.first
        self._nodes = build(first, terms)
        self._names = [form.name for form in first.forms if isinstance(form, Given)]
        sources = (node for node, form in zip(self._nodes, first.forms, strict=True) if isinstance(form, Given))
        self._events = [
            _Events(node.out, occurring[name], streams[name])
            for name, node in zip(self._names, sources, strict=True)
        ]
        working = [n for n, form in zip(self._nodes, first.forms, strict=True) if not isinstance(form, Given)]
        self._working = working
        self._found = {name: self._nodes[place].out for name, place in plan.kept.items()}
        self._kept = {name: Buffer(out.width) for name, out in self._found.items()}
        self._table = np.array([_call(node.kernel_call) for node in working], np.int64).reshape(len(working), -1)
        self._outs = np.array([node.out.address for node in working], np.int64)
        self._used = np.array(
            [(self._nodes[place].out.address, 2 * number, streams[name])
             for each, place in zip(used, first.also, strict=True) for number, name in enumerate(each.events)],
            np.int64,
        )  # fmt: skip
        self._tick = 0
        """The next one."""

    def through(self, bounds: Mapping[str, tuple[I64, I64]], more: I64) -> Found:
        """Go on through stretches. bounds: by an event's name where its window begins and ends at each; more: how many
        further ticks each has."""
        scalars, counts = np.zeros(k.SCALARS, np.int64), np.zeros(len(more), np.int64)
        scalars[k.TICK] = self._tick
        sources = [self._source(events.rows, *bounds[name]) for name, events in zip(self._names, self._events, strict=True)]
        tables = [Pointers(source) for source in sources]
        for buffer in self._kept.values():
            buffer.clear()
        stepped = k.Stepped(
            scalars, self._table, self._outs, np.zeros((len(sources), 3), np.int64),
            np.array([(self._found[n].address, self._kept[n].address) for n in self._kept], np.int64),
            self._used, more, counts,
        )  # fmt: skip
        for number, (table, events) in enumerate(zip(tables, self._events, strict=True)):
            stepped.sources[number] = table.address, events.out.address, events.stream
        memory = Pointers(stepped)
        while (answer := k.step_by_tick(memory.address)) != k.DONE:
            which = int(scalars[k.WHICH])
            if answer == k.NEED_FED:
                self._events[which].out.grow()
            elif answer == k.NEED_STEP:
                self._working[which].step()
            elif answer == k.NEED_KEPT:
                [*self._kept.values()][which].grow()
            else:
                sources[which] = sources[which]._replace(going=longer(sources[which].going, 2 * len(sources[which].going)))
                tables[which] = Pointers(sources[which])
                stepped.sources[which, 0] = tables[which].address
        for source, events in zip(sources, self._events, strict=True):
            events.rows.going = source.going[: source.state[k.GOING]].copy()
            events.rows.forget()
        for node in self._nodes:
            node.out.clear()
        first, self._tick = self._tick, int(scalars[k.TICK])
        rows = {name: buffer.delta for name, buffer in self._kept.items()}
        return Found(counts, {name: Delta(d.at - first, d.weight, d.rows) for name, d in rows.items()})

    @staticmethod
    def _source(occurring: Occurring, starts: I64, stops: I64) -> k.Source:
        row, at, weight = occurring.changes(starts, stops)
        rows, place, used, live = occurring.arrays
        state = np.zeros(k.SOURCE_STATE, np.int64)
        state[k.GOING], state[k.LIVE] = len(occurring.going), live
        going = longer(occurring.going, max(16, len(occurring.going)))
        return k.Source(rows, place, used, at, row, weight, starts, stops, going, state)

    # --- what it holds ------------------------------------------------------------------------------

    @property
    def records(self) -> int:
        """How many rows it keeps."""
        return sum(node.records for node in self._nodes)

    @property
    def bytes(self) -> int:
        """How large what it keeps is, room for more included."""
        return sum(node.bytes for node in self._nodes)

    def held_ids(self) -> Iterator[Ids]:
        """The terms of what it keeps."""
        for node in self._nodes:
            yield from node.held_ids()

    def save(self, terms: SavedTerms) -> State:
        """What it keeps, between batches."""
        return {"tick": self._tick, "nodes": [node.save(terms) for node in self._nodes]}

    def restore(self, state: State, terms: KnownTerms) -> None:
        """Go on from a saved state."""
        self._tick = int(state["tick"])
        for node, saved in zip(self._nodes, state["nodes"], strict=True):
            node.restore(saved, terms)


def _call(call: tuple[int, ...] | None) -> tuple[int, ...]:
    """A row of the kernel's table."""
    if call is None:
        raise TypeError("an operator that no kernel steps")
    kind, *arguments = call
    read = [arguments[i] for i in k.INPUTS[kind]]
    return kind, read[0], read[-1], *arguments, *(0 for _ in range(k.ARGUMENTS - len(arguments)))
