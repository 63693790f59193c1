"""Plans put on a sheet as they are, with groups that differ in their aggregates only as one.

In the flow: plans that are not lifted → **operators on a sheet**. A group that several plans have, of the same rows
by the same key, has the aggregates of all; each plan has its own of them. A row of such a group also changes when
another plan's aggregate does: rows that come and go at once are left out behind it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple, TypeAlias

from oxiseq.engine.flow import plan as p
from oxiseq.engine.flow.rewriting import placed

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
