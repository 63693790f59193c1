"""SELECT, CONSTRUCT and ASK → text, in the languages that write them alike."""

from __future__ import annotations

from collections.abc import Iterator

from pyoxigraph import Variable

from oxiseq.grammar.algebra import Ask, Construct, Projection, Select
from oxiseq.grammar.render_sparql import SparqlWriter


def render_form(form: Select | Construct | Ask, writer: SparqlWriter) -> str:
    match form:
        case Ask():
            return "ASK"
        case Select(columns, distinct, selection):
            words = ["SELECT", *(["DISTINCT"] if distinct else []), *([selection.strategy.value] if selection else [])]
            return " ".join([*words, *(["*"] if columns is None else [_column(c, writer) for c in columns])])
        case Construct():
            return _construct(form, writer)


def _column(column: Projection, writer: SparqlWriter) -> str:
    if column.expression is None:
        return writer.term(column.variable)
    return f"({writer.expression(column.expression)} AS {writer.term(column.variable)})"


def _construct(form: Construct, writer: SparqlWriter) -> str:
    into = "" if form.into is None else f" INTO STREAM <{form.into.value}>"
    return "\n".join(["CONSTRUCT {", *(f"  {triple} ." for triple in render_template(form, writer)), "}" + into])


def render_template(form: Construct, writer: SparqlWriter) -> Iterator[str]:
    """The triples of a template, with the expressions that it has for objects."""
    expressions = {c.variable: c.expression for c in form.columns}
    for triple in form.template:
        bound = expressions.get(triple.object) if isinstance(triple.object, Variable) else None
        target = writer.term(triple.object) if bound is None else f"({writer.expression(bound)})"
        yield f"{writer.term(triple.subject)} {writer.verb(triple.predicate)} {target}"
