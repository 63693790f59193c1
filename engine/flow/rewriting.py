"""Expressions with other expressions for some of their parts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from pyoxigraph import Variable

from oxiseq.grammar.algebra import Aggregate, Call, Expression, FunctionCall

UNBOUND: Final = Variable("unbound")
"""Replaces a variable that is no column; columns have other names (plan.column)."""


def replaced(expression: Expression, known: Mapping[Expression, Expression]) -> Expression:
    """With what `known` has for its parts, the largest first."""
    if (found := known.get(expression)) is not None:
        return found
    match expression:
        case Call(name, args):
            return Call(name, tuple(replaced(arg, known) for arg in args))
        case FunctionCall(function, args, distinct):
            return FunctionCall(function, tuple(replaced(arg, known) for arg in args), distinct)
        case Aggregate(name, arg, distinct, separator) if arg is not None:
            return Aggregate(name, replaced(arg, known), distinct, separator)
        case _:
            return expression


def placed(expression: Expression, columns: Mapping[Variable, Variable]) -> Expression:
    """With the plan's columns for variables; one that is no column is unbound."""
    match expression:
        case Variable():
            return columns.get(expression, UNBOUND)
        case Call(name, args):
            return Call(name, tuple(placed(arg, columns) for arg in args))
        case FunctionCall(function, args, distinct):
            return FunctionCall(function, tuple(placed(arg, columns) for arg in args), distinct)
        case _:
            return expression
