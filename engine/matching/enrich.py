"""KB answers and their join with rows (matching.md, section 6).

In the flow: P_D, the GRAPH patterns of a GPM → **materialised answer** → join with the GPM's rows, before or
after matching. A run queries it once, and again only when the KB's version changed (`KbInTime`): the pattern
is compiled and keeps nothing, for one plan may run over several stores.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import field, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray
from pyoxigraph import BlankNode, Variable

from oxiseq.engine.errors import LimitError
from oxiseq.engine.kb import KnowledgeBase
from oxiseq.engine.kernels.matches.numbering import enter_rows, find_rows
from oxiseq.engine.kernels.memory.slots import SLOT, slots_for
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.engine.terms.saved import KnownTerms, SavedTerms, State
from oxiseq.engine.terms.texts import Term
from oxiseq.grammar.algebra import Group
from oxiseq.grammar.records import dataclass
from oxiseq.grammar.render import render_group
from oxiseq.grammar.render_sparql import base_clause
from oxiseq.grammar.scope import certain_variables, visible_variables

MAX_JOINED: Final = 50_000_000
"""Rows of one join for all instants of a batch together, past which LimitError is raised: none of them is to blame."""

Ids = NDArray[np.uint32]
Places = NDArray[np.int64]


class KbPattern:
    """The KB part of a GPM; `shared` are the variables it shares with the GPM's own pattern."""

    def __init__(self, pattern: Group, shared: tuple[Variable, ...], terms: TermDictionary) -> None:
        self.variables = visible_variables(pattern)
        self.shared = shared
        self.shared_certain = frozenset(shared) <= certain_variables(pattern)
        """Whether every answer binds all shared variables, whatever the KB holds."""
        self._terms = terms
        names = " ".join(f"?{v.value}" for v in self.variables) or "(1 AS ?oxiseq_one)"
        self.text = f"{base_clause(pattern)}SELECT DISTINCT {names} WHERE {render_group(pattern)}"
        self.texts = (self.text,)

    def ask_as(self, texts: Collection[str]) -> None:
        """Its question is one of these, which differ in the names of variables: those that queries have announced."""
        if self.text not in texts:
            self.text = next(iter(texts))
            self.texts = (self.text,)

    def answer(self, kb: KnowledgeBase) -> KbAnswer:
        """Ask for it. Raises KbError."""
        ids: dict[Term | None, int] = {None: 0}
        flat: list[int] = []
        rows = 0
        width = range(len(self.variables))
        for solution in kb.solutions(self.text):
            rows += 1
            for i in width:
                term = solution[i]
                known = ids.get(term)
                if known is None:
                    blank = isinstance(term, BlankNode)
                    known = ids[term] = self._terms.kb_blank(term.value) if blank else self._terms.intern(term)
                flat.append(known)
        columns = np.array(flat, np.uint32).reshape(rows, len(self.variables))
        places = tuple(self.variables.index(v) for v in self.shared)
        ordered = columns[text_order(columns, ids)]
        self._terms.hold(ordered)
        return KbAnswer(self.variables, ordered, places)

    def saved(self, made: KbAnswer, terms: SavedTerms) -> State:
        """For a snapshot."""
        return made.save(terms)

    def restored(self, state: State, terms: KnownTerms) -> KbAnswer:
        """A saved answer, or a part of one, as it was."""
        ids = terms.ids(state["rows"])
        self._terms.hold(ids)
        return KbAnswer(self.variables, ids, tuple(self.variables.index(v) for v in self.shared))


def text_order(columns: Ids, ids: dict[Term | None, int]) -> Places:
    """An order of rows that only the terms' texts fix, not the store's internals."""
    if columns.size == 0:
        return np.arange(len(columns))
    rank = np.zeros(max(ids.values()) + 1, np.int64)
    for position, term in enumerate(sorted((t for t in ids if t is not None), key=str)):
        rank[ids[term]] = position + 1
    ranked = rank[columns]
    return np.lexsort(tuple(ranked[:, i] for i in reversed(range(ranked.shape[1]))))


@dataclass(frozen=True, slots=True)
class KbAnswer:
    """Distinct solutions of a KB pattern: `columns` u32[r, variables], 0 unbound, in a fixed order.

    `shared_places` are the columns of the shared variables. The join indexes are built when first needed.
    """

    variables: tuple[Variable, ...]
    columns: Ids
    shared_places: tuple[int, ...]
    _indexes: dict[tuple[int, int], _Index] = field(default_factory=dict, repr=False, compare=False)
    _groups: dict[int, Places] = field(default_factory=dict, repr=False, compare=False)
    """KB rows by which shared variables they bind (a bit each); empty until first read."""

    def __len__(self) -> int:
        return len(self.columns)

    @property
    def shared_certain(self) -> bool:
        """Whether every row binds all shared variables."""
        return bool(self._shared().all())

    def named(self, variables: tuple[Variable, ...]) -> KbAnswer:
        """The same, under other names."""
        return replace(self, variables=variables)

    def join(self, shared_values: Ids) -> tuple[Places, Places]:
        """The compatible pairs (row, KB row), sorted; `shared_values` is u32[k, shared], 0 unbound.

        Unbound on either side agrees with anything. Raises LimitError past MAX_JOINED pairs.
        """
        found = [index.pairs(values, rows) for index, values, rows in self._parts(shared_values)]
        if not found:
            return np.zeros(0, np.int64), np.zeros(0, np.int64)
        row = np.concatenate([pair[0] for pair in found])
        kb_row = np.concatenate([pair[1] for pair in found])
        order = np.lexsort((kb_row, row))
        return row[order], kb_row[order]

    def save(self, terms: SavedTerms, shared_values: Ids | None = None) -> State:
        """Its rows; with `shared_values` (u32[k, shared]) only those that `join` finds for them."""
        if shared_values is None:
            return {"rows": terms.ids(self.columns)}
        if not len(shared_values):
            return {"rows": self.columns[:0]}
        try:
            _, kb_row = self.join(np.unique(shared_values, axis=0))
        except LimitError:
            return {"rows": terms.ids(self.columns)}
        return {"rows": terms.ids(self.columns[np.unique(kb_row)])}

    def partners(self, shared_values: Ids) -> Places:
        """How many pairs each row is in."""
        counts = np.zeros(len(shared_values), np.int64)
        for index, values, rows in self._parts(shared_values):
            counts[rows] += index.counts(values)
        return counts

    def _shared(self) -> Ids:
        shared: Ids = self.columns[:, list(self.shared_places)]
        return shared

    def _kb_groups(self) -> dict[int, Places]:
        if not self._groups and len(self):
            masks = _bound_masks(self._shared())
            self._groups.update((int(m), np.flatnonzero(masks == m)) for m in np.unique(masks))
        return self._groups

    def _parts(self, shared_values: Ids) -> list[tuple[_Index, Ids, Places]]:
        """Rows grouped by which shared variables they bind, against KB rows grouped likewise: for each pair of
        groups an index of the KB rows on the variables that both bind, the rows' values of them, the rows."""
        parts = []
        theirs = _bound_masks(np.asarray(shared_values, np.uint32))
        for their_mask in _distinct(theirs):
            rows = np.flatnonzero(theirs == their_mask)
            for my_mask, kb_rows in self._kb_groups().items():
                common = my_mask & int(their_mask)
                key = my_mask, common
                places = [i for i in range(len(self.shared_places)) if common >> i & 1]
                if key not in self._indexes:
                    self._indexes[key] = _Index(self._shared()[kb_rows][:, places], kb_rows)
                parts.append((self._indexes[key], shared_values[rows][:, places], rows))
        return parts


def _bound_masks(values: Ids) -> Places:
    """Per row a bit for each bound column."""
    weights = np.left_shift(np.int64(1), np.arange(values.shape[1], dtype=np.int64))
    masks: Places = ((values != 0) * weights).sum(axis=1, dtype=np.int64)
    return masks


def _distinct(masks: Places) -> Places:
    """Usually all rows bind the same: then nothing is sorted or hashed."""
    return masks[:1] if (masks == masks[:1]).all() else np.unique(masks)


class _Index:
    """KB rows by their key (u32[r, width], all bound)."""

    def __init__(self, keys: Ids, kb_rows: Places) -> None:
        self._keys = np.require(keys, np.uint32, ("C", "W"))
        self._slots = np.zeros(slots_for(len(keys)), SLOT)
        enter_rows(np.arange(len(keys)), self._slots, self._keys)
        number = self._number(self._keys)
        self._kb_rows = kb_rows[np.argsort(number, kind="stable")]
        self._starts = np.concatenate([[0], np.cumsum(np.bincount(number, minlength=len(keys)))])
        """The number of a key is that of the first row that has it; its KB rows are `starts[i] : starts[i + 1]`."""

    def _number(self, keys: Ids) -> Places:
        number = np.empty(len(keys), np.int64)
        find_rows(np.require(keys, np.uint32, ("C", "W")), self._slots, self._keys, number)
        return number

    def _range(self, values: Ids) -> tuple[Places, Places]:
        number = self._number(values)
        low = self._starts[number]  # −1 reads some place, and is emptied in the next line
        return low, np.where(number >= 0, self._starts[number + 1], low)

    def counts(self, values: Ids) -> Places:
        """How many KB rows have each key."""
        low, high = self._range(values)
        return high - low

    def pairs(self, values: Ids, rows: Places) -> tuple[Places, Places]:
        """(row, KB row) of each agreement; `rows` number the values."""
        low, high = self._range(values)
        sizes = high - low
        total = int(sizes.sum())
        if total > MAX_JOINED:
            raise LimitError(
                total, MAX_JOINED, "rows of a join with the knowledge base for one batch; push smaller batches"
            )
        row = np.repeat(rows, sizes)
        ends = np.cumsum(sizes)
        within = np.arange(total) - np.repeat(ends - sizes, sizes)
        return row, self._kb_rows[np.repeat(low, sizes) + within]
