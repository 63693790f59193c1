"""Functions that Oxigraph answers: everything but the operators.

In the flow: `exact` evaluates operators itself and calls this for `REGEX`, `STR`, `xsd:integer(...)` and
the like, with the arguments as terms. Answers of pure functions are kept.
"""

from __future__ import annotations

from functools import lru_cache
from hashlib import sha256
from typing import Final

from pyoxigraph import BlankNode, NamedNode, QuerySolutions, Store, Variable

from oxiseq.engine.expressions.times import FUNCTIONS
from oxiseq.engine.expressions.values import ExpressionError
from oxiseq.engine.terms.texts import Term, term_text
from oxiseq.grammar.algebra import Call, Expression
from oxiseq.grammar.functions import IRI_MAKERS
from oxiseq.grammar.scope import subexpressions

IMPURE: Final = frozenset({"RAND", "NOW", "UUID", "STRUUID", "BNODE"})
"""Functions whose answer is not fixed by their arguments."""


def is_pure(expression: Expression) -> bool:
    """Whether equal values of what it is made of give an equal value."""
    return not any(isinstance(e, Call) and e.name in IMPURE for e in subexpressions(expression))


_INFIX: Final = frozenset({"+", "-", "*", "/", "=", "!=", "<", ">", "<=", ">="})
_EMPTY: Final = Store()
_ANY_BLANK: Final = BlankNode("any")


def ask(name: str, args: tuple[Term, ...]) -> Term:
    """The value of a built-in function or an infix operator on terms. Raises ExpressionError."""
    if name in IMPURE or name == "TRIPLE":
        answer = _ask(name, args)
        if name == "BNODE" and args and isinstance(answer, BlankNode):  # no node has this label
            answer = BlankNode("made" + sha256(answer.value.encode()).hexdigest())
    else:  # no other function distinguishes blank nodes
        answer = _ask_once(name, tuple(_ANY_BLANK if isinstance(arg, BlankNode) else arg for arg in args))
    if answer is None:
        raise ExpressionError(name)
    return answer


def ask_iri(function: NamedNode, args: tuple[Term, ...]) -> Term:
    """The value of a cast or an extension function. Raises ExpressionError."""
    return ask(f"<{function.value}>", args)


def _ask(name: str, args: tuple[Term, ...]) -> Term | None:
    base = ""
    if name in IRI_MAKERS and len(args) == 2:
        base, args = f"BASE {args[1]} ", args[:1]
    names = [f"?a{i}" for i in range(len(args))]
    infix = name in _INFIX and len(args) == 2
    call = f" {name} ".join(names) if infix else f"{name}({', '.join(names)})"
    text = f"{base}SELECT {' '.join(names)} ({call} AS ?r) {{}}"
    given: dict[Variable, Term] = {Variable(f"a{i}"): arg for i, arg in enumerate(args)}
    if name == "=":  # Oxigraph compares terms, not values, where it substitutes both
        text, given = f"SELECT ({term_text(args[0])} = {term_text(args[1])} AS ?r) {{}}", {}
    try:
        solutions = _EMPTY.query(text, substitutions=given, custom_functions=FUNCTIONS)
    except RuntimeError:  # a function that Oxigraph does not know
        return None
    assert isinstance(solutions, QuerySolutions)  # it is a SELECT
    for solution in solutions:
        answer: Term | None = solution["r"]
        return answer
    return None


_ask_once = lru_cache(maxsize=1 << 16)(_ask)
