"""ORDER BY START and SAMPLE: which of the complex events that end at one event are told, and in what order; the others
are not enumerated (semantics.md 2.6b).

Where it stands: finals of an event → **those asked for, in order** → enumeration.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from oxiseq.engine.errors import LimitError
from oxiseq.engine.kernels.cea.records import Memory
from oxiseq.engine.kernels.matches.records import PLACE_BITS
from oxiseq.engine.matches.frozen import FrozenMatches
from oxiseq.engine.matches.memory import put_matches
from oxiseq.engine.matches.sampling import sample
from oxiseq.grammar.ceql_algebra import CeqlQuery
from oxiseq.grammar.render_ceql import render_ceql

MOST_ORDERED: Final = 1_000_000
"""Complex events of one end that are put in order."""


class EventPicker:
    """Picks for one query that has ORDER BY or SAMPLE."""

    def __init__(self, query: CeqlQuery) -> None:
        self._order = query.order
        self._sample = query.sample
        self._limit = None if query.limit is None else query.limit.count
        self._seed = "" if query.sample is None else f"{query.sample.seed} {render_ceql(query)}"

    def pick(self, S: Memory, time: int) -> Memory:
        """Memory whose finals stand for what is told of what ends at one event, at `time` (µs). Raises LimitError."""
        found = FrozenMatches(S)
        if not found.exceeds(0):
            return S
        if self._sample is not None:
            numbers = sample(found.count, self._sample.count, f"{self._seed} {time}")
            picked = [found.at(i) for i in numbers]
            if self._order is not None:
                picked.sort(key=lambda rows: int(rows[0]), reverse=self._order.descending)
            return put_matches(S, picked)
        assert self._order is not None
        if (self._limit is None or self._limit > MOST_ORDERED) and found.exceeds(MOST_ORDERED):
            what = "complex events of one end for ORDER BY (write a smaller LIMIT)"
            raise LimitError(found.count, MOST_ORDERED, what)
        starts = np.where(found.begins, (found.pos >> PLACE_BITS).astype(np.float64), 0.0)
        values = np.ascontiguousarray((-starts if self._order.descending else starts)[:, None])
        return put_matches(S, list(found.best(values, MOST_ORDERED if self._limit is None else self._limit)))
