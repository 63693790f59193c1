"""Queries that differ in constants only: one plan for all, with a table of their constants (operators.md, 7.2).

In the flow: algebra → **an open pattern** and its constants → the same pattern over a table, whose
rows say for which query they hold → lowering.py. Two queries are alike if their open patterns are equal.

Constants of triple patterns (subjects, objects), FILTER, BIND and expressions of SELECT are taken out. What depends on
the table has its row's number as a column, ROW; as all columns with one name agree, rows of different queries never
meet. Operators that do not depend on the table are the same for all queries and run once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from pyoxigraph import Literal, NamedNode, Variable

from oxiseq.engine.flow.epsparql.algebra import (
    Answered,
    ClosurePlan,
    ExistsTest,
    ExtendPlan,
    FilterPlan,
    JoinPlan,
    MinusPlan,
    OptionalPlan,
    Place,
    Plan,
    ProjectPlan,
    TablePlan,
    TestPlan,
    TimelessPlan,
    TriplePlan,
    UnionPlan,
    everything,
)
from oxiseq.engine.flow.epsparql.rows import ROW, Column
from oxiseq.engine.flow.epsparql.times import has_time, length_of
from oxiseq.engine.flow.plan import SIGNS, Sign, is_pure
from oxiseq.engine.flow.sharing.lifting import parameter
from oxiseq.engine.flow.sharing.opening import Constant, filled, opened_expression, slot
from oxiseq.grammar.algebra import Call, Expression
from oxiseq.grammar.records import dataclass
from oxiseq.grammar.scope import expression_variables

_RESERVED: Final = "oxiseq_"
"""How the names of slots and parameters begin."""


class NotAlikeError(Exception):
    """Why a table of constants cannot precede a pattern."""


class Opened(NamedTuple):
    """A pattern without its constants; these."""

    form: Answered
    constants: tuple[Constant, ...]


def opened(answered: Answered) -> Opened:
    """Raises NotAlikeError where no other query can share its plan, whatever its constants."""
    if answered.uses is not None:
        raise NotAlikeError("its answers use triples up")
    names = (c for plan in everything(answered.plan) for c in plan.columns if isinstance(c, Variable))
    if any(name.value.startswith(_RESERVED) for name in names):
        raise NotAlikeError(f"a variable's name begins with {_RESERVED}")
    constants: list[Constant] = []

    def taken(term: Constant) -> Variable:
        constants.append(term)
        return slot(len(constants) - 1)

    def place(term: Place) -> Place:
        return taken(term) if isinstance(term, NamedNode | Literal) else term

    def expression(whole: Expression) -> Expression:
        fixed = has_time(whole) or length_of(whole) is not None or not is_pure(whole)
        return whole if fixed else opened_expression(whole, taken)

    form = _rewritten(answered, _Rewriting(place, expression))
    lifted(form, len(constants), {slot(i): parameter(i) for i in range(len(constants))}, ())  # whether it can be
    return Opened(form, tuple(constants))


def closed(form: Answered, constants: Sequence[Constant], kept: Iterable[int]) -> Answered:
    """With its constants again, but for those of some slots."""
    left = {*kept}
    known = {slot(i): term for i, term in enumerate(constants) if i not in left}
    return _rewritten(form, _filling(known))


def over_table(
    form: Answered, slots: Sequence[int], constants: Sequence[Constant], rows: Sequence[tuple[Constant, ...]]
) -> Answered:
    """The pattern of several queries: each answer follows the number of its row. slots: those whose constants are in
    the table; constants: those of the others; rows: numbers, and the constants of these slots."""
    names = {slot(place): parameter(i) for i, place in enumerate(slots)}
    return lifted(closed(form, constants, slots), len(slots), names, rows)


# --- other terms in the same pattern ----------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Rewriting:
    """What becomes of a triple pattern's subject or object, and of an expression."""

    place: Callable[[Place], Place]
    expression: Callable[[Expression], Expression]

    def all(self, expressions: Iterable[Expression]) -> tuple[Expression, ...]:
        """Of several."""
        return tuple(map(self.expression, expressions))


def _filling(known: Mapping[Variable, Constant | Variable]) -> _Rewriting:
    def place(term: Place) -> Place:
        return known.get(term, term) if isinstance(term, Variable) else term

    return _Rewriting(place, lambda whole: filled(whole, known))


def _rewritten(answered: Answered, change: _Rewriting) -> Answered:
    columns = tuple((c, None if e is None else change.expression(e)) for c, e in answered.columns)
    return replace(answered, plan=_plan(answered.plan, change), columns=columns)


def _plan(plan: Plan, change: _Rewriting) -> Plan:
    match plan:
        case TriplePlan((subject, predicate, target)):
            return replace(plan, places=(change.place(subject), predicate, change.place(target)))
        case JoinPlan(_, left, right):
            return replace(plan, left=_plan(left, change), right=_plan(right, change))
        case OptionalPlan(_, main, other, conditions, tests):
            return replace(
                plan,
                main=_plan(main, change),
                other=_plan(other, change),
                conditions=change.all(conditions),
                tests=tuple(_test(test, change) for test in tests),
            )
        case MinusPlan(main, other):
            return MinusPlan(_plan(main, change), _plan(other, change))
        case TestPlan(main, test):
            return TestPlan(_plan(main, change), _test(test, change))
        case UnionPlan(branches):
            return replace(plan, branches=tuple(_plan(branch, change) for branch in branches))
        case FilterPlan(main, conditions):
            return FilterPlan(_plan(main, change), change.all(conditions))
        case ExtendPlan(child, expression):
            return replace(plan, child=_plan(child, change), expression=change.expression(expression))
        case ProjectPlan(child):
            return replace(plan, child=_plan(child, change))
        case ClosurePlan(step):
            return replace(plan, step=_plan(step, change))
        case _:
            return plan


def _test(test: ExistsTest, change: _Rewriting) -> ExistsTest:
    return replace(
        test,
        other=_plan(test.other, change),
        conditions=change.all(test.conditions),
        tests=tuple(_test(inner, change) for inner in test.tests),
    )


# --- over a table ------------------------------------------------------------------------------------


def lifted(
    form: Answered, width: int, names: Mapping[Variable, Variable], rows: Sequence[tuple[Constant, ...]]
) -> Answered:
    """A pattern of whose slots some are columns of a table. Raises NotAlikeError."""
    named = _rewritten(form, _filling(names))
    lifting = _Lifting(width, rows)
    needed = lifting.read([e for _, e in named.columns if e is not None])
    plan = lifting.with_parameters(lifting.of(named.plan), needed)
    return replace(named, plan=plan, columns=((ROW, None), *named.columns))


class _Lifting:
    """rows: of the whole table."""

    def __init__(self, width: int, rows: Sequence[tuple[Constant, ...]]) -> None:
        self._parameters = [parameter(i) for i in range(width)]
        self._rows = rows

    def of(self, plan: Plan) -> Plan:
        """The rows of an operator, behind the number of their row if they depend on it."""
        match plan:
            case TriplePlan():
                return self._triples(plan)
            case TimelessPlan() | TablePlan():
                return plan
            case JoinPlan(_, left, right):
                return self._joined(plan, self.of(left), self.of(right))
            case OptionalPlan(_, main, other, conditions, tests):
                return self._optional(plan, self.of(main), self.of(other), conditions, tests)
            case MinusPlan(main, other):
                return self._minus(plan, self.of(main), self.of(other))
            case TestPlan(main, test):
                inner = self._test(test)
                main = self._before(self.of(main), self._needed((), (inner,)), (inner,), ())
                return self._without_parameters(TestPlan(main, inner))
            case UnionPlan(branches, columns, certain):
                return self._union(tuple(map(self.of, branches)), columns, certain)
            case FilterPlan(main, conditions):
                main = self._compared(self.of(main), conditions)
                return self._without_parameters(FilterPlan(main, conditions))
            case ExtendPlan(child, expression, columns):
                child = self.with_parameters(self.of(child), self.read([expression]))
                return self._without_parameters(ExtendPlan(child, expression, (*child.columns, columns[-1])))
            case ProjectPlan():
                return self._projected(plan, self.of(plan.child))
            case ClosurePlan(step):
                if _by_row(self.of(step)):
                    raise NotAlikeError("a path that repeats contains a constant")
                return plan

    # --- the table ------------------------------------------------------------------------------------

    def read(self, expressions: Iterable[Expression]) -> list[Variable]:
        """The parameters that expressions read."""
        read = {name for each in expressions for name in expression_variables(each)}
        return [name for name in self._parameters if name in read]

    def _table(self, needed: Sequence[Variable]) -> TimelessPlan:
        places = [0, *(1 + self._parameters.index(name) for name in needed)]
        columns: tuple[Column, ...] = (ROW, *needed)
        return TimelessPlan(columns, frozenset(columns), tuple(tuple(row[i] for i in places) for row in self._rows))

    def with_parameters(self, plan: Plan, needed: Sequence[Variable]) -> Plan:
        """Rows with some parameters, and the number of their row."""
        return TablePlan(plan, self._table(needed)) if needed or not _by_row(plan) else plan

    def _without_parameters(self, plan: Plan) -> Plan:
        kept = tuple(c for c in plan.columns if c not in self._parameters)
        if len(kept) == len(plan.columns):
            return plan
        return ProjectPlan(plan, tuple(map(plan.columns.index, kept)), kept, plan.certain.difference(self._parameters))

    def _compared(self, plan: Plan, conditions: Sequence[Expression]) -> Plan:
        """Rows with the parameters that conditions read; some that fail one of them may be missing."""
        needed = self.read(conditions)
        if not needed:
            return plan
        table = self._table(needed)
        if _by_row(plan):
            return TablePlan(plan, table)
        pairs = [pair for each in conditions for pair in self._pairs(each, plan)]
        equal = tuple((here, there) for here, there, sign in pairs if sign == "=" and self._are_iris(there))
        bounds = [pair for pair in pairs if not equal]
        return TablePlan(plan, table, equal, bounds[0] if bounds else None)

    def _pairs(self, condition: Expression, plan: Plan) -> Iterable[tuple[Variable, Variable, Sign]]:
        """A column, a parameter, and how they are compared, if a condition does that."""
        if not isinstance(condition, Call) or condition.name not in SIGNS or len(condition.args) != 2:
            return
        for (a, b), sign in zip((condition.args, condition.args[::-1]), SIGNS[condition.name], strict=True):
            if isinstance(a, Variable) and isinstance(b, Variable) and a in plan.columns and b in self._parameters:
                yield a, b, sign

    def _are_iris(self, name: Variable) -> bool:
        """Whether only the same term is equal to each of its constants."""
        place = 1 + self._parameters.index(name)
        return all(isinstance(row[place], NamedNode) for row in self._rows)

    # --- operators ------------------------------------------------------------------------------------

    def _triples(self, plan: TriplePlan) -> Plan:
        needed = [name for name in self._parameters if name in plan.places]
        if not needed:
            return plan
        columns = (*plan.columns, *needed)
        return self._without_parameters(TablePlan(replace(plan, columns=columns), self._table(needed)))

    @staticmethod
    def _joined(plan: JoinPlan, left: Plan, right: Plan) -> Plan:
        columns = tuple(dict.fromkeys((*left.columns, *right.columns)))
        return replace(plan, left=left, right=right, columns=columns, certain=left.certain | right.certain)

    def _before(
        self, main: Plan, needed: Sequence[Variable], tests: Sequence[ExistsTest], others: Sequence[Plan]
    ) -> Plan:
        """The rows that something is looked for of, with what that depends on."""
        if needed or any(map(_by_row, others)) or any(map(_asks_by_row, tests)):
            return self.with_parameters(main, needed)
        return main

    def _needed(self, conditions: Sequence[Expression], tests: Sequence[ExistsTest]) -> list[Variable]:
        return self.read([*conditions, *(c for test in tests for c in _conditions(test))])

    def _optional(
        self,
        plan: OptionalPlan,
        main: Plan,
        other: Plan,
        conditions: Sequence[Expression],
        tests: Sequence[ExistsTest],
    ) -> Plan:
        inner = tuple(map(self._test, tests))
        main = self._before(main, self._needed(conditions, inner), inner, [other])
        columns = tuple(dict.fromkeys((*main.columns, *other.columns)))
        return self._without_parameters(
            replace(plan, main=main, other=other, tests=inner, columns=columns, certain=main.certain)
        )

    def _test(self, test: ExistsTest) -> ExistsTest:
        return replace(test, other=self.of(test.other), tests=tuple(map(self._test, test.tests)))

    def _minus(self, plan: MinusPlan, main: Plan, other: Plan) -> Plan:
        shared = [c for c in plan.main.columns if c in plan.other.columns]
        if not shared:
            return main
        if not _by_row(other):
            return MinusPlan(main, other)
        if not any(c in plan.main.certain and c in plan.other.certain for c in shared):
            raise NotAlikeError("MINUS may share no variable that is bound, and has a constant")
        return MinusPlan(self.with_parameters(main, ()), other)

    def _union(self, branches: tuple[Plan, ...], columns: tuple[Column, ...], certain: frozenset[Column]) -> Plan:
        if not any(map(_by_row, branches)):
            return UnionPlan(branches, columns, certain)
        every = tuple(self.with_parameters(branch, ()) for branch in branches)
        return UnionPlan(every, (*columns[:-1], ROW, columns[-1]), certain | {ROW})

    @staticmethod
    def _projected(plan: ProjectPlan, child: Plan) -> Plan:
        if not _by_row(child):
            return replace(plan, child=child)
        if plan.same:
            raise NotAlikeError("a path that begins where it ends has a constant")
        places = (*(child.columns.index(plan.child.columns[i]) for i in plan.places), child.columns.index(ROW))
        return replace(plan, child=child, places=places, columns=(*plan.columns, ROW), certain=plan.certain | {ROW})


def _by_row(plan: Plan) -> bool:
    return ROW in plan.columns


def _asks_by_row(test: ExistsTest) -> bool:
    return _by_row(test.other) or any(map(_asks_by_row, test.tests))


def _conditions(test: ExistsTest) -> Iterable[Expression]:
    yield from test.conditions
    for inner in test.tests:
        yield from _conditions(inner)
