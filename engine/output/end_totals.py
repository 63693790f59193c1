"""Aggregates over the complex events that end at one event, without enumerating them (answers.md, 1).

In the flow: finals of an event → frozen set → in how many complex events each event is, hence how often each of its
values is there → **totals** → a row, unless HAVING drops it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np
from numpy.typing import NDArray

from oxiseq.engine.cea.held import Holders
from oxiseq.engine.cea.listed import MOST_LISTED, PLACE, EventReader, one_by_one
from oxiseq.engine.cea.subsets import AMBIGUOUS
from oxiseq.engine.errors import LimitError
from oxiseq.engine.expressions.totals import TOO_MANY, SumTotal, Total, add_all, total_of
from oxiseq.engine.matches.events import OfEvents, bag_of
from oxiseq.engine.matches.frozen import FrozenMatches
from oxiseq.engine.output.batch import MatchBatch
from oxiseq.engine.output.end_plan import EndPlan, least_of
from oxiseq.engine.output.group_rows import GroupRows, Row
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.grammar.algebra import Aggregate

_THERE: Final = 1
"""What stands for the value of an event, where events are counted: COUNT needs only whether there is one."""

I64 = NDArray[np.int64]
BagOf = Callable[[OfEvents], list[tuple[int, int]]]


class EndTotals:
    """The rows of one query. `times`: of events by position, i64[n] µs."""

    def __init__(self, plan: EndPlan, reader: EventReader, terms: TermDictionary, times: Callable[[I64], I64]) -> None:
        self._plan, self._reader, self._terms, self._times = plan, reader, terms, times
        self._group = GroupRows(self._plan, terms)
        self._least = max([1, *map(least_of, plan.having)])
        """HAVING drops what is of fewer complex events."""
        self._rows: list[tuple[int, Row]] = []

    def see(self, found: FrozenMatches, holders: Holders, at: int, time: int) -> None:
        """The complex events that end at the event at position `at`, at `time` (µs). Raises LimitError."""
        if not found.exceeds(self._least - 1):
            return
        key = self._reader.values(np.array([at], np.int64))[0, list(self._plan.key_columns)]
        row = self._group.row(tuple(key.tolist()), self._totals(found, holders, at))
        if row is not None:
            self._rows.append((time, row))

    def take(self) -> MatchBatch | None:
        """The rows since the last time; None: there are none."""
        rows, self._rows = self._rows, []
        if not rows:
            return None
        values = np.array([row for _, row in rows], np.uint32).reshape(len(rows), len(self._plan.names))
        self._terms.hold(values)
        return MatchBatch.of_groups(np.array([time for time, _ in rows], np.int64), values)

    def _totals(self, found: FrozenMatches, holders: Holders, at: int) -> list[Total]:
        try:
            count = found.count
        except LimitError:
            count = TOO_MANY
        bag = self._bags(found, holders, at, count) if any(self._plan.measured) else None
        asked = zip(self._plan.aggregates, self._plan.measured, strict=True)
        return [self._total(aggregate, of, bag, count) for aggregate, of in asked]

    def _total(self, aggregate: Aggregate, of: OfEvents | None, bag: BagOf | None, count: int) -> Total:
        total = total_of(aggregate, self._terms)
        if of is None or bag is None:
            total.add(_THERE, count)
            return total
        if count >= TOO_MANY and aggregate.name not in ("MIN", "MAX"):
            unknown = SumTotal(False, self._terms)
            unknown.add(0, 1)  # an error
            return unknown
        add_all(total, bag(of))
        return total

    def _bags(self, found: FrozenMatches, holders: Holders, at: int, count: int) -> BagOf:
        """How often values are there. Where the automaton's step does not decide which variables hold an event, complex
        events are listed. Raises LimitError."""
        outputs = np.flatnonzero(found.pos >= 0)
        places = found.pos[outputs]
        if not (places & PLACE == AMBIGUOUS).any():
            times = found.times(outputs) if count < TOO_MANY else np.ones(len(outputs), np.uint64)
            events = self._reader.at(places, holders)
        else:
            if count > MOST_LISTED:
                what = "complex events of one end whose variables hang on the whole of each"
                raise LimitError(count, MOST_LISTED, f"{what} (give types variables of their own)")
            events = self._reader.listed(one_by_one([found.at(i) for i in range(count)], holders, at))
            times = np.ones(len(events.of), np.uint64)
        return lambda of: bag_of(events, of, times, _THERE)
