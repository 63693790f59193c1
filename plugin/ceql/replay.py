"""A CEQL query over streams that are given whole, as files, tables or lists."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pyoxigraph import NamedNode

from oxiseq.ceql.shape import ceql_shape
from oxiseq.driving import Driver
from oxiseq.engine.cea.plan import CeaPlan, compile_ceql
from oxiseq.engine.events.report import OnError, ReadReport
from oxiseq.engine.events.tuples import USUAL_NAMES, Naming, is_table, is_tuple_file, open_rows, read_rows
from oxiseq.engine.run.tuples import TupleRun
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.grammar.ceql_algebra import CeqlQuery
from oxiseq.late import LateBatch


class CeqlReplay(Driver):
    """A CEQL query and its streams; `naming`: the columns of tables that hold type and time."""

    def __init__(
        self,
        query: CeqlQuery,
        start: int | None = None,
        lateness: int = 0,
        stream_names: Mapping[str, str] = {},
        naming: Naming = USUAL_NAMES,
    ) -> None:
        terms = TermDictionary()
        self.plan: CeaPlan = compile_ceql(query, stream_names)
        self._tuples = TupleRun(self.plan, terms, start, lateness)
        self._naming = naming
        names = dict(zip((s.name for s in query.streams), self.plan.streams, strict=True))
        super().__init__(self._tuples, ceql_shape(self.plan, terms), names)

    def _open(self, events: Any, on_error: OnError, time_predicate: NamedNode) -> Iterator[LateBatch]:
        if isinstance(events, str | Path) and is_tuple_file(events):
            report = ReadReport(str(events))
            self.reports.append(report)
            return open_rows(events, self._naming, report)
        if is_table(events):
            return read_rows(events, self._naming)
        return super()._open(events, on_error, time_predicate)

    @property
    def notes(self) -> tuple[str, ...]:
        """Columns of tables that can never be what the query asks of them."""
        return self._tuples.notes

    @property
    def behind(self) -> int:
        """At how many events matches may be missing, since the attribute of WITHIN fell too far there."""
        return self._tuples.behind
