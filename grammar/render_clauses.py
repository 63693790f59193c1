"""Clauses that several languages write alike, and spans of time."""

from __future__ import annotations

from decimal import Decimal
from typing import TypeAlias

from oxiseq.grammar.algebra import Consumption, Every, Limit, OnChange, OnClose, Sample, Window
from oxiseq.grammar.ceql_algebra import AttributeWindow
from oxiseq.grammar.render_sparql import SparqlWriter
from oxiseq.grammar.rsp_algebra import Consume
from oxiseq.grammar.words import MICROSECONDS

Clause: TypeAlias = Window | AttributeWindow | Consumption | Consume | Limit | Sample | Every | OnChange | OnClose


def render_clauses(*clauses: Clause | None) -> list[str]:
    """Those that there are, each on a line."""
    return [render_clause(each) for each in clauses if each is not None]


def render_clause(clause: Clause) -> str:
    """One of them: `WITHIN 10 MINUTES SLIDING`, `LIMIT 3 OFFSET 1`."""
    match clause:
        case Window(size, events, sliding):
            return f"WITHIN {f'{size} EVENTS' if events else time_span(size)}{' SLIDING' if sliding else ''}"
        case AttributeWindow(size, attribute):
            return f"WITHIN {SparqlWriter().literal(size)} [{attribute.value}]"
        case Consumption(whole_query):
            return f"CONSUME BY {'ANY' if whole_query else 'PARTITION'}"
        case Consume():
            return f"CONSUME {clause.value}"
        case Limit(count, offset):
            return f"LIMIT {count}" + (f" OFFSET {offset}" if offset else "")
        case Sample(count, seed):
            return f"SAMPLE {count}" + (f" SEED {seed}" if seed else "")
        case Every(period):
            return f"REPORT EVERY {time_span(period)}"
        case OnChange():
            return "REPORT ON CONTENT CHANGE"
        case OnClose():
            return "REPORT ON WINDOW CLOSE"


def amount(size: int) -> str:
    """A span of time: with the largest unit of which it is a whole number, else in microseconds."""
    for unit, micros in reversed(MICROSECONDS.items()):
        if size and size % micros == 0:
            return f"{size // micros} {unit}{'S' * (size != micros)}"
    return str(size)


def time_span(size: int) -> str:
    """The same with a unit always."""
    text = amount(size)
    return f"{Decimal(size).scaleb(-6):f} SECONDS" if text.isdecimal() else text
