"""Complex events of one end compared one by one, where ORDER BY's keys are no sums, or of a sample (ranking.py).

In the flow: finals of an event → picker (output/picking.py) → **some in order** → enumeration.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from oxiseq.engine.cea.held import Holders
from oxiseq.engine.cea.listed import EventReader, one_by_one
from oxiseq.engine.cea.ranking import measured_by
from oxiseq.engine.expressions.exact import ExpressionError, Leaf, evaluate
from oxiseq.engine.expressions.totals import total_of
from oxiseq.engine.kernels.matches.records import PLACE_BITS
from oxiseq.engine.matches.frozen import Places
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.engine.terms.order import order_key, sort_by
from oxiseq.engine.terms.texts import Term
from oxiseq.grammar.algebra import Expression
from oxiseq.grammar.ceql_algebra import START, EndOrder, compared_aggregates


class EventOrder:
    """ORDER BY of one query."""

    def __init__(self, order: EndOrder, reader: EventReader, terms: TermDictionary) -> None:
        self._order, self._reader, self._terms = order, reader, terms
        self._measured = {a: of for a in compared_aggregates(order) if (of := measured_by(a)) is not None}

    def of(self, each: list[Places], holders: Holders, at: int) -> list[Places]:
        """Complex events that end at position `at`, in order; ties go to the one that has the first of the positions in
        which two differ."""
        listed = one_by_one(each, holders, at)
        events, offsets = self._reader.listed(listed), listed.offsets.tolist()
        measured = []
        for aggregate, of in self._measured.items():
            has = events.has(of.gpm)
            values = has.astype(np.int64) if of.variable is None else events.ids(of.variable, events.of)
            measured.append((aggregate, has, values))
        keys: list[list[Any]] = []
        for low, high, places in zip(offsets, offsets[1:], each, strict=False):
            leaves: dict[Leaf, Term] = {}
            for aggregate, has, values in measured:
                total = total_of(aggregate, self._terms)
                for value in values[low:high][has[low:high]].tolist():
                    total.add(value, 1)
                try:
                    leaves[aggregate] = total.term()
                except ExpressionError:
                    continue
            keys.append([self._key(e, leaves, int(places[0]) >> PLACE_BITS) for e, _ in self._order.keys])
        beyond = int(each[0][-1]) + (1 << PLACE_BITS)
        ordered = sorted(range(len(each)), key=lambda i: [*(each[i] >> PLACE_BITS).tolist(), beyond])
        sort_by(ordered, keys.__getitem__, [descending for _, descending in self._order.keys])
        return [each[i] for i in ordered]

    @staticmethod
    def _key(expression: Expression, leaves: dict[Leaf, Term], start: int) -> Any:
        """What one key of ORDER BY compares."""
        if expression == START:
            return start
        try:
            return order_key(evaluate(expression, leaves))
        except ExpressionError:
            return order_key(None)
