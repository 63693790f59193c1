"""Conditions compiled for the stack machine.

In the flow: Expression → **postfix code** → kernels/expressions/machine.py. Constants become term ids. What the
machine lacks (REGEX, STR, IF, casts...) becomes an operator without a value, so that the outcome is undecided where
it matters; a caller with memo tables may replace whole sub-expressions of one variable by a table look-up.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import numpy as np
from numpy.typing import NDArray
from pyoxigraph import BlankNode, Literal, NamedNode, Variable

from oxiseq.engine import kinds
from oxiseq.engine.kernels.expressions import arithmetic, machine
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.grammar.algebra import Aggregate, Call, Exists, Expression, FunctionCall, MatchFunction, Prev
from oxiseq.grammar.functions import MIRRORED
from oxiseq.grammar.records import dataclass

Slots = Mapping[Variable | Prev | MatchFunction | Aggregate, int] | Mapping[Variable, int]
"""The place of each leaf of an expression in the vector of term ids."""

MemoTable = Callable[[Expression], tuple[int, int] | None]
"""A condition → (memo table, slot), or None when it is not to be looked up in a table."""

_COMPARISONS: Final = {
    "=": machine.EQUAL,
    "!=": machine.UNEQUAL,
    "<": machine.BELOW,
    ">": machine.ABOVE,
    "<=": machine.AT_MOST,
    ">=": machine.AT_LEAST,
}
_ARITHMETIC: Final = {
    "+": arithmetic.ADD,
    "-": arithmetic.SUBTRACT,
    "*": arithmetic.MULTIPLY,
    "/": arithmetic.DIVIDE,
}
_CHAINED: Final = {"&&": machine.AND, "||": machine.OR, **_ARITHMETIC}
_SIMPLE: Final = {**_COMPARISONS, "SAMETERM": machine.SAME_TERM}
_UNARY: Final = {"!": machine.NOT, "NEGATE": machine.NEGATE, "PLUS": machine.PLUS}
_KINDS: Final = {
    "ISIRI": (kinds.IRI, kinds.IRI),
    "ISURI": (kinds.IRI, kinds.IRI),
    "ISBLANK": (kinds.BLANK, kinds.BLANK),
    "ISLITERAL": (kinds.STRING, kinds.OTHER),
}
_OPERATORS: Final = frozenset({*_CHAINED, *_SIMPLE, *_UNARY, *_KINDS, "IN", "NOT IN", "BOUND"})


@dataclass(frozen=True, slots=True)
class Program:
    """`code`: int32[n], position independent; run code[0:n] or, after concatenation, its range."""

    code: NDArray[np.int32]
    foreign: bool
    """It holds something that the machine lacks: expect UNDECIDED."""


def compile_program(
    expression: Expression, slots: Slots, terms: TermDictionary, memo: MemoTable | None = None
) -> Program:
    """Compile an expression. A leaf without a slot is unbound, hence an error. EXISTS cannot be compiled."""
    compiler = _Compiler(slots, terms, memo)
    compiler.expression(expression)
    code = np.array([machine.FRAME, max(compiler.deepest, 1), *compiler.code], np.int32)
    return Program(code, compiler.foreign)


def is_native(expression: Expression) -> bool:
    """Whether the machine has every operator in it."""
    match expression:
        case Call(name, args):
            return name in _OPERATORS and all(is_native(arg) for arg in args)
        case FunctionCall() | Exists():
            return False
        case _:
            return True


class _Compiler:
    def __init__(self, slots: Slots, terms: TermDictionary, memo: MemoTable | None) -> None:
        self.slots = slots
        self.terms = terms
        self.memo = memo
        self.code: list[int] = []
        self.foreign = False
        self.depth = 0
        self.deepest = 0

    def emit(self, op: int, *arguments: int, change: int) -> None:
        """Add an operator; `change` is what it adds to the stack."""
        self.code += [op, *arguments]
        self.depth += change
        self.deepest = max(self.deepest, self.depth)

    def expression(self, e: Expression) -> None:
        if self.memo is not None and (entry := self.memo(e)) is not None:
            self.emit(machine.MEMO, *entry, change=1)
        elif isinstance(e, (NamedNode, Literal)):
            self.emit(machine.CONSTANT, self.terms.constant(e), change=1)
        elif isinstance(e, Call):
            self.call(e)
        elif isinstance(e, (FunctionCall, BlankNode, Exists)):
            self.emit(machine.FOREIGN, 0, change=1)
            self.foreign = True
        else:
            slot = self.slot(e)
            if slot is None:
                self.emit(machine.CONSTANT, 0, change=1)
            else:
                self.emit(machine.VARIABLE, slot, change=1)

    def slot(self, leaf: Expression) -> int | None:
        return self.slots.get(leaf)  # type: ignore[arg-type]  # other expressions are in no such mapping

    def call(self, e: Call) -> None:
        name, args = e.name, e.args
        if name in _COMPARISONS and self.fuse(name, *args):
            return
        if name in _CHAINED:
            self.expression(args[0])
            for arg in args[1:]:
                self.expression(arg)
                self.emit(_CHAINED[name], change=-1)
        elif name in _SIMPLE:
            self.expression(args[0])
            self.expression(args[1])
            self.emit(_SIMPLE[name], change=-1)
        elif name in _UNARY:
            self.expression(args[0])
            self.emit(_UNARY[name], change=0)
        elif name in _KINDS:
            self.expression(args[0])
            self.emit(machine.OF_KIND, *_KINDS[name], change=0)
        elif name in ("IN", "NOT IN"):
            self.membership(args[0], args[1:], negated=name == "NOT IN")
        elif name == "BOUND":
            slot = self.slot(args[0])
            if slot is None:
                self.truth(False)
            else:
                self.emit(machine.BOUND, slot, change=1)
        else:
            self.emit(machine.FOREIGN, 0, change=1)
            self.foreign = True

    def fuse(self, name: str, left: Expression, right: Expression) -> bool:
        """`?v op number` and `number op ?v` as one operator."""
        if isinstance(left, Literal) and not isinstance(right, Literal):
            left, right, name = right, left, MIRRORED[name]
        if not isinstance(right, Literal) or isinstance(left, (Call, FunctionCall)):
            return False
        slot = self.slot(left)
        constant = self.terms.constant(right)
        if slot is None or not kinds.INTEGER <= int(self.terms.columns.kind[constant]) <= kinds.DOUBLE:
            return False
        self.emit(machine.FUSED, _COMPARISONS[name], slot, constant, change=1)
        return True

    def membership(self, tested: Expression, members: tuple[Expression, ...], *, negated: bool) -> None:
        """IN is a disjunction of `=`."""
        if not members:
            self.truth(False)
        for number, member in enumerate(members):
            self.expression(Call("=", (tested, member)))
            if number:
                self.emit(machine.OR, change=-1)
        if negated:
            self.emit(machine.NOT, change=0)

    def truth(self, outcome: bool) -> None:
        literal = Literal("true" if outcome else "false", datatype=NamedNode(_XSD_BOOLEAN))
        self.emit(machine.CONSTANT, self.terms.constant(literal), change=1)


_XSD_BOOLEAN: Final = "http://www.w3.org/2001/XMLSchema#boolean"
