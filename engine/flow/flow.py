"""A plan at work: one batch of changes after the other, each operator once for all ticks of a batch (operators.md, 8).

In the flow: algebra → plan → **nodes at work**. Nodes come after their inputs, so one pass suffices.

As far as nodes are kernels one kernel steps them (kernels/flow/driving.py): one event passes through in some
microseconds, in which Python could not step two of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate, chain
from types import MappingProxyType
from typing import Final

import numpy as np

from oxiseq.engine.flow.delta import KEPT_ROOM, MOST_ROWS, Buffer, Delta
from oxiseq.engine.flow.operators.build import build
from oxiseq.engine.flow.operators.node import ALL_TIME, Chosen, KeepsRows, Node
from oxiseq.engine.flow.operators.sources import Fed
from oxiseq.engine.flow.plan import FlowPlan
from oxiseq.engine.kernels.compiling.calling import MOST_ARGUMENTS, entry_of
from oxiseq.engine.kernels.flow.buffers import with_rows
from oxiseq.engine.kernels.flow.driving import (
    ALL,
    ALL_DONE,
    ANSWER,
    ASKED,
    FILLED,
    LARGEST,
    SCALARS,
    STEP,
    Steps,
    drive,
)
from oxiseq.engine.kernels.memory.pointers import Addressed, Bound, Pointers
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.engine.terms.saved import SavedTerms, State, Stateful, part, value

_TIDIED: Final = 64
"""Steps after which nodes return unused memory."""


class Driver:
    """Steps nodes, which come after their inputs; sources have been filled before."""

    def __init__(self, nodes: Sequence[Node], terms: TermDictionary) -> None:
        self._nodes, self._terms = nodes, terms
        self._known = -1
        """Which ids the dictionary had freed when the table was made."""
        self._scalars = np.zeros(SCALARS, np.int64)
        self._scalars[FILLED] = ALL
        self._steps = np.zeros(len(nodes), STEP)
        readers = _readers(nodes)
        ends = [0, *accumulate(map(len, readers))]
        self._steps["first"], self._steps["last"] = ends[:-1], ends[1:]
        sources = [place for place, node in enumerate(nodes) if isinstance(node, Fed)]
        self.table = Pointers(
            Steps(
                self._scalars,
                self._steps,
                np.array([*chain(*readers)], np.int64),
                np.array(sources, np.int64),
                due=np.zeros(len(nodes), np.uint8),
                filled=np.zeros(len(nodes), np.int64),
            )
        )
        """What `drive` takes."""
        self._drive = Bound(drive, self.table)
        self._until_tidy = _TIDIED

    def step(self) -> None:
        """Clear what nodes hold of the last batch, and step each that has something to take in. Raises LimitError."""
        self.ready()
        while (place := self._drive()) != ALL_DONE:
            self.go_on(place)

    def ready(self) -> None:
        """Before a batch."""
        self._until_tidy -= 1
        if not self._until_tidy or self._scalars.item(LARGEST) > KEPT_ROOM:
            self._tidy()
        if self._known != self._terms.generation:
            self._make_table()

    @property
    def largest(self) -> int:
        """The most rows that any operator has had room for of late."""
        return self._scalars.item(LARGEST)

    def go_on(self, place: int) -> None:
        """What `drive` has left to Python at an operator. Raises LimitError."""
        answer, node = self._scalars.item(ANSWER), self._nodes[place]
        if answer == ASKED:
            node.step()
        else:
            node.go_on(answer)

    def _make_table(self) -> None:
        self._known = self._terms.generation
        for node, step in zip(self._nodes, self._steps, strict=True):
            step["out"] = node.out.address
            called = node.call()
            if called is not None:
                count = len(called.arguments)
                step["kernel"], step["arguments"] = entry_of(called.kernel, count), count
                for name, each in zip("abcdef"[:MOST_ARGUMENTS], called.arguments, strict=False):
                    step[name] = each.address if isinstance(each, Addressed) else each

    def _tidy(self) -> None:
        """Releases unused memory; the last batch's rows go."""
        self._until_tidy, self._scalars[LARGEST] = _TIDIED, 0
        for node in self._nodes:
            node.tidy()
            if not isinstance(node, Fed):
                node.out.clear()


def _readers(nodes: Sequence[Node]) -> list[list[int]]:
    """By place the places of its readers."""
    places = {node.out.address: place for place, node in enumerate(nodes)}
    found: list[list[int]] = [[] for _ in nodes]
    for place, node in enumerate(nodes):
        for address in dict.fromkeys(buffer.address for buffer in node.inputs):
            found[places[address]].append(place)
    return found


class Flow(Stateful):
    """A standing query."""

    made_of = value("_begun", bool), part("nodes")

    def __init__(self, plan: FlowPlan, terms: TermDictionary) -> None:
        self.clock = ALL_TIME.copy()
        """Of rows that happen at some time (kernels/flow/buffers.py), for the caller of such a plan."""
        self.nodes = build(plan, terms, clock=self.clock)
        self._root = self.nodes[plan.root]
        self.found = Buffer(self._root.out.width, 0)
        """What the root has had in all steps of a batch that a kernel takes (`driven`)."""
        self._working = [node for node in self.nodes if not isinstance(node, Fed)]
        self._driver = Driver(self.nodes, terms)
        self._fed: list[tuple[int, Delta]] = []
        self._connected: list[tuple[Buffer, Buffer]] = []
        """Sources, and the buffers whose rows they take over."""
        self._filled: list[Buffer] = []
        """Sources that the last step had rows of, or that have room to give back."""
        self._begun = False
        self._bound = MOST_ROWS
        self._failed: Exception | None = None
        """Why the last batch was taken in by some nodes and not by others."""

    def feed(self, place: int, delta: Delta) -> None:
        """The changes at a source: Patterns, Asked, Given. All that is fed before a step is one batch. Raises
        ValueError for another form, another width."""
        source = self.nodes[place]
        if not isinstance(source, Fed):
            raise ValueError(f"the form at {place} is no source")
        if delta.rows.shape[1] != source.out.width:
            raise ValueError(f"rows of {delta.rows.shape[1]} columns, {source.out.width} wanted")
        if len(delta):
            self._fed.append((place, delta))

    def connect(self, place: int, buffer: Buffer) -> None:
        """The rows of a source: this holds them before each step, which takes them out."""
        source = self.nodes[place]
        assert isinstance(source, Fed)
        self._connected.append((source.out, buffer))

    def step(self, tick: int) -> Delta:
        """Processes the rows fed. tick: the batch's first; those of later batches are greater than all of this one.

        The result at the root, as views that the next step writes over. Raises LimitError; the batch is then
        taken in by half, and every further step raises the same."""
        if self._failed is not None:
            raise self._failed
        try:
            self._step(tick)
        except Exception as error:
            self._failed = error
            raise
        return self._root.out.delta

    def _step(self, tick: int) -> None:
        self._clear()
        self._put_fed()
        if self._begun:
            self._driver.step()
        else:
            self._begin(tick)
        if not self._begun or self._driver.largest > self._bound:
            self.check()
        self._begun = True

    def _clear(self) -> None:
        for out in self._filled:
            out.clear()
        self._filled = [out for out in self._filled if out.roomy]

    def check(self) -> None:
        """Raise LimitError if an operator has made too many rows of one tick."""
        for node in self._working:
            node.out.check()

    def driven(self) -> tuple[int, int, int, int, int]:
        """For a kernel that steps its operators: the address of their table, of the root's delta, of `found`, which is
        empty; how many rows one may have of a tick; 1 if the first step is one of `step`."""
        if self._failed is not None:
            raise self._failed
        by_step = bool(self._fed or self._connected) or not self._begun
        if not by_step:
            self._clear()
        self._driver.ready()
        self.found.clear()
        return self._driver.table.address, self._root.out.address, self.found.address, self._bound, int(by_step)

    def go_on(self, place: int) -> None:
        """What such a kernel has left to Python at an operator. Raises LimitError."""
        self._driver.go_on(place)

    def _begin(self, tick: int) -> None:
        """The first step: some have rows without any input."""
        for node in self._working:
            if node.begin(tick) or any(node.inputs):
                node.step()

    def bound(self, made: int, reads: int) -> None:
        """From now on have steps raise LimitError where an operator makes, or tries, more rows than this of one
        tick."""
        if made != self._bound:
            self._bound = made
            for node in self._working:
                node.bound(made, reads)
            for _, buffer in self._connected:
                buffer.bound = made

    def roots(self, places: Sequence[int]) -> Roots:
        """Several operators whose rows are read after each step."""
        return Roots([self.nodes[place].out.address for place in places])

    def rows(self, place: int) -> Delta:
        """The rows of an operator in the last step, as such views."""
        return self.nodes[place].out.delta

    def _put_fed(self) -> None:
        for out, buffer in self._connected:
            if len(buffer) > self._bound:
                buffer.check()
            if buffer:
                out.take_over(buffer)
                self._filled.append(out)
        if self._fed:
            for place in dict.fromkeys(place for place, _ in self._fed):
                out = self.nodes[place].out
                out.put(Delta.concat([delta for at, delta in self._fed if at == place], out.width))
                self._filled.append(out)
            self._fed.clear()

    @property
    def failed(self) -> bool:
        """Whether a step has raised an error: it continues no more."""
        return self._failed is not None

    # --- facts, and the saved state -----------------------------------------------------------------

    @property
    def records(self) -> int:
        """How many rows, groups, pairs it keeps."""
        return sum(node.records for node in self.nodes)

    def save(self, terms: SavedTerms, chosen: Mapping[int, Chosen] = MappingProxyType({})) -> State:
        """Its state between batches. chosen: by place of an operator that keeps rows which of them."""
        nodes = []
        for place, node in enumerate(self.nodes):
            if place in chosen:
                assert isinstance(node, KeepsRows)
                nodes.append(node.save_some(chosen[place], terms))
            else:
                nodes.append(node.save(terms))
        return {"begun": self._begun, "nodes": nodes}


class Roots:
    """Buffers of a plan for many queries, by their addresses: most batches bring something to few of them."""

    def __init__(self, addresses: Sequence[int]) -> None:
        self._addresses = np.array(addresses, np.int64)
        self._found = np.zeros(len(addresses), np.int64)

    def filled(self) -> list[int]:
        """The numbers of those of which the last step has made rows."""
        count: int = with_rows(self._addresses, self._found)
        found: list[int] = self._found[:count].tolist()
        return found
