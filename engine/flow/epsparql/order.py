"""The order of rows of one interval: by their terms' texts, which no dictionary, batch or restart changes."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from oxiseq.engine import kinds
from oxiseq.engine.flow.epsparql.rows import Rows
from oxiseq.engine.terms.dictionary import TermDictionary


def in_order(rows: Rows, terms: TermDictionary, *, numbered: bool = False) -> Rows:
    """By end, start, then column by column: unbound, blank nodes in the order in which they were made, other terms by
    their text. numbered: those of one number, their first column, together, each in this order."""
    if len(rows) < 2:
        return rows
    number = rows.values[:, 0] if numbered else np.zeros(len(rows), np.uint32)
    order = np.lexsort((rows.start, rows.end, number))
    rows, number = rows.take(order), number[order]
    equal = (rows.start[1:] == rows.start[:-1]) & (rows.end[1:] == rows.end[:-1]) & (number[1:] == number[:-1])
    if not equal.any():
        return rows
    tied = np.append(equal, False) | np.append(False, equal)
    at = np.flatnonzero(tied)
    rank = _ranks(rows.values[at], terms)
    keys = [rank[rows.values[at, i]] for i in reversed(range(rows.values.shape[1]))]
    order = np.arange(len(rows))
    order[at] = at[np.lexsort([*keys, rows.start[at], rows.end[at], number[at]])]
    return rows.take(order)


def _ranks(values: NDArray[np.uint32], terms: TermDictionary) -> NDArray[np.int64]:
    """By id its place among these, 0 for unbound."""
    ids = np.unique(values)
    ids = ids[ids != 0]
    text, ends = terms.texts(ids)
    data = text.tobytes()
    bounds = ends.tolist()
    serial = terms.columns.exact[ids].tolist()
    blank = (terms.columns.kind[ids] == kinds.BLANK).tolist()
    keys = [(0, serial[i], b"") if blank[i] else (1, 0, data[bounds[i] : bounds[i + 1]]) for i in range(len(ids))]
    rank = np.zeros(int(ids.max(initial=0)) + 1, np.int64)
    for place, i in enumerate(sorted(range(len(ids)), key=keys.__getitem__), 1):
        rank[ids[i]] = place
    return rank
