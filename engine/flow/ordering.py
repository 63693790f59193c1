"""In which order rows are emitted: those of an instant as ORDER BY says, else by their terms, then by their times;
those with intervals by these, then by their terms."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from oxiseq.engine import kinds
from oxiseq.engine.flow.delta import I64, Ids
from oxiseq.engine.flow.plan import Rank
from oxiseq.engine.kernels.terms.order import BLANK
from oxiseq.engine.terms.content import content_order
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.engine.terms.order import Key, order_key


def in_order(
    at: I64, values: Ids, order: Sequence[Rank], of_kb: Ids, terms: TermDictionary, span: I64 | None = None
) -> NDArray[np.int64]:
    """The rows' numbers. at: i64[n], ascending, numbers of instants; of_kb: blank nodes of the KB in the order in which
    they were met; span: i64[n, 2], the rows' times, or i64[n, 0]."""
    if span is not None and span.shape[1]:
        every = np.lexsort((span[:, 0], span[:, 1], at))
        every = every[content_order(at[every], values[every], terms, of_kb)]
    else:
        every = content_order(at, values, terms, of_kb)
    if not order or len(at) < 2:
        return every
    of = {blank: number for number, blank in enumerate(of_kb.tolist())}
    keys = [_ranks(values[every, rank.place], of, terms) * (-1 if rank.descending else 1) for rank in order]
    return every[np.lexsort((*reversed(keys), at[every]))]


def in_order_of_time(values: Ids, start: I64, end: I64, terms: TermDictionary, *, numbered: bool = False) -> I64:
    """The numbers of rows with intervals by end, start, then by their terms, which no dictionary, batch or restart
    changes. numbered: those of one number, their first column, together, each in this order."""
    number = values[:, 0] if numbered else np.zeros(len(values), np.uint32)
    order = np.lexsort((start, end, number))
    differs = np.any([np.diff(each[order]) != 0 for each in (start, end, number)], axis=0)
    if differs.all():
        return order
    interval = np.append(0, np.cumsum(differs))
    return order[content_order(interval, values[order], terms, np.zeros(0, np.uint32))]


def _ranks(ids: Ids, of_kb: Mapping[int, int], terms: TermDictionary) -> I64:
    """A number for each, ascending as ORDER BY has them, equal for equal values. Blank nodes sort by age,
    the KB's before others."""
    distinct, inverse = np.unique(ids, return_inverse=True)
    kind, serial = terms.columns.kind, terms.columns.exact

    def key(i: int) -> Key:
        if kind[i] != kinds.BLANK:
            return order_key(terms.term(i) if i else None)
        return BLANK, i not in of_kb, of_kb.get(i, int(serial[i]))

    keys = [key(i) for i in distinct.tolist()]
    ranks = np.zeros(len(distinct), np.int64)
    before, rank = None, -1
    for i in sorted(range(len(keys)), key=keys.__getitem__):
        rank += keys[i] != before
        before, ranks[i] = keys[i], rank
    return ranks[inverse.reshape(-1)]
