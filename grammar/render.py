"""Algebra → text, with the clauses that several languages write alike.

In the flow: the way back. `render` has the query's language write it: SPAseq's is `render_spaseq`, the others of
ours are in `ceql`, `epsparql` and `windows`, and `parse(render(q)) == q`; `render_group` and
`render_expression` write plain SPARQL 1.1 with full IRIs, for asking Oxigraph. Patterns and expressions are written by
`render_sparql`.
"""

from __future__ import annotations

from decimal import Decimal
from typing import TypeAlias

from oxiseq.grammar.algebra import (
    Consumption,
    Every,
    Expression,
    Group,
    Limit,
    OnChange,
    OnClose,
    Sample,
    Suppression,
    Window,
)
from oxiseq.grammar.arguments import public
from oxiseq.grammar.ceql_algebra import AttributeWindow
from oxiseq.grammar.languages import AnyQuery, syntax_named
from oxiseq.grammar.render_sparql import SparqlWriter
from oxiseq.grammar.rsp_algebra import Consume
from oxiseq.grammar.words import MICROSECONDS

# --- render clauses ----------------------------------------------------------------------------------


Clause: TypeAlias = (
    Window | AttributeWindow | Consumption | Consume | Limit | Sample | Suppression | Every | OnChange | OnClose
)


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
        case Suppression(interval, by):
            return f"SUPPRESS {time_span(interval)}" + (f" BY {' '.join(map(str, by))}" if by else "")
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


# --- render ------------------------------------------------------------------------------------------


_PLAIN = SparqlWriter()


@public
def render(query: AnyQuery) -> str:
    """`query` as text of its language; SPAseq indented, IRIs shortened by its prefixes.

    >>> import oxiseq
    >>> query = oxiseq.parse("SELECT * FROM STREAM S <urn:s> WHERE { SEQ(A) DEFINE GPM A ON S { ?s <urn:p> ?o } }")
    >>> print(oxiseq.render(query).splitlines()[0])
    SELECT *
    """
    return str(syntax_named(query.language).render(query))


def render_group(group: Group) -> str:
    """`{ ... }` in SPARQL 1.1 with full IRIs, on one or more lines."""
    return _PLAIN.group(group, "")


def render_expression(expression: Expression) -> str:
    """An expression in SPARQL 1.1 with full IRIs; PREV and functions of the match as in SPAseq."""
    return _PLAIN.expression(expression)
