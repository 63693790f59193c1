"""Triples that answers use up (CONSUME CHRONOLOGICAL, CONSUME RECENT; semantics.md 5).

Where it stands: solutions that end at one instant → **those that are told**, and the triples that they use up. Every
SEQ chooses: of the second operands that are equal on what its operands share those that end first, or last, and for
each of these the first operands that do. All triples that the chosen ones are made of are used up: no later answer is
made of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from oxiseq.engine.intervals.nodes.leaves import with_use
from oxiseq.engine.intervals.nodes.node import Node
from oxiseq.engine.intervals.plan import SeqChoice, UsePlan
from oxiseq.engine.intervals.rows import I64, Column, Rows
from oxiseq.engine.terms.dictionary import TermDictionary

NOT_PART: Final = -(1 << 62)
"""The end of an operand that a solution does not have."""


class Uses:
    """The policy of one query at work on its operators. Which triple it was says a literal that nobody sees: when it
    ended, and its number then."""

    def __init__(self, plan: UsePlan, root: Node, terms: TermDictionary) -> None:
        self._plan, self._terms = plan, terms
        self._columns = root.columns
        self._shown = [i for i, c in enumerate(root.columns) if c not in plan.unseen]
        self._of = [i for i, c in enumerate(root.columns) if c in plan.columns]
        self._parts = [
            (table, [i for i, c in enumerate(columns) if c in plan.columns])
            for node in root.everything() for table, columns in node.parts
        ]  # fmt: skip

    def numbered(self, triples: Rows) -> Rows:
        """What has come at one instant, each triple with its own id."""
        texts = [b'"%d %d"' % (end, number) for number, end in enumerate(triples.end.tolist())]
        ends = np.cumsum([0, *map(len, texts)])
        return with_use(triples, self._terms.intern_texts(np.frombuffer(b"".join(texts), np.uint8), ends))

    def told(self, rows: Rows) -> Rows:
        """Those of an instant's solutions that are told, without the columns of ids; what they are made of is gone."""
        for choice in self._plan.choices:
            if len(rows) > 1:
                rows = rows.take(self._chosen(choice, rows))
        used = np.unique(rows.values[:, self._of])
        used = used[used != 0]
        if len(used):
            for table, places in self._parts:
                table.drop_used(places, used)
        return rows.columns(self._shown)

    def _chosen(self, choice: SeqChoice, rows: Rows) -> NDArray[np.bool_]:
        """Which solutions a SEQ keeps; those of which it is no part too."""
        second = self._ends(self._of_rows(rows, choice.second))
        part = second != NOT_PART
        kept: NDArray[np.bool_] = ~part
        kept[part] = self._best(self._of_rows(rows, choice.shared)[part], second[part])
        first = self._ends(self._of_rows(rows, choice.first))
        kept[part] &= self._best(self._of_rows(rows, choice.own)[part], first[part])
        return kept

    def _of_rows(self, rows: Rows, columns: Sequence[Column]) -> NDArray[np.uint32]:
        found: NDArray[np.uint32] = rows.values[:, [self._columns.index(c) for c in columns]]
        return found

    def _best(self, keys: NDArray[np.uint32], ends: I64) -> NDArray[np.bool_]:
        """Which end first, or last, among those of equal keys: u32[n, k]."""
        _, key = np.unique(keys, axis=0, return_inverse=True)
        key = key.reshape(-1)
        worst = np.iinfo(np.int64).min if self._plan.recent else np.iinfo(np.int64).max
        best = np.full(int(key.max(initial=-1)) + 1, worst)
        (np.maximum if self._plan.recent else np.minimum).at(best, key, ends)
        kept: NDArray[np.bool_] = ends == best[key]
        return kept

    def _ends(self, ids: NDArray[np.uint32]) -> I64:
        """i64[n], when the last of some triples ended: u32[n, these]."""
        known, place = np.unique(ids, return_inverse=True)
        ends = [NOT_PART if i == 0 else int(self._terms.text(i)[1:-1].split()[0]) for i in known.tolist()]
        found: I64 = np.array(ends, np.int64)[place.reshape(ids.shape)].max(axis=1, initial=NOT_PART)
        return found
