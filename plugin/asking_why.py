"""`oxiseq.why`: what became of events and partial matches of a query."""

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
from oxiseq.grammar.arguments import named_node, public
from oxiseq.knowledge import Kb
from oxiseq.languages.front import Options, said, without_reports
from oxiseq.languages.registry import check_kb, front_of, rules_of
from oxiseq.reasons.read import Reading, Span
from oxiseq.reasons.report import SHOWN, Why, WhyRequest


@public
def why(
    text: str,
    streams: Mapping[str, Any],
    kb: Kb = None,
    start: int | datetime | None = None,
    language: str = "spaseq",
    *,
    begin: int | datetime | None = None,
    end: int | datetime | None = None,
    lateness: Duration = "0s",
    on_error: OnError = "stop",
    time_predicate: str | NamedNode = GENERATED_AT,
    provenance: int = SHOWN,
    stream_names: Mapping[str, str] = {},
    type_column: str = "type",
    time_column: str = "time",
    time_unit: TimeUnit | None = None,
    report: str | None = None,
    instants: Iterable[int | datetime] | None = None,
    consumption: str | None = None,
    rules: Sequence[str] = (),
) -> Why:
    """Why a query matches or does not, over whole streams as `oxiseq.run` takes them, with its arguments.

    Only events from `begin` to before `end` are looked at, as if there were no others. `provenance`: of how many
    matches it is told what they were made of. Of a query over windows it is told of one instant, that at which it comes
    furthest; `instants` says which to look at. It runs the query's beginnings and variants of them: allow for some ten
    times the query's own time, more for a long formula of CEQL. Raises QueryError, EventError, KbError, LimitError.

    >>> import oxiseq
    >>> text = '''PREFIX : <http://example.org/>
    ... SELECT ?who ?paid FROM STREAM S <http://example.org/payments>
    ... WHERE { SEQ(A) DEFINE GPM A ON S { ?who :paid ?paid } }'''
    >>> payment = "<http://example.org/ann> <http://example.org/paid> 5 ."
    >>> told = oxiseq.why(text.replace("?paid }", "?paid FILTER(?paid > 9) }"), {"S": [(1, payment)]})
    >>> told.found, told.stopped
    (0, 'A')
    """
    query = load(text, language)
    front = front_of(query)
    check_kb(front, kb)
    predicate = named_node(time_predicate, "time_predicate")
    first, low, high = (None if t is None else to_microseconds(t) for t in (start, begin, end))
    late = duration(lateness, "lateness")
    options = Options(
        first, late, stream_names, Naming(type_column, time_column, time_unit), said(report, instants, consumption),
        rules_of(front, rules), tuple(streams),
    )  # fmt: skip
    without_reports(front, options)
    reading = Reading(Span(low, high), first, late, on_error, predicate)
    return front.why(query, streams, kb, options, WhyRequest(reading, provenance))
