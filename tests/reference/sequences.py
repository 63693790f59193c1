"""Matches of a sequence by brute force, word by word after Definitions 8 to 16 (semantics.md 2.3 to 2.6).

A partial match σ is extended by every element in turn, in all ways; nothing is indexed or remembered.

Readings (the specification is silent). A FILTER is taken apart at its `&&`, as elsewhere: in PERMUTE each part is
evaluated at the first block where it can be. A FILTER of UNTIL in a gap where a variable or GPM is not bound yet is an
error as a whole, also where `||`, COALESCE or BOUND could do without the value; a GPM that has been passed over (by
`?`, `|` or `k OF`) is no such GPM: what it leaves unbound is unbound, as for any FILTER.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TypeAlias

from pyoxigraph import Store, Variable

from oxiseq.grammar.algebra import (
    Aggregate,
    Atom,
    BoundKind,
    Conjunction,
    Exists,
    Expression,
    MatchFunction,
    Op,
    Prev,
    Query,
    Sequence,
    SequenceElement,
    Term,
    Window,
)
from reference.aggregates import aggregate_of, date_time, integer, value_or_none
from reference.expand import (
    Absent,
    Block,
    Chain,
    Element,
    Letter,
    Limited,
    Loop,
    expand,
    names_in,
    repeated_names,
    unwrap,
)
from reference.patterns import Mu, Omega, Parts, join, with_exists_answered
from reference.scopes import has_exists, has_prev, inside, mentioned, mentioned_in
from reference.streams import Event, Moment
from reference.values import ExpressionError, holds

Binding: TypeAlias = tuple[str, Event, Mu]
"""A GPM's name, an event and one of the GPM's mappings on it."""


@dataclass(frozen=True)
class Iterated:
    """Which repeated GPMs an aggregate runs over (semantics.md 2.6b)."""

    binds: Mapping[str, frozenset[Variable]]
    """The variables of each repeated GPM."""
    single: frozenset[Variable]
    """Those that an unrepeated positive GPM binds."""

    def by(self, asked: Aggregate) -> set[str]:
        """Those that bind one of its variables which no unrepeated GPM binds; where there are none, as FIRST and LAST
        may ask, those that bind one."""
        used = mentioned(asked)
        own = {name for name, variables in self.binds.items() if (used - self.single) & variables}
        return own or {name for name, variables in self.binds.items() if used & variables}


def iterated_in(query: Query, parts: Mapping[str, Parts]) -> Iterated:
    """Those of a query."""
    repeated = repeated_names(query.sequence)
    return Iterated(
        {name: frozenset(parts[name].variables) for name in repeated},
        frozenset(v for name in names_in(query.sequence) if name not in repeated for v in parts[name].variables),
    )


@dataclass(frozen=True)
class Conditions:
    """The stateful FILTERs of each GPM, and what is needed to know where they can be evaluated."""

    of: Mapping[str, tuple[Expression, ...]]
    binds: Mapping[str, frozenset[Variable]]
    """The variables of each GPM."""
    sees: Mapping[str, frozenset[str]]
    """The GPMs whose values a FILTER of it may read."""
    left: Mapping[str, frozenset[str]]
    """The positive GPMs that stand before it."""

    def is_ready(self, name: str, condition: Expression, matched: frozenset[str]) -> bool:
        """Whether these GPMs can bind every variable that it mentions of those that the GPM sees, and hold every GPM
        that it asks for."""
        own = self.binds[name]
        seen = frozenset[Variable]().union(*(self.binds[n] for n in self.sees[name])) - own
        known = frozenset[Variable]().union(*(self.binds[n] for n in matched))
        return _mentioned(condition) & seen <= known and gpms_in(condition) <= {name, *matched}

    def are_due(self, name: str, block: Block) -> list[Expression] | None:
        """Those of a plain element's GPM that are evaluated with the block: the first behind which they are ready. None
        where one never is."""
        left = self.left[name]
        if not all(self.is_ready(name, c, left | block.plain) for c in self.of[name]):
            return None

        def ready(condition: Expression, matched: frozenset[str]) -> bool:
            return name in matched and self.is_ready(name, condition, left | matched)

        return [c for c in self.of[name] if ready(c, block.after) and not ready(c, block.before)]


def _mentioned(condition: Expression) -> frozenset[Variable]:
    """Its variables, those inside EXISTS included."""
    within = (mentioned_in(e.pattern) for e in inside(condition) if isinstance(e, Exists))
    return frozenset(mentioned(condition)).union(*within)


def gpms_in(condition: Expression) -> set[str]:
    """The GPMs whose time or number it asks for."""
    return {e.gpm for e in inside(condition) if isinstance(e, MatchFunction) and e.gpm is not None}


@dataclass(frozen=True)
class Occurrence:
    """One mapping of a letter at one time: what each of its GPMs binds, and their joined mapping."""

    time: int
    bindings: frozenset[Binding]
    mu: Mu


@dataclass(frozen=True)
class Guard:
    """A negation that has been met: what it negates, σ's mapping there, the previous iteration's mapping, and
    whether no positive atom stands before it in the text (Def. 13, for a `+` in a negated group)."""

    absent: Absent
    mu: Mu
    prev: Mu | None
    first: bool
    bindings: frozenset[Binding] = frozenset()


@dataclass(frozen=True)
class Sigma:
    """A partial match: its end, what is visible, what it has bound, the negations met since its end.

    `leading` are the negations before the first event, `first` that event's time and letter mapping. `opened`: for
    each LASTING around, outermost first, the time of its element's first event, None before it. `behind`: the mapping
    that UNTIL joins with in the gap behind it; between two iterations that of the one that has ended. `watched`: UNTIL
    looks at its gaps; not at those of a negated group.
    """

    end: int | None = None
    mu: Mu = frozenset()
    behind: Mu = frozenset()
    watched: bool = False
    bindings: frozenset[Binding] = frozenset()
    pending: tuple[Guard, ...] = ()
    leading: tuple[Guard, ...] = ()
    first: tuple[int, Mu] | None = None
    opened: tuple[int | None, ...] = ()


@dataclass(frozen=True)
class Step:
    """How σ goes on: the operator, and how long after σ's end the next event comes, at least and at most."""

    op: Op | None
    least: int = 0
    most: int | None = None

    def bounded(self, kind: BoundKind, size: int) -> Step:
        """With one more bound."""
        if kind is BoundKind.AFTER:
            return replace(self, least=max(self.least, size))
        return replace(self, most=size if self.most is None else min(self.most, size))

    def under(self, op: Op | None) -> Step:
        """The same bounds behind another operator."""
        return replace(self, op=op)


@dataclass(frozen=True)
class Match:
    """A match: its end, the visible mapping, per GPM name the events and mappings, and its partition's value.

    `at` is when it is decided (semantics.md 2.6a). `refuted`: one of its trailing negations has happened, so that it is
    a sequence and no match. `suppressed`: how many of its key SUPPRESS has dropped before it.
    """

    end: int
    mu: Mu
    bindings: frozenset[Binding]
    at: Moment
    refuted: bool
    partition: tuple[Term, ...] = ()
    suppressed: int = 0

    @property
    def times(self) -> frozenset[int]:
        """When its events happened."""
        return frozenset(event.time for _, event, _ in self.bindings)

    @property
    def start(self) -> int:
        """The time of its first event."""
        return min(self.times)


@dataclass(frozen=True)
class Frame:
    """The events that one evaluation sees: their times, and each GPM's mappings on them."""

    times: tuple[int, ...]
    rows: Mapping[str, tuple[tuple[Event, Omega], ...]]
    conditions: Conditions
    window: Window | None
    iterated: Iterated
    closes: int | None
    """The last moment of a tumbling window; None for others, and for one of n instants that are not all there."""
    ends: Moment
    """When what only further instants would decide is decided: at the end of the streams, never if they stay open."""
    kb: Store | None = None
    until: SequenceElement | None = None
    """The letter behind UNTIL."""
    known: dict[Letter, list[Occurrence]] = field(default_factory=dict)

    @cached_property
    def sliding(self) -> Window | None:
        return self.window if self.window is not None and self.window.sliding else None

    def clock(self, time: int) -> int:
        """What a sliding window counts in: microseconds, or the instant's number."""
        return self.times.index(time) if self.window is not None and self.window.events else time

    def last_moment(self, first: int) -> int | None:
        """W of a match that begins at `first` (semantics.md 2.6a); None if there is none, or not yet."""
        if self.sliding is None:
            return self.closes
        if not self.sliding.events:
            return first + self.sliding.size
        number = self.clock(first) + self.sliding.size
        return self.times[number] if number < len(self.times) else None

    def deadline(self, absent: Absent, first: int, end: int) -> Moment:
        """When the trailing negation of a match is decided: end + d, or W if that is earlier."""
        bounds = [] if absent.within is None else [end + absent.within]
        last = self.last_moment(first)
        bounds += [] if last is None else [last]
        return min(bounds, default=self.ends)

    def occurrences(self, letter: Letter) -> list[Occurrence]:
        """Every mapping of a BOp expression at every time (Defs 8 and 9)."""
        if letter not in self.known:
            self.known[letter] = self._occurrences(letter)
        return self.known[letter]

    def _occurrences(self, letter: Letter) -> list[Occurrence]:
        if isinstance(letter, Atom):
            return [
                Occurrence(event.time, frozenset([(letter.name, event, mu)]), mu | _timed(letter.name, event.time))
                for event, omega in self.rows[letter.name]
                for mu in omega
            ]
        parts = [self.occurrences(_letter(item)) for item in letter.items]
        if not isinstance(letter, Conjunction):
            return list(dict.fromkeys(o for part in parts for o in part))
        joined = parts[0]
        for part in parts[1:]:
            joined = [
                Occurrence(a.time, a.bindings | b.bindings, mu)
                for a in joined
                for b in part
                if a.time == b.time and (mu := join(a.mu, b.mu)) is not None
            ]
        return joined

    def joins(self, sigma: Sigma, prev: Mu | None, occurrence: Occurrence, block: Block | None = None) -> Mu | None:
        """σ ⋈_F Ψ: the joined mapping, if the stateful filters of the letter's GPMs pass on it. In a block of PERMUTE
        those of plain elements are evaluated that are due with it."""
        joined = join(sigma.mu, occurrence.mu)
        if joined is None:
            return None
        plain = frozenset[str]() if block is None else block.plain
        for name, event, _ in occurrence.bindings:
            for condition in () if name in plain else self.conditions.of[name]:
                if not self._passes(name, event, condition, sigma.bindings, joined, prev):
                    return None
        bindings = sigma.bindings | occurrence.bindings
        for name in plain & (block.after if block is not None else plain):
            event = max((e for n, e, _ in bindings if n == name), key=lambda e: e.time)  # of this iteration
            due = self.conditions.are_due(name, block) if block is not None else []
            if due is None:
                return None
            before = frozenset(b for b in bindings if b[1].time < event.time)
            if not all(self._passes(name, event, condition, before, joined, prev) for condition in due):
                return None
        return joined

    def _passes(
        self, name: str, event: Event, condition: Expression, before: frozenset[Binding], joined: Mu, prev: Mu | None
    ) -> bool:
        """A stateful filter of the GPM, whose event this is, on the joined mapping."""
        values = _Values(self, before, dict(joined), prev, event.time)
        if prev is None and (has_prev(condition) or name in values.iterated(condition)):
            return True  # it applies from the second iteration on
        if has_exists(condition):
            condition = with_exists_answered(condition, list(event.graph), self.kb, joined)
        return holds(condition, dict(joined), values.answer)

    def is_ended(self, sigma: Sigma, following: Occurrence) -> bool:
        """Whether UNTIL's letter matches, joined with what σ has bound, strictly between it and what follows."""
        if self.until is None or not sigma.watched:
            return False
        assert sigma.end is not None
        bound = {name for name, _, _ in sigma.bindings}
        passed = frozenset[str]().union(*(self.conditions.left[name] for name, _, _ in following.bindings))
        return any(
            sigma.end < found.time < following.time
            and self._ends(replace(sigma, mu=sigma.behind), found, passed | bound)
            for found in self.occurrences(_letter(self.until))
        )

    def _ends(self, sigma: Sigma, found: Occurrence, reached: frozenset[str]) -> bool:
        matched = reached | {name for name, _, _ in found.bindings}
        ready = all(
            self.conditions.is_ready(name, condition, matched)
            for name, _, _ in found.bindings
            for condition in self.conditions.of[name]
        )
        return ready and self.joins(sigma, None, found) is not None

    def absent(self, guard: Guard, mu: Mu, after: int | None, before: int | None) -> bool:
        """No match of what is negated, joined with `mu`, lies strictly between the two times and ends soon enough
        after the first of them."""
        within = guard.absent.within
        last = None if within is None or after is None else after + within
        return not any(
            (after is None or found.first[0] > after)
            and (before is None or found.end < before)
            and (last is None or found.end <= last)
            for way in guard.absent.ways
            for found in extend(self, Sigma(mu=mu, bindings=guard.bindings), Step(None), way, guard.first, guard.prev)
            if found.first is not None and found.end is not None
        )


def time_of(name: str) -> Variable:
    """Stands for when the event of a GPM was, so that it is visible where the GPM's variables are."""
    return Variable(f"__at_{name}")


def _timed(name: str, time: int) -> Mu:
    return frozenset([(time_of(name), date_time(time))])


@dataclass(frozen=True)
class _Values:
    """What a stateful filter asks of the partial match, where an event of this time would go on with it."""

    frame: Frame
    bindings: frozenset[Binding]
    bound: Mapping[Variable, Term]
    prev: Mu | None
    time: int

    def answer(self, asked: Prev | Aggregate | MatchFunction) -> Term:
        if isinstance(asked, Prev):
            return _known(dict(self.prev or ()), asked.variable)
        if isinstance(asked, Aggregate):
            assert asked.arg is not None
            (name,) = self.frame.iterated.by(asked)
            return aggregate_of(asked, [value_or_none(asked.arg, dict(mu)) for mu in self._iterations(name)])
        if asked.name == "EVENTTIME":
            return date_time(self.time)
        assert asked.gpm is not None
        if asked.name == "COUNT":
            return integer(len(self._iterations(asked.gpm)))
        return _known(self.bound, time_of(asked.gpm))

    def _iterations(self, name: str) -> list[Mu]:
        mine = [(event.time, mu) for n, event, mu in self.bindings if n == name]
        return [mu for _, mu in sorted(mine, key=lambda pair: pair[0])]

    def iterated(self, condition: Expression) -> set[str]:
        """The repeated GPMs over whose iterations so far it goes."""
        found = {e.gpm for e in inside(condition) if isinstance(e, MatchFunction) and e.name == "COUNT"}
        of = [self.frame.iterated.by(e) for e in inside(condition) if isinstance(e, Aggregate)]
        return {name for names in (found, *of) for name in names if name is not None}


def _known(bound: Mapping[Variable, Term], variable: Variable) -> Term:
    if variable not in bound:
        raise ExpressionError("unbound")
    return bound[variable]


def _letter(element: SequenceElement) -> Letter:
    inner = unwrap(element)
    assert not isinstance(inner, Sequence)
    return inner  # type: ignore[return-value]  # a part of a letter is a letter


# --- extending σ ----------------------------------------------------------------------------------


def extend(frame: Frame, sigma: Sigma, step: Step, element: Element, first: bool, prev: Mu | None) -> Iterator[Sigma]:
    """σ op element. `first`: no positive atom stands before the element in the text (Def. 13); `prev`: the
    mapping at the end of the previous iteration of the innermost repeat around it, if there is one."""
    match element:
        case Absent():
            guard = Guard(element, sigma.mu, prev, first, sigma.bindings)
            yield replace(sigma, pending=(*sigma.pending, guard))
        case Limited(item, BoundKind.LASTING, size):
            inside = replace(sigma, opened=(*sigma.opened, None))
            for found in extend(frame, inside, step, item, first, prev):
                *outer, start = found.opened
                assert start is not None and found.end is not None
                if found.end - start <= size:
                    yield replace(found, opened=tuple(outer))
        case Limited(item, kind, size):
            yield from extend(frame, sigma, step.bounded(kind, size), item, first, prev)
        case Chain(items):
            yield from _extend_chain(frame, sigma, step, items, first, prev)
        case Loop():
            yield from _extend_loop(frame, sigma, step, element, first)
        case Block(letter):
            yield from _extend_letter(frame, sigma, step, letter, prev, element)
        case letter:
            yield from _extend_letter(frame, sigma, step, letter, prev, None)


def _extend_chain(
    frame: Frame,
    sigma: Sigma,
    step: Step,
    items: tuple[tuple[Op | None, Element], ...],
    first: bool,
    prev: Mu | None,
) -> Iterator[Sigma]:
    found = [sigma]
    at_start = True  # nothing but negations so far: the bounds of `step` are on what comes first behind them
    for number, (own, element) in enumerate(items):
        here = step if at_start else Step(None)
        here = here if number == 0 else here.under(own)
        found = list(dict.fromkeys(t for s in found for t in extend(frame, s, here, element, first, prev)))
        at_start = at_start and isinstance(element, Absent)
        first = first and isinstance(element, Absent)
    yield from found


def _extend_loop(frame: Frame, sigma: Sigma, step: Step, loop: Loop, first: bool) -> Iterator[Sigma]:
    chain = Step(loop.chain or (Op.NEXT if first else Op.STRICT))
    found = [t for way in loop.alternatives for t in extend(frame, sigma, step, way, first, None)]
    count = 1
    while found and (loop.most is None or count <= loop.most):
        if count >= loop.least:
            yield from found
        found = [
            t
            for s in dict.fromkeys(found)
            for way in loop.alternatives
            # the next iteration sees what stood before the loop, not this iteration's variables
            for t in extend(frame, replace(s, mu=sigma.mu), chain, way, first, s.mu)
        ]
        count += 1


def _extend_letter(
    frame: Frame, sigma: Sigma, step: Step, letter: Letter, prev: Mu | None, block: Block | None
) -> Iterator[Sigma]:
    occurrences = frame.occurrences(letter)
    for o in occurrences:
        opened = tuple(o.time if start is None else start for start in sigma.opened)
        if sigma.end is None:  # no gap, so no bound on it
            if (joined := frame.joins(sigma, prev, o, block)) is not None:
                bindings = sigma.bindings | o.bindings  # of a negated group those before it, too
                yield Sigma(o.time, joined, joined, sigma.watched, bindings, (), sigma.pending, (o.time, o.mu), opened)
            continue
        assert sigma.first is not None
        if o.time <= sigma.end:
            continue  # simultaneous events never follow each other
        if frame.sliding and frame.clock(o.time) - frame.clock(sigma.first[0]) > frame.sliding.size:
            continue
        gap = o.time - sigma.end
        if gap < step.least or (step.most is not None and gap > step.most):
            continue
        if step.op is Op.STRICT and any(sigma.end < t < o.time for t in frame.times):
            continue
        if (joined := frame.joins(sigma, prev, o, block)) is None:
            continue
        if step.op is Op.NEXT and any(
            sigma.end + step.least <= other.time
            and sigma.end < other.time < o.time
            and frame.joins(sigma, prev, other, block) is not None
            for other in occurrences
        ):
            continue
        if all(frame.absent(g, g.mu, sigma.end, o.time) for g in sigma.pending) and not frame.is_ended(sigma, o):
            bindings = sigma.bindings | o.bindings
            yield replace(sigma, end=o.time, mu=joined, behind=joined, bindings=bindings, pending=(), opened=opened)


# --- whole matches --------------------------------------------------------------------------------


def sequences_in(frame: Frame, sequence: SequenceElement) -> Iterator[Match]:
    """Every match on the frame's events, and what would be one but for its trailing negations; one that can be read in
    two ways comes twice."""
    for way in expand(sequence):
        if way is None:
            continue
        for sigma in extend(frame, Sigma(watched=True), Step(None), way, True, None):
            if sigma.end is not None and _opens(frame, sigma):
                shown = frozenset((v, t) for v, t in sigma.mu if not v.value.startswith("__at_"))
                yield Match(sigma.end, shown, sigma.bindings, _decided(frame, sigma), not _closes(frame, sigma))


def _opens(frame: Frame, sigma: Sigma) -> bool:
    """The leading negations hold since the window opened."""
    assert sigma.end is not None and sigma.first is not None
    start, first_mu = sigma.first
    opened: int | None = None
    if frame.sliding:
        opened = max(
            (t for t in frame.times if frame.clock(t) < frame.clock(sigma.end) - frame.sliding.size), default=None
        )
    return all(frame.absent(g, first_mu, opened, start) for g in sigma.leading)


def _closes(frame: Frame, sigma: Sigma) -> bool:
    """The trailing negations hold until the window closes."""
    assert sigma.end is not None and sigma.first is not None
    closed: int | None = None
    if frame.sliding:
        last = frame.clock(sigma.first[0]) + frame.sliding.size
        closed = next((t for t in frame.times if frame.clock(t) > last), None)
    return all(frame.absent(g, g.mu, sigma.end, closed) for g in sigma.pending)


def _decided(frame: Frame, sigma: Sigma) -> Moment:
    """at: the end, or the greatest of the deadlines of what trails."""
    assert sigma.end is not None and sigma.first is not None
    return max((frame.deadline(g.absent, sigma.first[0], sigma.end) for g in sigma.pending), default=sigma.end)


def frames(
    times: list[int],
    rows: Mapping[str, tuple[tuple[Event, Omega], ...]],
    conditions: Conditions,
    window: Window | None,
    start: int,
    iterated: Iterated,
    ends: Moment,
    kb: Store | None = None,
    until: SequenceElement | None = None,
) -> Iterator[Frame]:
    """One frame per tumbling window (Def. 16); one for everything otherwise."""
    if window is None or window.sliding:
        yield Frame(tuple(times), rows, conditions, window, iterated, None, ends, kb, until)
        return
    numbers = {t: (i if window.events else t - start) // window.size for i, t in enumerate(times)}
    for number in sorted(set(numbers.values())):
        inside = tuple(t for t in times if numbers[t] == number)
        kept = {
            name: tuple((e, omega) for e, omega in found if numbers[e.time] == number) for name, found in rows.items()
        }
        closes: int | None = start + (number + 1) * window.size - 1
        if window.events:
            closes = inside[-1] if len(inside) == window.size else None
        yield Frame(inside, kept, conditions, window, iterated, closes, ends, kb, until)
