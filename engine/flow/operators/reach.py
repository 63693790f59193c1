"""Paths of one step or more at work (operators.md, 5.1)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import numpy as np

from oxiseq.engine.errors import LimitError
from oxiseq.engine.flow.delta import I64, Buffer, Delta, Ids
from oxiseq.engine.flow.operators.node import Call, OfRows
from oxiseq.engine.kernels.flow import path_records as k
from oxiseq.engine.kernels.flow.path_storing import fill_pair_slots, fill_row_slots
from oxiseq.engine.kernels.flow.paths import reach
from oxiseq.engine.kernels.memory.pointers import Replaceable, call
from oxiseq.engine.terms.saved import unsaved
from oxiseq.grammar.records import dataclass


@dataclass(frozen=True, slots=True)
class Reach:
    """Edges (the last two columns of the child) → each pair of nodes that one step or more connect, once. Columns
    before those are context: paths stay within one."""

    child: int


MOST_PAIRS: Final = 20_000_000
"""Of nodes that paths connect, past which LimitError is raised: some 1.2 GB."""
_SHRINK_FROM: Final = 4096
"""Pairs or edges from which on memory that is mostly empty is returned."""
_MOSTLY: Final = 8


class ReachNode(OfRows):
    """Edges → each pair of nodes that one step or more connect. It keeps edges and pairs."""

    made_of = (unsaved("_memory"),)
    _saved_as = "edges", "weight"

    def __init__(self, child: Buffer, most_pairs: int = MOST_PAIRS, room: int = 16) -> None:
        """room: for how many pairs to begin with."""
        super().__init__(child.width, (child,))
        self.most_pairs = most_pairs
        """Past which LimitError is raised."""
        self._least = max(room, 2)
        self._table = Replaceable(self._empty(self._least, min(self._least, most_pairs)))
        self._memory = self._table.arrays

    def call(self) -> Call:
        return Call(reach, (self._table, self.inputs[0], self.out))

    def _empty(self, edges: int, pairs: int) -> k.PathMemory:
        memory = k.PathMemory.allocate(vertices=edges, edges=edges, pairs=pairs, width=self.out.width - 1)
        memory.scalars[[k.VERTEX_FREE, k.EDGE_FREE, k.PAIR_FREE, k.CHANGED_EDGES, k.CHANGED_PAIRS, k.WORK]] = k.LAST
        return memory

    def _point(self, memory: k.PathMemory) -> None:
        self._memory = memory
        self._table.set(memory)

    @property
    def records(self) -> int:
        return int(self._memory.scalars[k.PAIRS])

    def provide(self, answer: int) -> None:
        if self._memory.scalars[k.PHASE] == k.TAKE:
            self._grow_rows()
        else:
            self._grow_pairs()

    def step(self) -> None:
        super().step()
        self.tidy()

    def tidy(self) -> None:
        scalars = self._memory.scalars
        pairs, edges = int(scalars[k.PAIRS]), int(scalars[k.EDGES])
        if len(self._memory.pairs) > max(_MOSTLY * pairs, _SHRINK_FROM, self._least) or len(self._memory.edges) > max(
            _MOSTLY * edges, _SHRINK_FROM, self._least
        ):
            self._keep(*self._rows())

    def _grow_rows(self) -> None:
        """Room for twice as many edges or vertices, whatever is full."""
        scalars, edges, vertices = self._memory.scalars, len(self._memory.edges), len(self._memory.vertices)
        memory = self._memory.grow("edges", 2 * edges if scalars[k.EDGES] >= edges else edges)
        self._point(memory.grow("vertices", 2 * vertices if scalars[k.VERTICES] + 2 > vertices else vertices))
        call(fill_row_slots, self._table)

    def _grow_pairs(self) -> None:
        memory = self._memory
        if len(memory.pairs) >= self.most_pairs:
            raise LimitError(
                len(memory.pairs) + 1,
                self.most_pairs,
                "pairs of nodes that a path (+ or *) connects; bind one of its ends, or make the window shorter",
            )
        self._point(memory.grow("pairs", min(2 * len(memory.pairs), self.most_pairs)))
        call(fill_pair_slots, self._table)

    # --- its saved state ------------------------------------------------------------------------------

    def _rows(self) -> tuple[Ids, I64]:
        """Edges, as they came in, and their weights."""
        memory = self._memory
        edges = memory.edges[: int(memory.scalars[k.EDGE_TOP])]
        edges = edges[edges["source"] >= 0]
        rows = memory.rows
        return np.hstack([rows[edges["source"]], rows[edges["target"], -1:]]), edges["weight"].astype(np.int64)

    def _keep(self, rows: Ids, weight: I64) -> None:
        """Keep these edges and nothing else. The pairs are those emitted before."""
        pairs = min(max(self._least, 2 * self.records), self.most_pairs)
        self._point(self._empty(max(self._least, 2 * len(rows)), pairs))
        source = Buffer(self.out.width)
        source.put(Delta(np.zeros(len(rows), np.int64), weight, rows))
        self._memory.scalars[k.SILENT] = 1
        silent = Buffer(self.out.width)
        while need := call(reach, self._table, source, silent):
            self.provide(need)
        scalars = self._memory.scalars
        scalars[k.SILENT] = 0

    def held_ids(self) -> Iterable[Ids]:
        yield self._memory.rows[: int(self._memory.scalars[k.VERTEX_TOP])]
