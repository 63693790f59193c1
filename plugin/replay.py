"""`oxiseq.run`: a query over streams that are given whole, as files, tables or lists."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from pyoxigraph import NamedNode

from oxiseq.durations import Duration, duration
from oxiseq.engine.events.quads import GENERATED_AT
from oxiseq.engine.events.report import OnError
from oxiseq.engine.events.time import to_microseconds
from oxiseq.engine.events.tuples import Naming
from oxiseq.engine.events.units import TimeUnit
from oxiseq.grammar import load
from oxiseq.grammar.arguments import public
from oxiseq.knowledge import Kb, knowledge_of, opened
from oxiseq.languages.front import Options, said, without_reports
from oxiseq.languages.graphs import MissingGraphWarning, missing_graphs
from oxiseq.languages.registry import check_kb, front_of, rules_of
from oxiseq.matches.matches import Matches
from oxiseq.warned import warn_caller


@public
def run(
    text: str,
    streams: Mapping[str, Any],
    kb: Kb = None,
    start: int | datetime | None = None,
    language: str = "spaseq",
    *,
    lateness: Duration = "0s",
    on_error: OnError = "stop",
    time_predicate: str | NamedNode = GENERATED_AT,
    stream_names: Mapping[str, str] = {},
    type_column: str = "type",
    time_column: str = "time",
    time_unit: TimeUnit | None = None,
    report: str | None = None,
    instants: Iterable[int | datetime] | None = None,
    consumption: str | None = None,
    rules: Sequence[str] = (),
) -> Matches:
    """Answer a query over whole streams; when they end they are closed (trailing negations are decided).

    `streams`: IRI (or the name that the query gives it) → file, or (time, graph) pairs, time in microseconds
    or as datetime. `start`: the t of tumbling windows, default the first event's time; events before it are
    not seen. `lateness`: how much a stream may be out of order, a timedelta or a text with a unit (`"5s"`).
    `on_error="skip"` leaves out malformed events of files. A stream that the query does not read is left out, with a
    warning.

    With `language="ceql"` a stream may also be a table of tuple events: a CSV, Arrow or Parquet file, a pyarrow Table
    or a pandas DataFrame, with a column for the time (`time_column`: timestamps or integers), one for the type
    (`type_column`) and one per attribute. `time_unit` of integers: "s", "ms", "us" or "ns"; without it they are
    microseconds, and refused if they seem to be another. `stream_names`: name in FROM → IRI, where it is not the
    vocabulary's.

    Queries over windows (`language="rspql"`, `"spectra"` or `"rsepql"`) answer rows at instants; those
    of event patterns have a `start` and an `end`. Where the text leaves it open, `report` says
    what is told at an instant: `"RSTREAM"` all answers (default of RSEP-QL), `"ISTREAM"` the new ones (default of the
    others), `"DSTREAM"` those that are gone; `instants`: at which times the query is answered, else at each event's;
    `consumption` of RSEP-QL and EP-SPARQL: `"UNRESTRICTED"`, `"CHRONOLOGICAL"` or `"RECENT"`.
    With `language="epsparql"` an event may also be (start, end, graph), and a query that names no stream reads all
    that are given. `rules`: texts of CONSTRUCT queries, over whose closure the query is answered.

    Warns (MissingGraphWarning) of a GRAPH that the KB does not have.
    Raises QueryError, EventError, KbError.

    >>> import oxiseq
    >>> text = '''PREFIX : <http://example.org/>
    ... SELECT ?who ?paid FROM STREAM S <http://example.org/payments>
    ... WHERE { SEQ(A) DEFINE GPM A ON S { ?who :paid ?paid } }'''
    >>> payment = "<http://example.org/ann> <http://example.org/paid> 5 ."
    >>> [(match.at_us, match["paid"].value) for match in oxiseq.run(text, {"S": [(1, payment), (2, payment)]})]
    [(1, '5'), (2, '5')]
    """
    query = load(text, language)
    front = front_of(query)
    check_kb(front, kb)
    begin = None if start is None else to_microseconds(start)
    told = None if instants is None else tuple(instants)
    asked = said(report, told, consumption)
    options = Options(
        begin, duration(lateness, "lateness"), stream_names, Naming(type_column, time_column, time_unit), asked,
        rules_of(front, rules), tuple(streams),
    )  # fmt: skip
    without_reports(front, options)
    if front.asks_kb:
        kb = opened(kb)
    replay = front.replay(query, kb, options)
    if front.asks_kb:
        for lint in missing_graphs(query, text, knowledge_of(kb), options.rules):
            warn_caller(f"{lint.message}: {lint.hint}", MissingGraphWarning)
    front.prepare()
    for name, events in streams.items():
        replay.attach(name, events, on_error, time_predicate)
    return replay.matches()
