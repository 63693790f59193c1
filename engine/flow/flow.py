"""A plan at work: one batch of changes after the other, each operator once for all ticks of a batch (operators.md, 8).

In the flow: algebra → plan → **nodes at work**. Nodes come after their inputs, so one pass suffices.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

import numpy as np

from oxiseq.engine.flow.delta import MOST_ROWS, Buffer, Delta
from oxiseq.engine.flow.driver import Driver
from oxiseq.engine.flow.nodes.build import build
from oxiseq.engine.flow.nodes.fed import Fed
from oxiseq.engine.flow.nodes.node import ALL_TIME, Chosen, KeepsRows
from oxiseq.engine.flow.plan import FlowPlan
from oxiseq.engine.kernels.flow.telling import with_rows
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.engine.terms.saved import SavedTerms, State, Stateful, part, value


class Flow(Stateful):
    """A standing query."""

    made_of = value("_begun", bool), part("nodes")

    def __init__(self, plan: FlowPlan, terms: TermDictionary) -> None:
        self.clock = ALL_TIME.copy()
        """Of rows that happen at some time (kernels/flow/clocks.py), for the caller of such a plan."""
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
        try:
            self._driver.go_on(place)
        except Exception as error:
            self._failed = error
            raise

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
