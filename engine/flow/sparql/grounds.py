"""Which graph a pattern is about, and in which cases it is evaluated (operators.md, 7.2)."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

from pyoxigraph import Variable

from oxiseq.engine.flow import plan as p
from oxiseq.engine.flow.relations import Column, Context, Relation, Relations
from oxiseq.grammar.records import dataclass


@dataclass(frozen=True, slots=True)
class Merge:
    """Some graphs as one; of none nothing is known, and such a graph is not there."""

    places: tuple[p.Place, ...]

    @property
    def windows(self) -> bool:
        """Whether what windows hold is among it."""
        return any(isinstance(place, p.WindowPlace) for place in self.places)


@dataclass(frozen=True, slots=True)
class EachGraph:
    """Every named graph of the knowledge base, one at a time: GRAPH ?g. `context`: which."""

    context: Context


@dataclass(frozen=True, slots=True)
class EachEvent:
    """The graph of every event, one at a time (engine/patterns). `context`: which."""

    context: Context


Ground: TypeAlias = Merge | EachGraph | EachEvent


@dataclass(frozen=True, slots=True)
class Cases:
    """Bindings from outside, case by case: for each variable a column of `relation` and the context that says its value
    (or that it has none)."""

    relation: Relation
    contexts: Mapping[Variable, Context]

    @property
    def variables(self) -> frozenset[Variable]:
        """Those that have values from outside."""
        return frozenset(self.contexts)


@dataclass(frozen=True, slots=True)
class Scope:
    """The place of a pattern."""

    ground: Ground
    cases: tuple[Cases, ...] = ()

    @property
    def given(self) -> frozenset[Variable]:
        """The variables that have values from outside."""
        return frozenset(v for each in self.cases for v in each.contexts)

    def on(self, ground: Ground) -> Scope:
        """The same about another graph."""
        return replace(self, ground=ground)


class Contexts:
    """The cases that there are: relations that lack some of them hold in each."""

    def __init__(self, relations: Relations) -> None:
        self._relations = relations
        self._cases: dict[Context, tuple[Cases, Variable]] = {}

    def known(self, cases: Cases) -> Cases:
        """To be found by their contexts."""
        self._cases.update({context: (cases, variable) for variable, context in cases.contexts.items()})
        return cases

    def some(self, cases: Cases, variables: Collection[Variable]) -> Cases:
        """The cases of some variables; those that differ in others only are one."""
        if cases.variables <= frozenset(variables):
            return cases
        kept = {v: c for v, c in cases.contexts.items() if v in variables}
        return Cases(self._distinct(cases.relation, [*kept.values(), *kept]), kept)

    def of(self, contexts: Sequence[Context], *, named: bool = True) -> Relation:
        """All cases that there are by these contexts; `named`: with their variables."""
        made = self._relations.unit()
        for cases in dict.fromkeys(id(self._cases[c][0]) for c in contexts):
            mine = [c for c in contexts if id(self._cases[c][0]) == cases]
            whole = self._cases[mine[0]][0].relation
            columns: list[Column] = [*mine, *(self._cases[c][1] for c in mine if named)]
            made = self._relations.join(made, self._distinct(whole, columns))
        return made

    def _distinct(self, a: Relation, columns: Sequence[Column]) -> Relation:
        some = self._relations.project(a, columns)
        return some if len(columns) == len(a.columns) else self._relations.distinct(some)

    def widened(self, a: Relation, contexts: Sequence[Context]) -> Relation:
        """In each of these cases, where it has been for all alike."""
        missing = [c for c in contexts if c not in a.columns]
        return self._relations.join(a, self.of(missing)) if missing else a

    def aligned(self, parts: Sequence[Relation]) -> list[Relation]:
        """All by the same contexts."""
        every = list(dict.fromkeys(c for part in parts for c in part.context))
        return [self.widened(part, every) for part in parts]
