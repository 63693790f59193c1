"""Which types the columns of a query have for sure, whatever events come: for `match(types="infer")`.

In the flow: algebra, facts → **inference** → Spark's types by column. Three things are certain: what an expression
makes (COUNT, STRLEN, a comparison), what a filter that every match has passed lets through (`?a > 5`: a number), and
what a mapping or the knowledge base has as objects of a predicate (facts.py).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
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
    SubSelect,
    TriplePattern,
    WindowPattern,
)
from oxiseq.grammar.ceql_algebra import CeqlQuery, Totals
from oxiseq.grammar.languages import AnyQuery
from oxiseq.grammar.places import always
from oxiseq.grammar.rsp_algebra import RspQuery
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


def inferred(query: AnyQuery, known: Facts) -> dict[str, str]:
    """Column → type of Spark SQL's, of those columns whose type is certain and not string.

    Numbers are doubles where they may have fractions: integers above 2^53 are rounded then.
    """
    patterns = tuple(_patterns(query))
    kinds = {**dict(_by_filter(patterns)), **dict(_by_pattern(patterns, known))}
    columns = _columns(query)
    if columns is None:
        return kinds
    found = {name: _made(expression, kinds) for name, expression in columns}
    return {name: kind for name, kind in found.items() if kind is not None}


def _columns(query: AnyQuery) -> list[tuple[str, Expression]] | None:
    """What is answered, by name; None: whatever the patterns bind."""
    match query:
        case Query(form=Select(columns=None)) | RspQuery(form="SELECT", body=SubSelect(projection=None)):
            return None
        case Query(form=Select(columns=columns)) if columns is not None:
            return [(c.variable.value, c.variable if c.expression is None else c.expression) for c in columns]
        case RspQuery(form="SELECT", body=SubSelect(projection=projection)) if projection is not None:
            pairs = ((p, p) if isinstance(p, Variable) else p for p in projection)
            return [(name.value, expression) for expression, name in pairs]
        case CeqlQuery(totals=Totals(columns=told)):
            return [(column.name, column.expression) for column in told]
    return []


def _patterns(query: AnyQuery) -> Iterator[tuple[Group, str]]:
    """The patterns that are part of every match, with the IRI of the stream that they are on, empty for several."""
    match query:
        case Query():
            iris, wanted = {stream.name: stream.iri.value for stream in query.streams}, always(query.sequence)
            yield from ((gpm.pattern, iris[gpm.stream]) for gpm in query.gpms if gpm.name in wanted)
        case RspQuery():
            named = {window.name: window.stream.value for window in query.windows}
            unnamed = {window.stream.value for window in query.windows if window.name is None}
            alone = len(unnamed) == 1 and not query.default_graphs
            yield query.body.where, unnamed.pop() if alone else ""
            for element in query.body.where.elements:
                if isinstance(element, WindowPattern) and isinstance(element.name, NamedNode):
                    yield element.pattern, named[element.name]


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


def _by_filter(patterns: Sequence[tuple[Group, str]]) -> Iterator[tuple[str, str]]:
    """What the filters of patterns let through."""
    for pattern, _ in patterns:
        certain = certain_variables(pattern)
        for element in pattern.elements:
            if isinstance(element, Filter):
                for condition in conjuncts(element.condition):
                    yield from ((v.value, kind) for v, kind in _required(condition) if v in certain)


def _by_pattern(patterns: Sequence[tuple[Group, str]], known: Facts) -> Iterator[tuple[str, str]]:
    """What patterns can bind."""
    for pattern, iri in patterns:
        of_stream = known.streams.get(iri, {})
        for graph, predicate, variable in _objects(pattern, None):
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
