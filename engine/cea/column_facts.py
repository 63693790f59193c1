"""Facts about one attribute of rows of tables: of texts and other terms by value, of numbers as ranges."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray
from pyoxigraph import Literal

from oxiseq.engine import kinds
from oxiseq.engine.cea.column_ids import Recent, sorted_keys
from oxiseq.engine.cea.facts import FactPlan
from oxiseq.engine.cea.ranges import compared, range_of
from oxiseq.engine.events.cells import Numbers, cell_terms, is_text, texts
from oxiseq.engine.expressions.exact import holds
from oxiseq.engine.expressions.values import read
from oxiseq.engine.extras import needed
from oxiseq.engine.terms.texts import Term
from oxiseq.grammar.scope import expression_variables

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.compute as pc
else:
    pa = needed("pyarrow")
    pc = needed("pyarrow.compute")

MOST_KNOWN: Final = 1 << 20
"""Distinct values of a column whose facts are remembered."""


class AttributeFacts:
    """The leaves that ask for one attribute alone."""

    def __init__(self, facts: FactPlan, leaves: tuple[int, ...]) -> None:
        self._words = facts.words
        self._leaves = {i: facts.leaves[i] for i in leaves}
        self._values: dict[Any, NDArray[np.uint64]] = {}
        self._of_codes = Recent(self._facts_of)
        what = [compared(leaf) for leaf in self._leaves.values()]
        self._equalities = all(w is not None and w[0] in ("=", "!=") and read(w[2]).kind == kinds.STRING for w in what)
        """Whether all leaves ask for texts: then a text that no leaf names is like any other such."""
        self._named = list(dict.fromkeys(w[2].value for w in what if w is not None)) if self._equalities else []

    def table(self, values: pa.Array) -> NDArray[np.uint64]:
        """u64[1 + values, words]: the facts by code, those of a missing value first."""
        return self._of_codes.of(values)

    def ranges(self, kind: int) -> tuple[list[tuple[Any, ...]], tuple[int, ...]]:
        """The leaves on numbers of a kind as records RANGE (kernels/cea/rows.py), and those that are no ranges."""
        found: list[tuple[Any, ...]] = []
        others: list[int] = []
        for leaf, expression in self._leaves.items():
            made = range_of(expression, kind)
            if made is None:
                others.append(leaf)
            elif kind == kinds.INTEGER:
                found.append((made.low, made.high, 0.0, 0.0, made.negated, leaf))
            else:
                found.append((0, 0, made.low, made.high, made.negated, leaf))
        return found, tuple(others)

    def mark_others(self, leaves: tuple[int, ...], cells: Numbers, facts: NDArray[np.uint64]) -> None:
        """Set the facts of leaves that are no ranges: each distinct number is examined once."""
        keys = cells.values.view(np.int64)
        distinct, inverse = sorted_keys(keys)
        terms = [cells.term(v) for v in distinct.view(cells.values.dtype)]
        for leaf in leaves:
            expression = self._leaves[leaf]
            (attribute,) = expression_variables(expression)
            truth = np.array([holds(expression, {attribute: term}) for term in terms], np.bool_)
            rows = truth[inverse] & cells.present if terms else cells.present
            facts[rows, leaf >> 6] |= np.uint64(1 << (leaf & 63))

    def _facts_of(self, values: pa.Array) -> NDArray[np.uint64]:
        if self._equalities and is_text(values.type) and len(values):
            return self._of_texts(values.cast(pa.large_string()) if pa.types.is_string_view(values.type) else values)
        return np.concatenate([np.zeros((1, self._words), np.uint64), self._of_values(values)])

    def _of_texts(self, values: pa.Array) -> NDArray[np.uint64]:
        """Only the texts that leaves name are examined one by one."""
        named = texts(self._named).cast(values.type)
        found = pc.index_in(values, named)
        there = np.frombuffer(found.is_valid().cast(pa.uint8()).buffers()[1], np.uint8, len(found))
        place = np.full(len(found), len(named), np.int64)  # `fill_null` and `to_numpy` import pandas where it is
        place[there != 0] = np.from_dlpack(found.drop_null())
        other = "x" + "".join(self._named)  # is none of them
        words = np.stack([self._of_term(Literal(text)) for text in (*self._named, other)])
        return np.concatenate([np.zeros((1, self._words), np.uint64), words[place]])

    def _of_values(self, values: pa.Array) -> NDArray[np.uint64]:
        if len(self._values) > MOST_KNOWN:
            self._values.clear()
        out = np.zeros((len(values), self._words), np.uint64)
        for i, term in enumerate(cell_terms(values)):
            words = self._values.get(term)
            if words is None:
                words = self._values[term] = self._of_term(term)
            out[i] = words
        return out

    def _of_term(self, term: Term) -> NDArray[np.uint64]:
        words = np.zeros(self._words, np.uint64)
        for leaf, expression in self._leaves.items():
            (attribute,) = expression_variables(expression)
            if holds(expression, {attribute: term}):
                words[leaf >> 6] |= np.uint64(1 << (leaf & 63))
        return words
