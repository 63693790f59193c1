"""A query over windows as text: `REGISTER`, windows, events, WHERE, reports. `parse(render_rsp(q)) == q`."""

from __future__ import annotations

from collections.abc import Iterator

from oxiseq.grammar.algebra import Ask, Construct
from oxiseq.grammar.render_clauses import amount, render_clauses
from oxiseq.grammar.render_sparql import SparqlWriter
from oxiseq.grammar.rsp_algebra import (
    EventDefinition,
    IdentityWindow,
    IntervalWindow,
    LandmarkWindow,
    NamedWindow,
    RangeWindow,
    RspQuery,
    WindowOperator,
)


def render_rsp(query: RspQuery) -> str:
    """The whole query, indented, IRIs shortened by its prefixes."""
    return "\n".join(_lines(query, SparqlWriter(dict(query.prefixes)))) + "\n"


def _lines(query: RspQuery, writer: SparqlWriter) -> Iterator[str]:
    yield from writer.prologue(query)
    if query.report is not None:
        into = "" if query.into is None else f" {writer.term(query.into)}"
        yield f"REGISTER {query.report.value}{into} AS"
    yield _form(query, writer)
    yield from (_named_window(w, writer) for w in query.windows)
    yield from (f"FROM {writer.term(g)}" for g in query.default_graphs)
    yield from (f"FROM NAMED {writer.term(g)}" for g in query.named_graphs)
    yield from (_event(e, writer) for e in query.events)
    yield writer.rest_of_select(query.body, "")
    yield from render_clauses(query.consume, query.when)


def _form(query: RspQuery, writer: SparqlWriter) -> str:
    if query.form != "SELECT":
        return writer.form(Ask() if query.form == "ASK" else Construct(query.template))
    mode = "DISTINCT " if query.body.distinct else "REDUCED " if query.body.reduced else ""
    return f"SELECT {mode}{writer.columns(query.body, '')}"


def _named_window(window: NamedWindow, writer: SparqlWriter) -> str:
    operators = "".join(render_window(o) for o in window.operators)
    stream = writer.term(window.stream)
    if window.name is None:
        return f"FROM STREAM {stream} {operators}"
    return f"FROM NAMED WINDOW {writer.term(window.name)} ON {stream} {operators}"


def render_window(operator: WindowOperator) -> str:
    """One operator in its brackets."""
    match operator:
        case RangeWindow(size, slide, True):
            return f"[RANGE {size} EVENTS SLIDE {slide} EVENTS]"
        case RangeWindow(size, slide):
            return f"[RANGE {amount(size)} SLIDE {amount(slide)}]"
        case LandmarkWindow(start):
            return f"[LND {start}]"
        case IntervalWindow(start, end):
            return f"[INTERVAL {start} {end}]"
        case IdentityWindow():
            return "[ID]"


def _event(event: EventDefinition, writer: SparqlWriter) -> str:
    kind = event.choice or "EVENT"
    return f"{kind} ON {writer.term(event.window)} {writer.group(event.pattern, '')} AS {event.name}"
