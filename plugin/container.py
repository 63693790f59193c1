"""What all answers over streams that have ended can do: count, iterate, slice, show themselves, tell late events."""

from __future__ import annotations

import html
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar, overload

import numpy as np
from numpy.typing import NDArray

from oxiseq.engine.events.faults import NO_FAULTS, Faults
from oxiseq.late import LateBatch, LateEvent
from oxiseq.pictures.svg import Svg
from oxiseq.pictures.timeline import timeline

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

M = TypeVar("M")
SHOWN = 100
"""Rows of an HTML table."""


class Answers(ABC, Generic[M]):
    """Matches in order of end time. `events`: how many events were read."""

    events: int
    _late: Sequence[tuple[str, LateBatch]]
    _faults: Faults = NO_FAULTS

    @property
    def late(self) -> int:
        """How many events were older than their stream's watermark, hence not matched."""
        return sum(len(batch) for _, batch in self._late)

    @property
    def left_out(self) -> int:
        """How many events were left out because the language cannot take them: no tuple events in CEQL, events that
        start after they end in EP-SPARQL."""
        return self._faults.count

    @property
    def left_out_events(self) -> tuple[str, ...]:
        """Which the first of those are, and what is wrong with them."""
        return self._faults.first

    @abstractmethod
    def late_events(self) -> list[LateEvent]:
        """Those events, in order of arrival."""

    @property
    @abstractmethod
    def variables(self) -> tuple[str, ...]:
        """The answer's columns."""

    @abstractmethod
    def __len__(self) -> int: ...

    def __bool__(self) -> bool:
        """Whether there is a match: the answer of an ASK query."""
        return len(self) > 0

    def __iter__(self) -> Iterator[M]:
        return (self._match(i) for i in range(len(self)))

    @overload
    def __getitem__(self, index: int) -> M: ...

    @overload
    def __getitem__(self, index: slice) -> Self: ...

    def __getitem__(self, index: int | slice) -> M | Self:
        if isinstance(index, slice):
            return self._taken(np.arange(len(self))[index])
        return self._match(range(len(self))[index])

    @abstractmethod
    def sorted(self) -> Self:
        """The same matches, those of equal end time by their events."""

    @abstractmethod
    def to_arrow(self) -> pa.Table:
        """An Arrow table."""

    def to_pandas(self) -> pd.DataFrame:
        """`to_arrow` as a pandas DataFrame (needs the extra `oxiseq[pandas]`)."""
        return self.to_arrow().to_pandas()

    @abstractmethod
    def _match(self, index: int) -> M:
        """One of them."""

    @abstractmethod
    def _taken(self, index: NDArray[np.int64]) -> Self:
        """Some of them."""

    @abstractmethod
    def _cells(self, match: M) -> list[str]:
        """A row for people."""

    @property
    @abstractmethod
    def _header(self) -> list[str]:
        """Above such rows."""

    def timeline(self, most: int = SHOWN) -> Svg:
        """The first `most` matches over time as SVG: a lane per GPM or variable, a band per match."""
        shown = [moments(match) for _, match in zip(range(most), self, strict=False)]
        return timeline(shown, len(self))

    def _repr_html_(self) -> str:
        rows = [_html_row(self._cells(match), "td") for _, match in zip(range(SHOWN), self, strict=False)]
        table = f"<table><caption>{len(self)} matches</caption>{_html_row(self._header, 'th')}{''.join(rows)}</table>"
        return f"<div>{self.timeline() if self else ''}{table}</div>"

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {len(self)} of ({', '.join(self.variables)})>"


def moments(match: Any) -> dict[str, list[int]]:
    """The times (µs) of a match's events by lane; where a language has none, of its instant."""
    events = getattr(match, "events", None)
    if events is not None:
        return {name: [time for _, time in of] for name, of in events.items()}
    return {"answers": [*match.hull, match.time]}


def _html_row(cells: Sequence[Any], tag: str) -> str:
    return f"<tr>{''.join(f'<{tag}>{html.escape(cell)}</{tag}>' for cell in cells)}</tr>"
