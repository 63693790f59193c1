"""The matches of a query over streams that have ended."""

from __future__ import annotations

import html
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, overload

import numpy as np

from oxiseq.columns import arrow_table
from oxiseq.engine.events.batch import EventBatch
from oxiseq.engine.events.time import to_text
from oxiseq.engine.output.batch import MatchBatch
from oxiseq.formats import result_text, sorted_batch
from oxiseq.late import LateEvent, late_events
from oxiseq.match import Match, Shape, short

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

_SHOWN = 100
"""Rows of an HTML table."""


class Matches:
    """The matches of a query over streams that have ended, in order of end time.

    Iterate for `Match` objects; `to_arrow`, `to_pandas` and `to_sparql_json` work on columns.
    """

    def __init__(
        self, shape: Shape, batch: MatchBatch, events: int = 0, late: Sequence[tuple[str, EventBatch]] = ()
    ) -> None:
        self._shape = shape
        self._batch = batch
        self._late = late
        self.events = events
        """How many events were read."""
        shape.terms.hold(batch.values)

    @property
    def late(self) -> int:
        """How many events were older than their stream's watermark, hence not matched."""
        return sum(len(batch) for _, batch in self._late)

    def late_events(self) -> list[LateEvent]:
        """Those events, in order of arrival."""
        return late_events(self._late, self._shape.terms)

    @property
    def variables(self) -> tuple[str, ...]:
        """The answer's columns, without `?`."""
        return self._shape.variables

    def __len__(self) -> int:
        return len(self._batch)

    def __bool__(self) -> bool:
        """Whether there is a match: the answer of an ASK query."""
        return len(self) > 0

    def __iter__(self) -> Iterator[Match]:
        return (Match(self._shape, self._batch, i) for i in range(len(self._batch)))

    @overload
    def __getitem__(self, index: int) -> Match: ...

    @overload
    def __getitem__(self, index: slice) -> Matches: ...

    def __getitem__(self, index: int | slice) -> Match | Matches:
        if isinstance(index, slice):
            batch = self._batch.take(np.arange(len(self))[index])
            return Matches(self._shape, batch, self.events, self._late)
        return Match(self._shape, self._batch, range(len(self))[index])

    def sorted(self) -> Matches:
        """The same matches, those of equal end time by the times of their events."""
        batch = sorted_batch(self._shape, [self._batch], ties=True)
        return Matches(self._shape, batch, self.events, self._late)

    def to_arrow(self) -> pa.Table:
        """An Arrow table: `time` (timestamp, UTC), a column per variable, a list of event times per GPM.

        A column of numbers of one kind is numeric; IRIs are their text, literals their lexical form.
        """
        return arrow_table(self._batch, self._shape.plan, self._shape.terms)

    def to_pandas(self) -> pd.DataFrame:
        """`to_arrow` as a pandas DataFrame (needs the extra `oxiseq[pandas]`)."""
        return self.to_arrow().to_pandas()

    def to_sparql_json(self) -> str:
        """The rows in the SPARQL 1.1 Query Results JSON Format; for ASK its boolean form."""
        return "".join(result_text(self._shape, [self._batch], "json"))

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{html.escape(name)}</th>" for name in ("time", *self.variables))
        rows = [_html_row(match) for _, match in zip(range(_SHOWN), self, strict=False)]
        more = f"<caption>{len(self)} matches</caption>"
        return f"<table>{more}<tr>{head}</tr>{''.join(rows)}</table>"

    def __repr__(self) -> str:
        return f"<Matches: {len(self)} of ({', '.join(self.variables)})>"


def _html_row(match: Match) -> str:
    cells = [to_text(match.time), *("" if t is None else short(t) for t in match.bindings.values())]
    return f"<tr>{''.join(f'<td>{html.escape(cell)}</td>' for cell in cells)}</tr>"
