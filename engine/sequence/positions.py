"""The Glushkov automaton of a SEQ expression: one position per letter occurrence.

In the flow: algebra → **positions** → states → edges. A *letter* is a conjunction of GPMs; a position
waits for one of several letters (a BOp expression Ψ in disjunctive normal form), so that `A; (B|C)` is one
wait. Counted repeats are unrolled, `?` becomes a second way past the element, a negation becomes a *guard* of
the gap around it (semantics.md 2.3 to 2.5), UNTIL a guard of every gap (2.5c), WITHIN and AFTER are numbers of a
transition, and LASTING is a *span*: positions inside it, reached in time (2.5b).
"""

from __future__ import annotations

from dataclasses import field, replace
from typing import TypeAlias

from oxiseq.engine.errors import LimitError
from oxiseq.grammar.algebra import (
    Atom,
    Bounded,
    BoundKind,
    Conjunction,
    Disjunction,
    Maybe,
    Not,
    Op,
    Repeat,
    Sequence,
    SequenceElement,
)
from oxiseq.grammar.places import negation, shortest, steps_of
from oxiseq.grammar.records import dataclass

Letter: TypeAlias = tuple[str, ...]
"""GPM names that must match at one instant, joined; in the order of the text."""

START = -1
"""The source of transitions that begin a match."""

MAX_POSITIONS = 2_000


@dataclass(frozen=True, slots=True)
class Guard:
    """A negated letter in a gap, or the letters of each step of a negated group; `loops` are the repeats around the
    place of its own. `within`: how long after the gap's beginning it is forbidden (µs); None: in the whole gap; of
    a group, its last event. `everywhere`: it is UNTIL's, and forbids nothing where what its FILTER reads is not bound
    yet."""

    steps: tuple[tuple[Letter, ...], ...]
    loops: tuple[int, ...]
    within: int | None = None
    everywhere: bool = False

    @property
    def letters(self) -> tuple[Letter, ...]:
        """All that it is about."""
        return tuple(letter for step in self.steps for letter in step)


@dataclass(frozen=True, slots=True)
class LastingSpan:
    """An element that lasts at most `size` µs, from its first event to its last."""

    number: int
    size: int


@dataclass(frozen=True, slots=True)
class Position:
    """A place in the sequence: the letters that end the wait for it, the repeats and the spans around it, outermost
    first."""

    letters: tuple[Letter, ...]
    loops: tuple[int, ...]
    spans: tuple[LastingSpan, ...] = ()


@dataclass(frozen=True, slots=True)
class Transition:
    """From `source` (START or a position) to `target` by `op`.

    `left` are the guards inside the source's side of the gap, `right` those on the target's
    side; they differ in scope when the gap lies between two iterations of `again`. The gap is at least `least` and
    at most `most` µs long. `inside`: how many of the spans around the target go on; the others begin there.
    """

    source: int
    target: int
    op: Op
    left: tuple[Guard, ...]
    right: tuple[Guard, ...]
    again: int | None
    least: int = 0
    most: int | None = None
    inside: int = 0


@dataclass(frozen=True, slots=True)
class Ending:
    """A position where the sequence may end; with guards, only when the window has closed without them."""

    source: int
    guards: tuple[Guard, ...]


@dataclass(frozen=True, slots=True)
class Automaton:
    """Positions and the ways between them; `ambiguous` if one match may have two paths."""

    positions: tuple[Position, ...]
    transitions: tuple[Transition, ...]
    endings: tuple[Ending, ...]
    ambiguous: bool


def build_automaton(sequence: SequenceElement, until: SequenceElement | None = None) -> Automaton:
    """The automaton of a checked SEQ expression; `until` is a guard of every way from one position to another."""
    builder = _Builder()
    whole = builder.element(sequence, first=True)
    stops = plain_letters(until) or () if until is not None else ()
    transitions = [_with_stops(way, stops, builder.positions) for way in dict.fromkeys(builder.transitions)]
    transitions += [
        Transition(START, entry.target, entry.op or Op.ANY, (), entry.guards, None) for entry in whole.entries
    ]
    endings = tuple(dict.fromkeys(Ending(leave.source, leave.guards) for leave in whole.exits))
    positions = tuple(builder.positions)
    return Automaton(positions, tuple(transitions), endings, _is_ambiguous(positions, transitions))


def _with_stops(way: Transition, stops: tuple[Letter, ...], positions: list[Position]) -> Transition:
    """They see all that the run has bound: between two iterations the one that has just ended, too."""
    guards = tuple(Guard(((letter,),), positions[way.source].loops, everywhere=True) for letter in stops)
    return replace(way, left=way.left + guards) if guards else way


@dataclass(frozen=True, slots=True)
class _Entry:
    """A way in: guards met before it; `op` is set when a negation precedes it (its right operator)."""

    target: int
    guards: tuple[Guard, ...] = ()
    op: Op | None = None
    least: int = 0
    most: int | None = None

    def bounded(self, kind: BoundKind, size: int) -> _Entry:
        """With one more bound on the gap before it."""
        if kind is BoundKind.AFTER:
            return replace(self, least=max(self.least, size))
        return replace(self, most=size if self.most is None else min(self.most, size))


@dataclass(frozen=True, slots=True)
class _Exit:
    source: int
    guards: tuple[Guard, ...] = ()


@dataclass(frozen=True, slots=True)
class _Fragment:
    entries: tuple[_Entry, ...]
    exits: tuple[_Exit, ...]
    nullable: bool = False


@dataclass(slots=True)
class _Prefix:
    """A sequence under construction: what has been met before any of its positions was entered."""

    open: bool = True
    guards: tuple[Guard, ...] = ()
    negated: bool = False


@dataclass(slots=True)
class _Builder:
    positions: list[Position] = field(default_factory=list)
    transitions: list[Transition] = field(default_factory=list)
    loops: tuple[int, ...] = ()
    loop_count: int = 0
    spans: tuple[LastingSpan, ...] = ()
    span_count: int = 0

    def element(self, node: SequenceElement, first: bool) -> _Fragment:
        """`first`: no positive atom precedes `node` (Def. 13 chains its `+` by `;`)."""
        letters = plain_letters(node)
        if letters is not None:
            return self._position(letters)
        match node:
            case Sequence():
                return self._sequence(node, first)
            case Maybe(item):
                return replace(self.element(item, first), nullable=True)
            case Disjunction(items):
                parts = [self.element(item, first) for item in items]
                return _Fragment(
                    tuple(e for p in parts for e in p.entries),
                    tuple(e for p in parts for e in p.exits),
                    any(p.nullable for p in parts),
                )
            case Repeat():
                return self._repeat(node, first)
            case Bounded(item, BoundKind.LASTING, size):
                return self._span(item, size, first)
            case Bounded(item, kind, size):
                inner = self.element(item, first)
                return replace(inner, entries=tuple(e.bounded(kind, size) for e in inner.entries))
            case _:
                raise AssertionError(f"the checks let {type(node).__name__} through")

    def _position(self, letters: tuple[Letter, ...]) -> _Fragment:
        if len(self.positions) >= MAX_POSITIONS:
            raise LimitError(MAX_POSITIONS + 1, MAX_POSITIONS, "positions of the unrolled sequence")
        self.positions.append(Position(letters, self.loops, self.spans))
        here = len(self.positions) - 1
        return _Fragment((_Entry(here),), (_Exit(here),))

    def _span(self, item: SequenceElement, size: int, first: bool) -> _Fragment:
        outer = self.spans
        self.spans = (*outer, LastingSpan(self.span_count, size))
        self.span_count += 1
        inner = self.element(item, first)
        self.spans = outer
        return inner

    def _sequence(self, node: Sequence, first: bool) -> _Fragment:
        prefix = _Prefix()
        entries: list[_Entry] = []
        exits: list[_Exit] = []
        for op, item in flatten(node):
            negated = negation(item)
            if negated is not None:
                steps = tuple(plain_letters(e) or () for e in steps_of(negated.item))
                within = shortest(item)
                split = [(letter,) for letter in steps[0]] if len(steps) == 1 else [steps[0]]
                guards = tuple(Guard((step, *steps[1:]), self.loops, within) for step in split)
                prefix.guards += guards
                prefix.negated = True
                exits = [replace(e, guards=e.guards + guards) for e in exits]
                continue
            outer, inner = self._variants(item, first, prefix.open, bool(exits))
            self._connect(exits, inner, op, None)
            if prefix.open and outer is not None:
                lead = op if prefix.negated else None
                entries += [replace(e, guards=prefix.guards + e.guards, op=e.op or lead) for e in outer.entries]
            kept = exits if inner is not None and inner.nullable else []
            exits = list(dict.fromkeys([*(outer.exits if outer else ()), *(inner.exits if inner else ()), *kept]))
            prefix.open = prefix.open and outer is not None and outer.nullable
        return _Fragment(tuple(entries), tuple(exits), prefix.open)

    def _variants(
        self, item: SequenceElement, first: bool, outside: bool, inside: bool
    ) -> tuple[_Fragment | None, _Fragment | None]:
        """The element as entered from outside the sequence and from inside it: two copies only where a
        `+` in it must be chained differently."""
        if outside and inside and first and _chains_by_place(item):
            return self.element(item, True), self.element(item, False)
        fragment = self.element(item, first and outside)
        return (fragment if outside else None), (fragment if inside else None)

    def _connect(self, exits: list[_Exit], target: _Fragment | None, op: Op | None, again: int | None) -> None:
        if target is None:
            return
        for leave in exits:
            for entry in target.entries:
                chosen = entry.op or op
                assert chosen is not None, "only the first element has no operator on its left"
                self.transitions.append(
                    Transition(
                        leave.source,
                        entry.target,
                        chosen,
                        leave.guards,
                        entry.guards,
                        again,
                        entry.least,
                        entry.most,
                        len(self.spans),
                    )
                )

    def _repeat(self, node: Repeat, first: bool) -> _Fragment:
        loop = self.loop_count
        self.loop_count += 1
        outer_loops = self.loops
        self.loops = (*outer_loops, loop)
        chain = node.chain or (Op.NEXT if first else Op.STRICT)
        least, copies = max(node.least, 1), node.most or max(node.least, 1)
        body = self.element(node.item, first)
        entries, running, leaving = list(body.entries), list(body.exits), list[_Exit]()
        for count in range(1, copies):
            if count >= least or body.nullable:
                leaving += running
            following = self.element(node.item, first)
            self._connect(running, following, chain, loop)
            if body.nullable:
                entries += following.entries
                running += following.exits
            else:
                running = list(following.exits)
            body = following
        if node.most is None:
            self._connect(running, body, chain, loop)
        self.loops = outer_loops
        exits = tuple(dict.fromkeys(leaving + running))
        return _Fragment(tuple(entries), exits, body.nullable or node.least == 0)


def flatten(node: Sequence) -> list[tuple[Op | None, SequenceElement]]:
    """(operator on the left, element) pairs, unquantified inner sequences spliced in."""
    flat: list[tuple[Op | None, SequenceElement]] = []
    for op, item in ((None, node.first), *node.rest):
        if isinstance(item, Sequence):
            (_, head), *tail = flatten(item)
            flat += [(op, head), *tail]
        else:
            flat.append((op, item))
    return flat


def plain_letters(node: SequenceElement) -> tuple[Letter, ...] | None:
    """The letters of a BOp expression (atoms, `&`, `|`) in disjunctive normal form; None for anything else."""
    match node:
        case Atom(name):
            return ((name,),)
        case Disjunction(items):
            parts = [plain_letters(item) for item in items]
            return None if None in parts else tuple(dict.fromkeys(x for part in parts for x in part or ()))
        case Conjunction(items):
            product: tuple[Letter, ...] = ((),)
            for item in items:
                letters = plain_letters(item)
                if letters is None:
                    return None
                product = tuple(a + b for a in product for b in letters)
            return product
        case Sequence(first, rest) if not rest:
            return plain_letters(first)
        case _:
            return None


def _chains_by_place(node: SequenceElement) -> bool:
    """Whether a repeat in it leaves its operator to Definitions 13 and 14."""
    match node:
        case Repeat(item, _, _, chain):
            return chain is None or _chains_by_place(item)
        case Maybe(item) | Not(item) | Bounded(item):
            return _chains_by_place(item)
        case Conjunction(items) | Disjunction(items):
            return any(_chains_by_place(item) for item in items)
        case Sequence(first, rest):
            return _chains_by_place(first) or any(_chains_by_place(item) for _, item in rest)
        case _:
            return False


def _is_ambiguous(positions: tuple[Position, ...], transitions: list[Transition]) -> bool:
    """Two ways out of one place that a single letter may take: then a match may have two paths."""
    taken: set[tuple[int, Letter]] = set()
    for way in transitions:
        for letter in positions[way.target].letters:
            if (way.source, letter) in taken:
                return True
            taken.add((way.source, letter))
    return False
