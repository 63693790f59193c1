"""How far a value is from a condition's bound, so that the nearest misses can be listed first."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final

from pyoxigraph import Literal, Variable

from oxiseq.engine.expressions.exact import ExpressionError, evaluate
from oxiseq.engine.terms.texts import Term
from oxiseq.grammar.algebra import Call, Expression

_COMPARISONS: Final = ("=", "<", ">", "<=", ">=")


def distance(condition: Expression, mapping: Mapping[Variable, Term]) -> float:
    """|a − b| of a comparison of numbers that does not hold; infinite for anything else. Of `&&` the largest of those
    |` the smallest.|that is known, of `||` the smallest.||` the smallest."""
    if isinstance(condition, Call) and condition.name in ("&&", "||"):
        each = [distance(arg, mapping) for arg in condition.args]
        if condition.name == "||":
            return min(each)
        return max((d for d in each if d < math.inf), default=math.inf)
    if not isinstance(condition, Call) or condition.name not in _COMPARISONS or len(condition.args) != 2:
        return math.inf
    try:
        a, b = (evaluate(arg, mapping) for arg in condition.args)
    except ExpressionError:
        return math.inf
    return abs(_number(a) - _number(b)) if isinstance(a, Literal) and isinstance(b, Literal) else math.inf


def _number(term: Literal) -> float:
    try:
        value = float(term.value)
    except ValueError:
        return math.inf
    return value if math.isfinite(value) else math.inf
