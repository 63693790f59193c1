"""A GPM's own filters, and rows that the machine left undecided.

Where it stands: kernel rows with a flag → **exact answers** → rows. Every top-level conjunct is a `Condition`.
A conjunct over one variable whose functions the machine lacks has a memo table: one outcome per term id,
filled by one store query for all terms that a batch asks about (matching.md, section 5).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray
from pyoxigraph import Literal, NamedNode, QuerySolutions, Store, Variable

from oxiseq.engine import kinds
from oxiseq.engine.expressions.exact import ExpressionError, evaluate, truth
from oxiseq.engine.expressions.functions import IMPURE
from oxiseq.engine.expressions.program import compile_program, is_native
from oxiseq.engine.expressions.values import read
from oxiseq.engine.kernels.expressions.machine import TRUE, UNDECIDED, truth_column
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.engine.terms.texts import Term
from oxiseq.engine.terms.value import literal_value
from oxiseq.grammar.algebra import Call, Expression, FunctionCall
from oxiseq.grammar.render import render_expression
from oxiseq.grammar.scope import expression_variables, subexpressions

NOT_KNOWN: Final = 0
MEMO_FALSE: Final = 1
MEMO_TRUE: Final = 2
MEMO_ERROR: Final = 3

_EMPTY: Final = Store()
_CHUNK: Final = 20_000
"""Terms of one store query."""


@dataclass(frozen=True, slots=True)
class Condition:
    """One conjunct: its variables in a fixed order; whether it depends on them alone (no RAND, NOW...)."""

    expression: Expression
    variables: tuple[Variable, ...]
    pure: bool

    @property
    def wants_memo(self) -> bool:
        """Whether a table per term id pays: one variable, and something that the machine cannot do."""
        return self.pure and len(self.variables) == 1 and not _machine_decides(self.expression)


def condition(expression: Expression) -> Condition:
    """A conjunct of a FILTER, without EXISTS."""
    variables = tuple(sorted(expression_variables(expression), key=lambda v: v.value))
    names = {e.name for e in subexpressions(expression) if isinstance(e, Call)}
    return Condition(expression, variables, not names & IMPURE)


def _machine_decides(expression: Expression) -> bool:
    return is_native(expression) and not any(
        isinstance(e, Call) and e.name in ("<", ">", "<=", ">=") and any(_orders_text(a) for a in e.args)
        for e in subexpressions(expression)
    )


def _orders_text(operand: Expression) -> bool:
    return isinstance(operand, Literal) and literal_value(operand).kind in (kinds.STRING, kinds.OTHER)


class ConditionMemo:
    """Outcomes by term id, a table per condition: u8[tables, terms], 0 where nobody has asked yet."""

    def __init__(self, conditions: Sequence[Condition], terms: TermDictionary) -> None:
        self._conditions = [_Batched(c) for c in conditions]
        self._terms = terms
        self.table = np.zeros((max(len(conditions), 1), 1), np.uint8)
        self._generation = terms.generation

    def reserve(self) -> NDArray[np.uint8]:
        """The tables, long enough for every term id; empty again when ids have been freed."""
        if self._generation != self._terms.generation:
            self.table[:] = NOT_KNOWN
            self._generation = self._terms.generation
        needed = len(self._terms.columns.kind) if self._conditions else 1
        if self.table.shape[1] < needed:
            grown = np.zeros((self.table.shape[0], needed), np.uint8)
            grown[:, : self.table.shape[1]] = self.table
            self.table = grown
        return self.table

    def outcomes(self, table: int, ids: NDArray[np.integer]) -> NDArray[np.uint8]:
        """Condition `table` on many term ids (above 0); asks for what is not known."""
        self.reserve()
        row = self.table[table]
        missing = np.unique(ids[row[ids] == NOT_KNOWN])
        if len(missing):
            terms = [self._terms.term(int(i)) for i in missing]
            row[missing] = self._conditions[table].ask(terms)
        outcomes: NDArray[np.uint8] = row[ids]
        return outcomes


class _Batched:
    """A condition whose functions are asked for many terms at once; its operators stay with `exact`."""

    def __init__(self, condition: Condition) -> None:
        self.variable = condition.variables[0]
        self.calls: dict[Expression, Variable] = {}
        self.expression = self._lift(condition.expression)

    def _lift(self, e: Expression) -> Expression:
        """Replace each function call that holds no operator by a variable."""
        if isinstance(e, (Call, FunctionCall)):
            if expression_variables(e) and _only_functions(e):
                return self.calls.setdefault(e, Variable(f"f{len(self.calls)}_{self.variable.value}"))
            args = tuple(self._lift(arg) for arg in e.args)
            return Call(e.name, args) if isinstance(e, Call) else FunctionCall(e.function, args)
        return e

    def ask(self, terms: Sequence[Term]) -> list[int]:
        """The outcome for each term."""
        answers: list[dict[Variable, Term]] = [{self.variable: term} for term in terms]
        if self.calls:
            for start in range(0, len(terms), _CHUNK):
                self._ask_calls(answers[start : start + _CHUNK])
        return [self._outcome(mapping) for mapping in answers]

    def _ask_calls(self, answers: list[dict[Variable, Term]]) -> None:
        rows = []
        for i, mapping in enumerate(answers):
            term = mapping[self.variable]
            if isinstance(term, (NamedNode, Literal)):
                rows.append(f"({i} {term})")
            else:  # VALUES takes no blank nodes
                self._ask_one(mapping)
        binds = " ".join(f"BIND({render_expression(e)} AS ?{v.value})" for e, v in self.calls.items())
        text = f"SELECT * {{ VALUES (?oxiseq_row ?{self.variable.value}) {{ {' '.join(rows)} }} {binds} }}"
        try:
            solutions = _EMPTY.query(text)
        except RuntimeError:  # a function that Oxigraph does not know: an error for every term
            return
        assert isinstance(solutions, QuerySolutions)  # it is a SELECT
        for solution in solutions:
            mapping = answers[int(solution["oxiseq_row"].value)]
            for v in self.calls.values():
                if (found := solution[v]) is not None:
                    mapping[v] = found

    def _ask_one(self, mapping: dict[Variable, Term]) -> None:
        for e, v in self.calls.items():
            try:
                mapping[v] = evaluate(e, mapping)
            except ExpressionError:
                continue

    def _outcome(self, mapping: Mapping[Variable, Term]) -> int:
        try:
            return MEMO_TRUE if truth(read(evaluate(self.expression, mapping))) else MEMO_FALSE
        except ExpressionError:
            return MEMO_ERROR


_OPERATORS: Final = frozenset(
    [
        "=",
        "!=",
        "<",
        ">",
        "<=",
        ">=",
        "&&",
        "||",
        "!",
        "+",
        "-",
        "*",
        "/",
        "NEGATE",
        "PLUS",
        "IN",
        "BOUND",
        "IF",
        "COALESCE",
        "SAMETERM",
    ]
) | {"NOT IN"}


def _only_functions(e: Expression) -> bool:
    return all(not isinstance(x, Call) or x.name not in _OPERATORS for x in subexpressions(e))


class ConditionFilter:
    """Conditions on rows that are at hand as a whole (not in the kernel): the machine first, then `passes`."""

    def __init__(self, conditions: Sequence[Condition], columns: Sequence[Variable], terms: TermDictionary) -> None:
        slots = {v: i for i, v in enumerate(columns)}
        self._conditions = [(c, compile_program(c.expression, slots, terms).code) for c in conditions]
        self._slots = slots
        self._terms = terms

    @property
    def programs(self) -> list[NDArray[np.int32]]:
        """The machine's, of each condition."""
        return [code for _, code in self._conditions]

    def keep(self, values: NDArray[np.uint32]) -> NDArray[np.bool_]:
        """bool[k]: which rows of ids u32[k, columns] satisfy all conditions."""
        keep = np.ones(len(values), np.bool_)
        columns = self._terms.columns
        for condition, code in self._conditions:
            rows = np.flatnonzero(keep)
            ids = np.ascontiguousarray(values[rows], np.int64)
            outcomes = truth_column(code, 0, len(code), ids, *columns)
            asked = rows[outcomes == UNDECIDED]
            keep[rows] = outcomes == TRUE
            if len(asked):
                picked = [values[asked, self._slots[v]] for v in condition.variables]
                keep[asked] = passes(condition, picked, self._terms)
        return keep


def passes(condition: Condition, columns: Sequence[NDArray[np.integer]], terms: TermDictionary) -> NDArray[np.bool_]:
    """Whether each row satisfies the condition; `columns` are the ids of its variables (0 unbound).

    Asked once per distinct row, unless the condition is impure.
    """
    n = len(columns[0]) if columns else 1
    if not columns:
        return np.full(n, _holds(condition, (), terms))
    ids = np.stack(columns, axis=1)
    if not condition.pure:
        return np.array([_holds(condition, row, terms) for row in ids], np.bool_)
    distinct, inverse = np.unique(ids, axis=0, return_inverse=True)
    answers = np.array([_holds(condition, row, terms) for row in distinct], np.bool_)
    return answers[inverse.reshape(-1)]


def _holds(condition: Condition, ids: Sequence[int] | NDArray[np.integer], terms: TermDictionary) -> bool:
    mapping = {v: terms.term(int(i)) for v, i in zip(condition.variables, ids, strict=True) if i != 0}
    try:
        return truth(read(evaluate(condition.expression, mapping)))
    except ExpressionError:
        return False
