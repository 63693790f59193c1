"""Streams of a CEQL query that are given whole: tables and files of tuples, too."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pyoxigraph import NamedNode

from oxiseq.engine.events.report import OnError, ReadReport
from oxiseq.engine.events.tuples import Naming, is_table, is_tuple_file, open_rows, read_rows
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.languages.driving import Opener, Told
from oxiseq.sources.late import LateBatch
from oxiseq.sources.sources import batches_of


def opener(naming: Naming) -> Opener:
    """As others; `naming`: the columns of tables that hold type and time."""

    def of(
        events: Any, terms: TermDictionary, on_error: OnError, time_predicate: NamedNode, told: Told
    ) -> Iterator[LateBatch]:
        if isinstance(events, str | Path) and is_tuple_file(events):
            report = ReadReport(str(events))
            if told is not None:
                told(report)
            return open_rows(events, naming, report)
        if is_table(events):
            return read_rows(events, naming)
        return batches_of(events, terms, on_error, time_predicate, told)

    return of
