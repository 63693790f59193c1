"""Streams of a CEQL query that are given whole: tables and files of tuples, too."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pyoxigraph import NamedNode

from oxiseq.driving import Driver, Opener, opened
from oxiseq.engine.events.report import OnError, ReadReport
from oxiseq.engine.events.tuples import Naming, is_table, is_tuple_file, open_rows, read_rows
from oxiseq.late import LateBatch


def opener(naming: Naming) -> Opener:
    """As others; `naming`: the columns of tables that hold type and time."""

    def of(driver: Driver, events: Any, on_error: OnError, time_predicate: NamedNode) -> Iterator[LateBatch]:
        if isinstance(events, str | Path) and is_tuple_file(events):
            report = ReadReport(str(events))
            driver.reports.append(report)
            return open_rows(events, naming, report)
        if is_table(events):
            return read_rows(events, naming)
        return opened(driver, events, on_error, time_predicate)

    return of
