"""Triples that answers use up (CONSUME CHRONOLOGICAL, CONSUME RECENT; semantics.md 5).

Where it stands: solutions of many instants, made of any triples → **those that are told** (kernels/flow/choosing.py).
What is made of a used triple is not told again; it leaves what operators keep when there are enough of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from oxiseq.engine.flow.delta import Buffer, Delta, Ids
from oxiseq.engine.flow.epsparql.algebra import UsePlan
from oxiseq.engine.flow.epsparql.lowering import INTERVAL, SolutionColumn
from oxiseq.engine.kernels.flow import choosing as k
from oxiseq.engine.kernels.flow.buffers import DONE
from oxiseq.engine.kernels.memory.pointers import Replaceable

_FEW: Final = 64
"""Used triples that are not worth looking for."""


class Uses:
    """The policy of one query. columns: those of its solutions."""

    def __init__(self, plan: UsePlan, columns: Sequence[SolutionColumn]) -> None:
        place = {column: INTERVAL + i for i, column in enumerate(columns)}
        begin, parts = [0], list[int]()
        for choice in plan.choices:
            for part in (choice.first, choice.second, choice.shared, choice.own):
                parts += [place[c] for c in part]
                if part is choice.own:  # operands that bind the same are told apart by their triples, all of a number
                    parts += [place[c] + 1 for c in choice.second]
                begin.append(len(parts))
        uses = [place[c] for c in plan.columns if c in place]
        scalars = np.zeros(k.SCALARS, np.int64)
        scalars[k.RECENT] = plan.recent
        self._memory = Replaceable(k.Choosing(
            scalars, np.array(uses, np.int64), np.array(begin, np.int64), np.array(parts, np.int64),
            np.zeros(_FEW, np.int64), *_by_row(1),
        ))  # fmt: skip

    def told(self, solutions: Buffer) -> Delta:
        """Those of the solutions of some instants that are told; what they are made of is used."""
        count = len(solutions)
        memory = self._memory.arrays
        if count > len(memory.kept):
            kept, ends, heads, best = _by_row(1 << count.bit_length())
            self._memory.set(memory._replace(kept=kept, ends=ends, heads=heads, best=best))
        while k.choose(self._memory.address, solutions.address) != DONE:
            self._more()
        return solutions.delta.take(self._memory.arrays.kept[:count] != 0)

    def _more(self) -> None:
        """Room for twice as many used triples."""
        memory = self._memory.arrays
        self._memory.set(memory._replace(used=np.zeros(2 * len(memory.used), np.int64)))
        k.fill_used(self._memory.address, memory.used)

    def __len__(self) -> int:
        return int(self._memory.arrays.scalars[k.COUNT])

    def many(self, records: int) -> bool:
        """Whether what is made of them should leave what operators keep, which is so many rows."""
        return len(self) > _FEW + records // 8

    def free(self, rows: Ids, lows: Sequence[int]) -> NDArray[np.bool_]:
        """Which rows are made of no used triple; lows: where the lower halves of triples' numbers stand."""
        used = self._memory.arrays.used
        used = used[used != 0]
        kept = np.ones(len(rows), np.bool_)
        for low in lows:
            numbers = rows[:, low - 1].astype(np.int64) << 32 | rows[:, low]
            kept &= ~np.isin(numbers, used)
        return kept

    def clear(self) -> None:
        """Nothing is made of used triples any more."""
        memory = self._memory.arrays
        memory.scalars[k.COUNT] = 0
        self._memory.set(memory._replace(used=np.zeros(_FEW, np.int64)))


def _by_row(rows: int) -> list[NDArray[np.int64]]:
    """`kept`, `ends`, `heads`, `best`."""
    return [np.zeros(size, np.int64) for size in (rows, rows, max(4 * rows, 2), rows)]
