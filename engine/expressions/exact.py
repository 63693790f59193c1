"""The exact evaluator: one expression on one mapping, as semantics.md, section 7 says.

In the flow: the judge of everything that the stack machine leaves undecided, of what SELECT computes,
and of tests. About 5 µs for an operator; functions are evaluated by Oxigraph (30 µs, cached).

Exact among integers and decimals of any size; with a float or double the other side is promoted to it;
errors are `ExpressionError`; `&&` and `||` follow SPARQL's three-valued logic.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any, Final, TypeAlias

from pyoxigraph import BlankNode, Literal, NamedNode, Triple, Variable

from oxiseq.engine import kinds
from oxiseq.engine.expressions.functions import ask, ask_iri
from oxiseq.engine.expressions.times import of_durations
from oxiseq.engine.expressions.values import (
    NUMERIC,
    Exact,
    ExpressionError,
    Value,
    boolean,
    promoted,
    read,
    term_of,
    to_float,
)
from oxiseq.engine.terms.texts import Term
from oxiseq.grammar.algebra import Aggregate, Call, Expression, FunctionCall, MatchFunction, Prev

__all__ = ["ExpressionError", "evaluate", "holds"]

Leaf: TypeAlias = Variable | Prev | MatchFunction | Aggregate
Bindings: TypeAlias = Mapping[Leaf, Term] | Mapping[Variable, Term]
"""What the leaves of an expression stand for; a leaf that is absent is unbound, hence an error."""

FOURTEEN_HOURS: Final = 14 * 3600 * 1_000_000
DIVISION_DIGITS: Final = 18
"""Fractional digits of a decimal quotient; the rest is cut off, as in the store."""


def evaluate(expression: Expression, mapping: Bindings) -> Term:
    """The value of `expression` as a term in the store's normal form.

    `mapping` gives the terms of variables, and of `PREV(?v)`, match functions and aggregates where they
    occur. Raises ExpressionError for SPARQL's error, an unbound variable included.
    """
    return term_of(_value(expression, mapping))


def holds(expression: Expression, mapping: Bindings) -> bool:
    """Whether a FILTER with this condition keeps the mapping: its EBV; an error is false."""
    try:
        return truth(_value(expression, mapping))
    except ExpressionError:
        return False


def truth(value: Value) -> bool:
    """The effective boolean value (SPARQL 1.1, 17.2.2; an ill-typed literal is an error)."""
    if value.kind == kinds.BOOLEAN:
        return bool(value.number)
    if value.kind in NUMERIC:
        return value.number != 0 and not math.isnan(value.number)
    if value.kind == kinds.STRING:
        assert isinstance(value.term, Literal)
        return value.term.value != ""
    raise ExpressionError("no effective boolean value")


def _value(e: Expression, mapping: Bindings) -> Value:
    if isinstance(e, (NamedNode, Literal, BlankNode)):
        return read(e)
    if isinstance(e, Call):
        special = _SPECIAL.get(e.name)
        if special is not None:
            return special(e.args, mapping)
        return _apply(e.name, tuple(_value(arg, mapping) for arg in e.args))
    if isinstance(e, FunctionCall):
        return read(ask_iri(e.function, tuple(term_of(_value(arg, mapping)) for arg in e.args)))
    term = mapping.get(e)  # type: ignore[arg-type]  # an EXISTS is in no mapping either: error
    if term is None:
        raise ExpressionError(f"unbound: {e}")
    return read(term)


def _apply(name: str, args: tuple[Value, ...]) -> Value:
    binary = _BINARY.get(name)
    if binary is not None:
        value = args[0]
        for other in args[1:]:
            value = binary(name, value, other)
        return value
    if name in ("NEGATE", "PLUS"):
        return _signed(name, args[0])
    if name == "SAMETERM":
        return boolean(term_of(args[0]) == term_of(args[1]))
    return read(ask(name, tuple(term_of(arg) for arg in args)))


# --- logic ----------------------------------------------------------------------------------------


def _outcome(e: Expression, mapping: Bindings) -> bool | None:
    """True, False, or None for an error."""
    try:
        return truth(_value(e, mapping))
    except ExpressionError:
        return None


def _connect(args: tuple[Expression, ...], mapping: Bindings, decides: bool) -> Value:
    """`&&` (decided by a false operand) and `||` (by a true one)."""
    error = False
    for arg in args:
        outcome = _outcome(arg, mapping)
        if outcome is decides:
            return boolean(decides)
        error = error or outcome is None
    if error:
        raise ExpressionError("an operand of && or || is an error")
    return boolean(not decides)


def _and(args: tuple[Expression, ...], mapping: Bindings) -> Value:
    return _connect(args, mapping, False)


def _or(args: tuple[Expression, ...], mapping: Bindings) -> Value:
    return _connect(args, mapping, True)


def _not(args: tuple[Expression, ...], mapping: Bindings) -> Value:
    return boolean(not truth(_value(args[0], mapping)))


def _in(args: tuple[Expression, ...], mapping: Bindings) -> Value:
    return _or(tuple(Call("=", (args[0], member)) for member in args[1:]), mapping)


def _not_in(args: tuple[Expression, ...], mapping: Bindings) -> Value:
    return boolean(not truth(_in(args, mapping)))


def _bound(args: tuple[Expression, ...], mapping: Bindings) -> Value:
    return boolean(mapping.get(args[0]) is not None)  # type: ignore[arg-type]  # the grammar gives a leaf


def _if(args: tuple[Expression, ...], mapping: Bindings) -> Value:
    return _value(args[1] if truth(_value(args[0], mapping)) else args[2], mapping)


def _coalesce(args: tuple[Expression, ...], mapping: Bindings) -> Value:
    for arg in args:
        try:
            return _value(arg, mapping)
        except ExpressionError:
            continue
    raise ExpressionError("COALESCE found no value")


_SPECIAL: Final[dict[str, Callable[[tuple[Expression, ...], Bindings], Value]]] = {
    "&&": _and,
    "||": _or,
    "!": _not,
    "IN": _in,
    "NOT IN": _not_in,
    "BOUND": _bound,
    "IF": _if,
    "COALESCE": _coalesce,
}
"""Forms that do not just evaluate their arguments."""

# --- comparison -----------------------------------------------------------------------------------

_ORDERINGS: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "<": operator.lt,
    ">": operator.gt,
    "<=": operator.le,
    ">=": operator.ge,
}


def _equal(name: str, a: Value, b: Value) -> Value:
    return boolean(equal(a, b) is (name == "="))


def equal(a: Value, b: Value) -> bool:
    """`a = b`; raises ExpressionError where it has no answer."""
    if a.kind in NUMERIC and b.kind in NUMERIC:
        _, x, y = promoted(a, b)
        return x == y
    if a.kind == b.kind == kinds.DATETIME:
        return a.zoned == b.zoned and a.number == b.number
    if a.term is not None and a.term == b.term:
        return True
    pair = {a.kind, b.kind}
    if pair & {kinds.IRI, kinds.BLANK, kinds.LANGSTRING}:
        return False
    if isinstance(a.term, Triple) != isinstance(b.term, Triple):
        return False
    if kinds.UNKNOWN in pair:
        raise ExpressionError("a literal of an unknown datatype, or an ill-typed one, equals only itself")
    if isinstance(a.term, Triple) and isinstance(b.term, Triple):
        return _equal_parts(a.term, b.term)
    if pair == {kinds.OTHER}:
        return truth(read(ask("=", (term_of(a), term_of(b)))))
    return False


def _equal_parts(a: Triple, b: Triple) -> bool:
    """Whether all parts are equal. Raises ExpressionError where a part has no answer and none differs."""
    error: ExpressionError | None = None
    for one, other in ((a.subject, b.subject), (a.predicate, b.predicate), (a.object, b.object)):
        try:
            if not equal(read(one), read(other)):
                return False
        except ExpressionError as unknown:
            error = unknown
    if error is not None:
        raise error
    return True


def _order(name: str, a: Value, b: Value) -> Value:
    if a.kind in NUMERIC and b.kind in NUMERIC:
        _, x, y = promoted(a, b)
        return boolean(_ORDERINGS[name](x, y))
    if a.kind != b.kind:
        raise ExpressionError("values of these kinds have no order")
    if a.kind == kinds.BOOLEAN:
        return boolean(_ORDERINGS[name](a.number, b.number))
    if a.kind == kinds.STRING:
        assert isinstance(a.term, Literal) and isinstance(b.term, Literal)
        return boolean(_ORDERINGS[name](a.term.value, b.term.value))
    if a.kind == kinds.DATETIME:
        return boolean(_ORDERINGS[name](*_instants(a, b)))
    if a.kind == kinds.OTHER:
        return read(ask(name, (term_of(a), term_of(b))))
    raise ExpressionError("values of this kind have no order")


def _instants(a: Value, b: Value) -> tuple[Exact, Exact]:
    """Two dateTimes as numbers; XSD's partial order: a local one may be 14 hours off either way."""
    apart = a.number - b.number
    if a.zoned != b.zoned and -FOURTEEN_HOURS <= apart <= FOURTEEN_HOURS:
        raise ExpressionError("a zoned and a local dateTime within 14 hours do not compare")
    return a.number, b.number


# --- arithmetic -----------------------------------------------------------------------------------


def _arithmetic(name: str, a: Value, b: Value) -> Value:
    if a.kind in NUMERIC and b.kind in NUMERIC:
        kind, x, y = promoted(a, b)
        if isinstance(x, float) and isinstance(y, float):
            return Value(kind, _float_arithmetic(name, kind, x, y))
        if name == "/":
            return Value(kinds.DECIMAL, _quotient(Fraction(x), Fraction(y)))
        return Value(kind, x + y if name == "+" else x - y if name == "-" else x * y)
    temporal = {kinds.DATETIME, kinds.OTHER}
    if {a.kind, b.kind} & temporal and {a.kind, b.kind} <= temporal | NUMERIC:
        return _of_times(name, term_of(a), term_of(b))
    raise ExpressionError("arithmetic on something that is not a number")


def _of_times(name: str, a: Term, b: Term) -> Value:
    """Of dates, times and durations, as Oxigraph has them; it adds a duration to a date and no date to a duration, and
    neither multiplies nor divides durations."""
    if (made := of_durations(name, a, b)) is not None:
        return read(made)
    try:
        return read(ask(name, (a, b)))
    except ExpressionError:
        if name != "+":
            raise
        return read(ask(name, (b, a)))


def _float_arithmetic(name: str, kind: int, x: float, y: float) -> float:
    """IEEE arithmetic. float32 goes by way of double: rounding twice is exact there for + - * /."""
    result = _FLOAT_OPERATIONS[name](x, y)
    return to_float(result) if kind == kinds.FLOAT else result


def _float_quotient(x: float, y: float) -> float:
    if y != 0:
        return x / y
    if x == 0 or math.isnan(x):
        return math.nan
    return math.copysign(math.inf, x) * math.copysign(1.0, y)


_FLOAT_OPERATIONS: Final[dict[str, Callable[[float, float], float]]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": _float_quotient,
}


def _quotient(x: Fraction, y: Fraction) -> Fraction:
    """x / y with 18 fractional digits, cut off towards zero."""
    if y == 0:
        raise ExpressionError("division by zero")
    return Fraction(math.trunc(x / y * 10**DIVISION_DIGITS), 10**DIVISION_DIGITS)


def _signed(name: str, a: Value) -> Value:
    if a.kind in NUMERIC:
        return Value(a.kind, -a.number if name == "NEGATE" else a.number)
    if a.kind == kinds.OTHER:  # a duration
        return read(ask(_SIGNS[name], (term_of(a),)))
    raise ExpressionError("a sign before something that is not a number")


_SIGNS: Final = {"NEGATE": "-", "PLUS": "+"}
_BINARY: Final[dict[str, Callable[[str, Value, Value], Value]]] = {
    **dict.fromkeys(("=", "!="), _equal),
    **dict.fromkeys(_ORDERINGS, _order),
    **dict.fromkeys(("+", "-", "*", "/"), _arithmetic),
}
