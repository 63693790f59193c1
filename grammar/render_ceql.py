"""`CeqlQuery` → text; `parse(render(q), "ceql") == q`."""

from __future__ import annotations

from typing import ClassVar, Final

from pyoxigraph import Literal, Variable

from oxiseq.grammar.algebra import Aggregate, Call, Expression, Window
from oxiseq.grammar.ceql_algebra import (
    OF,
    OTHER,
    AllOf,
    AnyOf,
    AttributeWindow,
    CeqlQuery,
    Condition,
    Either,
    EndOrder,
    EventType,
    Filtered,
    Follows,
    Formula,
    Holds,
    Iterated,
    Named,
    Told,
    Totals,
)
from oxiseq.grammar.ceql_graphs import GraphCondition, condition_of
from oxiseq.grammar.render_clauses import render_clause, render_clauses
from oxiseq.grammar.render_sparql import NOT, PRIMARY, SUM, SparqlWriter, inside

_TERMS = SparqlWriter()


def render_ceql(query: CeqlQuery) -> str:
    """`query` as CEQL text, a clause to a line."""
    lines = [] if query.vocab is None else [f"VOCAB <{query.vocab}>"]
    strategy = f"{query.selection.strategy.value} " if query.selection else ""
    columns = "*" if query.columns is None else ", ".join(c.name for c in query.columns)
    if query.totals is not None:
        columns = ", ".join(map(render_told, query.totals.columns))
    lines.append(f"SELECT {strategy}{columns}")
    lines.append("FROM " + ", ".join(s.name for s in query.streams))
    lines.append("WHERE " + render_formula(query.formula))
    if query.partition is not None:
        lines.append("PARTITION BY " + ", ".join(f"[{v.value}]" for v in query.partition.by))
    if query.window is not None:
        lines.append(render_window(query.window))
    if query.totals is not None:
        lines += render_groups(query.totals)
    lines += render_clauses(query.consumption)
    if query.order is not None:
        lines.append(render_order(query.order))
    return "\n".join([*lines, *render_clauses(query.limit, query.sample)]) + "\n"


def render_told(told: Told) -> str:
    """A column of aggregates."""
    if told.expression == Call(OF, (Variable(told.name),)):
        return _WRITER.expression(told.expression)
    return f"{_sum(told.expression)} AS {told.name}"


def render_groups(totals: Totals) -> list[str]:
    """GROUP BY and HAVING."""
    lines = ["GROUP BY " + ", ".join(f"[{v.value}]" for v in totals.by)] if totals.by else []
    return lines if totals.having is None else [*lines, f"HAVING {render_predicate(totals.having)}"]


def render_order(order: EndOrder) -> str:
    """ORDER BY."""
    return "ORDER BY " + ", ".join(f"{_sum(e)} {'DESC' if descending else 'ASC'}" for e, descending in order.keys)


def _sum(expression: Expression) -> str:
    return _WRITER.at(expression, SUM)


def render_window(window: Window | AttributeWindow) -> str:
    """WITHIN: windows of CEQL always slide, and do not say so."""
    return render_clause(window).removesuffix(" SLIDING")


# --- formulas -------------------------------------------------------------------------------------


def render_formula(formula: Formula) -> str:
    """A formula, with the parentheses that it needs."""
    match formula:
        case EventType(name):
            return name
        case Named(inner, name):
            return f"{_operand(inner, Follows, Either, Filtered)} AS {name}"
        case Iterated(inner, contiguous):
            return f"{_operand(inner, Follows, Either, Filtered)}{':+' if contiguous else '+'}"
        case Follows(first, rest):
            text = _operand(first, Follows, Either, Filtered)
            for contiguous, inner in rest:
                text += f"{' : ' if contiguous else '; '}{_operand(inner, Follows, Either, Filtered)}"
            return text
        case Either(formulas):
            return " OR ".join(_operand(f, Either, Filtered) for f in formulas)
        case Filtered(inner, condition):
            return f"{render_formula(inner)} FILTER {render_condition(condition)}"


def _operand(formula: Formula, *loose: type) -> str:
    return inside(render_formula(formula), formula, *loose)


def render_condition(condition: Condition) -> str:
    """A condition of FILTER."""
    match condition:
        case Holds(name, predicate):
            return f"{name}[{render_predicate(predicate)}]"
        case AllOf(conditions):
            return " AND ".join(inside(render_condition(c), c, AllOf, AnyOf) for c in conditions)
        case AnyOf(conditions):
            return " OR ".join(inside(render_condition(c), c, AnyOf) for c in conditions)


# --- predicates -----------------------------------------------------------------------------------


def render_predicate(expression: Expression) -> str:
    """An expression over attributes."""
    return _WRITER.expression(expression)


class CeqlWriter(SparqlWriter):
    """Writes expressions over attributes: `x.price > 2 AND NOT [room] = "a"`."""

    words: ClassVar = {"||": "OR", "&&": "AND"}
    prefixed: ClassVar = {**SparqlWriter.prefixed, "!": ("NOT ", NOT)}

    def _expression(self, expression: Expression, indent: str) -> tuple[str, int]:
        match expression:
            case Variable():
                return expression.value, PRIMARY
            case Call(name, (Variable(value=attribute),)) if name == OF:
                return f"[{attribute}]", PRIMARY
            case Call(name, (Variable(value=variable), Variable(value=attribute))) if name in (OF, OTHER):
                return f"{variable}[{attribute}]" if name == OF else f"{variable}.{attribute}", PRIMARY
            case Call("GRAPH") if (condition := condition_of(expression)) is not None:
                return self._graph(condition), PRIMARY
            case Call(name, ()):
                return name, PRIMARY
            case Literal() | Aggregate() | Call():
                return super()._expression(expression, indent)
            case _:
                raise TypeError(f"{type(expression).__name__} cannot be used in a predicate of CEQL")

    def _graph(self, condition: GraphCondition) -> str:
        """A condition on the knowledge base, in one line."""
        given = []
        for variable, value in condition.given:
            text = self.expression(value)
            given.append(text if text.rpartition(".")[2] == variable.value else f"{text} AS {variable.value}")
        pattern = " ".join(line.strip() for line in _TERMS.group(condition.pattern, "").splitlines())
        return f"GRAPH {_TERMS.iri(condition.graph)} ({', '.join(given)}) {pattern}"


_WRITER: Final = CeqlWriter()
