"""EP-SPARQL queries that differ in constants only: they have one state as long as they have seen the same.

In the flow: plans of queries → **a table of their constants, one plan for all** → the run at work (intervals.py),
whose answers say of which query each is. A query may join until the plan is made, when something first comes that
concerns one of them; then only one whose constants the table has. Families whose states have come to be the same, but
for the rows of each query, become one (uniting.py); so all have the same places of constants in their tables.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Sequence
from contextlib import suppress
from copy import copy
from itertools import count
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from pyoxigraph import Literal

from oxiseq.engine.flow import plan as p
from oxiseq.engine.flow.epsparql.alike import opened_query, over_table, triples
from oxiseq.engine.flow.epsparql.lowering import Lowered
from oxiseq.engine.flow.epsparql.query import IntervalPlan
from oxiseq.engine.flow.sharing.lifting import NotLiftedError
from oxiseq.engine.flow.sharing.opening import Constant, Opened
from oxiseq.engine.flow.times import NEVER
from oxiseq.engine.run.concern import Key, keys_of
from oxiseq.engine.terms.dictionary import TermDictionary

Constants: TypeAlias = tuple[Constant, ...]


def why_not_alike(plan: IntervalPlan) -> str | None:
    """Why a query shares nothing with others that differ in constants; None: it does."""
    try:
        opened_query(plan.answered)
    except NotLiftedError as error:
        return str(error)
    return None


class OneQuery:
    """A query's own part. constants: those that differ in alike ones."""

    def __init__(self, plan: IntervalPlan) -> None:
        self.plan = plan
        self._opened: Opened | None = None
        with suppress(NotLiftedError):
            self._opened = opened_query(plan.answered)

    def over_table(self, slots: Sequence[int], rows: Sequence[Constants]) -> Lowered:
        """Its plan over a table of the constants of queries that are alike, behind their numbers."""
        assert self._opened is not None
        return over_table(self.plan.answered.lowered, self._opened, slots, rows)

    @property
    def constants(self) -> Constants:
        """The constants there before."""
        return () if self._opened is None else self._opened.constants

    @property
    def alike(self) -> tuple[Hashable, ...] | None:
        """The common part of alike queries; None: there are none."""
        if self._opened is None:
            return None
        kinds = tuple(isinstance(each, Literal) for each in self._opened.constants)
        whole = self._opened.forms, self._opened.root, self.plan.answered.lowered.timeless
        return whole, kinds, self.plan.streams, self.plan.rules


class Family:
    """Queries in one state."""

    def __init__(self, first: OneQuery, terms: TermDictionary) -> None:
        self._terms = terms
        self._first = first
        self._rows: dict[Constants, int] = {}
        self._next = 0
        """The number of the next one."""
        self._open: frozenset[int] = frozenset()
        """Slots whose constants will be in the table, whatever the queries."""
        self._of_id: dict[int, int] = {}
        """By the term that stands for it the number of each query, as far as it was needed."""
        self.plans: list[Lowered] = []
        """All that is queried from the knowledge base."""
        self.keys: frozenset[Key] | None = frozenset()
        """Of the triples that may concern one of them; None: any may."""
        self.waking: frozenset[Key] | None = frozenset()
        """Of those at which one of them may find something; None: any may."""
        self.reach = 0
        """How long (µs) the others matter, or NEVER."""
        self.slots: tuple[int, ...] | None = None
        """Those whose constants are in a table; none where there is one query. None: no plan is made yet."""
        self.take_in(first)

    def copy(self) -> Family:
        """Another, of the same queries."""
        made = copy(self)
        made._rows, made._of_id, made.plans = dict(self._rows), {}, [*self.plans]
        return made

    def __len__(self) -> int:
        return len(self._rows)

    def has(self, one: OneQuery) -> bool:
        """Whether a query that is alike is one of them, or equal to one."""
        return one.constants in self._rows

    def take_in(self, one: OneQuery) -> None:
        """One more."""
        if one.constants in self._rows:
            return
        self._rows[one.constants] = self._next
        self._next += 1
        mine = one.plan.plans if not self.plans else (one.plan.answered.lowered,)
        self.plans += mine
        patterns = [each for lowered in mine for each in triples(lowered.plan)]
        self.keys = _both(self.keys, self._keys(each for each, _ in patterns))
        self.waking = _both(self.waking, self._keys(each for each, kept in patterns if not kept))
        limits = (NEVER if each.longest is None else each.longest for each, kept in patterns if kept)
        self.reach = max([self.reach, *limits])

    def _keys(self, patterns: Iterable[p.Triples]) -> frozenset[Key] | None:
        return keys_of([(predicate, target) for _, predicate, target in (each.parts for each in patterns)], self._terms)

    def restore(self, one: OneQuery, number: int, slots: Sequence[int]) -> None:
        """Takes over a plan's table, with one of its queries."""
        self._rows, self._next, self.slots, self._of_id = {one.constants: number}, number + 1, tuple(slots), {}

    def narrow(self, kept: Collection[OneQuery]) -> None:
        """Forget all queries but some."""
        self._rows, self._of_id = {each.constants: self._rows[each.constants] for each in kept}, {}
        first = next(iter(kept))
        self.plans[:] = [*first.plan.plans[:-1], *(each.plan.answered.lowered for each in kept)]

    # --- other families -------------------------------------------------------------------------------

    @property
    def _slots(self) -> tuple[int, ...]:
        """Those of its plan, or that it will have."""
        if self.slots is not None:
            return self.slots
        columns = enumerate(zip(*self._rows, strict=True))
        return tuple(i for i, column in columns if i in self._open or len({*column}) > 1)

    @property
    def fixed(self) -> tuple[tuple[int, Constant], ...]:
        """The contents of the other slots: the same for all."""
        return self._in_others(self._slots)

    def _in_others(self, slots: Collection[int]) -> tuple[tuple[int, Constant], ...]:
        one = next(iter(self._rows))
        return tuple((i, term) for i, term in enumerate(one) if i not in slots)

    def fits(self, other: Family) -> bool:
        """Whether it can be at work over the table of another, which has one."""
        slots = other._slots
        return (
            bool(slots)
            and (self.slots or slots) == slots
            and all(all(one[i] == term for i, term in other.fixed) for one in self._rows)
        )

    def expect(self, others: Sequence[Family]) -> None:
        """Before its plan is made: it may become one with others of queries that are alike."""
        if self.slots is None:
            first = next((each for each in others if self.fits(each)), None)
            self._open = frozenset(self._unlike(others[0]) if first is None else first._slots)

    def _unlike(self, other: Family) -> Iterable[int]:
        mine, others = next(iter(self._rows)), next(iter(other._rows))
        return (i for i, (one, another) in enumerate(zip(mine, others, strict=True)) if one != another)

    def begin_anew(self) -> None:
        """Its plan is to be made again."""
        self.slots = None

    def absorb(self, other: Family) -> dict[int, int]:
        """Its queries, too: by their numbers there those that they have here."""
        plans = dict(zip(other._rows, other.plans[-len(other._rows) :], strict=True))
        new = [constants for constants in other._rows if constants not in self._rows]
        self._rows |= zip(new, count(self._next), strict=False)
        self._next += len(new)
        self._of_id = {}
        self.plans += [plans[constants] for constants in new]
        self.keys, self.waking = _both(self.keys, other.keys), _both(self.waking, other.waking)
        self.reach = max(self.reach, other.reach)
        return {number: self._rows[constants] for constants, number in other._rows.items()}

    @property
    def members(self) -> Iterable[tuple[Constants, int]]:
        """Its queries, by their constants, and their numbers."""
        return self._rows.items()

    # --- the plan -------------------------------------------------------------------------------------

    @property
    def tabled(self) -> bool:
        """Whether its rows say of which query they are."""
        return bool(self.slots)

    def lowered(self) -> Lowered:
        """The plan of all; no other query may join from now on."""
        if self.slots is None:
            self.slots = self._slots
        if not self.slots:
            return self._first.plan.answered.lowered
        rows = tuple((Literal(str(n)), *(each[i] for i in self.slots)) for each, n in self._rows.items())
        return self._first.over_table(self.slots, rows)

    def number(self, one: OneQuery) -> int:
        """Of its rows."""
        return self._rows[one.constants]

    def ids(self, numbers: Iterable[int]) -> NDArray[np.uint32]:
        """Terms that stand for numbers."""
        return np.array([self._terms.constant(Literal(str(n))) for n in numbers], np.uint32)

    def numbers(self, ids: NDArray[np.uint32]) -> list[int]:
        """And back."""
        if len(self._of_id) < len(self._rows):
            self._of_id = dict(zip(self.ids(self._rows.values()).tolist(), self._rows.values(), strict=True))
        return [self._of_id[number] for number in ids.tolist()]


def _both(some: frozenset[Key] | None, more: frozenset[Key] | None) -> frozenset[Key] | None:
    """Keys of either; None: any."""
    return None if some is None or more is None else some | more
