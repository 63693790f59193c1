"""What `oxiseq run` does differently for each language: how a replay is made, and how its matches are written."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from typing import BinaryIO, Generic, TypeVar

import click

from oxiseq.ceql.formats import check_complex_format, complex_rows, is_number, write_complex
from oxiseq.ceql.matches import by_positions
from oxiseq.ceql.replay import CeqlReplay
from oxiseq.cli.knowledge import combined
from oxiseq.cli.request import RunRequest
from oxiseq.driving import Driver
from oxiseq.engine.events.tuples import Naming
from oxiseq.engine.output.batch import MatchBatch
from oxiseq.engine.output.complex_events import ComplexEvents
from oxiseq.engine.run.runs import AnyRun
from oxiseq.formats import (
    ResultFormat,
    check_format,
    completes_in_order,
    is_numeric,
    sorted_batch,
    table_rows,
    write_results,
)
from oxiseq.grammar.ceql_algebra import CeqlQuery
from oxiseq.grammar.languages import AnyQuery
from oxiseq.replay import Replay

B = TypeVar("B")
Table = tuple[list[str], list[list[str]], list[bool]]
"""Header, rows, and which columns are flush right."""


class Answering(ABC, Generic[B]):
    """A replay whose matches come in batches of type B."""

    replay: Driver[B]
    run: AnyRun
    tabular: bool
    """Whether the answer has rows; ASK has none."""

    @abstractmethod
    def check(self, format: ResultFormat) -> None:
        """Raise OxiseqError if the matches cannot be written so."""

    @abstractmethod
    def ordered(self, progress: Callable[[], None], *, ties: bool) -> Iterator[B]:
        """The matches in order of end time; with `ties` those of one end by their events."""

    @abstractmethod
    def table(self, batches: Iterable[B]) -> Table:
        """For a terminal."""

    @abstractmethod
    def write(self, batches: Iterable[B], format: ResultFormat, out: BinaryIO, *, stream: bool) -> int:
        """Write them; returns how many. `stream`: Arrow as an IPC stream, not a file."""


def answering(request: RunRequest, query: AnyQuery) -> Answering[MatchBatch] | Answering[ComplexEvents]:
    """What the query's language needs. Raises OxiseqError and click's usage errors."""
    return CeqlAnswering(request, query) if isinstance(query, CeqlQuery) else SpaseqAnswering(request, query)


class SpaseqAnswering(Answering[MatchBatch]):
    """SPAseq: rows."""

    def __init__(self, request: RunRequest, query: AnyQuery) -> None:
        assert not isinstance(query, CeqlQuery)
        made = Replay(query, combined(request.kbs), request.start, request.lateness)
        self.replay, self.run, self._shape = made, made.run, made.shape
        self.tabular = not made.plan.answer.ask

    def check(self, format: ResultFormat) -> None:
        check_format(self._shape, format)

    def ordered(self, progress: Callable[[], None], *, ties: bool) -> Iterator[MatchBatch]:
        """As they come, where that is the order they come in."""
        if completes_in_order(self._shape) and not ties:
            return self.replay.batches(progress)
        return iter([sorted_batch(self._shape, self.replay.batches(progress), ties=ties)])

    def table(self, batches: Iterable[MatchBatch]) -> Table:
        batch = sorted_batch(self._shape, batches)
        return *table_rows(self._shape, batch), is_numeric(self._shape, batch)

    def write(self, batches: Iterable[MatchBatch], format: ResultFormat, out: BinaryIO, *, stream: bool) -> int:
        return write_results(self._shape, batches, format, out, stream=stream)


class CeqlAnswering(Answering[ComplexEvents]):
    """CEQL: complex events."""

    tabular = True

    def __init__(self, request: RunRequest, query: CeqlQuery) -> None:
        if request.kbs:
            raise click.BadParameter("a CEQL query asks no knowledge base", param_hint="--kb")
        made = CeqlReplay(query, request.start, request.lateness, naming=Naming(*request.columns))
        self.replay, self.run, self._shape = made, made.run, made.shape

    def check(self, format: ResultFormat) -> None:
        check_complex_format(format)

    def ordered(self, progress: Callable[[], None], *, ties: bool) -> Iterator[ComplexEvents]:
        if not ties:
            return self.replay.batches(progress)
        batch = ComplexEvents.concat(list(self.replay.batches(progress)), self._shape.words)
        return iter([batch.take(by_positions(batch))])

    def table(self, batches: Iterable[ComplexEvents]) -> Table:
        header, rows = complex_rows(self._shape, ComplexEvents.concat(list(batches), self._shape.words))
        return header, rows, is_number(header)

    def write(self, batches: Iterable[ComplexEvents], format: ResultFormat, out: BinaryIO, *, stream: bool) -> int:
        return write_complex(self._shape, batches, format, out, stream=stream)
