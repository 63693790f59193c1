"""Events that a query cannot take: they alone are ignored, counted and named.

What makes an event unfit is its language's to say: CEQL takes tuple events only (engine/cea/faults.py), EP-SPARQL only
events that do not start after they end (engine/flow/epsparql/facts.py). A run lists them as `Run.faults`; the
server calls `Run.unfit` when events arrive.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

import numpy as np
from numpy.typing import NDArray

from oxiseq.engine.events.time import to_text
from oxiseq.grammar.records import dataclass

I64 = NDArray[np.int64]
NAMED: Final = 10
"""Faults that are named; all are counted."""


@dataclass(frozen=True, slots=True, eq=False)
class Unfit:
    """Events of a batch that a query cannot take, one at least. wrong: bool[n], which; `why` tells of the number of one
    of them what is wrong with it."""

    stream: str
    time: I64
    wrong: NDArray[np.bool_]
    why: Callable[[int], str]

    @property
    def fit(self) -> I64:
        """The numbers of the others."""
        return np.flatnonzero(~self.wrong)

    @property
    def count(self) -> int:
        """How many they are."""
        return int(np.count_nonzero(self.wrong))

    def named(self, most: int = NAMED) -> Iterator[str]:
        """When and where the first `most` are, and why they are unfit."""
        for row in np.flatnonzero(self.wrong)[:most].tolist():
            yield f"the event of {to_text(int(self.time[row]))} on <{self.stream}> {self.why(row)}"


@dataclass(frozen=True, slots=True)
class Faults:
    """How many events were ignored, and of the first ones when, where and why."""

    count: int = 0
    first: tuple[str, ...] = ()

    def more(self, unfit: Unfit) -> Faults:
        """Those of a batch, too."""
        return Faults(self.count + unfit.count, (*self.first, *unfit.named(NAMED - len(self.first))))

    @property
    def lines(self) -> tuple[str, ...]:
        """A line for each that is named, and one for the rest."""
        more = [f"ignored: {self.count - len(self.first):,} more"] * (self.count > len(self.first))
        return (*(f"ignored: {fault}" for fault in self.first), *more)


NO_FAULTS: Final = Faults()
