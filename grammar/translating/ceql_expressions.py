"""Predicates on the way from CEQL to SPAseq: attributes become variables; and what cannot hold without them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import field
from typing import Final

from pyoxigraph import Variable

from oxiseq.grammar.algebra import Call, Expression
from oxiseq.grammar.records import dataclass

JOINED: Final = "?"
"""The call of a variable of SPAseq, among variables that are attributes."""


@dataclass
class Names:
    """Names that are taken."""

    taken: set[str] = field(default_factory=set)

    def fresh(self, wanted: str) -> str:
        """`wanted`, with a number if it is taken."""
        name, number = wanted, 1
        while name in self.taken:
            number += 1
            name = f"{wanted}{number}"
        self.taken.add(name)
        return name


def renamed(expression: Expression, values: dict[Variable, Variable]) -> Expression:
    """With other variables."""
    match expression:
        case Variable():
            return values.get(expression, expression)
        case Call("?", (variable,)):
            return variable
        case Call(name, args):
            return Call(name, tuple(renamed(a, values) for a in args))
        case _:
            return expression


def needs(expression: Expression, joined: Variable) -> bool:
    """Whether a predicate cannot hold without this variable of SPAseq."""
    own = dict.fromkeys(own_attributes(expression), Variable("0"))
    return joined in needed_by(renamed(expression, own), True)


def own_attributes(expression: Expression) -> frozenset[Variable]:
    """The attributes of the event itself."""
    match expression:
        case Variable():
            return frozenset([expression])
        case Call(name, args) if name != JOINED:
            return frozenset(v for each in args for v in own_attributes(each))
        case _:
            return frozenset()


def needed_by(expression: Expression, truth: bool) -> frozenset[Variable]:
    """The variables without which `expression` cannot be `truth`: unbound they make it an error or the contrary."""
    match expression:
        case Call("!", (inner,)):
            return needed_by(inner, not truth)
        case Call("&&" | "||" as name, args):
            return _merged([needed_by(a, truth) for a in args], every=(name == "&&") is truth)
        case _:
            return _errors(expression)


def _errors(expression: Expression) -> frozenset[Variable]:
    """The variables without which `expression` is an error."""
    match expression:
        case Variable():
            return frozenset([expression])
        case Call(name, args) if name != JOINED:
            return _merged([_errors(a) for a in args], every=name not in ("&&", "||"))
        case _:
            return frozenset()


def _merged(sets: Sequence[Iterable[Variable]], every: bool) -> frozenset[Variable]:
    """Those of all operands, or those that all have."""
    first, *rest = (frozenset(s) for s in sets)
    return first.union(*rest) if every else first.intersection(*rest)
