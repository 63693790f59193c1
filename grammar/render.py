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
    Gpm,
    Group,
    Maybe,
    Not,
    Op,
    Query,
    Repeat,
    Sequence,
    SequenceElement,
    Window,
)
from oxiseq.grammar.arguments import public
from oxiseq.grammar.languages import AnyQuery, syntax_named
from oxiseq.grammar.render_clauses import render_consumption, render_limit, render_sample, render_when, time_span
from oxiseq.grammar.render_forms import render_form
from oxiseq.grammar.render_sparql import SparqlWriter, base_of

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
    writer = SparqlWriter(dict(query.prefixes))
    base = query.base or base_of(query)
    lines = [f"BASE <{base}>"] if base is not None else []
    lines += [f"PREFIX {prefix}: <{iri}>" for prefix, iri in query.prefixes]
    lines.append(render_form(query.form, writer))
    if query.window is not None:
        lines.append(render_window(query.window))
    if query.partition is not None:
        lines.append("PARTITION BY " + " ".join(writer.term(v) for v in query.partition.by))
    if query.consumption is not None:
        lines.append(render_consumption(query.consumption))
    lines += [f"FROM STREAM {s.name} <{s.iri.value}>" for s in query.streams]
    lines += ["WHERE {", f"  SEQ({render_sequence(query.sequence)})"]
    lines += [f"  FILTER({writer.expression(f.condition)})" for f in query.filters]
    lines += [f"  {_gpm(gpm, writer)}" for gpm in query.gpms]
    lines.append("}")
    lines += writer.clauses_of_groups(query.summary.group_by, query.summary.having, query.summary.order_by, "")
    if query.limit is not None:
        lines.append(render_limit(query.limit))
    if query.sample is not None:
        lines.append(render_sample(query.sample))
    if query.summary.report is not None:
        lines.append(render_when(query.summary.report))
    return "\n".join(lines) + "\n"


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
                text += f"{_spaced(op)}{_operand(item, Sequence)}"
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


def _spaced(op: Op) -> str:
    return " : " if op is Op.ANY else f"{op.value} "


def _operand(element: SequenceElement, *loose: type) -> str:
    text = render_sequence(element)
    return f"({text})" if isinstance(element, loose) else text


def _postfixed(element: SequenceElement) -> str:
    return _operand(element, Sequence, Disjunction, Conjunction, Bounded)


def _gpm(gpm: Gpm, writer: SparqlWriter) -> str:
    return f"DEFINE GPM {gpm.name} ON {gpm.stream} {writer.group(gpm.pattern, '  ')}"


def render_window(window: Window) -> str:
    """`WITHIN 10 MINUTES SLIDING`."""
    end = " SLIDING" if window.sliding else ""
    extent = f"{window.size} EVENTS" if window.events else time_span(window.size)
    return f"WITHIN {extent}{end}"
