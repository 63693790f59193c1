"""The complex events of a CEQL query over streams that have ended."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Self

import numpy as np
from numpy.typing import NDArray

from oxiseq.ceql.columns import complex_table
from oxiseq.ceql.event import ComplexEvent, ComplexShape
from oxiseq.ceql.formats import HEAD, complex_text, listed
from oxiseq.container import Answers
from oxiseq.engine.events.faults import NO_FAULTS, Faults
from oxiseq.engine.events.time import to_text
from oxiseq.engine.output.complex_events import ComplexEvents
from oxiseq.late import LateBatch, LateEvent, late_events

if TYPE_CHECKING:
    import pyarrow as pa


class ComplexMatches(Answers[ComplexEvent]):
    """The complex events of a query over streams that have ended, in order of their ends.

    Iterate for `ComplexEvent` objects; `to_arrow`, `to_pandas` and `to_json` work on columns.
    """

    def __init__(
        self,
        shape: ComplexShape,
        batch: ComplexEvents,
        events: int = 0,
        late: Sequence[tuple[str, LateBatch]] = (),
        behind: int = 0,
        faults: Faults = NO_FAULTS,
    ) -> None:
        self._shape = shape
        self._batch = batch
        self._late = late
        self.events = events
        self.behind = behind
        """At how many events matches may be missing, since the attribute of WITHIN fell too far there."""
        self._faults = faults

    def late_events(self) -> list[LateEvent]:
        """Those events, in order of arrival; a row of a table as the graph that it stands for."""
        return late_events(self._late, self._shape.terms, self._shape.vocab)

    @property
    def variables(self) -> tuple[str, ...]:
        """Those of SELECT."""
        return self._shape.variables

    def __len__(self) -> int:
        return len(self._batch)

    def sorted(self) -> Self:
        """The same complex events, those of one end by their positions."""
        return self._taken(by_positions(self._batch))

    def to_arrow(self) -> pa.Table:
        """An Arrow table: `time` (of the end, timestamp, UTC), `start`, `end`, `positions` (D), and per variable the
        positions that it holds, and as `events_...` the times of these events."""
        return complex_table(self._batch, self._shape)

    def to_json(self) -> str:
        """A list of objects: time, start, end, positions, events by variable."""
        return "".join(complex_text(self._shape, [self._batch], "json"))

    def _match(self, index: int) -> ComplexEvent:
        return ComplexEvent(self._shape, self._batch, index)

    def _taken(self, index: NDArray[np.int64]) -> Self:
        taken = self._batch.take(index)
        return type(self)(self._shape, taken, self.events, self._late, self.behind, self._faults)

    @property
    def _header(self) -> list[str]:
        return [*HEAD, *self.variables]

    def _cells(self, match: ComplexEvent) -> list[str]:
        held = match.held
        cells = [to_text(match.time), str(match.start), str(match.end), listed(match.positions)]
        return [*cells, *(listed(held.get(v, ())) for v in self.variables)]


def by_positions(batch: ComplexEvents) -> NDArray[np.int64]:
    """The order by end, then by D."""
    ends = batch.end.tolist()
    keys = [batch.positions[a:b].tolist() for a, b in pairwise(batch.ends)]
    return np.array(sorted(range(len(batch)), key=lambda i: (ends[i], keys[i])), np.int64)
