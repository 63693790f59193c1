"""EP-SPARQL queries that differ in constants only: they have one state as long as they have seen the same.

In the flow: plans of queries → **a table of their constants, one plan for all** → the run at work (intervals.py),
whose answers say of which query each is. A query may join until the plan is made, when something first comes that
concerns one of them; then only one whose constants the table has. Families whose states have come to be the same, but
for the rows of each query, become one; so all have the same places of constants in their tables.

Rows that do not depend on constants are the same for all queries of a family. So two families may become one when these
rows are equal in both; the rows of each query are taken over. Rows without a time are left out: they are rebuilt from
the knowledge base.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from copy import copy
from dataclasses import replace
from functools import cached_property
from itertools import count
from typing import Any, Protocol, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray
from pyoxigraph import Literal, Variable

from oxiseq.engine.events.faults import Faults
from oxiseq.engine.flow import plan as p
from oxiseq.engine.flow.delta import I64, Ids
from oxiseq.engine.flow.epsparql.lowering import Answered, Lowered, finished
from oxiseq.engine.flow.epsparql.query import IntervalPlan
from oxiseq.engine.flow.epsparql.relations import Timeless
from oxiseq.engine.flow.epsparql.standing import is_timed
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
from oxiseq.engine.flow.times import NEVER
from oxiseq.engine.kernels.flow.moments import INTERVAL
from oxiseq.engine.order.arrivals import Arrivals
from oxiseq.engine.run.concern import Key, keys_of
from oxiseq.engine.run.resets import Resets
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.engine.terms.saved import State

_TABLE = "constants of queries"
_KEEPING = (p.Arrange, p.Triples, p.Filter, p.Extend, p.Pick, p.Lasting, p.TimeTerm, p.Union, p.Once)


def opened_query(answered: Answered) -> Opened:
    """Raises NotLiftedError where no other query can share its plan, whatever its constants."""
    if answered.uses is not None:
        raise NotLiftedError("its answers use triples up")
    found = opened(answered.lowered.plan)
    over_table(answered.lowered, found, range(len(found.constants)), ())  # whether it can be
    return found


def over_table(lowered: Lowered, whole: Opened, slots: Sequence[int], rows: Sequence[tuple[Constant, ...]]) -> Lowered:
    """The plan of several queries, each of whose answers has the number of its row. whole: one of them; slots: those
    whose constants are in the table; rows: numbers, and the constants of these slots."""
    known: dict[Variable, Filling] = {slot(i): term for i, term in enumerate(whole.constants)}
    known |= {slot(place): parameter(i) for i, place in enumerate(slots)}
    sheet, table = p.Sheet(), p.Given(_TABLE, INTERVAL + 1 + len(slots), tuple(range(INTERVAL)), once=True)
    forms, constants = closed(whole.forms, known), [row[1:] for row in rows]
    made = lifted(sheet, forms, lowered.plan.widths, whole.root, table, constants, INTERVAL)
    timeless = (*lowered.timeless, (_TABLE, Timeless(1 + len(slots), tuple(rows), table=True)))
    return finished(sheet, [made.root], replace(lowered, timeless=timeless, numbered=tuple(made.numbered.items())))


def triples(plan: p.FlowPlan) -> Iterator[tuple[p.Triples, bool]]:
    """Its triple patterns, and whether their triples make no rows by themselves: they are only kept, one row or none
    each, until something comes behind them in a SEQ."""
    kept = [True] * len(plan.forms)
    for place in reversed(range(len(plan.forms))):
        form = plan.forms[place]
        kept[place] &= place != plan.root
        passes_on = isinstance(form, _KEEPING) and kept[place]
        for child in p.inputs(form):
            pairs = isinstance(form, p.Look) and (form.order, form.what) == ("BEFORE", "PAIRS")
            before = pairs and child == p.inputs(form)[1]
            kept[child] &= passes_on or before
        if isinstance(form, p.Triples):
            yield form, kept[place]


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


class Kept:
    """The timed rows of running plans. parts: their saved states; for the last one `numbered` gives by operator
    the column of its rows that says whose they are."""

    def __init__(self, parts: Sequence[State], numbered: Mapping[int, int]) -> None:
        self._parts = [{**part, "nodes": [*map(_timed, part["nodes"])]} for part in parts]
        self._numbered = numbered

    @property
    def _own(self) -> Iterator[tuple[int, int, State]]:
        """Operators whose rows are some query's, and the column."""
        nodes = self._parts[-1]["nodes"]
        return ((place, column, nodes[place]) for place, column in self._numbered.items())

    @cached_property
    def common(self) -> bytes:
        """A digest of the common part; empty for nothing."""
        found = []
        for number, part in enumerate(self._parts):
            own: Collection[int] = self._numbered if part is self._parts[-1] else ()
            nodes = (node for place, node in enumerate(part["nodes"]) if place not in own)
            found += [(number, place, _canonical(node)) for place, node in enumerate(nodes) if _has_rows(node)]
        return hashlib.blake2b(repr(found).encode(), digest_size=16).digest() if found else b""

    @property
    def is_nothing(self) -> bool:
        """Whether nothing with a time is kept."""
        return not self.common and not any(_has_rows(node) for _, _, node in self._own)

    def of(self, number: int) -> bytes:
        """A digest of a query's own rows; empty for none."""
        found = []
        for place, column, node in self._own:
            mine = node["rows"][:, column] == number
            rows = np.delete(node["rows"][mine], column, axis=1)
            found.append((place, _in_order(rows, node["weight"][mine])))
        some = any(rows for _, (rows, _) in found)
        return hashlib.blake2b(repr(found).encode(), digest_size=16).digest() if some else b""

    def with_others(self, others: Sequence[tuple[Kept, Mapping[int, int]]]) -> list[State]:
        """Its states with the queries' own rows in others, for `Flow.restore`. Of each: by number of a query that is
        taken over the number that it has here."""
        last = self._parts[-1]
        nodes = [*last["nodes"]]
        for place, column, node in self._own:
            every = [(node["rows"], node["weight"])]
            every += [_renumbered(other._parts[-1]["nodes"][place], column, numbers) for other, numbers in others]
            rows, weights = zip(*every, strict=True)
            nodes[place] = {"rows": np.concatenate(rows), "weight": np.concatenate(weights)}
        return [*self._parts[:-1], {**last, "nodes": nodes}]


class MayUnite(Protocol):
    """A run of a family."""

    resets: Resets
    faults: Faults

    @property
    def family(self) -> Family:
        """The queries that are in its state."""

    @property
    def order(self) -> Arrivals:
        """What puts its events in order."""

    @property
    def is_steady(self) -> bool:
        """Whether its state depends on events, and on the knowledge base's present content, alone."""

    @property
    def kept(self) -> Kept | None:
        """Its rows that have a time; None for none."""


Run = TypeVar("Run", bound=MayUnite)
Candidate: TypeAlias = tuple[Run, Kept | None]
"""A run, and its rows."""


def in_groups(runs: Sequence[Run]) -> Iterator[list[Candidate[Run]]]:
    """Several runs each that may become one, the largest first, if the same events wait for them."""
    states: dict[Hashable, list[Candidate[Run]]] = {}
    for run in runs:
        if run.is_steady:
            kept = run.kept
            state = run.order.times, run.resets, run.faults, b"" if kept is None else kept.common
            states.setdefault(state, []).append((run, kept))
    for same in states.values():
        for group in _by_table(same):
            if len(group) > 1:
                yield sorted(group, key=lambda each: (each[1] is None, -len(each[0].family)))


def _by_table(candidates: Sequence[Candidate[Run]]) -> Collection[list[Candidate[Run]]]:
    """Those over the same table; those that keep nothing may come to any that fits."""
    tables: dict[Hashable, list[Candidate[Run]]] = {}
    for run, kept in candidates:
        if kept is not None and run.family.slots:
            tables.setdefault((run.family.slots, run.family.fixed), []).append((run, kept))
    for run, kept in candidates:
        if kept is None:
            fitting = next((each for each in tables.values() if run.family.fits(each[0][0].family)), None)
            (tables.setdefault(None, []) if fitting is None else fitting).append((run, kept))
    return tables.values()


def _timed(node: State) -> State:
    """Of an operator that keeps rows, those that have a time; another keeps its rows."""
    if node.keys() != {"rows", "weight"}:
        return node
    chosen = is_timed(node["rows"])
    return {"rows": node["rows"][chosen], "weight": node["weight"][chosen]}


def _renumbered(node: State, column: int, numbers: Mapping[int, int]) -> tuple[Ids, I64]:
    """The rows of some queries, each behind another number."""
    chosen = np.isin(node["rows"][:, column], [*numbers])
    rows = node["rows"][chosen]
    rows[:, column] = [numbers[number] for number in rows[:, column].tolist()]
    return rows, node["weight"][chosen]


def _has_rows(state: Any) -> bool:
    """Whether there is anything in a saved state but counts."""
    match state:
        case dict():
            return any(map(_has_rows, state.values()))
        case list():
            return any(map(_has_rows, state))
    return isinstance(state, np.ndarray) and len(state) > 0


def _canonical(state: Any) -> Any:
    """The same for states that hold the same, in whatever order, at whatever tick."""
    match state:
        case {"rows": rows, "weight": weight, **more} if not more:
            return _in_order(rows, weight)
        case dict():
            return [(name, _canonical(each)) for name, each in state.items() if name != "tick"]
        case list():
            return [*map(_canonical, state)]
    return state.tobytes() if isinstance(state, np.ndarray) else state


def _in_order(rows: Ids, weight: I64) -> tuple[bytes, bytes]:
    order = np.lexsort(rows.T[::-1]) if len(rows) else np.zeros(0, np.int64)
    return rows[order].tobytes(), weight[order].astype(np.int64).tobytes()
