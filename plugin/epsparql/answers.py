"""The answers of an EP-SPARQL query over streams that have ended."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Self

import numpy as np
from numpy.typing import NDArray

from oxiseq.container import Answers
from oxiseq.engine.events.faults import NO_FAULTS, Faults
from oxiseq.engine.events.time import to_text
from oxiseq.engine.output.batch import MatchBatch
from oxiseq.epsparql.answer import IntervalMatch, IntervalShape
from oxiseq.epsparql.formats import arrow_intervals, interval_text
from oxiseq.late import LateBatch, LateEvent, late_events
from oxiseq.spaseq.match import short

if TYPE_CHECKING:
    import pyarrow as pa


class IntervalMatches(Answers[IntervalMatch]):
    """The answers of an EP-SPARQL query, in order of their ends.

    Iterate for `IntervalMatch` objects; `to_arrow`, `to_pandas` and `to_sparql_json` work on columns.
    """

    def __init__(
        self, shape: IntervalShape, batch: MatchBatch, events: int = 0, late: Sequence[tuple[str, LateBatch]] = (),
        faults: Faults = NO_FAULTS,
    ) -> None:  # fmt: skip
        self._shape = shape
        self._batch = batch
        self._late = late
        self._faults = faults
        self.events = events
        shape.terms.hold(batch.values)

    def late_events(self) -> list[LateEvent]:
        """Those events, in order of arrival."""
        return late_events(self._late, self._shape.terms)

    @property
    def variables(self) -> tuple[str, ...]:
        """The answer's columns, without `?`."""
        return self._shape.variables

    def __len__(self) -> int:
        return len(self._batch)

    def sorted(self) -> Self:
        """The same answers, those of one end by their start: they are in that order."""
        return self

    def to_arrow(self) -> pa.Table:
        """An Arrow table: `start` and `end` (timestamps, UTC), a column per variable.

        A column of numbers of one kind is numeric; IRIs are their text, literals their lexical form.
        """
        return arrow_intervals(self._shape, self._batch)

    def to_sparql_json(self) -> str:
        """The rows in the SPARQL 1.1 Query Results JSON Format; for ASK its boolean form."""
        return "".join(interval_text(self._shape, [self._batch], "json"))

    def _match(self, index: int) -> IntervalMatch:
        return IntervalMatch(self._shape, self._batch, index)

    def _taken(self, index: NDArray[np.int64]) -> Self:
        return type(self)(self._shape, self._batch.take(index), self.events, self._late, self._faults)

    @property
    def _header(self) -> list[str]:
        return ["start", "end", *self.variables]

    def _cells(self, match: IntervalMatch) -> list[str]:
        row = ("" if t is None else short(t) for t in match.bindings.values())
        return [*map(to_text, match.hull), *row]
