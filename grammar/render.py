"""Algebra → text.

In the flow: the way back. `render` has the query's language write it: SPAseq's is `render_spaseq`, the others of
ours are render_ceql.py, render_ep.py and render_rsp.py, and `parse(render(q)) == q`; `render_group` and
`render_expression` write plain SPARQL 1.1 with full IRIs, for asking Oxigraph. Patterns and expressions are written by
`render_sparql`.
"""

from __future__ import annotations

from oxiseq.grammar.algebra import (
    Atom,
    Bounded,
    Conjunction,
    Disjunction,
    Expression,
    Group,
    Maybe,
    Not,
    Op,
    Query,
    Repeat,
    Sequence,
    SequenceElement,
)
from oxiseq.grammar.arguments import public
from oxiseq.grammar.languages import AnyQuery, syntax_named
from oxiseq.grammar.render_clauses import render_clauses, time_span
from oxiseq.grammar.render_sparql import SparqlWriter, inside

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


def render_spaseq(query: Query) -> str:
    """A SPAseq query: `parse(render_spaseq(q)) == q`."""
    writer, summary = SparqlWriter(dict(query.prefixes)), query.summary
    lines = [*writer.prologue(query), writer.form(query.form), *render_clauses(query.window)]
    if query.partition is not None:
        lines.append("PARTITION BY " + " ".join(writer.term(v) for v in query.partition.by))
    lines += render_clauses(query.consumption)
    lines += [f"FROM STREAM {s.name} <{s.iri.value}>" for s in query.streams]
    lines += ["WHERE {", f"  SEQ({render_sequence(query.sequence)})"]
    lines += [f"  FILTER({writer.expression(f.condition)})" for f in query.filters]
    lines += [f"  DEFINE GPM {g.name} ON {g.stream} {writer.group(g.pattern, '  ')}" for g in query.gpms]
    lines += ["}", *writer.clauses_of_groups(summary.group_by, summary.having, summary.order_by, "")]
    return "\n".join([*lines, *render_clauses(query.limit, query.sample, summary.report)]) + "\n"


def render_group(group: Group) -> str:
    """`{ ... }` in SPARQL 1.1 with full IRIs, on one or more lines."""
    return _PLAIN.group(group, "")


def render_expression(expression: Expression) -> str:
    """An expression in SPARQL 1.1 with full IRIs; PREV and functions of the match as in SPAseq."""
    return _PLAIN.expression(expression)


def render_sequence(element: SequenceElement) -> str:
    """An expression of SEQ, with the parentheses that it needs."""
    match element:
        case Atom(name):
            return name
        case Sequence(first, rest):
            text = _operand(first, Sequence)
            for op, item in rest:
                text += (" : " if op is Op.ANY else f"{op.value} ") + _operand(item, Sequence)
            return text
        case Disjunction(items):
            return " | ".join(_operand(i, Sequence, Disjunction, Bounded) for i in items)
        case Conjunction(items):
            return " & ".join(_operand(i, Sequence, Disjunction, Conjunction, Bounded) for i in items)
        case Bounded(item, kind, size):
            return f"{_operand(item, Sequence)} {kind.value} {time_span(size)}"
        case Maybe(item):  # `A+?` would be SQL's reluctant repeat
            return _operand(item, Sequence, Disjunction, Conjunction, Bounded, Repeat, Maybe) + "?"
        case Not(item):
            return _postfixed(item) + "!"
        case Repeat(item, least, most, chain):
            bounds = (
                "+"
                if (least, most) == (1, None)
                else f"{{{least}}}"
                if least == most
                else f"{{{least},{'' if most is None else most}}}"
            )
            return _postfixed(item) + (chain.value if chain else "") + bounds


def _operand(element: SequenceElement, *loose: type) -> str:
    return inside(render_sequence(element), element, *loose)


def _postfixed(element: SequenceElement) -> str:
    return _operand(element, Sequence, Disjunction, Conjunction, Bounded)
