"""Triples that answers use up (CONSUME CHRONOLOGICAL, CONSUME RECENT; semantics.md 5).

In the flow: solutions of many instants, made of any triples → **those that are emitted** (kernels/flow/choosing.py).
Rows made of a used triple are not emitted again; operators release them when there are enough of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from oxiseq.engine.flow.delta import Buffer, Delta
from oxiseq.engine.flow.epsparql.lowering import UsePlan
from oxiseq.engine.flow.epsparql.relations import Guard, Kept
from oxiseq.engine.flow.flow import Flow
from oxiseq.engine.kernels.flow import choosing as k
from oxiseq.engine.kernels.flow import choosing as u
from oxiseq.engine.kernels.flow.arrangement import ROW
from oxiseq.engine.kernels.flow.buffers import DONE
from oxiseq.engine.kernels.memory.pointers import Addressed, Pointers, Replaceable, call

_FEW: Final = 64
"""Used triples that are not worth looking for."""
_KEPT_ROOM: Final = 1 << 12
"""Room for used triples that stays when there are none."""


class Uses:
    """The policy of one query. kept, addresses: the arrangements."""

    def __init__(self, plan: UsePlan, kept: Sequence[Kept], addresses: Sequence[int]) -> None:
        place = {column: i for i, column in enumerate(plan.columns)}
        begin, parts = [0], list[int]()
        for choice in plan.choices:
            for part in (choice.first, choice.second, choice.shared, choice.own):
                parts += [place[c] for c in part]
                if part is choice.own:  # operands that bind the same differ by their triples, of a number each
                    parts += [place[c] + 1 for c in choice.second]
                begin.append(len(parts))
        uses = [place[c] for c in plan.uses if c in place]
        scalars = np.zeros(k.SCALARS, np.int64)
        scalars[k.RECENT] = plan.recent
        self._memory = Replaceable(
            k.Choosing(
                scalars,
                np.array(begin, np.int64),
                np.array(parts, np.int64),
                np.zeros(_FEW, np.int64),
                *_by_row(1),
            )
        )
        inside = [(place[c], c.number) for c in plan.columns if isinstance(c, Guard) and not c.low]
        self._form, self._kept = _Rows(uses, inside), _Arranged(kept, addresses)
        self._most = _FEW
        """Used triples up to which the number of kept rows is not checked."""
        self._tables = self._memory, self._form, self._kept

    def told(self, solutions: Buffer) -> Delta:
        """The solutions of some instants that are emitted; they consume their triples."""
        count = len(solutions)
        memory = self._memory.arrays
        if count > len(memory.kept):
            kept, ends, heads, best = _by_row(1 << count.bit_length())
            self._memory.set(memory._replace(kept=kept, ends=ends, heads=heads, best=best))
        while call(k.choose, *self._tables, solutions) != DONE:
            self._more()
        return solutions.delta.take(self._memory.arrays.kept[:count] != 0)

    def _more(self) -> None:
        """Room for twice as many used triples."""
        memory = self._memory.arrays
        used = np.zeros(2 * len(memory.used), np.int64)
        u.fill_used(used, memory.used)
        self._memory.set(memory._replace(used=used))

    def __len__(self) -> int:
        return int(self._memory.arrays.scalars[k.COUNT])

    def many(self, flow: Flow) -> bool:
        """Whether a plan should release the rows made of them."""
        if len(self) <= self._most:
            return False
        self._most = _FEW + flow.records // 8
        return len(self) > self._most

    def drop(self) -> None:
        """Rows made of them are no longer kept, so nothing is made of used triples any more."""
        memory = self._memory.arrays
        call(u.drop_used, self._kept, memory.used)
        memory.scalars[k.COUNT], self._most = 0, _FEW
        if len(memory.used) > _KEPT_ROOM:
            self._memory.set(memory._replace(used=np.zeros(_KEPT_ROOM, np.int64)))
        else:
            memory.used[:] = 0


class _Rows(Addressed[u.Rows]):
    """What rows are made of, for kernels. uses: the columns of triples' numbers; guards: their columns, and which."""

    def __init__(self, uses: Sequence[int], guards: Sequence[tuple[int, int]]) -> None:
        self._guards = [Pointers(u.Guard(np.array([place, place + 1]), np.array([number]))) for place, number in guards]
        addresses = [guard.address for guard in self._guards]
        self._memory = Pointers(u.Rows(np.array(uses, np.int64), np.array(addresses, np.int64)))
        self.address = self._memory.address


class _Arranged(Addressed[u.Kept]):
    """Arrangements, for kernels."""

    def __init__(self, kept: Sequence[Kept], addresses: Sequence[int]) -> None:
        self._rows = [
            _Rows([ROW + i for i in each.uses], [(ROW + i, number) for i, number in each.guards]) for each in kept
        ]
        self._memory = Pointers(
            u.Kept(
                np.array(addresses, np.int64),
                np.array([rows.address for rows in self._rows], np.int64),
                np.zeros((len(kept) + 1, u.LEVEL), np.int64),
            )
        )
        self.address = self._memory.address


def _by_row(rows: int) -> list[NDArray[np.int64]]:
    """`kept`, `ends`, `heads`, `best`."""
    return [np.zeros(size, np.int64) for size in (rows, rows, max(4 * rows, 2), rows)]
