"""Expressions with other expressions for some of their parts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from pyoxigraph import Variable

from oxiseq.grammar.algebra import Aggregate, Call, Expression, FunctionCall

UNBOUND: Final = Variable("unbound")
"""Replaces a variable that is no column; columns have other names (plan.column)."""


def rewritten(expression: Expression, change: Callable[[Expression], Expression | None]) -> Expression:
    """With what `change` has for its parts, the largest first; None: nothing."""
    if (found := change(expression)) is not None:
        return found
    match expression:
        case Call(name, args):
            return Call(name, tuple(rewritten(arg, change) for arg in args))
        case FunctionCall(function, args, distinct):
            return FunctionCall(function, tuple(rewritten(arg, change) for arg in args), distinct)
        case Aggregate(name, arg, distinct, separator) if arg is not None:
            return Aggregate(name, rewritten(arg, change), distinct, separator)
        case _:
            return expression


def replaced(expression: Expression, known: Mapping[Expression, Expression]) -> Expression:
    """With what `known` has for its parts."""
    return rewritten(expression, known.get)


def placed(expression: Expression, columns: Mapping[Variable, Variable]) -> Expression:
    """With the plan's columns for variables; one that is no column is unbound."""
    return rewritten(expression, lambda e: columns.get(e, UNBOUND) if isinstance(e, Variable) else None)
