"""The events of a set of matches, as answers read them: whose they are, their values, and how often each is there.

In the flow: finals of an instant → frozen set → **events of the set** → the best, or totals. Both runners have them:
rows of graph patterns (output/row_events.py), and events of CEQL's variables (cea/listed.py).
"""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray
from pyoxigraph import Variable

from oxiseq.engine.matches.measures import Measure, Measures
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.grammar.records import dataclass

I64 = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class OfEvents:
    """What a measure runs over: the values of a variable, or with None 1, of each event of a GPM in each match; in CEQL
    of an attribute, of each event that a variable holds. `single`: a match has one such event at most, and without it
    an error."""

    gpm: str
    variable: Variable | None
    single: bool = False


class MeasuredEvents:
    """What the aggregates of a query need of the events of matches, where weights say it. `of`: each once;
    `attributes`: whose values are wanted, of all columns there are; `numbers`: of each aggregate that of its measure,
    None: it is over matches."""

    def __init__(
        self,
        aggregates: Sequence[tuple[str, OfEvents | None]],
        terms: TermDictionary,
        attributes: Sequence[Variable] | None = None,
        *,
        counted: bool = False,
    ) -> None:
        """`aggregates`: their names; `counted`: events with values are counted, too."""
        names: dict[OfEvents, set[str]] = {}
        for name, of in aggregates:
            if of is not None:
                names.setdefault(of, {"COUNT"} if counted else set()).add("COUNT" if of.variable is None else name)
        self.of = tuple(names)
        if attributes is None:
            attributes = [*dict.fromkeys(of.variable for of in names if of.variable is not None)]
        self.attributes = attributes
        self.measures = Measures(
            [Measure.of(None if of.variable is None else attributes.index(of.variable), names[of]) for of in names],
            terms,
        )
        self.numbers = [None if of is None else self.of.index(of) for _, of in aggregates]

    def held(self, letters: Sequence[Container[str]]) -> NDArray[np.bool_]:
        """Which measures the events of letters are of, bool[letters, measures]."""
        held = np.array([[of.gpm in letter for of in self.of] for letter in letters], np.bool_)
        return held.reshape(len(letters), len(self.of))


class MatchEvents(Protocol):
    """n events. `of`: of each place that was asked for, which of them is there."""

    of: NDArray[np.intp]

    def has(self, gpm: str) -> NDArray[np.bool_]:
        """Which are of a GPM, or held by a variable of CEQL."""

    def ids(self, variable: Variable, which: NDArray[Any]) -> I64:
        """The values of a variable, or of an attribute, that some of them have; 0: none."""

    @property
    def age(self) -> NDArray[np.float64]:
        """Numbers above 0 that rise with the stream."""


ReadEvents: TypeAlias = Callable[[I64], MatchEvents]
"""The events at some places (`pos` of nodes)."""


def bag_of(events: MatchEvents, measured: OfEvents, times: NDArray[Any], one: int) -> list[tuple[int, int]]:
    """How often each value is there that is measured: `times`, of each place that the events were asked for; `one`: the
    value of each event where events are counted."""
    mine = np.flatnonzero(events.has(measured.gpm)[events.of])
    if measured.variable is None:
        return sums_by(np.full(len(mine), one), times[mine])
    return sums_by(events.ids(measured.variable, events.of[mine]), times[mine])


def sums_by(values: I64, times: NDArray[Any]) -> list[tuple[int, int]]:
    """How often each value is there, in the order of values; those that never are are left out."""
    distinct, inverse = np.unique(values, return_inverse=True)
    if times.dtype != object and float(times.sum(dtype=np.float64)) >= 2.0**63:
        times = times.astype(object)
    sums = np.zeros(len(distinct), times.dtype)
    np.add.at(sums, inverse, times)
    return [(value, number) for value, number in zip(distinct.tolist(), sums.tolist(), strict=True) if number]
