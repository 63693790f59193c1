"""SPARQL's aggregates over a list of values: those of a repeated GPM's iterations (semantics.md 2.4), or of matches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyoxigraph import BlankNode, Literal, NamedNode, Variable

from oxiseq.engine.expressions.exact import ExpressionError, evaluate
from oxiseq.engine.kernels.terms import order as k
from oxiseq.engine.terms.order import Key, order_key
from oxiseq.engine.terms.texts import Term
from oxiseq.grammar.algebra import Aggregate, Call

_INTEGER = NamedNode("http://www.w3.org/2001/XMLSchema#integer")


def aggregate(what: Aggregate, mappings: Sequence[Mapping[Variable, Term]]) -> Term:
    """The aggregate over one mapping per iteration, in order of time. Raises ExpressionError for SPARQL's error."""
    assert what.arg is not None, "COUNT(*) runs over matches"
    values: list[Term | None] = []
    for mapping in mappings:
        try:
            values.append(evaluate(what.arg, mapping))
        except ExpressionError:
            values.append(None)
    return aggregate_values(what, values)


def aggregate_values(what: Aggregate, found: Sequence[Term | None]) -> Term:
    """The aggregate over values, None for an error.

    As SPARQL 1.1, section 18.5.1: COUNT counts the values without error, SAMPLE and FIRST take the first; an error in
    any value makes SUM, AVG, MIN, MAX and GROUP_CONCAT an error (ExpressionError). MIN and MAX take the first of those
    that stand first or last in the order of terms (engine/terms/order.py), blank nodes as they come here. FIRST and
    LAST are of that place.
    """
    if what.name in ("FIRST", "LAST"):
        value = found[0 if what.name == "FIRST" else -1] if found else None
        if value is None:
            raise ExpressionError(f"{what.name} of nothing")
        return value
    values = [value for value in found if value is not None]
    failed = len(values) < len(found)
    if what.distinct:
        values = list(dict.fromkeys(values))
    if what.name == "COUNT":
        return Literal(str(len(values)), datatype=_INTEGER)
    if what.name == "SAMPLE":
        if not values:
            raise ExpressionError("SAMPLE of nothing")
        return values[0]
    if failed:
        raise ExpressionError(f"an error among the values of {what.name}")
    return _fold(what, values)


def average(total: Term, count: int) -> Term:
    """A sum of so many values, divided."""
    if not count:
        return Literal("0", datatype=_INTEGER)
    return _apply("/", total, Literal(str(count), datatype=_INTEGER))


def _fold(what: Aggregate, values: list[Term]) -> Term:
    match what.name:
        case "SUM":
            return _sum(values)
        case "AVG":
            return average(_sum(values), len(values))
        case "MIN" | "MAX":
            if not values:
                raise ExpressionError(f"{what.name} of nothing")
            came = {value: number for number, value in reversed([*enumerate(values)])}

            def place(value: Term) -> Key:
                return (k.BLANK, came[value]) if isinstance(value, BlankNode) else order_key(value)

            return min(values, key=place) if what.name == "MIN" else max(values, key=place)
        case "GROUP_CONCAT":
            separator = " " if what.separator is None else what.separator
            x = Variable("x")
            texts = [evaluate(Call("STR", (x,)), {x: v}) for v in values]
            return Literal(separator.join(t.value for t in texts if isinstance(t, Literal)))
        case name:
            raise AssertionError(f"no aggregate {name}")


def _sum(values: list[Term]) -> Term:
    total: Term = Literal("0", datatype=_INTEGER)
    for value in values:
        total = _apply("+", total, value)
    return total


def _apply(operator: str, a: Term, b: Term) -> Term:
    x, y = Variable("x"), Variable("y")
    return evaluate(Call(operator, (x, y)), {x: a, y: b})
