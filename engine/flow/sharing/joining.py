"""Plans of several queries as one plan (operators.md, 7.1).

In the flow: plans of queries over the same windows → **one plan with several roots**. Equal operators are one, as
on every sheet. Plans that differ in constants only are lifted to one, if there are three or more; for two, an operator
for each costs less than a table. Conjunctions that differ in their FILTERs only are one, too: their filters are
operators behind it. So are groups that differ in their aggregates only.

A group that several plans have, of the same rows by the same key, has the aggregates of all; each plan has its own of
them. A row of such a group also changes when another plan's aggregate does: rows that come and go at once are left out
behind it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Final, NamedTuple, TypeAlias

from pyoxigraph import Variable

from oxiseq.engine.flow import plan as p
from oxiseq.engine.flow.rewriting import placed
from oxiseq.engine.flow.sharing.lifting import (
    Constant,
    Filling,
    NotLiftedError,
    Opened,
    closed,
    lifted,
    opened,
    parameter,
    slot,
)

Own: TypeAlias = Callable[[p.Sheet, p.Form], int | None]
"""The place of an operator without inputs that others have otherwise; None for one that is put there as it is."""
_Wide: TypeAlias = Mapping[tuple[int, int], tuple[p.Sum, ...]]
"""By the number of a plan and a place in it the aggregates of a group that is there."""


class _Seen(NamedTuple):
    """An operator of a plan. columns: the places of its columns in the node's rows; None: the same as the node's."""

    node: int
    columns: tuple[int, ...] | None = None


def put(sheet: p.Sheet, plans: Sequence[p.FlowPlan], own: Own) -> list[int]:
    """The places of the roots of some plans."""
    trial = _Putting(p.Sheet(), own, {})
    trial.roots(plans)
    return _Putting(sheet, own, trial.wide()).roots(plans)


class _Putting:
    def __init__(self, sheet: p.Sheet, own: Own, wide: _Wide) -> None:
        self._sheet, self._own, self._wide = sheet, own, wide
        self._groups: dict[tuple[int, tuple[int, ...]], dict[tuple[int, int], tuple[p.Sum, ...]]] = {}
        """By rows and key the groups of plans."""

    def wide(self) -> _Wide:
        """The aggregates of groups that plans have otherwise."""
        found: dict[tuple[int, int], tuple[p.Sum, ...]] = {}
        for alike in self._groups.values():
            if len(set(alike.values())) > 1:
                every = tuple(dict.fromkeys(each for sums in alike.values() for each in sums))
                found.update(dict.fromkeys(alike, every))
        return found

    def roots(self, plans: Sequence[p.FlowPlan]) -> list[int]:
        """All of their operators."""
        return [self._root(number, plan) for number, plan in enumerate(plans)]

    def _root(self, number: int, plan: p.FlowPlan) -> int:
        done: list[_Seen] = []
        for place, form in enumerate(plan.forms):
            done.append(self._seen((number, place), form, done))
        return self._settled(done[plan.root])

    def _seen(self, name: tuple[int, int], form: p.Form, done: Sequence[_Seen]) -> _Seen:
        match form:
            case p.Group(child):
                return self._group(name, replace(form, child=self._settled(done[child])))
            case p.Filter(child, conditions) if (columns := done[child].columns) is not None:
                here = {p.column(i): p.column(place) for i, place in enumerate(columns)}
                moved = tuple(placed(each, here) for each in conditions)
                return _Seen(self._sheet.filtered(done[child].node, moved), columns)
            case p.Pick(child, picked) if (columns := done[child].columns) is not None:
                places = tuple(tuple(columns[i] for i in each) for each in picked)
                if all(len(each) == 1 for each in places):
                    return _Seen(done[child].node, tuple(place for (place,) in places))
                return _Seen(self._consolidated(self._sheet.pick(done[child].node, places)))
            case p.Arrange(child, key, loose) if (columns := done[child].columns) is not None:
                by, loosely = (tuple(columns[i] for i in places) for places in (key, loose))
                there = replace(form, child=done[child].node, key=by, loose=loosely)
                return _Seen(self._sheet.add(there), columns)
            case p.Join(left, right) if done[left].columns is not None or done[right].columns is not None:
                return self._join(done[left], done[right])
            case p.Consolidate(child) if isinstance(self._sheet.form(self._settled(done[child])), p.Consolidate):
                return _Seen(self._settled(done[child]))
            case _:
                node = self._own(self._sheet, form)
                inputs = {place: self._settled(done[place]) for place in p.inputs(form)}
                return _Seen(self._sheet.add(p.renamed(form, inputs)) if node is None else node)

    def _group(self, name: tuple[int, int], form: p.Group) -> _Seen:
        self._groups.setdefault((form.child, form.key), {})[name] = form.sums
        sums = self._wide.get(name, form.sums)
        node = self._sheet.add(replace(form, sums=sums))
        if sums == form.sums and name not in self._wide:
            return _Seen(node)
        first = len(form.key)
        return _Seen(node, (*range(first), *(first + sums.index(each) for each in form.sums)))

    def _join(self, left: _Seen, right: _Seen) -> _Seen:
        width = self._sheet.width(left.node)
        node = self._sheet.add(p.Join(left.node, right.node))
        return _Seen(node, (*self._columns(left), *(width + place for place in self._columns(right))))

    def _columns(self, seen: _Seen) -> tuple[int, ...]:
        return tuple(range(self._sheet.width(seen.node))) if seen.columns is None else seen.columns

    def _settled(self, seen: _Seen) -> int:
        """The place of an operator that has its own columns."""
        if seen.columns is None:
            return seen.node
        return self._consolidated(self._sheet.pick(seen.node, tuple((place,) for place in seen.columns)))

    def _consolidated(self, node: int) -> int:
        return self._sheet.add(p.Consolidate(node))


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
