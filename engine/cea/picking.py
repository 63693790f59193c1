"""ORDER BY, LIMIT with OFFSET, and SAMPLE: which of the complex events that end at one event are emitted, and in what
order; the others are not enumerated where the keys allow it (semantics.md 2.6b, ranking.py).

In the flow: finals of an event → **the chosen ones, in order** → enumeration.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from oxiseq.engine.cea.held import Holders
from oxiseq.engine.cea.listed import MOST_LISTED, PLACE, FoundEvents, one_by_one
from oxiseq.engine.cea.plan import CeaPlan
from oxiseq.engine.cea.ranking import EndRanking, Measured, SumKey
from oxiseq.engine.errors import LimitError
from oxiseq.engine.expressions.amounts import Added, added_up
from oxiseq.engine.expressions.exact import ExpressionError, Leaf, evaluate
from oxiseq.engine.expressions.totals import total_of
from oxiseq.engine.kernels.cea.records import Memory
from oxiseq.engine.kernels.matches.records import PLACE_BITS
from oxiseq.engine.matches.frozen import FrozenMatches, Places
from oxiseq.engine.matches.memory import put_matches
from oxiseq.engine.matches.sampling import sample
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.engine.terms.order import order_key, sort_by
from oxiseq.engine.terms.texts import Term
from oxiseq.grammar.ceql.texts import render_ceql
from oxiseq.grammar.ceql_algebra import START

MOST_ORDERED: Final = 1_000_000
"""Complex events of one end that are put in order."""
_THERE: Final = 1
"""What stands for the value of an event, where events are counted: COUNT needs only whether there is one."""

I64 = NDArray[np.int64]


class EventPicker:
    """Picks for one query that has ORDER BY or SAMPLE. `values`: of events by position the ids of their attributes'
    terms, i64[n, attributes]."""

    def __init__(self, plan: CeaPlan, terms: TermDictionary, values: Callable[[I64], I64]) -> None:
        query = plan.query
        self._ranking = plan.ranking
        self._sample = query.sample
        self._offset = 0 if query.limit is None else query.limit.offset
        self._limit = None if query.limit is None else query.limit.offset + query.limit.count
        self._seed = "" if query.sample is None else f"{query.sample.seed} {render_ceql(query)}"
        self._terms, self._values = terms, values

    def pick(self, S: Memory, holders: Holders, at: int, time: int) -> Memory:
        """Memory whose finals stand for what is emitted for what ends at the event at position `at`, at `time` (µs).
        Raises LimitError."""
        found = FrozenMatches(S)
        if not found.exceeds(0):
            return S
        if self._sample is not None:
            picked = [found.at(i) for i in sample(found.count, self._sample.count, f"{self._seed} {time}")]
            if self._ranking is not None:
                picked = self._in_order(picked, self._ranking, holders, at)
            return put_matches(S, picked)
        assert self._ranking is not None
        return put_matches(S, self._best(found, self._ranking, holders, at)[self._offset : self._limit])

    def _best(self, found: FrozenMatches, ranking: EndRanking, holders: Holders, at: int) -> list[Places]:
        values = None if ranking.listed else self._sums(found, ranking, holders)
        if values is None:
            self._bounded(found, MOST_LISTED, "complex events of one end that ORDER BY compares one by one")
            return self._in_order([found.at(i) for i in range(found.count)], ranking, holders, at)
        if self._limit is None or self._limit > MOST_ORDERED:
            self._bounded(found, MOST_ORDERED, "complex events of one end for ORDER BY (write a smaller LIMIT)")
        return list(found.best(values, MOST_ORDERED if self._limit is None else self._limit))

    @staticmethod
    def _bounded(found: FrozenMatches, most: int, what: str) -> None:
        if found.exceeds(most):
            raise LimitError(found.count, most, what)

    # --- on the compact set -------------------------------------------------------------------------

    def _sums(self, found: FrozenMatches, ranking: EndRanking, holders: Holders) -> NDArray[np.float64] | None:
        """What each node adds to the keys: f64[nodes, keys]; None where that is no number that can be added."""
        outputs = np.flatnonzero(found.pos >= 0)
        positions, held = found.pos[outputs] >> PLACE_BITS, holders.masks[found.pos[outputs] & PLACE]
        values = np.zeros((len(found.pos), len(ranking.sums)))
        for i, (key, (_, descending)) in enumerate(zip(ranking.sums, ranking.order.keys, strict=True)):
            column = self._column(key, positions, held, found.begins[outputs])
            if column is None:
                return None
            values[outputs, i] = -column if descending else column
        return values

    def _column(
        self, key: SumKey, positions: I64, held: NDArray[np.uint64], begins: NDArray[np.bool_]
    ) -> NDArray[np.float64] | None:
        if key is None:
            return np.where(begins, positions.astype(np.float64), 0.0)
        parts = []
        for measured, factor in ((each.measured, each.factor) for each in key):
            mine = _held_by(measured, held)
            parts.append(Added(mine, self._ids(measured, positions[mine]), factor))
        return added_up(parts, len(positions), self._terms)

    def _ids(self, measured: Measured, positions: I64) -> I64 | None:
        return None if measured.attribute is None else self._values(positions)[:, measured.attribute]

    # --- one by one ---------------------------------------------------------------------------------

    def _in_order(self, each: list[Places], ranking: EndRanking, holders: Holders, at: int) -> list[Places]:
        """Ties go to the one that has the first of the positions in which two differ."""
        listed = one_by_one(each, holders, at)
        ids = [self._ids(measured, listed.positions) for measured in ranking.measured]
        keys = [self._keys(i, int(places[0]) >> PLACE_BITS, listed, ids, ranking) for i, places in enumerate(each)]
        beyond = int(each[0][-1]) + (1 << PLACE_BITS)
        ordered = sorted(range(len(each)), key=lambda i: [*(each[i] >> PLACE_BITS).tolist(), beyond])
        sort_by(ordered, keys.__getitem__, [descending for _, descending in ranking.order.keys])
        return [each[i] for i in ordered]

    def _keys(self, i: int, start: int, listed: FoundEvents, ids: list[I64 | None], ranking: EndRanking) -> list[Any]:
        """What ORDER BY compares of number i."""
        mine = slice(listed.offsets[i], listed.offsets[i + 1])
        leaves: dict[Leaf, Term] = {}
        for aggregate, measured, of in zip(ranking.aggregates, ranking.measured, ids, strict=True):
            total, held = total_of(aggregate, self._terms), _held_by(measured, listed.held[mine])
            for value in [_THERE] * len(held) if of is None else of[mine][held].tolist():
                total.add(value, 1)
            try:
                leaves[aggregate] = total.term()
            except ExpressionError:
                continue
        keys: list[Any] = []
        for expression, _ in ranking.order.keys:
            try:
                keys.append(start if expression == START else order_key(evaluate(expression, leaves)))
            except ExpressionError:
                keys.append(order_key(None))
        return keys


def _held_by(measured: Measured, held: NDArray[np.uint64]) -> NDArray[np.intp]:
    """The events that the measured variable holds."""
    assert measured.variable is not None, "COUNT(*) is not compared"
    return np.flatnonzero(held[:, measured.variable >> 6] & np.uint64(1 << (measured.variable & 63)))
