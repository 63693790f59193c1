"""Which types the columns of a query have for sure, whatever the data: for `match(types="infer")`.

Where it stands: algebra → **inference** → Spark's types by column. Two things are certain: what an expression makes
(COUNT, STRLEN, a comparison), and what a filter that every match has passed lets through (`?a > 5`: a number).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from pyoxigraph import Literal, NamedNode, Variable

from oxiseq.grammar.algebra import Aggregate, Call, Exists, Expression, Filter, Query, Select
from oxiseq.grammar.places import always
from oxiseq.grammar.scope import certain_variables, conjuncts

_XSD: Final = "http://www.w3.org/2001/XMLSchema#"
_DOUBLE, _BIGINT, _BOOLEAN, _TIMESTAMP = "double", "bigint", "boolean", "timestamp"
_NUMBERS: Final = {_XSD + name for name in ("integer", "decimal", "float", "double", "int", "long")}
_DATATYPES: Final = {
    _XSD + "integer": _BIGINT,
    _XSD + "long": _BIGINT,
    _XSD + "int": _BIGINT,
    _XSD + "decimal": _DOUBLE,
    _XSD + "float": _DOUBLE,
    _XSD + "double": _DOUBLE,
    _XSD + "boolean": _BOOLEAN,
    _XSD + "dateTime": _TIMESTAMP,
    _XSD + "date": "date",
}
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


def inferred(query: Query) -> dict[str, str]:
    """Column → type of Spark SQL's, of those columns whose type is certain and not string.

    Numbers are doubles where they may have fractions: integers above 2^53 are rounded then.
    """
    if not isinstance(query.form, Select):
        return {}
    kinds = dict(_by_filter(query))
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
            return _BOOLEAN
        case Aggregate(name="COUNT"):
            return _BIGINT
        case Aggregate(name="MIN" | "MAX" | "SAMPLE", arg=Variable() as variable):
            return kinds.get(variable.value)
        case Call(name) if name.upper() in _TRUTHS:
            return _BOOLEAN
        case Call(name) if name.upper() in _COUNTS:
            return _BIGINT
        case Call("+" | "-", args) if any(_is_number(arg) for arg in args):
            return _DOUBLE
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


def _required(condition: Expression) -> Iterator[tuple[Variable, str]]:
    """Variables whose types a condition that holds tells."""
    match condition:
        case Call(name, (left, right)) if name in _COMPARED:
            for one, other in ((left, right), (right, left)):
                kind = _kind(other)
                if kind is not None:
                    yield from ((variable, kind) for variable in _numbers_or_itself(one, kind))
                if _is_number_made(other):
                    yield from ((variable, _DOUBLE) for variable in _numbers_or_itself(one, _DOUBLE))
                yield from ((variable, _DOUBLE) for variable in _summed(one))
                if name == "=" and isinstance(other, NamedNode):
                    match one:
                        case Call("DATATYPE", (Variable() as variable,)) if other.value in _DATATYPES:
                            yield variable, _DATATYPES[other.value]
        case Call("ISNUMERIC", (Variable() as variable,)):
            yield variable, _DOUBLE


def _kind(expression: Expression) -> str | None:
    """Of a constant that a value is compared with; comparing values of other types is an error."""
    if not isinstance(expression, Literal):
        return None
    datatype = expression.datatype.value
    if datatype in _NUMBERS:
        return _DOUBLE
    return {_XSD + "boolean": _BOOLEAN, _XSD + "dateTime": _TIMESTAMP}.get(datatype)


def _numbers_or_itself(expression: Expression, kind: str) -> Iterator[Variable]:
    if isinstance(expression, Variable):
        yield expression
    elif kind == _DOUBLE:
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
