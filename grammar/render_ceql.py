"""`CeqlQuery` → text; `parse(render(q), "ceql") == q`."""

from __future__ import annotations

from decimal import Decimal

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
from oxiseq.grammar.render_clauses import render_consumption, render_limit, render_sample
from oxiseq.grammar.render_sparql import SparqlWriter
from oxiseq.grammar.words import MICROSECONDS

_TERMS = SparqlWriter()
_OR, _AND, _NOT, _RELATION, _SUM, _PRODUCT, _UNARY, _PRIMARY = range(8)
_WORDS = {"||": "OR", "&&": "AND"}
_BINARY = {
    "||": _OR,
    "&&": _AND,
    **dict.fromkeys(("=", "!=", "<", ">", "<=", ">="), _RELATION),
    **dict.fromkeys("+-", _SUM),
    **dict.fromkeys("*/", _PRODUCT),
}


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
    if query.consumption is not None:
        lines.append(render_consumption(query.consumption))
    if query.order is not None:
        lines.append(render_order(query.order))
    if query.limit is not None:
        lines.append(render_limit(query.limit))
    if query.sample is not None:
        lines.append(render_sample(query.sample))
    return "\n".join(lines) + "\n"


def render_told(told: Told) -> str:
    """A column of aggregates."""
    if told.expression == Call(OF, (Variable(told.name),)):
        return _expression(told.expression)[0]
    return f"{_sum(told.expression)} AS {told.name}"


def render_groups(totals: Totals) -> list[str]:
    """GROUP BY and HAVING."""
    lines = ["GROUP BY " + ", ".join(f"[{v.value}]" for v in totals.by)] if totals.by else []
    return lines if totals.having is None else [*lines, f"HAVING {render_predicate(totals.having)}"]


def render_order(order: EndOrder) -> str:
    """ORDER BY."""
    return "ORDER BY " + ", ".join(f"{_sum(e)} {'DESC' if descending else 'ASC'}" for e, descending in order.keys)


def _sum(expression: Expression) -> str:
    text, binds = _expression(expression)
    return text if binds >= _SUM else f"({text})"


def render_window(window: Window | AttributeWindow) -> str:
    """WITHIN."""
    if isinstance(window, AttributeWindow):
        return f"WITHIN {_TERMS.literal(window.size)} [{window.attribute.value}]"
    if window.events:
        return f"WITHIN {window.size} EVENTS"
    for unit, size in reversed(MICROSECONDS.items()):
        if window.size % size == 0:
            return f"WITHIN {window.size // size} {unit}S"
    return f"WITHIN {Decimal(window.size).scaleb(-6):f} SECONDS"


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
    text = render_formula(formula)
    return f"({text})" if isinstance(formula, loose) else text


def render_condition(condition: Condition) -> str:
    """A condition of FILTER."""
    match condition:
        case Holds(name, predicate):
            return f"{name}[{render_predicate(predicate)}]"
        case AllOf(conditions):
            parts = (
                f"({render_condition(c)})" if isinstance(c, AllOf | AnyOf) else render_condition(c) for c in conditions
            )
            return " AND ".join(parts)
        case AnyOf(conditions):
            return " OR ".join(
                f"({render_condition(c)})" if isinstance(c, AnyOf) else render_condition(c) for c in conditions
            )


# --- predicates -----------------------------------------------------------------------------------


def render_predicate(expression: Expression) -> str:
    """An expression over attributes."""
    return _expression(expression)[0]


def _expression(expression: Expression) -> tuple[str, int]:
    """The text and how tightly it binds."""
    match expression:
        case Variable():
            return expression.value, _PRIMARY
        case Literal():
            return _literal(expression)
        case Aggregate(name, argument):
            return f"{name}({'*' if argument is None else _expression(argument)[0]})", _PRIMARY
        case Call(name, (Variable(value=attribute),)) if name == OF:
            return f"[{attribute}]", _PRIMARY
        case Call(name, (Variable(value=variable), Variable(value=attribute))) if name == OF:
            return f"{variable}[{attribute}]", _PRIMARY
        case Call(name, (Variable(value=variable), Variable(value=attribute))) if name == OTHER:
            return f"{variable}.{attribute}", _PRIMARY
        case Call("!", (operand,)):
            return f"NOT {_at(operand, _NOT)}", _NOT
        case Call("NEGATE" | "PLUS" as name, (operand,)):
            text = _at(operand, _UNARY)
            # `-1` would be read as one number, `--` as a comment
            safe = text if text[0].isalpha() or text[0] in "_(" else f"({text})"
            return f"{'-' if name == 'NEGATE' else '+'}{safe}", _UNARY
        case Call("GRAPH") if (condition := condition_of(expression)) is not None:
            return _graph(condition), _PRIMARY
        case Call(name, ()):
            return name, _PRIMARY
        case Call(name, (left, right)):
            binds = _BINARY[name]
            low = binds + 1 if binds == _RELATION else binds
            return f"{_at(left, low)} {_WORDS.get(name, name)} {_at(right, binds + 1)}", binds
        case _:
            raise TypeError(f"{type(expression).__name__} cannot be used in a predicate of CEQL")


def _graph(condition: GraphCondition) -> str:
    """A condition on the knowledge base, in one line."""
    given = []
    for variable, value in condition.given:
        text = _expression(value)[0]
        given.append(text if text.rpartition(".")[2] == variable.value else f"{text} AS {variable.value}")
    pattern = " ".join(line.strip() for line in _TERMS.group(condition.pattern, "").splitlines())
    return f"GRAPH {_TERMS.iri(condition.graph)} ({', '.join(given)}) {pattern}"


def _literal(literal: Literal) -> tuple[str, int]:
    text = _TERMS.literal(literal)
    return text, _UNARY if text[0] in "+-" else _PRIMARY


def _at(expression: Expression, least: int) -> str:
    """As an operand in a place that needs it to bind at least so tightly."""
    text, binds = _expression(expression)
    return text if binds >= least else f"({text})"
