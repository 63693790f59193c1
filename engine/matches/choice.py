"""The running state of a selection strategy: the arrays of `kernels.matches.choice`, which grow on demand.

In the flow: finals of an instant → **those that the strategy keeps** → enumeration.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from oxiseq.engine.errors import LimitError
from oxiseq.engine.kernels.matches import records as k
from oxiseq.engine.kernels.matches.choice import memory as c
from oxiseq.engine.kernels.matches.choice.choose import choose
from oxiseq.engine.kernels.matches.records import SPINE
from oxiseq.engine.kernels.memory.growing import longer
from oxiseq.engine.kernels.memory.pointers import Pointers, call
from oxiseq.engine.matches.memory import M, put_finals
from oxiseq.grammar.algebra import Strategy

MOST_STEPS: Final = 2_000_000_000
"""Comparisons of positions at one instant: some seconds."""
MOST_SETS: Final = 1 << 23
"""Sets of positions held at one instant: some hundreds of megabytes."""
_STRATEGIES: Final = {Strategy.NEXT: c.FIRST_WINS, Strategy.LAST: c.LAST_WINS, Strategy.MAX: c.NONE_CONTAINED}


class Chooser:
    """Chooses among the complex events of one instant by NEXT, LAST or MAX.

    `capacity`: records to begin with. `silent`: the place of rows that are not in D, -1 if there is none.
    """

    def __init__(self, strategy: Strategy, capacity: int = 1024, silent: int = -1) -> None:
        self._state = np.zeros(c.CHOICE_STATES, np.int64)
        self._state[[c.STRATEGY, c.MOST_STEPS, c.SILENT]] = _STRATEGIES[strategy], MOST_STEPS, silent
        self._stack = np.zeros(max(capacity, 4), np.int64)
        self._spine = np.zeros(SPINE, np.int64)
        self._sets = np.zeros((max(capacity, 1) if strategy is Strategy.MAX else 1, 2), np.int64)
        self._picked = np.zeros(16, np.int64)
        self._by_node(0)
        self._for_classes(max(capacity, 2))

    def choose(self, S: M, positions: NDArray[np.int64], offset: int) -> M:
        """Memory whose finals, all of one cut, are those that the strategy keeps.

        The nodes that it makes follow `scalars[NODE_BASE]`, for the kernel to take back after their enumeration. For
        `positions` and `offset` see kernels/matches/choice. Raises LimitError.
        """
        scalars, nodes = S.scalars, S.nodes
        finals = S.finals[: scalars[k.FINALS]]
        finals = np.ascontiguousarray(finals[nodes["maxs"][finals[:, 0]] >= finals[:, 1]])
        if not len(finals):
            return S
        self._state[[c.CUT, c.FINAL_COUNT, c.OFFSET]] = finals[0, 1], len(finals), offset
        while True:
            if len(self._best) < len(nodes):
                self._by_node(len(nodes))
            if len(self._picked) < len(finals):
                self._picked = np.zeros(2 * len(finals), np.int64)
            outcome = call(
                choose,
                Pointers(
                    c.ChoiceMemory(
                        nodes,
                        scalars,
                        finals,
                        positions,
                        self._state,
                        self._best,
                        self._kept,
                        self._done,
                        self._stack,
                        self._leaves,
                        self._classes,
                        self._table,
                        self._sets,
                        self._picked,
                        self._spine,
                    )
                ),
            )
            if outcome == c.CHOSEN:
                picked = self._picked[: self._state[c.PICKED]]
                return put_finals(S if nodes is S.nodes else S._replace(nodes=nodes), picked)
            if outcome == c.MORE_NODES:
                nodes = longer(nodes, 2 * len(nodes))
            else:
                self._make_room(outcome)

    def _make_room(self, outcome: int) -> None:
        if outcome == c.MORE_STACK:
            self._stack = longer(self._stack, 2 * len(self._stack))
        elif outcome == c.MORE_CLASSES:
            self._for_classes(2 * len(self._classes))
        elif outcome == c.MORE_SETS:
            if 2 * len(self._sets) > MOST_SETS:
                raise LimitError(2 * len(self._sets), MOST_SETS, "sets of events for SELECT MAX at one instant")
            self._sets = longer(self._sets, 2 * len(self._sets))
            self._picked = np.zeros(len(self._sets), np.int64)
        else:
            raise LimitError(int(self._state[c.STEPS]), MOST_STEPS, "comparisons for SELECT MAX at one instant")

    def _by_node(self, size: int) -> None:
        self._best = np.full(size, -1, np.int32)
        self._kept, self._done = np.zeros(size, np.int32), np.zeros(size, np.int32)
        self._leaves = np.zeros(size + 2, np.int64)
        self._picked = np.zeros(max(len(self._sets), len(self._picked)), np.int64)

    def _for_classes(self, size: int) -> None:
        self._classes = np.zeros(size, c.CLASS)
        self._table = np.full(1 << (2 * size).bit_length(), -1, np.int32)
