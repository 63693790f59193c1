"""Aggregates over the values of iterations or matches, and the literals of times and counts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from functools import cmp_to_key

import numpy as np
from pyoxigraph import Literal, NamedNode, Variable

from oxiseq.grammar.algebra import Aggregate, Expression, Term
from reference.ranking import compared
from reference.values import (
    XSD,
    ExpressionError,
    Number,
    Special,
    arithmetic,
    ask_store,
    evaluate,
    normal,
    number_literal,
    to_float32,
    to_float64,
    value_of,
)


def date_time(time: int) -> Literal:
    """Microseconds since 1970 as xsd:dateTime in UTC."""
    moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=time)
    text = moment.isoformat().replace("+00:00", "Z")
    return normal(Literal(text, datatype=NamedNode(XSD + "dateTime")))


def integer(value: int) -> Literal:
    return Literal(str(value), datatype=NamedNode(XSD + "integer"))


def aggregate_of(asked: Aggregate, values: Sequence[Term | None]) -> Term:
    """An aggregate over these values, None where there is an error."""
    if asked.name in ("FIRST", "LAST"):
        value = values[0 if asked.name == "FIRST" else -1] if values else None
        if value is None:
            raise ExpressionError("no iteration, or no value")
        return value
    if asked.distinct:
        values = list(dict.fromkeys(values))
    present = [v for v in values if v is not None]
    if asked.name == "COUNT":
        return integer(len(present))
    if len(present) < len(values):
        raise ExpressionError("a value is an error")
    match asked.name:
        case "SUM":
            return _sum(present)
        case "AVG":
            return arithmetic("/", _sum(present), integer(len(present))) if present else integer(0)
        case "MIN" | "MAX" | "SAMPLE" if not present:
            raise ExpressionError("no iteration")
        case "MIN":
            return min(present, key=cmp_to_key(compared))
        case "MAX":
            return max(present, key=cmp_to_key(compared))
        case "SAMPLE":
            return present[0]
        case _:
            texts = [ask_store("STR", (v,)) for v in present]
            return Literal((" " if asked.separator is None else asked.separator).join(t.value for t in texts))


def of_matches(asked: Aggregate, values: Sequence[Term | None]) -> Term:
    """An aggregate over values of matches. They have no order, so that a sum of floats or doubles is the exact one,
    rounded once to the type that SPARQL's promotion gives it; an average is that divided by the count, in that type."""
    numbers = [None if v is None else value_of(v) for v in (dict.fromkeys(values) if asked.distinct else values)]
    read = [n for n in numbers if isinstance(n, Number)]
    kind = next((k for k in ("double", "float") if any(n.kind == k for n in read)), None)
    if asked.name not in ("SUM", "AVG") or kind is None or len(read) < len(numbers):
        return aggregate_of(asked, values)
    floats = [n.value for n in read if not isinstance(n.value, Fraction)]
    special = {str(value) for value in floats if not np.isfinite(value)}
    rounded, narrow = (to_float64, np.float64) if kind == "double" else (to_float32, np.float32)
    if special:
        total = narrow("nan") if len(special) > 1 else narrow(special.pop())
    else:
        exact = (n.value if isinstance(n.value, Fraction) else Fraction(float(n.value)) for n in read)
        total = rounded(sum(exact, Fraction(0)))
    summed = number_literal(Number(kind, total))
    return summed if asked.name == "SUM" else arithmetic("/", summed, integer(len(read)))


def value_or_none(
    expression: Expression, bound: Mapping[Variable, Term], special: Special | None = None
) -> Term | None:
    try:
        return evaluate(expression, bound, special)
    except ExpressionError:
        return None


def _sum(values: list[Term]) -> Literal:
    total = integer(0)
    for value in values:
        if not isinstance(value_of(value), Number):
            raise ExpressionError("a sum of something that is no number")
        total = arithmetic("+", total, value)
    return total
