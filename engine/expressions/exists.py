"""EXISTS in stateful FILTERs: the value of a condition once each EXISTS in it is evaluated (semantics.md 2.2).

In the flow: the stack machine leaves such a condition undecided; each EXISTS is evaluated on the event's graph, with
the joined mapping's values in the place of their variables, and the exact evaluator does the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

from pyoxigraph import Literal, NamedNode, Variable

from oxiseq.engine.expressions.exact import holds
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.grammar.algebra import Call, Exists, Expression, FunctionCall

Ids: TypeAlias = Mapping[Variable, int]
"""Term ids by variable, 0 where unbound; and the number of the event's graph by `graph_of`."""

Ask: TypeAlias = Callable[[Exists, Ids], bool]
"""Whether an EXISTS, its NOT included, holds."""

_XSD_BOOLEAN: Final = NamedNode("http://www.w3.org/2001/XMLSchema#boolean")
_TRUTH: Final = {b: Literal("true" if b else "false", datatype=_XSD_BOOLEAN) for b in (False, True)}


def graph_of(gpm: str) -> Variable:
    """The column that says which event a GPM's row is of."""
    return Variable(f"__graph_{gpm}")


def holds_with(condition: Expression, ids: Ids, terms: TermDictionary, ask: Ask | None) -> bool:
    """Whether the condition holds for the mapping; `ask` answers its EXISTS."""
    if ask is not None:
        condition = _answered(condition, ids, ask)
    return holds(condition, {v: terms.term(i) for v, i in ids.items() if i and not v.value.startswith("__graph_")})


def _answered(e: Expression, ids: Ids, ask: Ask) -> Expression:
    match e:
        case Exists():
            return _TRUTH[ask(e, ids)]
        case Call(name, args):
            return Call(name, tuple(_answered(arg, ids, ask) for arg in args))
        case FunctionCall(function, args, distinct):
            return FunctionCall(function, tuple(_answered(arg, ids, ask) for arg in args), distinct)
        case _:
            return e
