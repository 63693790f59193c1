"""How many complex events of a CEQL query end at each position: numbers only, for long streams.

Independent of `ceql.py`: the formula becomes an automaton over events, its subset construction reads each
(interval, D) in one way only, and the number of ways is a product of small matrices.

    formula → letters with first, last, follow → (subset, event, in D or not) → subset → matrices → numbers

A letter is a type with all predicates that FILTER asks of its variables; `OR` between conditions makes a copy of
the formula for each. A state is a letter that has just been read, or waited after. In a window the starts that
count are the last ones, so the product slides: two stacks give it with some two multiplications per event,
however long the window is.

Numbers are modulo 2**64. No strategies, no CONSUME BY, no LIMIT.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import pairwise
from typing import TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray
from pyoxigraph import Variable

from oxiseq.grammar.algebra import Expression, Term, Window
from oxiseq.grammar.ceql_algebra import (
    AllOf,
    AttributeWindow,
    CeqlQuery,
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
from reference.tuples import TupleEvent
from reference.values import ExpressionError, Number, holds, value_of

Clock = TypeVar("Clock", int, Fraction)
Counts: TypeAlias = NDArray[np.uint64]


def count_ends(query: CeqlQuery, events: Sequence[TupleEvent]) -> Counts:
    """Per event the number of complex events that end at it, modulo 2**64.

    An attribute that WITHIN names must not fall within a partition; ValueError if it does, or if the query has
    a strategy, CONSUME BY or LIMIT.
    """
    if query.selection or query.consumption or query.limit:
        raise ValueError("only all complex events can be counted")
    counts = np.zeros(len(events), np.uint64)
    seen = [Attributes(e, query.vocab or "") for e in events]
    automaton = Automaton(query)
    for mine in _partitions(query, seen):
        counts[mine] = _count([seen[i] for i in mine], automaton, query)
    return counts


@dataclass(frozen=True)
class Attributes:
    """An event with its attributes by name."""

    event: TupleEvent
    vocab: str
    values: dict[Variable, Term] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", self.event.attributes(self.vocab))


def _partitions(query: CeqlQuery, seen: Sequence[Attributes]) -> list[NDArray[np.int64]]:
    if query.partition is None:
        return [np.arange(len(seen))]
    found: dict[tuple[Term, ...], list[int]] = {}
    for index, e in enumerate(seen):
        key = [e.values[a] for a in query.partition.by if a in e.values]
        if len(key) == len(query.partition.by):
            found.setdefault(tuple(key), []).append(index)
    return [np.array(indices) for indices in found.values()]


# --- the automaton ----------------------------------------------------------------------------------


@dataclass
class Letter:
    """An event of a type that satisfies all predicates; `names` are the variables that hold it."""

    type: str
    names: set[str]
    predicates: list[Expression] = field(default_factory=list)


@dataclass
class Part:
    """A formula's letters: where it may begin and end."""

    first: list[int]
    last: list[int]
    letters: list[int]


class Automaton:
    """Letters and, for each, the letters that may be next: at once, or after any number of events."""

    def __init__(self, query: CeqlQuery) -> None:
        self.letters: list[Letter] = []
        self.at_once: dict[int, set[int]] = {}
        self.later: dict[int, set[int]] = {}
        whole = self._build(query.formula)
        self.first, self.last = frozenset(whole.first), frozenset(whole.last)
        kept = {c.name for c in query.columns} if query.columns is not None else None
        self.shown = [kept is None or bool(letter.names & kept) for letter in self.letters]
        self._vocab = query.vocab or ""
        self._known: dict[tuple[Term | str | None, ...], frozenset[int]] = {}
        self._asked = sorted({v for letter in self.letters for p in letter.predicates for v in _attributes(p)}, key=str)

    def _build(self, formula: Formula) -> Part:
        match formula:
            case EventType(name):
                self.letters.append(Letter(name, {name}))
                number = len(self.letters) - 1
                return Part([number], [number], [number])
            case Named(inner, name):
                part = self._build(inner)
                for n in part.letters:
                    self.letters[n].names.add(name)
                return part
            case Filtered(inner, condition):
                return self._union([self._filtered(inner, all_of) for all_of in _alternatives(condition)])
            case Either(formulas):
                return self._union([self._build(f) for f in formulas])
            case Follows(first, rest):
                part = self._build(first)
                for contiguous, inner in rest:
                    part = self._chained(part, self._build(inner), contiguous)
                return part
            case Iterated(inner, contiguous):
                part = self._build(inner)
                self._link(part.last, part.first, contiguous)
                return part

    def _filtered(self, inner: Formula, tests: list[Holds]) -> Part:
        part = self._build(inner)
        for test in tests:
            for n in part.letters:
                if test.name in self.letters[n].names:
                    self.letters[n].predicates.append(test.predicate)
        return part

    def _union(self, parts: list[Part]) -> Part:
        first, last = [n for p in parts for n in p.first], [n for p in parts for n in p.last]
        return Part(first, last, [n for p in parts for n in p.letters])

    def _chained(self, left: Part, right: Part, contiguous: bool) -> Part:
        self._link(left.last, right.first, contiguous)
        return Part(left.first, right.last, left.letters + right.letters)

    def _link(self, before: list[int], after: list[int], contiguous: bool) -> None:
        for n in before:
            (self.at_once if contiguous else self.later).setdefault(n, set()).update(after)

    def read_by(self, e: Attributes) -> frozenset[int]:
        """The letters that an event is."""
        key = (e.event.type, *(e.values.get(a) for a in self._asked))
        if key not in self._known:
            self._known[key] = frozenset(
                n
                for n, letter in enumerate(self.letters)
                if e.event.type == self._vocab + letter.type and all(holds(p, e.values) for p in letter.predicates)
            )
        return self._known[key]


def _alternatives(condition: Condition) -> list[list[Holds]]:
    """The condition as an OR of ANDs."""
    if isinstance(condition, Holds):
        return [[condition]]
    if not isinstance(condition, AllOf):
        return [way for c in condition.conditions for way in _alternatives(c)]
    ways: list[list[Holds]] = [[]]
    for c in condition.conditions:
        ways = [way + more for way in ways for more in _alternatives(c)]
    return ways


def _attributes(expression: Expression) -> Iterator[Variable]:
    if isinstance(expression, Variable):
        yield expression
    for arg in getattr(expression, "args", ()):
        yield from _attributes(arg)


# --- the subset construction ------------------------------------------------------------------------

Subset: TypeAlias = frozenset[tuple[int, bool]]
"""(letter, waited): the letter was the event just read, or an earlier one."""


@dataclass
class Subsets:
    """The subsets that some prefix of some complex event leads to, and what each kind of event does to them."""

    automaton: Automaton
    numbers: dict[Subset, int] = field(default_factory=dict)

    def number(self, subset: Subset) -> int:
        return self.numbers.setdefault(subset, len(self.numbers))

    def begin(self, read: frozenset[int]) -> list[int]:
        """Where an event that is the first one leads, in D and not in D."""
        begun = self.automaton.first & read
        return [self.number(s) for s in self._split({(n, False) for n in begun}, set()) if s]

    def step(self, subset: Subset, read: frozenset[int]) -> list[int]:
        """Where a later event leads, in D and not in D."""
        a = self.automaton
        reads = {(m, False) for n, _ in subset for m in a.later.get(n, set()) & read}
        reads |= {(m, False) for n, waited in subset if not waited for m in a.at_once.get(n, set()) & read}
        waits = {(n, True) for n, _ in subset if a.later.get(n)}
        return [self.number(s) for s in self._split(reads, waits) if s]

    def _split(self, reads: set[tuple[int, bool]], waits: set[tuple[int, bool]]) -> tuple[Subset, Subset]:
        shown = self.automaton.shown
        return frozenset(r for r in reads if shown[r[0]]), frozenset({r for r in reads if not shown[r[0]]} | waits)

    def accepting(self) -> NDArray[np.bool_]:
        last = self.automaton.last
        return np.array([any(n in last and not waited for n, waited in s) for s in self.numbers], bool)

    def explore(self, kinds: set[frozenset[int]]) -> dict[frozenset[int], Counts]:
        """One matrix per kind of event: row vectors of numbers, with a leading 1 from which matches begin."""
        moves: dict[frozenset[int], dict[int, list[int]]] = {kind: {} for kind in kinds}
        begins = {kind: self.begin(kind) for kind in kinds}
        done = 0
        while done < len(self.numbers):
            subset = list(self.numbers)[done]
            for kind in kinds:
                moves[kind][done] = self.step(subset, kind)
            done += 1
        matrices = {}
        for kind in kinds:
            matrix = np.zeros((done + 1, done + 1), np.uint64)
            matrix[0, 0] = 1
            for target in begins[kind]:
                matrix[0, target + 1] += np.uint64(1)
            for source, targets in moves[kind].items():
                for target in targets:
                    matrix[source + 1, target + 1] += np.uint64(1)
            matrices[kind] = matrix
        return matrices


# --- counting ---------------------------------------------------------------------------------------


def _count(events: Sequence[Attributes], automaton: Automaton, query: CeqlQuery) -> Counts:
    """For one partition."""
    read = [automaton.read_by(e) for e in events]
    subsets = Subsets(automaton)
    matrices = subsets.explore(set(read))
    size = len(subsets.numbers)
    accepting = np.concatenate([[False], subsets.accepting()]) if size else np.zeros(1, bool)
    inside, oldest = _windows(events, query)
    steps = [matrices[kind] if ok else _without_start(matrices[kind]) for kind, ok in zip(read, inside, strict=True)]
    counts = np.zeros(len(events), np.uint64)
    for j, row in enumerate(_sliding_products(steps, oldest)):
        if inside[j]:
            counts[j] = row[accepting].sum(dtype=np.uint64)
    return counts


def _without_start(matrix: Counts) -> Counts:
    """The same for an event at which no complex event in a window can begin."""
    changed = matrix.copy()
    changed[0, 1:] = 0
    return changed


def _sliding_products(steps: list[Counts], oldest: list[int]) -> Iterator[Counts]:
    """Row 0 of steps[oldest[j]] · ... · steps[j] for each j; `oldest` never falls.

    Two stacks: `front` holds the first rows of the products that begin at each index before `middle` and end
    before it, `back` is the product from `middle` to j.
    """
    front: dict[int, Counts] = {}
    middle = 0
    back: Counts | None = None
    for j, step in enumerate(steps):
        back = step if back is None else back @ step
        if oldest[j] >= middle and oldest[j] > 0:  # the front is used up: all of the back becomes front
            front, middle, back = _suffix_rows(steps, oldest[j], j), j + 1, None
        if middle == 0:
            assert back is not None
            yield back[0]
        elif back is None:
            yield front[oldest[j]]
        else:
            yield front[oldest[j]] @ back


def _suffix_rows(steps: list[Counts], begin: int, end: int) -> dict[int, Counts]:
    """First rows of steps[i] · ... · steps[end] for each i from `begin` on."""
    rows: dict[int, Counts] = {}
    product: Counts | None = None
    for i in range(end, begin - 1, -1):
        product = steps[i] if product is None else steps[i] @ product
        rows[i] = product[0]
    return rows


def _windows(events: Sequence[Attributes], query: CeqlQuery) -> tuple[list[bool], list[int]]:
    """Per event: whether it can bound a complex event, and the first event that one ending here may begin at."""
    match query.window:
        case None:
            return [True] * len(events), [0] * len(events)
        case Window(size, True):
            return [True] * len(events), [max(0, j - size) for j in range(len(events))]
        case Window(size):
            times = [e.event.time for e in events]
            return [True] * len(events), _oldest(times, lambda first, last: last - first <= size)
        case AttributeWindow(size, attribute):
            return _attribute_windows([e.values.get(attribute) for e in events], size)


def _oldest(clocks: Sequence[Clock], near: Callable[[Clock, Clock], bool]) -> list[int]:
    oldest, i = [], 0
    for j, now in enumerate(clocks):
        while i < j and not near(clocks[i], now):
            i += 1
        oldest.append(i)
    return oldest


def _attribute_windows(values: Sequence[Term | None], limit: Term) -> tuple[list[bool], list[int]]:
    """Exact for integers and decimals; others are no clocks."""
    clocks = [_exact(v) for v in values]
    given = [c for c in clocks if c is not None]
    if any(a > b for a, b in pairwise(given)):
        raise ValueError("the attribute of WITHIN falls")
    size = _exact(limit)
    if size is None:
        raise ValueError("the length of the window is not an exact number")
    filled, last = [], given[0] if given else Fraction(0)
    for c in clocks:  # an event without a value waits like the one before it
        last = c if c is not None else last
        filled.append(last)
    return [c is not None for c in clocks], _oldest(filled, lambda first, now: now - first <= size)


def _exact(term: Term | None) -> Fraction | None:
    try:
        value = value_of(term) if term is not None else None
    except ExpressionError:
        return None
    if isinstance(value, Number) and value.kind not in ("integer", "decimal"):
        raise ValueError("a window over floating point numbers")
    if not isinstance(value, Number):
        return None
    assert isinstance(value.value, Fraction)
    return value.value
