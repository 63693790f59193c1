"""Terms in the store's normal form, and the operators of FILTER (semantics.md, section 7).

Every operator of the specification is written here in plain Python; any other function is asked of an
Oxigraph store with constants for its arguments. `ExpressionError` is SPARQL's type error.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date
from fractions import Fraction
from functools import cache
from typing import Any, TypeAlias

import numpy as np
from pyoxigraph import BlankNode, Literal, NamedNode, Quad, Store, Triple, Variable

from oxiseq.grammar.algebra import Aggregate, Call, Expression, FunctionCall, MatchFunction, Prev, Term
from reference.local_times import FUNCTIONS, amount, quotient, scaled

XSD = "http://www.w3.org/2001/XMLSchema#"
Special: TypeAlias = Callable[[Prev | Aggregate | MatchFunction], Term]
"""Answers the parts of an expression that a mapping alone cannot."""


class ExpressionError(Exception):
    """SPARQL's error: a FILTER takes it for false, an expression leaves its variable unbound."""


# --- normal form ----------------------------------------------------------------------------------


@cache
def normal(literal: Literal) -> Literal:
    """The store's normal form: what comes back after the literal was stored."""
    store = Store()
    place = NamedNode("urn:x")
    store.add(Quad(place, place, literal))
    found = next(iter(store)).object
    assert isinstance(found, Literal)
    return found


def normal_term(term: Term) -> Term:
    """`term`, normalised if it is a literal."""
    return normal(term) if isinstance(term, Literal) else term


def normal_triple(triple: Triple) -> Triple:
    return Triple(triple.subject, triple.predicate, normal_term(triple.object))


# --- values ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Number:
    """`kind` is integer, decimal (value: an exact Fraction), float (np.float32) or double (np.float64)."""

    kind: str
    value: Fraction | np.float32 | np.float64


@dataclass(frozen=True)
class Moment:
    """A dateTime: seconds since year 1 (UTC if `zoned`, else local)."""

    seconds: Fraction
    zoned: bool


@dataclass(frozen=True)
class Other:
    """A literal of another known datatype (date, duration, ...): compared by the store."""

    literal: Literal


@dataclass(frozen=True)
class Language:
    literal: Literal


@dataclass(frozen=True)
class Unknown:
    """An unknown datatype, or an ill-typed literal."""

    literal: Literal


@dataclass(frozen=True)
class Thing:
    """An IRI or a blank node."""

    term: NamedNode | BlankNode


Value: TypeAlias = Number | Moment | bool | str | Language | Other | Unknown | Thing

INTEGERS = frozenset(
    [
        *["integer", "nonPositiveInteger", "negativeInteger", "nonNegativeInteger", "positiveInteger"],
        *["long", "int", "short", "byte", "unsignedLong", "unsignedInt", "unsignedShort", "unsignedByte"],
    ]
)
OTHERS = frozenset(
    [
        *["date", "time", "gYear", "gYearMonth", "gMonth", "gMonthDay", "gDay"],
        *["duration", "dayTimeDuration", "yearMonthDuration"],
    ]
)
RANKS = ("integer", "decimal", "float", "double")
FLOATING = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?|[+-]?INF|NaN")
DATE_TIME = re.compile(r"(-?\d{4,})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d(?:\.\d+)?)(Z|[+-]\d\d:\d\d)?")


@cache
def value_of(term: Term) -> Value:
    """What `term` stands for."""
    if not isinstance(term, Literal):
        return Thing(term)
    if term.language is not None:
        return Language(term)
    datatype, text = term.datatype.value, term.value
    if not datatype.startswith(XSD):
        return Unknown(term)
    return _value(term, datatype[len(XSD) :], text)


def _value(literal: Literal, kind: str, text: str) -> Value:
    if kind == "string":
        return text
    if kind == "boolean" and text in ("true", "1", "false", "0"):
        return text in ("true", "1")
    if kind in INTEGERS and re.fullmatch(r"[+-]?\d+", text):
        return Number("integer", Fraction(int(text)))
    if kind == "decimal" and re.fullmatch(r"[+-]?(\d+(\.\d*)?|\.\d+)", text):
        return Number("decimal", Fraction(text))
    if kind == "double" and FLOATING.fullmatch(text):
        return Number("double", np.float64(text))
    if kind == "float" and FLOATING.fullmatch(text):
        return Number("float", _read_float(text))
    if kind in ("dateTime", "dateTimeStamp"):
        return _moment(text) or Unknown(literal)
    if kind in OTHERS and _well_typed(literal):
        return Other(literal)
    return Unknown(literal)


def _read_float(text: str) -> np.float32:
    if text.endswith(("INF", "NaN")):
        return np.float32(text)
    magnitude = to_float32(Fraction(text.lstrip("+-")))
    return -magnitude if text.startswith("-") else magnitude  # a Fraction knows no -0


def _moment(text: str) -> Moment | None:
    found = DATE_TIME.fullmatch(text)
    if not found:
        return None
    year, month, day, hour, minute = (int(found[i]) for i in range(1, 6))
    cycles = (year - 1) // 400  # dates repeat every 400 years, and Python's begin at year 1
    try:
        days = date(year - 400 * cycles, month, day).toordinal() + cycles * 146_097
    except ValueError:
        return None
    seconds = Fraction(days * 86_400 + hour * 3_600 + minute * 60) + Fraction(found[6])
    zone = found[7]
    if zone and zone != "Z":
        shift = (int(zone[1:3]) * 60 + int(zone[4:])) * 60
        seconds += -shift if zone[0] == "+" else shift
    return Moment(seconds, zone is not None)


def to_float32(exact: Fraction) -> np.float32:
    """The float nearest to `exact`, ties to even: rounded once, not by way of a double."""
    with np.errstate(over="ignore"):
        try:
            guess = np.float32(float(exact))
        except OverflowError:
            return np.float32("inf") if exact > 0 else np.float32("-inf")
        if not np.isfinite(guess):
            return guess
        near = [guess, np.nextafter(guess, np.float32("inf")), np.nextafter(guess, np.float32("-inf"))]
    finite = [f for f in near if np.isfinite(f)]
    best = min(abs(Fraction(float(f)) - exact) for f in finite)
    closest = [f for f in finite if abs(Fraction(float(f)) - exact) == best]
    return min(closest, key=lambda f: int(f.view(np.uint32)) & 1)


def to_float64(exact: Fraction) -> np.float64:
    try:
        return np.float64(float(exact))
    except OverflowError:
        return np.float64("inf") if exact > 0 else np.float64("-inf")


def promote(a: Number, b: Number) -> tuple[str, Any, Any]:
    """XPath promotion: both values in the higher of the two types, and that type."""
    kind = max(a.kind, b.kind, key=RANKS.index)
    return kind, _as(a, kind), _as(b, kind)


def _as(number: Number, kind: str) -> Fraction | np.float32 | np.float64:
    if kind == "double":
        return to_float64(number.value) if isinstance(number.value, Fraction) else np.float64(number.value)
    if kind == "float":
        return to_float32(number.value) if isinstance(number.value, Fraction) else number.value
    return number.value


# --- comparisons ----------------------------------------------------------------------------------


def equal(a: Term, b: Term) -> bool:
    """`=`: of values; of terms where there is no value."""
    if not isinstance(a, Literal) or not isinstance(b, Literal):
        return a == b
    x, y = value_of(a), value_of(b)
    if isinstance(x, Number) and isinstance(y, Number):
        _, left, right = promote(x, y)
        return bool(left == right)
    if a == b:
        return True
    if isinstance(x, Language) or isinstance(y, Language):
        return False  # it equals only itself, whatever the other is
    if isinstance(x, Unknown) or isinstance(y, Unknown):
        raise ExpressionError("unknown values that are not the same term")
    if isinstance(x, Moment) and isinstance(y, Moment):
        return x.zoned == y.zoned and x.seconds == y.seconds
    if isinstance(x, Other) and isinstance(y, Other):
        return _other_equal(x, y)
    return type(x) is type(y) and x == y


def _other_equal(x: Other, y: Other) -> bool:
    if "uration" not in x.literal.datatype.value and x.literal.datatype != y.literal.datatype:
        return False
    try:
        return truth_of(ask_store("=", (x.literal, y.literal)))
    except ExpressionError:
        return False


def less(a: Term, b: Term) -> bool:
    """`<`: an error where there is no order."""
    x, y = value_of(a), value_of(b)
    if isinstance(x, Number) and isinstance(y, Number):
        _, left, right = promote(x, y)
        return bool(left < right)
    if isinstance(x, bool) and isinstance(y, bool):
        return x < y
    if isinstance(x, str) and isinstance(y, str):
        return x < y
    if isinstance(x, Moment) and isinstance(y, Moment):
        return _earlier(x, y)
    if isinstance(x, Other) and isinstance(y, Other):
        return truth_of(ask_store("<", (x.literal, y.literal)))
    raise ExpressionError("no order between these")


def _earlier(x: Moment, y: Moment) -> bool:
    if x.zoned != y.zoned and abs(x.seconds - y.seconds) <= 14 * 3_600:
        raise ExpressionError("a zoned and a local time that are too close")
    return x.seconds < y.seconds


def less_or_equal(a: Term, b: Term) -> bool:
    """`<=`: `<` or `=` (never for NaN); an error where `<` is one."""
    return less(a, b) or equal(a, b)


# --- arithmetic -----------------------------------------------------------------------------------


def arithmetic(name: str, a: Term, b: Term) -> Literal:
    """`+ - * /` of two numbers, `* /` of durations; others as the store has them."""
    x, y = value_of(a), value_of(b)
    if name in ("*", "/") and (amount(a) is not None or amount(b) is not None):
        return _of_durations(name, a, b)
    if not isinstance(x, Number) or not isinstance(y, Number):
        return _checked_literal(ask_store(name, (a, b)))
    kind, left, right = promote(x, y)
    if isinstance(left, Fraction) and isinstance(right, Fraction):
        return _exact(name, kind, left, right)
    with np.errstate(all="ignore"):
        match name:
            case "+":
                result = left + right
            case "-":
                result = left - right
            case "*":
                result = left * right
            case _:
                result = left / right
    return number_literal(Number(kind, result))


def _of_durations(name: str, a: Term, b: Term) -> Literal:
    if name == "*" and amount(a) is None:
        a, b = b, a
    by = value_of(b)
    if name == "/" and amount(b) is not None:
        found = quotient(a, b)
        made = None if found is None else number_literal(Number("decimal", found))
    elif not isinstance(by, Number) or not isinstance(by.value, Fraction) or (name == "/" and by.value == 0):
        made = None
    else:
        made = scaled(_checked_literal(a), by.value if name == "*" else 1 / by.value)
    if made is None:
        raise ExpressionError("durations that have no product or quotient")
    return normal(made)


def _exact(name: str, kind: str, a: Fraction, b: Fraction) -> Literal:
    if name == "+":
        return number_literal(Number(kind, a + b))
    if name == "-":
        return number_literal(Number(kind, a - b))
    if name == "*":
        return number_literal(Number(kind, a * b))
    if b == 0:
        raise ExpressionError("division by zero")
    shifted = a / b * 10**18  # 18 fractional digits, truncated towards zero
    return number_literal(Number("decimal", Fraction(int(shifted), 10**18)))


def number_literal(number: Number) -> Literal:
    """The literal of a number, in normal form."""
    datatype = NamedNode(XSD + number.kind)
    value = number.value
    if isinstance(value, Fraction):
        return normal(Literal(decimal_text(value), datatype=datatype))
    if np.isnan(value):
        text = "NaN"
    elif np.isinf(value):
        text = "INF" if value > 0 else "-INF"
    else:
        text = str(value)
    return normal(Literal(text, datatype=datatype))


def decimal_text(value: Fraction) -> str:
    """A fraction whose denominator divides a power of ten, in full."""
    digits = 0
    while (value * 10**digits).denominator != 1:
        digits += 1
    whole = str(abs(int(value * 10**digits))).rjust(digits + 1, "0")
    sign = "-" if value < 0 else ""
    return sign + (whole[:-digits] + "." + whole[-digits:] if digits else whole)


def boolean(value: bool) -> Literal:
    return Literal("true" if value else "false", datatype=NamedNode(XSD + "boolean"))


def truth_of(term: Term) -> bool:
    """The effective boolean value."""
    value = value_of(term)
    if isinstance(value, bool):
        return value
    if isinstance(value, str):
        return value != ""
    if isinstance(value, Number):
        return bool(value.value == value.value and value.value != 0)
    raise ExpressionError("no effective boolean value")


# --- expressions ----------------------------------------------------------------------------------


def holds(condition: Expression, mapping: Mapping[Variable, Term], special: Special | None = None) -> bool:
    """Whether a FILTER passes: an error is false."""
    try:
        return truth_of(evaluate(condition, mapping, special))
    except ExpressionError:
        return False


def evaluate(expression: Expression, mapping: Mapping[Variable, Term], special: Special | None = None) -> Term:
    """The expression's value under `mapping` (variables to normal terms)."""
    if isinstance(expression, Variable):
        if expression not in mapping:
            raise ExpressionError(f"{expression} is unbound")
        return mapping[expression]
    if isinstance(expression, Literal):
        return normal(expression)
    if isinstance(expression, NamedNode):
        return expression
    if isinstance(expression, Call):
        return _call(expression, mapping, special)
    if isinstance(expression, FunctionCall):
        args = tuple(evaluate(a, mapping, special) for a in expression.args)
        return ask_store(f"<{expression.function.value}>", args)
    if special is None or not isinstance(expression, Prev | Aggregate | MatchFunction):
        raise AssertionError(f"{type(expression).__name__} has no place here")
    return special(expression)


def _call(call: Call, mapping: Mapping[Variable, Term], special: Special | None) -> Term:
    def value(index: int) -> Term:
        return evaluate(call.args[index], mapping, special)

    def truth(index: int) -> bool | None:
        try:
            return truth_of(value(index))
        except ExpressionError:
            return None

    match call.name:
        case "&&" | "||":
            return _logic(call.name, [truth(i) for i in range(len(call.args))])
        case "!":
            return boolean(not truth_of(value(0)))
        case "=":
            return boolean(equal(value(0), value(1)))
        case "!=":
            return boolean(not equal(value(0), value(1)))
        case "<":
            return boolean(less(value(0), value(1)))
        case ">":
            return boolean(less(value(1), value(0)))
        case "<=":
            return boolean(less_or_equal(value(0), value(1)))
        case ">=":
            return boolean(less_or_equal(value(1), value(0)))
        case "+" | "-" | "*" | "/":
            return arithmetic(call.name, value(0), value(1))
        case "NEGATE" | "PLUS":
            return _signed(call.name, value(0))
        case "IN" | "NOT IN":
            return _member(call, value)
        case "BOUND":
            return boolean(call.args[0] in mapping)
        case "IF":
            return value(1) if truth_of(value(0)) else value(2)
        case "COALESCE":
            return _first_without_error(call, value)
        case "SAMETERM":
            return boolean(value(0) == value(1))
        case name:
            return ask_store(name, tuple(value(i) for i in range(len(call.args))))


def _logic(name: str, sides: list[bool | None]) -> Literal:
    decisive = name == "||"
    if decisive in sides:
        return boolean(decisive)
    if None in sides:
        raise ExpressionError(f"{name} of an error")
    return boolean(not decisive)


def _signed(name: str, term: Term) -> Literal:
    value = value_of(term)
    if not isinstance(value, Number):
        raise ExpressionError("a sign before something that is no number")
    return number_literal(Number(value.kind, -value.value) if name == "NEGATE" else value)


def _member(call: Call, value: Callable[[int], Term]) -> Literal:
    tested, failed = value(0), False
    for index in range(1, len(call.args)):
        try:
            if equal(tested, value(index)):
                return boolean(call.name == "IN")
        except ExpressionError:
            failed = True
    if failed:
        raise ExpressionError("IN met an error")
    return boolean(call.name != "IN")


def _first_without_error(call: Call, value: Callable[[int], Term]) -> Term:
    for index in range(len(call.args)):
        try:
            return value(index)
        except ExpressionError:
            continue
    raise ExpressionError("COALESCE of errors only")


def _checked_literal(term: Term) -> Literal:
    if not isinstance(term, Literal):
        raise ExpressionError("not a literal")
    return term


# --- what the store is asked ----------------------------------------------------------------------

OPERATORS = frozenset(["=", "<", "+", "-", "*", "/"])


@cache
def ask_store(name: str, args: tuple[Term, ...]) -> Term:
    """The value of a function of constants, as Oxigraph computes it."""
    names = [f"?a{i}" for i in range(len(args))]
    text = f"({names[0]} {name} {names[1]})" if name in OPERATORS else f"{name}({', '.join(names)})"
    given = {Variable(n[1:]): a for n, a in zip(names, args, strict=True)}
    query = f"SELECT ?r {' '.join(names)} WHERE {{ BIND({text} AS ?r) }}"
    if name == "=":  # Oxigraph compares terms, not values, where it substitutes both
        query, given = f"SELECT ?r WHERE {{ BIND({args[0]} = {args[1]} AS ?r) }}", {}
    for row in Store().query(query, substitutions=given, custom_functions=FUNCTIONS):
        found = row["r"]
        if found is not None:
            return normal_term(found)
    raise ExpressionError(f"{name} has no value here")


def _well_typed(literal: Literal) -> bool:
    try:
        ask_store(f"<{literal.datatype.value}>", (Literal(literal.value),))
    except ExpressionError:
        return False
    return True
