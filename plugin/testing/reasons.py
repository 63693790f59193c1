"""Why a case's matches are missing."""

from __future__ import annotations

from oxiseq.grammar.errors import OxiseqError
from oxiseq.languages.reasons.read import Span, reading_of
from oxiseq.languages.reasons.report import WhyRequest
from oxiseq.languages.reasons.text import lines
from oxiseq.languages.registry import language_for
from oxiseq.testing.run import Result


def reasons(result: Result) -> list[str]:
    """Lines for people, up to where the clock was at the first difference."""
    case = result.case
    until = next(f.until for f in result.failures if f.difference is not None)
    streams: dict[str, list[tuple[int, object]]] = {}
    for event in case.events:
        streams.setdefault(event.stream, []).append((event.time, list(event.graph)))
    span = Span(None, None if until is None else until + 1)
    try:
        asked = WhyRequest(reading_of(case.options, span), 0)
        why = language_for(case.query).why(case.query, streams, case.kb, case.options, asked)
    except OxiseqError as error:
        return [f"why not: unknown: {error}"]
    return ["why not: " + line if number == 0 else line for number, line in enumerate(lines(why, case.written))]
