"""Rows in an order that depends on their terms' texts alone, not on ids."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from oxiseq.engine import kinds
from oxiseq.engine.kernels.memory.pointers import call
from oxiseq.engine.kernels.terms.content import sort_rows
from oxiseq.engine.terms.dictionary import TermDictionary


def content_order(
    event: NDArray[np.int64], values: NDArray[np.uint32], terms: TermDictionary, of_kb: NDArray[np.uint32]
) -> NDArray[np.int64]:
    """Rows by event, then by the texts of their terms. Blank nodes, whose labels mean nothing, sort as they came to
    be, since their ids depend on what has been freed; before them the KB's, which came to be when it was read, as they
    are in `of_kb`."""
    if len(event) < 2:
        return np.arange(len(event))
    if not len(of_kb):
        numbers = np.arange(len(event))
        call(sort_rows, terms, event, np.ascontiguousarray(values), numbers, np.empty_like(numbers))
        return numbers
    distinct, inverse = np.unique(values, return_inverse=True)
    kind, serial = terms.columns.kind[distinct], terms.columns.exact[distinct]
    place = np.full(len(distinct), -1)
    _, those, places = np.intersect1d(distinct, of_kb, return_indices=True)
    place[those] = places

    def key(i: int) -> tuple[int, str, bool, int]:
        if distinct[i] == 0:
            return 0, "", False, 0
        if kind[i] == kinds.BLANK:
            own = place[i] < 0
            return 2, "", bool(own), int(serial[i] if own else place[i])
        return 1, terms.text(int(distinct[i])), False, 0

    rank = np.empty(len(distinct), np.int64)
    rank[sorted(range(len(distinct)), key=key)] = np.arange(len(distinct))
    ranked = rank[inverse].reshape(values.shape)
    return np.lexsort((*(ranked[:, i] for i in reversed(range(values.shape[1]))), event))
