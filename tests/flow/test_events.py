"""MATCH as operators against Eq. 4 to 11, read word for word at every instant (semantics.md 4)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from hypothesis import given, note
from hypothesis import strategies as st
from profiles import drawn, thorough
from pyoxigraph import Literal, Variable

from oxiseq.engine.flow.delta import Delta
from oxiseq.engine.flow.events import EventRows, Events
from oxiseq.engine.flow.flow import Flow
from oxiseq.engine.flow.occurring import Occurring
from oxiseq.engine.flow.plan import FlowPlan, Given, Sheet
from oxiseq.engine.flow.relations import Relations
from oxiseq.engine.flow.stepping import Stepping, cut
from oxiseq.engine.flow.times import times_at
from oxiseq.engine.snapshot.container import pack, unpack
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.engine.terms.saved import KnownTerms, SavedTerms
from oxiseq.grammar.algebra import Choice, EventName, EventPattern, FirstOf, Following, LastOf

X, Y, Z = (Variable(name) for name in "xyz")
VARIABLES: Mapping[str, tuple[Variable, ...]] = {"A": (X, Y), "B": (X,), "C": (Y, Z), "D": (), "E": (X,)}
CERTAIN = {name: frozenset(variables) for name, variables in VARIABLES.items()} | {"E": frozenset[Variable]()}
"""E may leave x unbound: 0."""
Mu: TypeAlias = frozenset[tuple[Variable, int]]


# --- what it means -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Event:
    """(µ, t1, t2), and the places of the items that justify it, left to right."""

    mu: Mu
    start: int
    end: int
    items: tuple[int, ...]


Atoms: TypeAlias = Mapping[str, Sequence[Event]]
"""By name the mappings on the items of a window."""


def evaluate(pattern: EventPattern, atoms: Atoms, values: Mu = frozenset()) -> set[Event]:
    """µ(E): the values are put in at the events, before anything above them chooses."""
    match pattern:
        case EventName(name):
            return {e for e in atoms[name] if compatible(e.mu, values)}
        case FirstOf(inner):
            return first_of(evaluate(inner, atoms, values))
        case LastOf(inner):
            return last_of(evaluate(inner, atoms, values))
        case Following(left, right, Choice.NAIVE):
            return naive(left, right, atoms, values)
        case Following(left, right, choice):
            return sequence(left, right, choice, atoms, values)
    raise AssertionError(pattern)


def first_of(events: set[Event]) -> set[Event]:
    return {e for e in events if not any(o.end < e.end for o in events)}


def last_of(events: set[Event]) -> set[Event]:
    return {e for e in events if not any(o.end > e.end for o in events)}


def compatible(a: Mu, b: Mu) -> bool:
    return all(u == v for x, u in a for y, v in b if x == y)


def variables_of(pattern: EventPattern) -> list[Variable]:
    return list(dict.fromkeys(v for name in names_of(pattern) for v in VARIABLES[name]))


def names_of(pattern: EventPattern) -> Iterator[str]:
    match pattern:
        case EventName(name):
            yield name
        case FirstOf(inner) | LastOf(inner):
            yield from names_of(inner)
        case Following(left, right):
            yield from names_of(left)
            yield from names_of(right)


def naive(left: EventPattern, right: EventPattern, atoms: Atoms, values: Mu) -> set[Event]:
    """SEQ^n: the last of both, each on its own (Eq. 9)."""
    return {
        pair(first, second)
        for first in last_of(evaluate(left, atoms, values))
        for second in last_of(evaluate(right, atoms, values))
        if first.end < second.start and compatible(first.mu, second.mu)
    }


def sequence(left: EventPattern, right: EventPattern, choice: Choice, atoms: Atoms, values: Mu) -> set[Event]:
    """For each second mapping the first ones with its values on what lies before it (Eq. 7). SEQ^c, SEQ^r: of the
    second ones that have a first one and are equal on what is shared and has no value the first (last), and of their
    first ones the first (last)."""
    partners: dict[Event, set[Event]] = {}
    for second in evaluate(right, atoms, values):
        before = {name: [e for e in events if e.end < second.start] for name, events in atoms.items()}
        partners[second] = evaluate(left, before, values | second.mu)
    if choice in (Choice.CHRONOLOGICAL, Choice.RECENT):
        best = first_of if choice is Choice.CHRONOLOGICAL else last_of
        shared = (set(variables_of(left)) & set(variables_of(right))) - {v for v, _ in values}
        able = {second for second, firsts in partners.items() if firsts}

        def equals(second: Event) -> set[Event]:
            mine = {(v, value) for v, value in second.mu if v in shared}
            return {o for o in able if {(v, value) for v, value in o.mu if v in shared} == mine}

        partners = {second: best(partners[second]) for second in able if second in best(equals(second))}
    return {pair(first, second) for second, firsts in partners.items() for first in firsts}


def pair(first: Event, second: Event) -> Event:
    return Event(first.mu | second.mu, first.start, second.end, first.items + second.items)


# --- what is drawn -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Item:
    time: int
    found: dict[str, list[tuple[int, ...]]]
    """By event its mappings: values, 0 unbound."""


@dataclass(frozen=True)
class Case:
    pattern: EventPattern
    items: list[Item]
    ranges: dict[str, int]
    """A window holds what is not older than so much."""
    batch: int
    """Instants in one step."""


names = st.sampled_from("ABCDE").map(EventName)
choices = st.sampled_from([Choice.UNRESTRICTED, Choice.UNRESTRICTED, *Choice])


def deeper(inner: st.SearchStrategy[EventPattern]) -> st.SearchStrategy[EventPattern]:
    return st.one_of(inner.map(FirstOf), inner.map(LastOf), *[st.builds(Following, inner, inner, choices)] * 3)


patterns: st.SearchStrategy[EventPattern] = names
for _ in range(3):
    patterns = st.one_of(names, deeper(patterns), deeper(patterns))


@st.composite
def items(draw: st.DrawFn) -> list[Item]:
    time, made = 0, []
    for _ in range(draw(st.integers(2, 12))):
        time += draw(st.sampled_from([0, 1, 1, 2]))
        found = {}
        for name in draw(st.lists(st.sampled_from("ABCDE"), min_size=1, max_size=2, unique=True)):
            lowest = 0 if name == "E" else 1
            mapping = st.tuples(*[st.integers(lowest, 2)] * len(VARIABLES[name]))
            found[name] = draw(st.lists(mapping, min_size=1, max_size=2, unique=True))
        made.append(Item(time, found))
    return made


@st.composite
def cases(draw: st.DrawFn) -> Case:
    ranges = {name: draw(st.sampled_from([2, 4, 7, 30])) for name in "ABCDE"}
    return Case(draw(patterns), draw(items()), ranges, draw(st.sampled_from([1, 2, 5, 100])))


# --- at work -----------------------------------------------------------------------------------------


class Work:
    """A MATCH over one stream."""

    def __init__(self, pattern: EventPattern, *, items: bool = False, terms: TermDictionary | None = None) -> None:
        self.pattern, self.items = pattern, items
        self.terms = terms or TermDictionary()
        self.ids = [0, self.terms.intern(Literal("one")), self.terms.intern(Literal("two"))]
        self.rows = {name: EventRows(name, VARIABLES[name], CERTAIN[name]) for name in dict.fromkeys(names_of(pattern))}
        sheet = Sheet()
        events = Events(Relations(sheet), self.rows, items=items)
        self.variables = variables_of(pattern)
        relation, _ = events.match(pattern, self.variables, timed=True)
        used = [events.used(pattern)] if items else []
        self.plan: FlowPlan = sheet.plan(relation.node, tuple(each.node for each in used))
        self.sources = {name: Occurring(rows.given(items=items)) for name, rows in self.rows.items()}
        self.stepping: Stepping | None = None
        """What consumes items, where they are asked for."""
        if items:
            parts = cut(self.plan)
            self.plan = parts.rest
            self.stepping = Stepping(parts, used, self.sources, dict.fromkeys(self.sources, 0), self.terms)
        self.flow = Flow(self.plan, self.terms)

    def add(self, found: Sequence[tuple[int, Item]]) -> None:
        """Items by place."""
        for name, source in self.sources.items():
            each = [(place, item.time, row) for place, item in found for row in item.found.get(name, ())]
            values = [[self.ids[value] for value in row] for _, _, row in each]
            source.add(
                np.array([place for place, _, _ in each], np.int64),
                np.array([time for _, time, _ in each], np.int64),
                np.array(values, np.uint32).reshape(len(each), len(VARIABLES[name])),
            )

    def step(self, bounds: Mapping[str, Sequence[tuple[int, int]]], tick: int) -> Delta:
        """Windows go on, tick by tick."""
        ranges = {
            name: (np.array([low for low, _ in each], np.int64), np.array([high for _, high in each], np.int64))
            for name, each in bounds.items()
        }
        if self.stepping is None:
            given = {name: source.move(*ranges[name], 0) for name, source in self.sources.items()}
        else:
            ticks, given = self.stepping.through(ranges, np.zeros(len(next(iter(bounds.values()))), np.int64))
            assert (ticks == 1).all()
        for place, form in enumerate(self.plan.forms):
            if isinstance(form, Given):
                delta = given[form.name]
                self.flow.feed(place, Delta(delta.at + tick, delta.weight, delta.rows))
        return self.flow.step(tick)

    def again(self) -> Work:
        """The same, saved and restored with other ids."""
        named = SavedTerms(self.terms)
        parts = {"flow": self.flow.save(named), "sources": [s.save(named) for s in self.sources.values()]}
        if self.stepping is not None:
            parts["stepping"] = self.stepping.save(named)
        state = unpack(pack({**parts, "terms": named.state()}))
        terms = TermDictionary()
        for number in range(3):
            terms.intern(Literal(f"other {number}"))
        made = Work(self.pattern, items=self.items, terms=terms)
        known = KnownTerms(state["terms"], made.terms)
        made.flow.restore(state["flow"], known)
        if made.stepping is not None:
            made.stepping.restore(state["stepping"], known)
        for source, saved in zip(made.sources.values(), state["sources"], strict=True):
            source.restore(saved, known)
        return made

    def mapping(self, row: Sequence[int], start: int, end: int) -> tuple[Mu, int, int]:
        bound = zip(self.variables, map(self.ids.index, row), strict=False)
        return frozenset((v, value) for v, value in bound if value), start, end

    def changes(self, delta: Delta) -> Iterator[tuple[int, int, tuple[Mu, int, int]]]:
        """Tick, weight, mapping."""
        width = len(self.variables)
        times = zip(*(times_at(delta.rows, width + i).tolist() for i in (0, 2)), strict=True)
        rows = (self.mapping(row, *each) for row, each in zip(delta.rows[:, :width].tolist(), times, strict=True))
        yield from zip(delta.at.tolist(), delta.weight.tolist(), rows, strict=True)


def instants(case: Case) -> list[tuple[int, list[tuple[int, Item]]]]:
    """Each time with the items that come then, and one at which nothing comes."""
    placed = list(enumerate(case.items))
    times = sorted({item.time for item in case.items})
    return [(t, [(p, i) for p, i in placed if i.time == t]) for t in [*times, times[-1] + 3]]


def bounds_at(case: Case, name: str, time: int) -> tuple[int, int]:
    inside = [p for p, item in enumerate(case.items) if time - case.ranges[name] < item.time <= time]
    past = sum(item.time <= time for item in case.items)
    return (inside[0], past) if inside else (past, past)


def atoms_at(case: Case, time: int, used: set[int]) -> Atoms:
    found: dict[str, list[Event]] = {name: [] for name in VARIABLES}
    for name, variables in VARIABLES.items():
        for place in range(*bounds_at(case, name, time)):
            item = case.items[place]
            for row in item.found.get(name, ()) if place not in used else ():
                mu = frozenset((v, value) for v, value in zip(variables, row, strict=True) if value)
                found[name].append(Event(mu, item.time, item.time, (place,)))
    return found


def check(case: Case, save_before: int | None = None, change: Callable[[Work], Work] = Work.again) -> None:
    work, now, each = Work(case.pattern), set[tuple[Mu, int, int]](), instants(case)
    for number, first in enumerate(range(0, len(each), case.batch)):
        if number == save_before:
            work = change(work)
        some = each[first : first + case.batch]
        for _, come in some:
            work.add(come)
        bounds = {name: [bounds_at(case, name, time) for time, _ in some] for name in work.sources}
        changed = list(work.changes(work.step(bounds, first)))
        for tick, (time, _) in enumerate(some, first):
            for _, weight, mapping in (c for c in changed if c[0] == tick):
                assert (weight, mapping in now) in ((1, False), (-1, True))
                now ^= {mapping}
            note(f"at {time}")
            assert now == {(e.mu, e.start, e.end) for e in evaluate(case.pattern, atoms_at(case, time, set()))}


@thorough()
@given(cases())
def test_a_match_has_at_each_instant_the_mappings_that_its_definition_gives(case: Case) -> None:
    check(case)


@drawn(30)
@given(cases(), st.integers(0, 5))
def test_a_restored_match_goes_on_as_the_one_that_was_saved(case: Case, save_before: int) -> None:
    check(case, save_before)


@drawn(50)
@given(cases(), st.none() | st.integers(0, 5))
def test_items_that_justified_an_answer_are_not_used_again(case: Case, save_before: int | None) -> None:
    work, used, each = Work(case.pattern, items=True), set[int](), instants(case)
    now = set[tuple[Mu, int, int]]()
    for number, first in enumerate(range(0, len(each), case.batch)):
        if number == save_before:
            work = work.again()
        some = each[first : first + case.batch]
        for _, come in some:
            work.add(come)
        bounds = {name: [bounds_at(case, name, time) for time, _ in some] for name in work.sources}
        changed = list(work.changes(work.step(bounds, first)))
        for tick, (time, _) in enumerate(some, first):
            for _, _, mapping in (c for c in changed if c[0] == tick):
                now ^= {mapping}
            expected = evaluate(case.pattern, atoms_at(case, time, used))
            assert now == {(e.mu, e.start, e.end) for e in expected}
            used |= {item for e in expected for item in e.items}
