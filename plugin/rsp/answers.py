"""The answers of a query over windows, over streams that have ended."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Self

import numpy as np
from numpy.typing import NDArray

from oxiseq.container import Answers
from oxiseq.engine.events.time import to_text
from oxiseq.engine.output.batch import MatchBatch
from oxiseq.late import LateBatch, LateEvent, late_events
from oxiseq.rsp.answer import Answer, AnswerShape
from oxiseq.rsp.formats import answer_text, arrow_answers
from oxiseq.spaseq.match import short

if TYPE_CHECKING:
    import pyarrow as pa


class WindowAnswers(Answers[Answer]):
    """The answers of a query over windows, in order of the instants at which they are told.

    Iterate for `Answer` objects; `to_arrow`, `to_pandas` and `to_sparql_json` work on columns.
    """

    def __init__(
        self, shape: AnswerShape, batch: MatchBatch, events: int = 0, late: Sequence[tuple[str, LateBatch]] = ()
    ) -> None:
        self._shape = shape
        self._batch = batch
        self._late = late
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
        """The same answers: they are in an order that the history alone fixes."""
        return self

    def to_arrow(self) -> pa.Table:
        """An Arrow table: `time` (timestamp, UTC), `start` and `end` where rows have them, a column per variable.

        A column of numbers of one kind is numeric; IRIs are their text, literals their lexical form.
        """
        return arrow_answers(self._shape, self._batch)

    def to_sparql_json(self) -> str:
        """The rows in the SPARQL 1.1 Query Results JSON Format; for ASK its boolean form."""
        return "".join(answer_text(self._shape, [self._batch], "json"))

    def _match(self, index: int) -> Answer:
        return Answer(self._shape, self._batch, index)

    def _taken(self, index: NDArray[np.int64]) -> Self:
        return type(self)(self._shape, self._batch.take(index), self.events, self._late)

    @property
    def _header(self) -> list[str]:
        return ["time", *self.variables]

    def _cells(self, match: Answer) -> list[str]:
        return [to_text(match.time), *("" if t is None else short(t) for t in match.bindings.values())]
