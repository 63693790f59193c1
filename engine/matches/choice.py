"""The running state of a selection strategy: the arrays of `kernels.matches.choice`, which grow on demand.

In the flow: finals of an instant → **those that the strategy keeps** → enumeration.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from oxiseq.engine.bounds import InstantBounds
from oxiseq.engine.errors import LimitError
from oxiseq.engine.kernels.matches import records as k
from oxiseq.engine.kernels.matches.choice import memory as c
from oxiseq.engine.kernels.matches.choice.choose import choose
from oxiseq.engine.kernels.memory.growing import longer
from oxiseq.engine.kernels.memory.pointers import Pointers, call
from oxiseq.engine.matches.memory import M, put_finals
from oxiseq.grammar.algebra import Strategy

MOST_SETS: Final = 1 << 23
"""Sets of positions held at one instant: some hundreds of megabytes."""
_STRATEGIES: Final = {Strategy.NEXT: c.FIRST_WINS, Strategy.LAST: c.LAST_WINS, Strategy.MAX: c.NONE_CONTAINED}
_ROOMS: Final = {c.MORE_STACK: "stack", c.MORE_CLASSES: "classes", c.MORE_SETS: "sets"}


class Chooser:
    """Chooses among the complex events of one instant by NEXT, LAST or MAX.

    `capacity`: records to begin with. `silent`: the place of rows that are not in D, -1 if there is none.
    """

    def __init__(self, strategy: Strategy, capacity: int = 1024, silent: int = -1) -> None:
        capacity, sets = max(capacity, 2), max(capacity, 1) if strategy is Strategy.MAX else 1
        self._memory = c.ChoiceMemory.allocate(
            nodes=0, leaves=2, stack=max(capacity, 4), classes=capacity, sets=sets, picked=max(sets, 16)
        )
        self._memory.state[[c.STRATEGY, c.SILENT]] = _STRATEGIES[strategy], silent

    def choose(self, S: M, positions: NDArray[np.int64], offset: int, bounds: InstantBounds) -> M:
        """Memory whose finals, all of one cut, are those that the strategy keeps.

        The nodes that it makes follow `scalars[NODE_BASE]`, for the kernel to take back after their enumeration. For
        `positions` and `offset` see kernels/matches/choice. Raises LimitError.
        """
        scalars, nodes = S.scalars, S.nodes
        finals = S.finals[: scalars[k.FINALS]]
        finals = np.ascontiguousarray(finals[nodes["maxs"][finals[:, 0]] >= finals[:, 1]])
        if not len(finals):
            return S
        given = finals[0, 1], len(finals), offset, bounds.choices
        self._memory.state[[c.CUT, c.FINAL_COUNT, c.OFFSET, c.MOST_STEPS]] = given
        arrays = {"scalars": scalars, "finals": finals, "positions": positions}
        while True:
            if len(self._memory.best) < len(nodes):
                self._memory = self._memory.grow("nodes", len(nodes)).grow("leaves", len(nodes) + 2)
            if len(self._memory.picked) < len(finals):
                self._memory = self._memory.grow("picked", 2 * len(finals))
            outcome = call(choose, Pointers(self._memory._replace(nodes=nodes, **arrays)))
            if outcome == c.CHOSEN:
                picked = self._memory.picked[: self._memory.state[c.PICKED]]
                if nodes is not S.nodes:  # whatever has rows for each node grows with them
                    S = S.grow("nodes", len(nodes))._replace(nodes=nodes)
                return put_finals(S, picked)
            if outcome == c.MORE_NODES:
                nodes = longer(nodes, 2 * len(nodes))
            else:
                self._make_room(outcome)

    def _make_room(self, outcome: int) -> None:
        if outcome == c.TOO_MANY_STEPS:
            steps, most = self._memory.state[[c.STEPS, c.MOST_STEPS]].tolist()
            raise LimitError(steps, most, "comparisons for SELECT MAX at one instant")
        sets = 2 * len(self._memory.sets)
        if outcome == c.MORE_SETS and sets > MOST_SETS:
            raise LimitError(sets, MOST_SETS, "sets of events for SELECT MAX at one instant")
        self._memory = self._memory.grow(_ROOMS[outcome])
        if outcome == c.MORE_SETS and sets > len(self._memory.picked):
            self._memory = self._memory.grow("picked", sets)
