"""Plans of several queries as one plan (operators.md, 7.1).

In the flow: plans of queries over the same windows → **one plan with several roots**. Equal operators are one, as
on every sheet. Plans that differ in constants only are lifted to one, if there are three or more; for two, an operator
for each costs less than a table. Conjunctions that differ in their FILTERs only are one, too: their filters are
operators behind it. So are groups that differ in their aggregates only (widening.py).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from pyoxigraph import Variable

from oxiseq.engine.flow import plan as p
from oxiseq.engine.flow.sharing.lifting import NotLiftedError, lifted, parameter
from oxiseq.engine.flow.sharing.opening import Constant, Filling, Opened, closed, opened, slot
from oxiseq.engine.flow.sharing.widening import put

LEAST: Final = 3
"""So many plans that differ in constants are lifted."""
_NOT_YET: Final = -1
"""In place of a root."""


class Output(NamedTuple):
    """A root of the joint plan. queries: by row of its table the numbers of the queries that have its rows; without a
    table there is one. constants: the table's rows, less their numbers."""

    root: int
    table: int | None
    constants: tuple[tuple[Constant, ...], ...]
    queries: tuple[tuple[int, ...], ...]


class Joint(NamedTuple):
    """Several plans as one."""

    plan: p.FlowPlan
    outputs: tuple[Output, ...]


def joined(plans: Sequence[p.FlowPlan]) -> Joint:
    """One plan for all."""
    return _Joining(plans).joint()


class _Joining:
    def __init__(self, plans: Sequence[p.FlowPlan]) -> None:
        self._plans = plans
        self._sheet = p.Sheet()
        self._filtered = _filtered_otherwise(plans)

    def joint(self) -> Joint:
        """The whole."""
        alike: dict[tuple[tuple[p.Form, ...], int], list[tuple[int, Opened]]] = {}
        for number, plan in enumerate(self._plans):
            whole = opened(plan)
            alike.setdefault((whole.forms, whole.root), []).append((number, whole))
        found = self._with_roots([output for ones in alike.values() for output in self._outputs(ones)])
        plan = self._sheet.plan(found[0].root, tuple(o.root for o in found) + _tables(found))
        tables = dict(zip(_tables(found), plan.also[len(found) :], strict=True))
        return Joint(
            plan,
            tuple(
                output._replace(root=root, table=None if output.table is None else tables[output.table])
                for output, root in zip(found, plan.also[: len(found)], strict=True)
            ),
        )

    def _outputs(self, ones: Sequence[tuple[int, Opened]]) -> list[Output]:
        by_constants: dict[tuple[Constant, ...], list[int]] = {}
        for number, each in ones:
            by_constants.setdefault(each.constants, []).append(number)
        queries = tuple(map(tuple, by_constants.values()))
        if len(by_constants) >= LEAST:
            output = self._lifted(ones[0][1], [*by_constants], queries)
            if output is not None:
                return [output]
        return [Output(_NOT_YET, None, ((),), (mine,)) for mine in queries]

    def _with_roots(self, outputs: Sequence[Output]) -> list[Output]:
        """With the roots of the plans that are not lifted."""
        plain = [output for output in outputs if output.root == _NOT_YET]
        roots = iter(put(self._sheet, [self._plans[output.queries[0][0]] for output in plain], self._unfiltered))
        return [output._replace(root=next(roots)) if output.root == _NOT_YET else output for output in outputs]

    def _lifted(
        self, whole: Opened, constants: Sequence[tuple[Constant, ...]], queries: tuple[tuple[int, ...], ...]
    ) -> Output | None:
        known, columns = _parameters(constants)
        rows = tuple(tuple(each[place] for place in columns) for each in constants)
        form = p.Given(f"parameters {len(self._sheet)}", 1 + len(columns), once=True)
        widths = self._plans[queries[0][0]].widths
        before = len(self._sheet)
        try:
            root = lifted(self._sheet, closed(whole.forms, known), widths, whole.root, form, rows).root
        except NotLiftedError:
            self._sheet.shorten(before)
            return None
        return Output(root, self._sheet.add(form), rows, queries)

    def _unfiltered(self, sheet: p.Sheet, form: p.Form) -> int | None:
        """Of a conjunction that others have with other filters: its filters behind it."""
        if not isinstance(form, p.Patterns) or not form.filters or _unfiltered(form) not in self._filtered:
            return None
        return sheet.filtered(sheet.add(_unfiltered(form)), form.filters)


def _tables(outputs: Sequence[Output]) -> tuple[int, ...]:
    return tuple(each.table for each in outputs if each.table is not None)


def _parameters(constants: Sequence[tuple[Constant, ...]]) -> tuple[Mapping[Variable, Filling], list[int]]:
    """The contents of the slots: the constant that all have, or a parameter; slots whose constants are the same in each
    query have one. And of each parameter a slot."""
    known: dict[Variable, Filling] = {}
    columns: dict[tuple[Constant, ...], int] = {}
    slots: list[int] = []
    for place, column in enumerate(zip(*constants, strict=True)):
        if all(each == column[0] for each in column):
            known[slot(place)] = column[0]
            continue
        if column not in columns:
            columns[column] = len(slots)
            slots.append(place)
        known[slot(place)] = parameter(columns[column])
    return known, slots


def _unfiltered(form: p.Patterns) -> p.Patterns:
    return replace(form, filters=())


def _filtered_otherwise(plans: Sequence[p.FlowPlan]) -> set[p.Patterns]:
    """The conjunctions that some have with other filters than others."""
    filters: dict[p.Patterns, set[tuple[object, ...]]] = {}
    for plan in plans:
        for form in plan.forms:
            if isinstance(form, p.Patterns):
                filters.setdefault(_unfiltered(form), set()).add(form.filters)
    return {each for each, different in filters.items() if len(different) > 1}
