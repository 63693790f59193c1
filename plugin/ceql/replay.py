"""A CEQL query over streams that are given whole, as files, tables or lists."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from pyoxigraph import NamedNode

from oxiseq.ceql.event import ComplexShape
from oxiseq.ceql.matches import ComplexMatches
from oxiseq.driving import Driver
from oxiseq.engine.cea.plan import CeaPlan, compile_ceql
from oxiseq.engine.events.report import OnError, ReadReport
from oxiseq.engine.events.time import to_microseconds
from oxiseq.engine.events.tuples import USUAL_NAMES, Naming, is_table, is_tuple_file, open_rows, read_rows
from oxiseq.engine.output.complex_events import ComplexEvents
from oxiseq.engine.run.tuples import TupleRun
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.grammar.ceql_algebra import CeqlQuery
from oxiseq.late import LateBatch
from oxiseq.left_out import ColumnWarning, warn_of


class CeqlReplay(Driver[ComplexEvents]):
    """A CEQL query and its streams; `naming`: the columns of tables that hold type and time."""

    def __init__(
        self,
        query: CeqlQuery,
        start: int | datetime | None = None,
        lateness: int = 0,
        stream_names: Mapping[str, str] = {},
        naming: Naming = USUAL_NAMES,
    ) -> None:
        terms = TermDictionary()
        self.plan: CeaPlan = compile_ceql(query, stream_names)
        begin = None if start is None else to_microseconds(start)
        self.run = TupleRun(self.plan, terms, begin, lateness)
        self.shape = ComplexShape(self.plan, terms)
        self._naming = naming
        names = dict(zip((s.name for s in query.streams), self.plan.streams, strict=True))
        super().__init__(self.run, terms, names, query.vocab or "")

    def _open(self, events: Any, on_error: OnError, time_predicate: NamedNode) -> Iterator[LateBatch]:
        if isinstance(events, str | Path) and is_tuple_file(events):
            report = ReadReport(str(events))
            self.reports.append(report)
            return open_rows(events, self._naming, report)
        if is_table(events):
            return read_rows(events, self._naming)
        return super()._open(events, on_error, time_predicate)

    def matches(self, progress: Callable[[], None] | None = None) -> ComplexMatches:
        batch = ComplexEvents.concat(list(self.batches(progress)), self.shape.words)
        run = self.run
        warn_of(run.faults, stacklevel=3)
        for note in run.notes:
            warnings.warn(note, ColumnWarning, stacklevel=3)
        return ComplexMatches(self.shape, batch, run.events, self.late, run.behind, run.faults)
