"""GROUP BY and aggregates: groups of rows that come and go.

Where it stands: changes of joined rows → groups, of which only those touched at an instant are looked at → **changes of
the answer's rows** → `counting.py`.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from oxiseq.engine.expressions.exact import holds
from oxiseq.engine.rsp.aggregates import Values, integer
from oxiseq.engine.rsp.changes import Changes, Ids, keys_of
from oxiseq.engine.rsp.incremental import Grouping
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.engine.terms.saved import KnownTerms, SavedTerms, State
from oxiseq.engine.terms.texts import Term
from oxiseq.grammar.algebra import Aggregate


class _Group:
    """A group: its keys' ids, how many rows it has, the values that aggregates are about, the row that it shows now."""

    __slots__ = ("ids", "row", "rows", "values")

    def __init__(self, ids: tuple[int, ...], values: list[Values]) -> None:
        self.ids, self.values = ids, values
        self.rows = 0
        self.row: tuple[int, ...] | None = None


class Groups:
    """All groups of a query."""

    def __init__(self, plan: Grouping, terms: TermDictionary) -> None:
        self._plan, self._terms = plan, terms
        self._groups: dict[bytes, _Group] = {}
        self._begun = False
        self._kept: dict[tuple[int, bool], bool] = {}
        """By column and whether each value counts once: whether MIN or MAX are asked for."""
        self._of: list[int] = []
        """By aggregate the number of what is kept for it; −1: nothing."""
        for aggregate, place in plan.aggregates:
            self._of.append(self._number(aggregate, place))

    def _number(self, aggregate: Aggregate, place: int) -> int:
        if place < 0 or (aggregate.name == "COUNT" and not aggregate.distinct):
            return -1
        ends = aggregate.name in ("MIN", "MAX")
        key = place, aggregate.distinct and not ends
        self._kept[key] = self._kept.get(key, False) or ends
        return [*self._kept].index(key)

    def __len__(self) -> int:
        return len(self._groups)

    def changes(self, changes: Changes, instants: int) -> Changes:
        """How the answer's rows change; `instants`: how many there are."""
        keyed = changes.columns(self._plan.keys)
        keys, ids = keys_of(keyed), keyed.tolist()
        values = [changes.values[:, place].tolist() for place, _ in self._kept]
        signs = changes.sign.tolist()
        found = _Found()
        if self._plan.implied and not self._begun and instants:
            self._begun = True
            self._group(b"", ())
            if not len(changes) or changes.at[0] > 0:
                self._look(0, {b"": self._groups[b""]}, found)
        for at, low, high in changes.steps():
            touched: dict[bytes, _Group] = {}
            for row in range(low, high):
                group = touched[keys[row]] = self._group(keys[row], ids[row])
                group.rows += signs[row]
                for kept, column in zip(group.values, values, strict=True):
                    kept.add(column[row], signs[row])
            self._look(at, touched, found)
        return found.changes(len(self._plan.shown))

    def _group(self, key: bytes, ids: list[int] | tuple[int, ...]) -> _Group:
        group = self._groups.get(key)
        if group is None:
            kept = [Values(self._terms, distinct, ends) for (_, distinct), ends in self._kept.items()]
            group = self._groups[key] = _Group(tuple(ids), kept)
        return group

    def _look(self, at: int, touched: Mapping[bytes, _Group], found: _Found) -> None:
        """The rows of groups that have been touched at an instant."""
        gone, come = [], []
        for key, group in touched.items():
            before, group.row = group.row, self._row(group)
            if not group.rows and not self._plan.implied:
                del self._groups[key]
            if before != group.row:
                gone += [before] if before is not None else []
                come += [group.row] if group.row is not None else []
        found.add(at, gone, come)

    def _row(self, group: _Group) -> tuple[int, ...] | None:
        """What a group shows; None: nothing."""
        plan = self._plan
        if not group.rows and not plan.implied:
            return None
        results = [
            group.values[of].result(aggregate, group.rows) if of >= 0 else self._count(group.rows)
            for (aggregate, _), of in zip(plan.aggregates, self._of, strict=True)
        ]
        if plan.having and not self._stands(group, results):
            return None
        every = (*group.ids, *results)
        return tuple(every[number] for number in plan.shown)

    def _count(self, rows: int) -> int:
        return self._terms.intern_normal(integer(rows))

    def _stands(self, group: _Group, results: list[int]) -> bool:
        """Whether HAVING keeps it."""
        plan, term = self._plan, self._terms.term
        leaves: dict[object, Term] = {name: term(i) for name, i in zip(plan.names, group.ids, strict=True)}
        for (aggregate, _), i in zip(plan.aggregates, results, strict=True):
            if i:
                leaves[aggregate] = term(i)
        return all(holds(condition, leaves) for condition in plan.having)  # type: ignore[arg-type]  # leaves of both kinds

    # --- what it holds ------------------------------------------------------------------------------

    def held_ids(self) -> Ids:
        """The terms of the rows shown."""
        return np.array([i for group in self._groups.values() for i in group.row or ()], np.uint32)

    def save(self, terms: SavedTerms) -> State:
        """The groups with their values, in the order in which they came."""
        groups = []
        for group in self._groups.values():
            items = [value.items() for value in group.values]
            groups.append({
                "ids": terms.ids(np.array(group.ids, np.uint32)), "rows": group.rows,
                "values": [terms.ids(np.array([i for i, _ in each], np.uint32)) for each in items],
                "counts": [np.array([n for _, n in each], np.int64) for each in items],
            })  # fmt: skip
        return {"begun": self._begun, "groups": groups}

    def restore(self, state: State, terms: KnownTerms) -> None:
        """Go on from a saved state."""
        self._begun = bool(state["begun"])
        for saved in state["groups"]:
            ids = terms.ids(saved["ids"])
            group = self._group(keys_of(ids.reshape(1, -1))[0], ids.tolist())
            group.rows = int(saved["rows"])
            for value, members, counts in zip(group.values, saved["values"], saved["counts"], strict=True):
                for term, count in zip(terms.ids(members).tolist(), counts.tolist(), strict=True):
                    value.put(term, count)
            group.row = self._row(group)


class _Found:
    """Rows of the answer that come and go."""

    def __init__(self) -> None:
        self._at: list[int] = []
        self._sign: list[int] = []
        self._rows: list[tuple[int, ...]] = []

    def add(self, at: int, gone: list[tuple[int, ...]], come: list[tuple[int, ...]]) -> None:
        self._at += [at] * (len(gone) + len(come))
        self._sign += [-1] * len(gone) + [1] * len(come)
        self._rows += gone + come

    def changes(self, width: int) -> Changes:
        values = np.array(self._rows, np.uint32).reshape(len(self._rows), width)
        return Changes(np.array(self._at, np.int64), np.array(self._sign, np.int64), values)
