"""Which queries a leaf's change can matter to: those that join it with rows that agree.

In the flow: changes of a leaf → **queries** to be stepped. A query `?s :in :room7 ; :value ?v` need not
look at the value of a sensor in another room. A leaf is *gated* for a query if the query reads it in joins only; then
the keys of what it is joined with say which rows matter. Where that is much, or what reads the leaf is no join, the
query is stepped at each change of it.

Why that is enough: a change of the leaf makes pairs only with rows of the other sides, as they are before or after. If
it agrees with none of those that were there, the query changes only if the other sides change, too; these depend on
other leaves, which open their own gates, or on the leaf itself by way of a join, whose gate is then open.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Final, Generic, TypeVar

import numpy as np

from oxiseq.engine.flow import plan as p
from oxiseq.engine.flow.delta import Delta, Ids
from oxiseq.engine.standing.leaves import Leaf

MOST: Final = 10_000
"""Rows of the other side from which on nothing is gained."""
Q = TypeVar("Q", bound=Hashable)
Columns = tuple[int, ...]


def joined_with(plan: p.FlowPlan, source: int) -> list[tuple[Columns, int]] | None:
    """Of a source that is read in joins only: by which columns, and the arrangement on the other side of each."""
    if source == plan.root:
        return None
    found: list[tuple[Columns, int]] = []
    arranged = []
    for place, form in enumerate(plan.forms):
        if source in p.inputs(form):
            if not isinstance(form, p.Arrange) or form.loose or not form.key:
                return None
            arranged.append(place)
    for form in plan.forms:
        if isinstance(form, p.Join):
            for mine, other in ((form.left, form.right), (form.right, form.left)):
                if mine in arranged:
                    this = plan.forms[mine]
                    assert isinstance(this, p.Arrange)
                    found.append((this.key, other))
    return found


class Gates(Generic[Q]):
    """Queries by keys of leaves' rows."""

    def __init__(self) -> None:
        self._open: dict[Leaf, dict[Columns, dict[bytes, dict[Q, int]]]] = {}
        self._held: dict[Q, dict[tuple[Leaf, Columns, bytes], None]] = {}

    def turn(self, query: Q, leaf: Leaf, columns: Columns, delta: Delta, key: Columns) -> None:
        """Rows of the other side come and go; `key`: their columns that agree with `columns` of the leaf."""
        by_key = self._open.setdefault(leaf, {}).setdefault(columns, {})
        held = self._held.setdefault(query, {})
        for each, weight in zip(_keys(delta.rows, key), delta.weight.tolist(), strict=True):
            queries = by_key.setdefault(each, {})
            count = queries.get(query, 0) + weight
            if count:
                queries[query] = count
                held[leaf, columns, each] = None
                continue
            del queries[query]
            held.pop((leaf, columns, each), None)
            if not queries:
                del by_key[each]
        self._tidy(leaf, columns)

    def _tidy(self, leaf: Leaf, columns: Columns) -> None:
        """Hold nothing of a leaf without gates."""
        by_columns = self._open[leaf]
        if not by_columns[columns]:
            del by_columns[columns]
        if not by_columns:
            del self._open[leaf]

    def through(self, leaf: Leaf, delta: Delta) -> Iterator[Q]:
        """The queries that a change of a leaf may matter to, some more than once."""
        for columns, by_key in self._open.get(leaf, {}).items():
            if by_key:
                for each in _keys(delta.rows, columns):
                    yield from by_key.get(each, ())

    def remove(self, query: Q) -> None:
        """It has no gates any more."""
        for leaf, columns, each in self._held.pop(query, {}):
            by_key = self._open[leaf][columns]
            by_key[each].pop(query, None)
            if not by_key[each]:
                del by_key[each]
            self._tidy(leaf, columns)

    def size(self, query: Q) -> int:
        """How many keys it holds."""
        return len(self._held.get(query, ()))


def _keys(rows: Ids, columns: Columns) -> list[bytes]:
    picked = np.ascontiguousarray(rows[:, list(columns)])
    keys: list[bytes] = picked.view(f"V{4 * len(columns)}").reshape(-1).tolist()
    return keys
