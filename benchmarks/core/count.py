"""How many complex events a query finds: counted event by event from the columns, without the engine.

For each event at which one can begin, the number of ways to have come to each step. An event of step s adds to s, for
each beginning in its window, the ways to have come to s - 1 (and, for `+`, those to have come to s); what it adds to
the last step are the complex events that end with it. If there are some, all is forgotten.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from benchmarks.core.queries import LIMIT, Query, Step
from benchmarks.core.streams import numbers

_COMPARE: Final[dict[str, Callable[[Any, Any], Any]]] = {"=": operator.eq, ">": operator.gt, ">=": operator.ge}


def count(query: Query, table: pa.Table) -> int:
    """Matches, at most `LIMIT` for each event that completes some (one for LAST)."""
    fits = np.stack([_fits(step, table) for step in query.steps], axis=1)
    clock = numbers(table[query.clock])
    part = np.zeros(len(table), np.int64) if query.by is None else numbers(table[query.by])
    more = [step.more for step in query.steps]
    ways: dict[int, _Ways] = {}
    found = 0
    for event in np.flatnonzero(fits.any(axis=1)).tolist():
        now = int(clock[event])
        mine = ways.setdefault(int(part[event]), _Ways())
        ended = mine.take(fits[event], more, now, now - query.window)
        if ended:
            ways.clear()
            found += int(min(ended, 1 if query.last else LIMIT))
    return found


@dataclass(slots=True)
class _Ways:
    """Of one partition: when each beginning was, and the ways per beginning and step."""

    begun: list[int] = field(default_factory=list)
    ways: list[NDArray[np.float64]] = field(default_factory=list)

    def take(self, fits: NDArray[np.bool_], more: list[bool], now: int, oldest: int) -> float:
        """One event; the number of complex events that end with it."""
        gone = next((i for i, clock in enumerate(self.begun) if clock >= oldest), len(self.begun))
        del self.begun[:gone], self.ways[:gone]
        steps = np.flatnonzero(fits)[::-1].tolist()
        ended = 0.0
        for step in steps:
            if step == 0:
                continue
            for ways in self.ways:
                added = ways[step - 1] + (ways[step] if more[step] else 0)
                ways[step] += added
                if step == len(fits) - 1:
                    ended += float(added)
        if 0 in steps:
            self.begun.append(now)
            self.ways.append(np.eye(1, len(fits))[0])
        return ended


def _fits(step: Step, table: pa.Table) -> NDArray[np.bool_]:
    """Which events the step may take."""
    fits = np.isin(_column(table, "type"), step.types)
    for attribute, comparison, value in step.tests:
        fits &= _COMPARE[comparison](_column(table, attribute), value)
    return fits


def _column(table: pa.Table, name: str) -> NDArray[Any]:
    column = table[name].combine_chunks()
    if pa.types.is_dictionary(column.type):
        values: NDArray[Any] = np.array(column.dictionary.to_pylist())[np.from_dlpack(column.indices)]
        return values
    return np.array(column.to_pylist()) if pa.types.is_string(column.type) else np.from_dlpack(column)
