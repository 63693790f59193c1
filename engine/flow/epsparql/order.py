"""The order of rows of one interval: by their terms, which no dictionary, batch or restart changes."""

from __future__ import annotations

import numpy as np

from oxiseq.engine.flow.epsparql.rows import Rows
from oxiseq.engine.terms.content import content_order
from oxiseq.engine.terms.dictionary import TermDictionary


def in_order(rows: Rows, terms: TermDictionary, *, numbered: bool = False) -> Rows:
    """By end, start, then by their terms. numbered: those of one number, their first column, together, each in this
    order."""
    number = rows.values[:, 0] if numbered else np.zeros(len(rows), np.uint32)
    order = np.lexsort((rows.start, rows.end, number))
    rows, number = rows.take(order), number[order]
    differs = (np.diff(rows.start) != 0) | (np.diff(rows.end) != 0) | (np.diff(number) != 0)
    if differs.all():
        return rows
    interval = np.append(0, np.cumsum(differs))
    return rows.take(content_order(interval, rows.values, terms, np.zeros(0, np.uint32)))
