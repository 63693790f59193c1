"""CEQL queries that differ in the predicates of their events alone: they find their complex events in one run.

    events → marks (what the predicates have in common) → **rows**: an event, a query that reads it, its symbol
    → one automaton, in which each query is a partition → complex events of each query

Their automata are the same but for what the bits of a symbol mean. So one table of steps and one arena of nodes serve
all, and an event costs what it touches: queries whose atoms differ in a threshold stand on a *ladder*, and those that
an event concerns are its first ones.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable
from decimal import Decimal
from functools import cached_property
from itertools import chain
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from pyoxigraph import Variable

from oxiseq.engine.cea.composed import automaton_of
from oxiseq.engine.cea.events import Marks, kind_of
from oxiseq.engine.cea.facts import compile_facts
from oxiseq.engine.cea.plan import Atom, CeaPlan
from oxiseq.engine.cea.positions import bits
from oxiseq.engine.cea.term_marks import TermMarker, asked_of
from oxiseq.engine.plan.thresholds import Threshold, ValueRanks, threshold_of
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.grammar.algebra import Call, Expression
from oxiseq.grammar.ceql_algebra import AttributeWindow

I64: TypeAlias = NDArray[np.int64]


def why_not_alike(plan: CeaPlan) -> str | None:
    """Why a query shares nothing with others that differ in predicates; None: it does."""
    query, clauses, sets = plan.query, plan.clauses, plan.runner
    if query.totals is not None or clauses.chooses or sets.strict:
        return "its complex events are counted, chosen or contiguous"
    if clauses.partitioned:
        return "it has partitions of its own"
    window = query.window
    if any(sets.positions.at_once) or isinstance(window, AttributeWindow) or (window is not None and window.events):
        return "each event of its streams matters to it"
    if sets.ambiguous:
        return "several variables may hold an event"
    if automaton_of(plan) is None:
        return "its automaton is large"
    return None


def shape_of(plan: CeaPlan) -> Hashable | None:
    """The common part of alike queries; None: there are none."""
    if why_not_alike(plan) is not None:
        return None
    sets, positions = plan.runner, plan.runner.positions
    automaton = positions.first, positions.last, positions.later, sets.atom_of, sets.kept, sets.masks
    read = tuple(atom.type for atom in plan.letters), frozenset(asked_of(plan))
    return plan.query.vocab, plan.streams, plan.window is None, plan.clauses, automaton, read, len(sets.variables)


class Member(NamedTuple):
    """What distinguishes alike queries: their atoms, and how long (µs) their windows are."""

    atoms: tuple[Atom, ...]
    back: int

    @classmethod
    def of(cls, plan: CeaPlan) -> Member:
        """A query as one of alike ones."""
        return cls(plan.letters, kind_of(plan.query)[1])


class Rows(NamedTuple):
    """Of a batch, by event: which event it is, the number of a query that reads it, its symbol there."""

    event: I64
    number: I64
    symbol: NDArray[np.uint64]


class _Ladder(NamedTuple):
    """Queries in which a bit of a symbol means the same but for a threshold, the loosest one first. `column`: where
    marks have the value that it compares."""

    bit: int
    column: int
    numbers: I64
    ranks: ValueRanks | None


class TupleFamily:
    """Queries in one run, by number."""

    def __init__(self, plan: CeaPlan, terms: TermDictionary) -> None:
        self._plan, self._terms = plan, terms
        self._numbers: dict[Member, int] = {}
        self._next = 0
        self._free: list[int] = []
        self.shifts: dict[int, int] = {}
        """By how much a query's own positions are less, if they are."""
        self.stopped: set[int] = set()
        """Queries that get nothing more."""
        self.take_in(plan)

    def __len__(self) -> int:
        return len(self._numbers)

    def __contains__(self, plan: CeaPlan) -> bool:
        return Member.of(plan) in self._numbers

    def take_in(self, plan: CeaPlan) -> None:
        """One more query, or one that is equal."""
        if plan not in self:
            self._enter(Member.of(plan))
            self._change()

    def _enter(self, member: Member) -> int:
        number = self._numbers[member] = self._free.pop() if self._free else self._next
        self._next = max(self._next, number + 1)
        return number

    def number(self, plan: CeaPlan) -> int:
        """Of a query."""
        return self._numbers[Member.of(plan)]

    def meets(self, other: TupleFamily) -> bool:
        """Whether a query is equal to one of another family."""
        return not self._numbers.keys().isdisjoint(other._numbers)

    def absorb(self, other: TupleFamily, shift: int) -> list[tuple[int, int, int]]:
        """The queries of another, too, whose positions are more by `shift` here: their numbers there and here, and how
        long their windows are."""
        numbers = []
        for member, there in other._numbers.items():
            here = self._enter(member)
            numbers.append((there, here, member.back))
            self.shifts[here] = shift + other.shifts.get(there, 0)
            if there in other.stopped:
                self.stopped.add(here)
        self._change()
        return numbers

    def keep(self, kept: Collection[Member]) -> I64:
        """Forget all queries but these, while no event waits; the numbers of the others, which may be given again."""
        gone = [number for member, number in self._numbers.items() if member not in kept]
        self._numbers = {member: number for member, number in self._numbers.items() if member in kept}
        self._free += gone
        self.stopped.difference_update(gone)
        for number in gone:
            self.shifts.pop(number, None)
        self._change()
        return np.array(gone, np.int64)

    def _change(self) -> None:
        self.__dict__.pop("_atoms", None)
        self.__dict__.pop("marker", None)
        self.__dict__.pop("_ladders", None)

    # --- what its queries read ------------------------------------------------------------------------

    @cached_property
    def _atoms(self) -> dict[Atom, dict[tuple[int, Variable | None, str], list[tuple[Threshold | None, int]]]]:
        """By what is the same in atoms the queries that have them: by bit, by the variable and the operator of a
        threshold."""
        found: dict[Atom, dict[tuple[int, Variable | None, str], list[tuple[Threshold | None, int]]]] = {}
        for (atoms, _), number in self._numbers.items():
            for bit, atom in enumerate(atoms):
                common, rung = _without_threshold(atom)
                how = (bit, None, "") if rung is None else (bit, rung.variable, rung.operator)
                found.setdefault(common, {}).setdefault(how, []).append((rung, number))
        return found

    @cached_property
    def marker(self) -> TermMarker:
        """Marks events by what is the same in atoms; the values that thresholds compare are beside it."""
        return TermMarker(
            compile_facts(tuple(self._atoms)), self._plan.query.vocab or "", self._terms, summed=self._compared
        )

    @property
    def _compared(self) -> list[Variable]:
        ways = chain.from_iterable(self._atoms.values())
        return list(dict.fromkeys(variable for _, variable, _ in ways if variable is not None))

    @cached_property
    def _ladders(self) -> list[list[_Ladder]]:
        """By atom of the marker."""
        columns = {variable: i for i, variable in enumerate(self._compared)}
        return [
            [self._ladder(bit, variable, columns, queries) for (bit, variable, _), queries in ways.items()]
            for ways in self._atoms.values()
        ]

    def _ladder(
        self,
        bit: int,
        variable: Variable | None,
        columns: dict[Variable, int],
        queries: list[tuple[Threshold | None, int]],
    ) -> _Ladder:
        rungs = sorted(((rung, number) for rung, number in queries if rung is not None), key=_strictness)
        if variable is None or not rungs:
            return _Ladder(bit, 0, np.array([number for _, number in queries], np.int64), None)
        ranks = ValueRanks.of_thresholds([rung for rung, _ in rungs], self._terms)
        return _Ladder(bit, columns[variable], np.array([number for _, number in rungs], np.int64), ranks)

    def rows(self, marks: Marks) -> Rows:
        """Of marked events, by event."""
        parts = []
        present = int.from_bytes(np.bitwise_or.reduce(marks.symbol, axis=0).astype("<u8").tobytes(), "little")
        for atom in bits(present):
            events = np.flatnonzero(marks.symbol[:, atom >> 6] & np.uint64(1 << (atom & 63)))
            for ladder in self._ladders[atom]:
                passing: I64 = np.full(len(events), len(ladder.numbers))
                if ladder.ranks is not None:
                    passing = ladder.ranks.of(marks.values[events, ladder.column]).astype(np.int64)
                event = np.repeat(events, passing)
                place = np.arange(len(event)) - np.repeat(np.cumsum(passing) - passing, passing)
                parts.append((event, ladder.numbers[place], ladder.bit))
        event, number, symbol = self._together(parts)
        if self.stopped:
            going = ~np.isin(number, list(self.stopped))
            event, number, symbol = event[going], number[going], symbol[going]
        return Rows(event, number, symbol)

    def _together(self, parts: list[tuple[I64, I64, int]]) -> tuple[I64, I64, NDArray[np.uint64]]:
        """Rows of one bit each as rows of all bits, in the order of events."""
        nothing = np.zeros(0, np.int64)
        event = np.concatenate([nothing, *(part[0] for part in parts)])
        number = np.concatenate([nothing, *(part[1] for part in parts)])
        symbol = np.zeros((len(event), self._plan.runner.words), np.uint64)
        low = 0
        for part, _, bit in parts:
            symbol[low : low + len(part), bit >> 6] = 1 << (bit & 63)
            low += len(part)
        if len(parts) < 2:
            return event, number, symbol
        key = event * self._next + number
        order = np.argsort(key, kind="stable")
        key = key[order]
        first = np.flatnonzero(np.concatenate([[True], key[1:] != key[:-1]])) if len(key) else nothing
        one = order[first]
        whole = len(first) == len(key)
        return event[one], number[one], symbol[one] if whole else np.bitwise_or.reduceat(symbol[order], first, axis=0)

    def marks_of(self, number: int, marks: Marks) -> Marks:
        """Marked events as they are for one query alone."""
        rows = self.rows(marks)
        mine = rows.number == number
        symbol = np.zeros((len(marks), self._plan.runner.words), np.uint64)
        symbol[rows.event[mine]] = rows.symbol[mine]
        return Marks(symbol, marks.time, None, np.zeros((len(marks), 0), np.int64))


def _strictness(rung: tuple[Threshold, int]) -> Decimal:
    return rung[0].strictness


def _without_threshold(atom: Atom) -> tuple[Atom, Threshold | None]:
    """An atom without its first threshold, and that."""
    parts = tuple(chain.from_iterable(map(_conjuncts, atom.predicates)))
    for i, each in enumerate(parts):
        found = threshold_of("", each)
        if found is not None:
            return Atom(atom.type, (*parts[:i], *parts[i + 1 :])), found
    return atom, None


def _conjuncts(predicate: Expression) -> tuple[Expression, ...]:
    match predicate:
        case Call("&&", parts):
            return tuple(chain.from_iterable(map(_conjuncts, parts)))
    return (predicate,)
