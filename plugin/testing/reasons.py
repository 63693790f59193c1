"""Why a case's matches are missing."""

from __future__ import annotations

from oxiseq.grammar.algebra import Query
from oxiseq.grammar.errors import OxiseqError
from oxiseq.knowledge import knowledge_of
from oxiseq.reasons.read import Span, read_history
from oxiseq.reasons.text import lines
from oxiseq.reasons.why import why_of
from oxiseq.testing.run import Result


def reasons(result: Result) -> list[str]:
    """Lines for people, up to where the clock stood at the first difference; none for other languages than SPAseq."""
    case = result.case
    if not isinstance(case.query, Query):
        return []
    until = next(f.until for f in result.failures if f.difference is not None)
    streams: dict[str, list[tuple[int, object]]] = {}
    for event in case.events:
        streams.setdefault(event.stream, []).append((event.time, list(event.graph)))
    span = Span(None, None if until is None else until + 1)
    try:
        history = read_history(case.query, streams, span, case.options.start, case.options.lateness)
        why = why_of(case.query, history, knowledge_of(case.kb), 0)
    except OxiseqError as error:
        return [f"why not: cannot be told: {error}"]
    return ["why not: " + line if number == 0 else line for number, line in enumerate(lines(why, case.written))]
