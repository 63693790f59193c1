"""Which types the columns of a query have for sure, whatever events come: for `match(types="infer")`.

In the flow: algebra, facts → **inference** → Spark's types by column. Three things are certain: what an expression
makes (COUNT, STRLEN, a comparison), what a filter that every match has passed lets through (`?a > 5`: a number), and
what a mapping or the knowledge base has as objects of a predicate (facts.py).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from pyoxigraph import Literal, NamedNode, Variable

from oxiseq.grammar.algebra import (
    Aggregate,
    Call,
    Exists,
    Expression,
    Filter,
    GraphPattern,
    Group,
    Query,
    Select,
    TriplePattern,
)
from oxiseq.grammar.places import always
from oxiseq.grammar.scope import certain_variables, conjuncts
from oxiseq.spark.facts import BIGINT, BOOLEAN, DATATYPES, DOUBLE, TIMESTAMP, Facts

_XSD: Final = "http://www.w3.org/2001/XMLSchema#"
_NUMBERS: Final = {_XSD + name for name in ("integer", "decimal", "float", "double", "int", "long")}
_COMPARED: Final = {"=", "<", ">", "<=", ">="}
_TRUTHS: Final = _COMPARED | {
    "!=",
    "&&",
    "||",
    "!",
    "IN",
    "NOT IN",
    "BOUND",
    "CONTAINS",
    "STRSTARTS",
    "STRENDS",
    "REGEX",
    "SAMETERM",
    "ISIRI",
    "ISURI",
    "ISBLANK",
    "ISLITERAL",
    "ISNUMERIC",
    "LANGMATCHES",
}
_COUNTS: Final = {"STRLEN", "YEAR", "MONTH", "DAY", "HOURS", "MINUTES"}


def inferred(query: Query, known: Facts) -> dict[str, str]:
    """Column → type of Spark SQL's, of those columns whose type is certain and not string.

    Numbers are doubles where they may have fractions: integers above 2^53 are rounded then.
    """
    if not isinstance(query.form, Select):
        return {}
    kinds = {**dict(_by_filter(query)), **dict(_by_pattern(query, known))}
    if query.form.columns is None:
        return kinds
    found = {}
    for column in query.form.columns:
        kind = kinds.get(column.variable.value) if column.expression is None else _made(column.expression, kinds)
        if kind is not None:
            found[column.variable.value] = kind
    return found


def _made(expression: Expression, kinds: dict[str, str]) -> str | None:
    """What an expression makes, if it makes anything."""
    match expression:
        case Variable():
            return kinds.get(expression.value)
        case Exists():
            return BOOLEAN
        case Aggregate(name="COUNT"):
            return BIGINT
        case Aggregate(name="MIN" | "MAX" | "SAMPLE", arg=Variable() as variable):
            return kinds.get(variable.value)
        case Call(name) if name.upper() in _TRUTHS:
            return BOOLEAN
        case Call(name) if name.upper() in _COUNTS:
            return BIGINT
        case Call("+" | "-", args) if any(_is_number(arg) for arg in args):
            return DOUBLE
    return None


def _by_filter(query: Query) -> Iterator[tuple[str, str]]:
    """What the filters of GPMs that are part of every match let through."""
    wanted = always(query.sequence)
    for gpm in query.gpms:
        if gpm.name not in wanted:
            continue
        certain = certain_variables(gpm.pattern)
        for element in gpm.pattern.elements:
            if isinstance(element, Filter):
                for condition in conjuncts(element.condition):
                    yield from ((v.value, kind) for v, kind in _required(condition) if v in certain)


def _by_pattern(query: Query, known: Facts) -> Iterator[tuple[str, str]]:
    """What the patterns that are part of every match can bind."""
    iris = {stream.name: stream.iri.value for stream in query.streams}
    wanted = always(query.sequence)
    for gpm in query.gpms:
        if gpm.name in wanted:
            of_stream = known.streams.get(iris[gpm.stream], {})
            for graph, predicate, variable in _objects(gpm.pattern, None):
                kind = of_stream.get(predicate.value) if graph is None else known.of_kb(_name(graph), predicate)
                if kind is not None:
                    yield variable.value, kind


def _objects(
    pattern: Group, graph: NamedNode | Variable | None
) -> Iterator[tuple[NamedNode | Variable | None, NamedNode, Variable]]:
    """(graph of the knowledge base, None: the event; predicate; object) of the triple patterns that always match."""
    for element in pattern.elements:
        match element:
            case TriplePattern(_, NamedNode() as predicate, Variable() as variable):
                yield graph, predicate, variable
            case GraphPattern(name, inner):
                yield from _objects(inner, name)
            case Group():
                yield from _objects(element, graph)


def _name(graph: NamedNode | Variable) -> NamedNode | None:
    return graph if isinstance(graph, NamedNode) else None


def _required(condition: Expression) -> Iterator[tuple[Variable, str]]:
    """Variables whose types follow from a condition that holds."""
    match condition:
        case Call(name, (left, right)) if name in _COMPARED:
            for one, other in ((left, right), (right, left)):
                kind = _kind(other)
                if kind is not None:
                    yield from ((variable, kind) for variable in _numbers_or_itself(one, kind))
                if _is_number_made(other):
                    yield from ((variable, DOUBLE) for variable in _numbers_or_itself(one, DOUBLE))
                yield from ((variable, DOUBLE) for variable in _summed(one))
                if name == "=" and isinstance(other, NamedNode):
                    match one:
                        case Call("DATATYPE", (Variable() as variable,)) if other.value in DATATYPES:
                            yield variable, DATATYPES[other.value]
        case Call("ISNUMERIC", (Variable() as variable,)):
            yield variable, DOUBLE


def _kind(expression: Expression) -> str | None:
    """Of a constant that a value is compared with; comparing values of other types is an error."""
    if not isinstance(expression, Literal):
        return None
    datatype = expression.datatype.value
    if datatype in _NUMBERS:
        return DOUBLE
    return {_XSD + "boolean": BOOLEAN, _XSD + "dateTime": TIMESTAMP}.get(datatype)


def _numbers_or_itself(expression: Expression, kind: str) -> Iterator[Variable]:
    if isinstance(expression, Variable):
        yield expression
    elif kind == DOUBLE:
        yield from _summed(expression)


def _summed(expression: Expression) -> Iterator[Variable]:
    """Variables that are added to a number, or it to them: so they are numbers."""
    match expression:
        case Call("+" | "-", args) if any(_is_number(arg) for arg in args):
            yield from (arg for arg in args if isinstance(arg, Variable))


def _is_number_made(expression: Expression) -> bool:
    match expression:
        case Call("+" | "-", args):
            return any(_is_number(arg) for arg in args)
    return False


def _is_number(expression: Expression) -> bool:
    return isinstance(expression, Literal) and expression.datatype.value in _NUMBERS
