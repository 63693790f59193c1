"""Formula → position automaton (Glushkov): a letter per event of the formula, and which letters may follow.

A FILTER is pushed down to the letters that its variable holds at that place of the formula. An `OR` between
conditions is about all events of a variable, not event by event, so each alternative gets its copy of the
formula.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import field
from functools import reduce
from itertools import product
from math import prod

from oxiseq.engine.errors import LimitError
from oxiseq.grammar.algebra import Expression
from oxiseq.grammar.ceql_algebra import (
    AllOf,
    Condition,
    Either,
    EventType,
    Filtered,
    Follows,
    Formula,
    Holds,
    Iterated,
    Named,
)
from oxiseq.grammar.records import dataclass

MOST_LETTERS = 1000
"""Letters of one formula, all copies counted."""


@dataclass(frozen=True, slots=True)
class Letter:
    """An event of a type (its name) that satisfies all predicates; `names`: the variables that hold it."""

    type: str
    predicates: tuple[Expression, ...]
    names: frozenset[str]


@dataclass(frozen=True, slots=True)
class Positions:
    """The automaton. Sets of letters are integers: bit n is letter n.

    `at_once[n]`: letters that the very next event may be after letter n; `later[n]`: that any later event may be.
    """

    letters: tuple[Letter, ...]
    first: int
    last: int
    at_once: tuple[int, ...]
    later: tuple[int, ...]

    @property
    def short(self) -> bool:
        """Whether the events of a match directly follow each other, and are no more than the letters."""
        reached = self.first
        for _ in self.letters:
            reached = reduce(int.__or__, (self.at_once[n] for n in bits(reached)), 0)
        return not reached and not any(self.later)


def build_positions(formula: Formula) -> Positions:
    """The position automaton of a formula; LimitError if it has too many letters."""
    size = _size(formula)
    if size > MOST_LETTERS:
        raise LimitError(size, MOST_LETTERS, "events in WHERE, with a copy of the formula for each OR in FILTER")
    builder = _Builder()
    whole = builder.build(formula)
    letters = tuple(Letter(d.type, tuple(dict.fromkeys(d.predicates)), frozenset(d.names)) for d in builder.drafts)
    at_once = tuple(d.at_once for d in builder.drafts)
    later = tuple(d.later for d in builder.drafts)
    return Positions(letters, whole.first, whole.last, at_once, later)


def bits(members: int) -> Iterable[int]:
    """The members of a set of letters, ascending."""
    while members:
        low = members & -members
        yield low.bit_length() - 1
        members ^= low


@dataclass(slots=True)
class _Draft:
    """A letter under construction."""

    type: str
    names: set[str]
    predicates: list[Expression] = field(default_factory=list)
    at_once: int = 0
    later: int = 0


@dataclass(frozen=True, slots=True)
class _Part:
    """The sets of letters of a formula, of those that may come first and of those that may come last."""

    first: int
    last: int
    letters: int


class _Builder:
    def __init__(self) -> None:
        self.drafts: list[_Draft] = []

    def build(self, formula: Formula) -> _Part:
        match formula:
            case EventType(name):
                self.drafts.append(_Draft(name, {name}))
                bit = 1 << (len(self.drafts) - 1)
                return _Part(bit, bit, bit)
            case Named(inner, name):
                part = self.build(inner)
                for n in bits(part.letters):
                    self.drafts[n].names.add(name)
                return part
            case Filtered(inner, condition):
                return _union([self._filtered(inner, tests) for tests in _alternatives(condition)])
            case Either(formulas):
                return _union([self.build(f) for f in formulas])
            case Follows(first, rest):
                part = self.build(first)
                for contiguous, inner in rest:
                    after = self.build(inner)
                    self._link(part.last, after.first, contiguous)
                    part = _Part(part.first, after.last, part.letters | after.letters)
                return part
            case Iterated(inner, contiguous):
                part = self.build(inner)
                self._link(part.last, part.first, contiguous)
                return part

    def _filtered(self, inner: Formula, tests: tuple[Holds, ...]) -> _Part:
        part = self.build(inner)
        for test in tests:
            for n in bits(part.letters):
                if test.name in self.drafts[n].names:
                    self.drafts[n].predicates.append(test.predicate)
        return part

    def _link(self, before: int, after: int, contiguous: bool) -> None:
        for n in bits(before):
            if contiguous:
                self.drafts[n].at_once |= after
            else:
                self.drafts[n].later |= after


def _union(parts: list[_Part]) -> _Part:
    first = last = letters = 0
    for part in parts:
        first, last, letters = first | part.first, last | part.last, letters | part.letters
    return _Part(first, last, letters)


def _alternatives(condition: Condition) -> list[tuple[Holds, ...]]:
    """The condition as an OR of ANDs."""
    match condition:
        case Holds():
            return [(condition,)]
        case AllOf(conditions):
            ways = product(*(_alternatives(c) for c in conditions))
            return [tuple(test for way in chosen for test in way) for chosen in ways]
        case _:
            return [way for c in condition.conditions for way in _alternatives(c)]


def _ways(condition: Condition) -> int:
    """How many alternatives there are."""
    match condition:
        case Holds():
            return 1
        case AllOf(conditions):
            return prod(_ways(c) for c in conditions)
        case _:
            return sum(_ways(c) for c in condition.conditions)


def _size(formula: Formula) -> int:
    """How many letters the formula has."""
    match formula:
        case EventType():
            return 1
        case Named(inner) | Iterated(inner):
            return _size(inner)
        case Filtered(inner, condition):
            return _size(inner) * _ways(condition)
        case Either(formulas):
            return sum(_size(f) for f in formulas)
        case Follows(first, rest):
            return _size(first) + sum(_size(f) for _, f in rest)
