"""States: a position together with what is bound there, and the edges between states.

In the flow: positions → **states** → edges with live keys. Which variables a run has bound depends on
its way, so a state is (position, variables bound in each scope, bound for sure or perhaps). That is static:
the kernel never tests. Scopes follow semantics.md 2.4: each iteration of a repeat sees what was before the
repeat (σ) and itself; after the repeat the last iteration stays visible. See engine.md, section 2.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import field, replace
from enum import Enum
from typing import TypeAlias

from pyoxigraph import Variable

from oxiseq.engine.errors import LimitError
from oxiseq.engine.expressions.exists import graph_of
from oxiseq.engine.sequence.asked import NOTHING_ASKED, Asked, Fold, gpm_of_time, previous_name, time_of
from oxiseq.engine.sequence.positions import START, Automaton, Guard, LastingSpan, Letter, Position, Transition
from oxiseq.grammar.algebra import Expression, MatchFunction, Op
from oxiseq.grammar.records import dataclass
from oxiseq.grammar.scope import GpmParts, exists_in, expression_variables, match_parts, prev_variables

MAX_STATES = 4_000
PARTITION = Variable("__partition")
"""Stands for the partition of PARTITION BY: every GPM's rows bind it, to the number of their partition."""


class ValueKind(Enum):
    """What a run may have to remember."""

    BOUND = "bound"
    PREVIOUS = "previous"
    START = "start"
    NEGATED = "negated"
    SPAN = "span"
    FOLD = "fold"
    LAST = "last"

    __hash__ = object.__hash__  # that of an Enum is a function of Python's


@dataclass(frozen=True, slots=True)
class Value:
    """Something a run carries in a state: a variable's value in a scope (level 0 is outside all repeats), its
    value in the previous iteration, an aggregate over iterations (its variable stands for it), the clock of the run's
    start, the last clock of a leading negation, the time (µs) at which the LASTING of number `level` began, or that of
    its last event."""

    kind: ValueKind
    level: int = 0
    variable: Variable | None = None


RUN_START = Value(ValueKind.START)
LAST_NEGATED = Value(ValueKind.NEGATED)
LAST_EVENT = Value(ValueKind.LAST)


@dataclass(frozen=True, slots=True)
class Column:
    """The value comes from the row that fires."""

    variable: Variable


@dataclass(frozen=True, slots=True)
class Kept:
    """The value comes from the run."""

    value: Value


@dataclass(frozen=True, slots=True)
class Either:
    """The row's value where it is bound, else the run's."""

    variable: Variable
    value: Value


@dataclass(frozen=True, slots=True)
class Unbound:
    """Nothing binds it here."""


@dataclass(frozen=True, slots=True)
class RowClock:
    """The clock of the row that starts the run."""


@dataclass(frozen=True, slots=True)
class NegatedClock:
    """The last clock at which a leading negation was seen."""


@dataclass(frozen=True, slots=True)
class RowTime:
    """The time of the row that fires, in µs."""


@dataclass(frozen=True, slots=True)
class Folded:
    """What the row makes of the run's value; None: it is the first iteration."""

    fold: Fold
    value: Value | None


Source: TypeAlias = Column | Kept | Either | Unbound | RowClock | NegatedClock | RowTime | Folded


@dataclass(frozen=True, slots=True)
class FilterCheck:
    """A stateful filter and where each of its variables comes from; `original` is what the text says."""

    condition: Expression
    sources: tuple[tuple[Variable, Source], ...]
    original: Expression


@dataclass(frozen=True, slots=True)
class Check:
    """What a row and a run must agree on: same term, same term unless one is unbound, filters."""

    equal: tuple[tuple[Variable, Value], ...]
    compatible: tuple[tuple[Variable, Value], ...]
    filters: tuple[FilterCheck, ...]


@dataclass(frozen=True, slots=True)
class Arm:
    """One letter that an edge waits for, and how the target state's values are filled."""

    letter: Letter
    check: Check
    target: int
    fill: tuple[tuple[Value, Source], ...]


@dataclass(frozen=True, slots=True)
class GuardCheck:
    letter: Letter
    check: Check


@dataclass(frozen=True, slots=True)
class Move:
    """A step of a negated group that is not its last one: runs that such a row joins go on to the edge `to`."""

    letter: Letter
    check: Check
    to: int


@dataclass(frozen=True, slots=True)
class Edge:
    """A wait: from a state (or START) by an operator; `arms` fire it, `guards` kill it.

    With bounds a gap is a chain of edges with one key, its *age segments*: a run that is older than `limit` moves to
    the edge `then` (semantics.md 2.5b, answers.md 3.3). From the steps of a negated group with a bound it moves there
    when that has passed. An edge may also be the end of matches that are counted.
    """

    source: int
    op: Op
    arms: tuple[Arm, ...]
    guards: tuple[GuardCheck, ...]
    again: int | None = None
    """The repeat whose next iteration begins with it."""
    waits: bool = False
    """Trailing negation: a run that stays until the window closes, or the last segment ends, is a match."""
    limit: int | None = None
    """How old (µs) a run gets here."""
    then: int | None = None
    follows: bool = False
    """Reached from the segment, or the step of a negated group, before it only."""
    least: int = 0
    most: int | None = None
    """Of an edge by `,`, which has no segments: the bounds of its gap in µs."""
    lasting: tuple[tuple[Value, int], ...] = ()
    """(when it began, how long it may last) for each LASTING that the gap lies in, and, in a gap with a negated group,
    for an age segment: runs come to its steps in another order than to the gap. A run that is still there goes on to
    `then`, or is a match at the end of SEQ."""
    moves: tuple[Move, ...] = ()
    """Of a gap with a negated group: what takes runs to the edge that waits for the group's next step."""
    counts: tuple[Value, ...] | None = None
    """The end of counted matches: the values that distinguish them. It waits for nothing."""

    @property
    def compared(self) -> tuple[tuple[Letter, Check], ...]:
        """What rows of each letter are compared with there."""
        arms, guards = ((x.letter, x.check) for x in self.arms), ((x.letter, x.check) for x in self.guards)
        return (*arms, *guards, *((x.letter, x.check) for x in self.moves))

    @property
    def longest(self) -> int | None:
        """How long (µs) after the gap's beginning this segment, or each step of a negated group, has a run wait."""
        return min((size for value, size in self.lasting if value == LAST_EVENT), default=self.limit)

    @property
    def passes(self) -> bool:
        """Whether time makes runs matches there that do not wait for a window's end alone."""
        return self.waits and self.longest is not None

    @property
    def bounded(self) -> bool:
        """Whether the time that has passed decides something."""
        return self.limit is not None or bool(self.least) or self.most is not None or bool(self.lasting)


@dataclass(frozen=True, slots=True)
class State:
    """`final`: a run that gets here is a match. `negated`: its start had a leading negation in a sliding
    window, to be checked against the last event."""

    position: int
    values: frozenset[Value]
    final: bool
    negated: bool


@dataclass(frozen=True, slots=True)
class StateGraph:
    states: tuple[State, ...]
    edges: tuple[Edge, ...]

    @property
    def longest_wait(self) -> int | None:
        """How long (µs) after its last event a match may be undecided, its window aside; None where only the end of the
        window decides, and where nothing waits."""
        limits = [edge.longest for edge in self.edges if edge.waits and edge.then is None]
        return None if None in limits else max((x for x in limits if x is not None), default=None)

    @property
    def longest_bound(self) -> int:
        """The longest bound (µs) of those that trailing negations have; 0: none has one."""
        return max((edge.longest or 0 for edge in self.edges if edge.waits), default=0)


@dataclass(frozen=True, slots=True)
class LetterScope:
    """What a letter's rows bind: for sure, and at all; and the stateful filters of its GPMs."""

    letter: Letter
    certain: frozenset[Variable]
    variables: frozenset[Variable]
    filters: tuple[Expression, ...]


def letter_scope(letter: Letter, parts: Mapping[str, GpmParts], asked: Asked = NOTHING_ASKED) -> LetterScope:
    """The scope of a conjunction of GPMs."""
    gpms = [parts[name] for name in letter]
    times = frozenset(time_of(name) for name in asked.timed.intersection(letter))
    own = own_filters(letter, parts)
    pending = tuple(f for g in gpms for f in g.stateful if f not in own)
    variables = frozenset(v for g in gpms for v in g.variables) | times
    return LetterScope(letter, frozenset(v for g in gpms for v in g.certain) | times, variables, pending)


def own_filters(letter: Letter, parts: Mapping[str, GpmParts]) -> tuple[Expression, ...]:
    """Stateful filters that the letter's own GPMs can decide together (`A & B` may filter on each other)."""
    variables = frozenset(v for name in letter for v in parts[name].variables)
    return tuple(f for name in letter for f in parts[name].stateful if _own(f, letter, variables))


def _own(condition: Expression, letter: Letter, variables: frozenset[Variable]) -> bool:
    if prev_variables(condition) or not expression_variables(condition) <= variables:
        return False
    here = all(isinstance(e, MatchFunction) and (e.gpm or letter[0]) in letter for e in match_parts(condition))
    return here and not any(e.name == "COUNT" for e in match_parts(condition))


@dataclass(frozen=True, slots=True)
class _Cell:
    certain: bool
    source: Source


@dataclass(slots=True)
class _Scopes:
    """Variables by level, per repeat the previous iteration's values (None: no iteration before), what aggregates over
    iterations have come to, and what has ever been bound of the variables that FILTERs of UNTIL read."""

    levels: list[dict[Variable, _Cell]]
    previous: list[dict[Variable, _Cell] | None]
    negated: bool = False
    folds: dict[Fold, Source] = field(default_factory=dict)
    ever: frozenset[Variable] = frozenset()

    def copy(self) -> _Scopes:
        return _Scopes(
            [dict(x) for x in self.levels],
            [None if p is None else dict(p) for p in self.previous],
            self.negated,
            dict(self.folds),
            self.ever,
        )

    def find(self, variable: Variable) -> _Cell | None:
        for level in reversed(self.levels):
            if variable in level:
                return level[variable]
        return None

    def leave_to(self, depth: int) -> None:
        """Leave inner repeats until `depth` levels are left: the last iteration stays visible outside."""
        while len(self.levels) > depth:
            inner = self.levels.pop()
            self.previous.pop()
            for variable, cell in inner.items():
                outer = self.find(variable)
                if outer is None or not outer.certain:
                    self.levels[-1][variable] = cell

    def enter(self, depth: int) -> None:
        while len(self.levels) < depth:
            self.levels.append({})
            self.previous.append(None)

    def again(self, wanted: Iterable[Variable] | None) -> None:
        """Begin the innermost repeat's next iteration; `wanted` of the one before, None where it is not needed."""
        if wanted is not None:
            found = {v: self.find(v) for v in wanted}
            self.previous[-1] = {v: cell for v, cell in found.items() if cell is not None}
        self.levels[-1] = {}

    def bind(self, scope: LetterScope, relevant: frozenset[Variable], agreed: frozenset[Variable]) -> None:
        for variable in sorted(scope.variables & relevant, key=str):
            cell = self.find(variable)
            sure = variable in scope.certain
            if cell is None or (not cell.certain and sure):
                level = 0 if variable in agreed else -1
                self.levels[level][variable] = _Cell(sure, Column(variable))
            elif not cell.certain:
                self.levels[-1][variable] = _Cell(False, _either(variable, cell.source))

    def iterate(self, letter: Letter, folds: Iterable[Fold]) -> None:
        """A row of the letter is one more iteration of its GPMs."""
        for fold in folds:
            if fold.gpm not in letter:
                continue
            kept = self.folds.get(fold)
            if kept is None or fold.aggregate.name == "LAST":
                self.folds[fold] = Folded(fold, None) if fold.column is None else Column(fold.column)
            elif fold.goes_on:
                assert isinstance(kept, Kept)
                self.folds[fold] = Folded(fold, kept.value)


def _either(variable: Variable, source: Source) -> Source:
    return Either(variable, source.value) if isinstance(source, Kept) else source


@dataclass(frozen=True, slots=True)
class _Guarded:
    """A guard with what each letter of each of its steps is compared with; only a negated group has several steps."""

    steps: tuple[tuple[GuardCheck, ...], ...]
    within: int | None

    def reaches(self, age: int | None) -> bool:
        """Whether it is still at work when a run gets older than that."""
        return self.within is None or (age is not None and age < self.within)


_ANY = [(0, None)]
"""The ranges of ages of a gap without bounds."""

_Signature: TypeAlias = tuple[object, ...]


@dataclass(slots=True)
class StateBuilder:
    """Explores the states that the automaton's positions can be in.

    `by`: the variables of PARTITION BY where instants are those of partitions; they need no comparing, partitions are
    compared. In a sliding window counted matches differ by their starts, too.
    """

    automaton: Automaton
    parts: Mapping[str, GpmParts]
    sliding: bool
    by: tuple[Variable, ...] = ()
    agreed: frozenset[Variable] = frozenset()
    """On which all of a match agrees, iterations, too."""
    asked: Asked = NOTHING_ASKED
    told_apart: frozenset[Variable] | None = None
    """The variables whose values distinguish counted matches."""
    earlier: Mapping[str, AbstractSet[str]] = field(default_factory=dict)
    """By GPM the positive ones that stand before it in the text."""
    scopes: dict[Letter, LetterScope] = field(default_factory=dict)
    watched: frozenset[Variable] = frozenset()
    """What FILTERs of UNTIL read of others."""
    binders: dict[Variable, list[str]] = field(default_factory=dict)
    """The GPMs that bind a variable."""
    relevant: frozenset[Variable] = frozenset()
    wanted: dict[int, list[Variable]] = field(default_factory=dict)
    timed: frozenset[int] = frozenset()
    """Positions of whose last event runs carry the time."""
    leaving: dict[int, list[Transition]] = field(default_factory=dict)
    """The automaton's transitions, by their sources."""
    known: dict[_Signature, int] = field(default_factory=dict)
    entered: list[tuple[int, _Scopes]] = field(default_factory=list)
    edges: list[Edge] = field(default_factory=list)

    def build(self) -> StateGraph:
        """All states reachable from the start and the edges between them."""
        self._collect()
        begin = _Scopes([{}], [])
        for way in self._ways(START):
            self._edge(START, begin, (), way)
        done = 0
        while done < len(self.entered):
            position, scopes = self.entered[done]
            for way in self._ways(position):
                self._edge(done, scopes, self.automaton.positions[position].loops, way)
            self._waits(done, position, scopes)
            done += 1
        states = tuple(self._state(p, s) for p, s in self.entered)
        if self.told_apart is None:
            return StateGraph(states, tuple(self.edges))
        ends = (Edge(n, Op.ANY, (), (), counts=self._values(state)) for n, state in enumerate(states) if state.final)
        counted = tuple(replace(state, final=False) for state in states)
        return StateGraph(counted, (*self.edges, *ends))

    def _values(self, state: State) -> tuple[Value, ...]:
        """What distinguishes counted matches that end in a state: of each variable the innermost value."""
        assert self.told_apart is not None
        innermost: dict[Variable, Value] = {}
        for value in sorted(state.values, key=lambda value: value.level):
            if value.kind is ValueKind.BOUND and value.variable in self.told_apart:
                innermost[value.variable] = value
        return (*innermost.values(), *([RUN_START] if self.sliding else []))

    def _scope(self, letter: Letter) -> LetterScope:
        scope = letter_scope(letter, self.parts, self.asked)
        if not self.by:
            return scope
        return replace(scope, certain=scope.certain | {PARTITION}, variables=scope.variables | {PARTITION})

    def _ways(self, source: int) -> list[Transition]:
        return self.leaving.get(source, [])

    def _collect(self) -> None:
        positions = self.automaton.positions
        for way in self.automaton.transitions:
            self.leaving.setdefault(way.source, []).append(way)
        self.timed = frozenset(self._bounded_groups())
        guards = [g for way in self.automaton.transitions for g in way.left + way.right]
        guards += [g for ending in self.automaton.endings for g in ending.guards]
        letters = [x for p in positions for x in p.letters] + [x for g in guards for x in g.letters]
        self.scopes = {x: self._scope(x) for x in letters}
        names = {name for x in letters for name in x}
        read: set[Variable] = set()
        for name in names:
            for variable in self.parts[name].variables:
                self.binders.setdefault(variable, []).append(name)
            for condition in self.parts[name].stateful:
                read |= expression_variables(self.asked.named(condition, name)) | prev_variables(condition)
        joined = {v for v, binders in self.binders.items() if len(binders) > 1 and v not in self.by}
        told_apart = self.told_apart or frozenset()
        self.relevant = frozenset(joined | read | told_apart | self.agreed)
        stops = [self.scopes[x] for x in dict.fromkeys(x for g in guards if g.everywhere for x in g.letters)]
        self.watched = frozenset(v for scope in stops for c in scope.filters for v in self._read(c, scope))
        places: list[Position | Guard] = [*positions, *guards]
        for place in places:
            for letter in place.letters:
                for condition in self.scopes[letter].filters:
                    if place.loops and self._compares_iterations(condition, letter):
                        kept = self.wanted.setdefault(place.loops[-1], [])
                        kept += [v for v in sorted(prev_variables(condition), key=str) if v not in kept]

    def _compares_iterations(self, condition: Expression, letter: Letter) -> bool:
        """Whether a condition of the letter is about its own earlier iterations."""
        return bool(prev_variables(condition)) or any(f.gpm in letter for f in self.asked.folds_in(condition))

    # --- edges ------------------------------------------------------------------------------------

    def _edge(self, source: int, scopes: _Scopes, loops: tuple[int, ...], way: Transition) -> None:
        target = self.automaton.positions[way.target]
        guards = [self._guard(g, scopes) for g in way.left if not g.everywhere or self._is_ready(g, scopes, target)]
        after = scopes.copy()
        if way.again is not None:
            after.leave_to(target.loops.index(way.again) + 2)
            after.again(self.wanted.get(way.again))
        else:
            after.leave_to(_common(loops, target.loops) + 1)
        after.enter(len(target.loops) + 1)
        if source == START:
            after.negated = bool(way.right) and self.sliding
        guards += [self._guard(g, after) for g in way.right]
        arms = tuple(self._arm(letter, way, after) for letter in target.letters)
        lasting = tuple((span_value(span), span.size) for span in target.spans[: way.inside])
        if source == START:  # no gap, so no bound on it
            self.edges.append(Edge(source, way.op, arms, tuple(g.steps[-1][0] for g in guards), way.again))
        elif way.op is Op.STRICT:  # between neighbouring instants nothing can lie: guards on a ',' edge are vacuous
            self.edges.append(
                Edge(source, way.op, arms, (), way.again, least=way.least, most=way.most, lasting=lasting)
            )
        else:
            gap = Edge(source, way.op, arms, (), way.again, lasting=lasting)
            self._segments(gap, way.least, way.most, guards)

    def _waits(self, state: int, position: int, scopes: _Scopes) -> None:
        for ending in self.automaton.endings:
            if ending.source == position and ending.guards:
                guards = [self._guard(g, scopes) for g in ending.guards]
                bounds = [g.within for g in ending.guards]
                most = None if None in bounds else max(b for b in bounds if b is not None)
                self._segments(Edge(state, Op.ANY, (), (), waits=True), 0, most, guards)

    def _bounded_groups(self) -> Iterator[int]:
        """Where gaps begin that have a negated group and a bound: runs carry when that was."""
        for way in self.automaton.transitions:
            guards = way.left + way.right
            if way.op is Op.STRICT or not _has_group(guards):
                continue
            if age_ranges(way.least, way.most, _ends(guards)) != _ANY:
                yield way.source
        for ending in self.automaton.endings:
            if _has_group(ending.guards) and any(end is not None for end in _ends(ending.guards)):
                yield ending.source

    def _segments(self, gap: Edge, least: int, most: int | None, guards: Sequence[_Guarded]) -> None:
        """The gap as a chain of edges, one for each range of ages in which the same arms and guards are at work; where
        a negated group is at work there is one for each of its steps, in each of these ranges."""
        group = next((each for each in guards if len(each.steps) > 1), None)
        ranges = age_ranges(least, most, _ends(guards))
        first = len(self.edges)
        for number, (low, limit) in enumerate(ranges):
            here = [each for each in guards if each.within is None or low <= each.within]
            alone = tuple(each.steps[0][0] for each in here if each is not group)
            steps = group.steps if group is not None and group in here else ()
            following = first + max(len(steps), 1)
            goes_on = group is not None and number + 1 < len(ranges) and group.reaches(limit)
            arms = gap.arms if low >= least else ()
            lasting, limit = (gap.lasting, limit) if group is None else (_lasts(gap.lasting, limit), gap.limit)
            for at in range(max(len(steps), 1)):
                then = None if number + 1 == len(ranges) else following + (at if goes_on else 0)
                last = at + 1 >= len(steps)
                moves = () if last else tuple(Move(check.letter, check.check, first + at + 1) for check in steps[at])
                kills = (*alone, *(steps[at] if steps and last else ()))
                follows = number > 0 or at > 0
                part = replace(
                    gap, arms=arms, guards=kills, moves=moves, limit=limit, lasting=lasting, then=then, follows=follows
                )
                self.edges.append(part)
            first = following

    def _is_ready(self, guard: Guard, seen: _Scopes, target: Position) -> bool:
        """Whether the run has bound all that the guard's FILTERs read, or has left it out on its way to the target."""
        passed = [self.earlier[name] for letter in target.letters for name in letter]

        def left_out(variable: Variable) -> bool:
            names = (*self.binders.get(variable, ()), gpm_of_time(variable))
            return any(name in earlier for name in names for earlier in passed)

        for scope in (self.scopes[letter] for letter in guard.letters):
            for condition in scope.filters:
                folds = (fold for fold in self.asked.folds_in(condition) if fold not in seen.folds)
                if any(v not in seen.ever and not left_out(v) for v in self._read(condition, scope)):
                    return False
                if any(fold.gpm not in earlier for fold in folds for earlier in passed):
                    return False
        return True

    def _read(self, condition: Expression, scope: LetterScope) -> frozenset[Variable]:
        """The variables of other letters in a condition, times among them."""
        named = self.asked.named(condition, scope.letter[0])
        return expression_variables(named) - scope.variables - frozenset(self.asked.folds.values())

    def _guard(self, guard: Guard, scopes: _Scopes) -> _Guarded:
        seen = scopes.copy()
        seen.leave_to(len(guard.loops) + 1)
        steps = tuple(tuple(GuardCheck(x, self._check(self.scopes[x], seen)) for x in step) for step in guard.steps)
        return _Guarded(steps, guard.within)

    def _arm(self, letter: Letter, way: Transition, before: _Scopes) -> Arm:
        scope = self.scopes[letter]
        after = before.copy()
        after.bind(scope, self.relevant, self.agreed)
        after.iterate(letter, self.asked.folds)
        after.ever |= scope.variables & self.watched
        target = self._enter(way.target, after)
        spans = self.automaton.positions[way.target].spans
        fill = self._fill(after, way.source == START, spans, way.inside, way.target)
        return Arm(letter, self._check(scope, before), target, tuple(fill))

    def _fill(
        self, after: _Scopes, starts: bool, spans: tuple[LastingSpan, ...], inside: int, target: int
    ) -> Iterable[tuple[Value, Source]]:
        for value, cell in _cells(after):
            yield value, cell.source
        for fold, source in after.folds.items():
            yield self._value_of(fold), source
        if self.sliding:
            yield RUN_START, RowClock() if starts else Kept(RUN_START)
        if after.negated:
            yield LAST_NEGATED, NegatedClock() if starts else Kept(LAST_NEGATED)
        for depth, span in enumerate(spans):
            value = span_value(span)
            yield value, Kept(value) if depth < inside else RowTime()
        if target in self.timed:
            yield LAST_EVENT, RowTime()

    def _check(self, scope: LetterScope, before: _Scopes) -> Check:
        equal: list[tuple[Variable, Value]] = []
        compatible: list[tuple[Variable, Value]] = []
        for variable in sorted(scope.variables & self.relevant, key=str):
            cell = before.find(variable)
            if cell is not None and isinstance(cell.source, Kept):
                sure = cell.certain and variable in scope.certain
                (equal if sure else compatible).append((variable, cell.source.value))
        filters = [f for f in (self._filter(c, scope, before) for c in scope.filters) if f is not None]
        return Check(tuple(equal), tuple(compatible), tuple(filters))

    def _filter(self, condition: Expression, scope: LetterScope, before: _Scopes) -> FilterCheck | None:
        earlier = before.previous[-1] if before.previous else None
        if earlier is None and self._compares_iterations(condition, scope.letter):
            return None  # the first iteration has no previous one
        named = self.asked.named(condition, scope.letter[0], frozenset(before.folds))
        sources = {v: self._lookup(v, scope, before) for v in sorted(expression_variables(named), key=str)}
        for variable in sorted(prev_variables(condition), key=str):
            cell = (earlier or {}).get(variable)
            sources[previous_name(variable)] = cell.source if cell else Unbound()
        for fold in self.asked.folds_in(condition):
            sources[self.asked.folds[fold]] = before.folds.get(fold, Unbound())
        for exists in exists_in(condition):
            sources[graph_of(exists.gpm)] = Column(graph_of(exists.gpm))
        return FilterCheck(named, tuple(sources.items()), condition)

    def _lookup(self, variable: Variable, scope: LetterScope, before: _Scopes) -> Source:
        cell = before.find(variable)
        if variable not in scope.variables:
            return cell.source if cell else Unbound()
        if variable in scope.certain or cell is None:
            return Column(variable)
        return cell.source if cell.certain else _either(variable, cell.source)

    # --- states -----------------------------------------------------------------------------------

    def _enter(self, position: int, scopes: _Scopes) -> int:
        key = _signature(position, scopes)
        if key not in self.known:
            if len(self.known) >= MAX_STATES:
                raise LimitError(MAX_STATES + 1, MAX_STATES, "states (optional parts times bound variables)")
            self.known[key] = len(self.entered)
            self.entered.append((position, self._settled(scopes)))
        return self.known[key]

    def _state(self, position: int, scopes: _Scopes) -> State:
        final = any(e.source == position and not e.guards for e in self.automaton.endings)
        values = frozenset(value for value, _ in _cells(scopes)) | {self._value_of(fold) for fold in scopes.folds}
        if self.sliding:
            values |= {RUN_START}
        if scopes.negated:
            values |= {LAST_NEGATED}
        values |= {span_value(span) for span in self.automaton.positions[position].spans}
        if position in self.timed:
            values |= {LAST_EVENT}
        return State(position, values, final, scopes.negated)

    def _value_of(self, fold: Fold) -> Value:
        return Value(ValueKind.FOLD, 0, self.asked.folds[fold])

    def _settled(self, scopes: _Scopes) -> _Scopes:
        """The same scopes seen from the state itself: every value is the run's."""

        def settle(kind: ValueKind, level: int, cells: Mapping[Variable, _Cell]) -> dict[Variable, _Cell]:
            return {v: _Cell(c.certain, Kept(Value(kind, level, v))) for v, c in cells.items()}

        return _Scopes(
            [settle(ValueKind.BOUND, i, cells) for i, cells in enumerate(scopes.levels)],
            [None if p is None else settle(ValueKind.PREVIOUS, i, p) for i, p in enumerate(scopes.previous)],
            scopes.negated,
            {fold: Kept(self._value_of(fold)) for fold in scopes.folds},
            scopes.ever,
        )


def span_value(span: LastingSpan) -> Value:
    """When the element that it bounds began."""
    return Value(ValueKind.SPAN, span.number)


def _has_group(guards: Iterable[Guard]) -> bool:
    return any(len(guard.steps) > 1 for guard in guards)


def _ends(guards: Iterable[Guard | _Guarded]) -> list[int | None]:
    return [guard.within for guard in guards]


def _lasts(lasting: tuple[tuple[Value, int], ...], size: int | None) -> tuple[tuple[Value, int], ...]:
    """What LASTING bounds where runs wait so long (µs) after the gap's beginning, too."""
    return lasting if size is None else (*lasting, (LAST_EVENT, size))


def age_ranges(least: int, most: int | None, bounds: Iterable[int | None]) -> list[tuple[int, int | None]]:
    """(first, last) ages of the segments of a gap: cut where an arm begins to be at work or a guard ends. The last age
    is None where the gap has no end."""
    cuts = {b for b in bounds if b is not None} | ({least - 1} if least else set())
    cuts = {c for c in cuts if most is None or c < most} | (set() if most is None else {most})
    ranges: list[tuple[int, int | None]] = []
    low = 0
    for cut in sorted(cuts):
        ranges.append((low, cut))
        low = cut + 1
    return ranges if most is not None else [*ranges, (low, None)]


def _cells(scopes: _Scopes) -> Iterable[tuple[Value, _Cell]]:
    for level, cells in enumerate(scopes.levels):
        for variable, cell in cells.items():
            yield Value(ValueKind.BOUND, level, variable), cell
    for level, earlier in enumerate(scopes.previous):
        for variable, cell in (earlier or {}).items():
            yield Value(ValueKind.PREVIOUS, level, variable), cell


def _signature(position: int, scopes: _Scopes) -> _Signature:
    def shape(cells: Mapping[Variable, _Cell]) -> frozenset[tuple[Variable, bool]]:
        return frozenset((v, c.certain) for v, c in cells.items())

    earlier = tuple(None if p is None else shape(p) for p in scopes.previous)
    return (
        position,
        tuple(shape(c) for c in scopes.levels),
        earlier,
        scopes.negated,
        frozenset(scopes.folds),
        scopes.ever,
    )


def _common(a: Sequence[int], b: Sequence[int]) -> int:
    count = 0
    for x, y in zip(a, b, strict=False):
        if x != y:
            break
        count += 1
    return count
