"""Matches of a sequence by brute force, word by word after Definitions 8 to 16 (semantics.md 2.3 to 2.6).

A partial match σ is extended by every element in turn, in all ways; nothing is indexed or remembered.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TypeAlias

from pyoxigraph import Store

from oxiseq.grammar.algebra import (
    Aggregate,
    Atom,
    Conjunction,
    Expression,
    MatchFunction,
    Op,
    Prev,
    Sequence,
    SequenceElement,
    Term,
    Window,
)
from reference.expand import Absent, Chain, Element, Letter, Loop, expand, unwrap
from reference.patterns import Mu, Omega, join, with_exists_answered
from reference.scopes import has_exists, has_prev
from reference.streams import Event
from reference.values import ExpressionError, Special, holds

Binding: TypeAlias = tuple[str, Event, Mu]
"""A GPM's name, an event and one of the GPM's mappings on it."""


@dataclass(frozen=True)
class Occurrence:
    """One mapping of a letter at one time: what each of its GPMs binds, and their joined mapping."""

    time: int
    bindings: frozenset[Binding]
    mu: Mu


@dataclass(frozen=True)
class Guard:
    """A negation that has been met: its letter, σ's mapping there, the previous iteration's mapping."""

    letter: Letter
    mu: Mu
    prev: Mu | None


@dataclass(frozen=True)
class Sigma:
    """A partial match: its end, what is visible, what it has bound, the negations met since its end.

    `leading` are the negations before the first event, `first` that event's time and letter mapping.
    """

    end: int | None = None
    mu: Mu = frozenset()
    bindings: frozenset[Binding] = frozenset()
    pending: tuple[Guard, ...] = ()
    leading: tuple[Guard, ...] = ()
    first: tuple[int, Mu] | None = None


@dataclass(frozen=True)
class Match:
    """A match: its end, the visible mapping, per GPM name the events and mappings, and its partition's value."""

    end: int
    mu: Mu
    bindings: frozenset[Binding]
    partition: tuple[Term, ...] = ()

    @property
    def times(self) -> frozenset[int]:
        """When its events happened."""
        return frozenset(event.time for _, event, _ in self.bindings)


@dataclass(frozen=True)
class Frame:
    """The events that one evaluation sees: their times, and each GPM's mappings on them."""

    times: tuple[int, ...]
    rows: Mapping[str, tuple[tuple[Event, Omega], ...]]
    stateful: Mapping[str, tuple[Expression, ...]]
    window: Window | None
    kb: Store | None = None
    known: dict[Letter, list[Occurrence]] = field(default_factory=dict)

    @cached_property
    def sliding(self) -> Window | None:
        return self.window if self.window is not None and self.window.sliding else None

    def clock(self, time: int) -> int:
        """What a sliding window counts in: microseconds, or the instant's number."""
        return self.times.index(time) if self.window is not None and self.window.events else time

    def occurrences(self, letter: Letter) -> list[Occurrence]:
        """Every mapping of a BOp expression at every time (Defs 8 and 9)."""
        if letter not in self.known:
            self.known[letter] = self._occurrences(letter)
        return self.known[letter]

    def _occurrences(self, letter: Letter) -> list[Occurrence]:
        if isinstance(letter, Atom):
            return [
                Occurrence(event.time, frozenset([(letter.name, event, mu)]), mu)
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

    def joins(self, mu: Mu, prev: Mu | None, occurrence: Occurrence) -> Mu | None:
        """σ ⋈_F Ψ: the joined mapping, if the stateful filters of the letter's GPMs pass on it."""
        joined = join(mu, occurrence.mu)
        if joined is None:
            return None
        for name, event, _ in occurrence.bindings:
            for condition in self.stateful[name]:
                if has_prev(condition) and prev is None:
                    continue  # it applies from the second iteration on
                if has_exists(condition):
                    condition = with_exists_answered(condition, list(event.graph), self.kb, joined)
                if not holds(condition, dict(joined), _previous(prev)):
                    return None
        return joined

    def absent(self, guard: Guard, mu: Mu, after: int | None, before: int | None) -> bool:
        """No event strictly between the two times matches the negated letter joined with `mu`."""
        return not any(
            (after is None or o.time > after)
            and (before is None or o.time < before)
            and self.joins(mu, guard.prev, o) is not None
            for o in self.occurrences(guard.letter)
        )


def _previous(prev: Mu | None) -> Special:
    bound = dict(prev or ())

    def answer(asked: Prev | Aggregate | MatchFunction) -> Term:
        assert isinstance(asked, Prev)
        if asked.variable not in bound:
            raise ExpressionError("unbound in the previous iteration")
        return bound[asked.variable]

    return answer


def _letter(element: SequenceElement) -> Letter:
    inner = unwrap(element)
    assert not isinstance(inner, Sequence)
    return inner  # type: ignore[return-value]  # a part of a letter is a letter


# --- extending σ ----------------------------------------------------------------------------------


def extend(
    frame: Frame, sigma: Sigma, op: Op | None, element: Element, first: bool, prev: Mu | None
) -> Iterator[Sigma]:
    """σ op element. `first`: no positive atom stands before the element in the text (Def. 13); `prev`: the
    mapping at the end of the previous iteration of the innermost repeat around it, if there is one."""
    match element:
        case Absent(letter):
            yield replace(sigma, pending=(*sigma.pending, Guard(letter, sigma.mu, prev)))
        case Chain(items):
            yield from _extend_chain(frame, sigma, op, items, first, prev)
        case Loop():
            yield from _extend_loop(frame, sigma, op, element, first)
        case letter:
            yield from _extend_letter(frame, sigma, op, letter, prev)


def _extend_chain(
    frame: Frame,
    sigma: Sigma,
    op: Op | None,
    items: tuple[tuple[Op | None, Element], ...],
    first: bool,
    prev: Mu | None,
) -> Iterator[Sigma]:
    found = [sigma]
    for number, (own, element) in enumerate(items):
        left = op if number == 0 else own
        found = list(dict.fromkeys(t for s in found for t in extend(frame, s, left, element, first, prev)))
        first = first and isinstance(element, Absent)
    yield from found


def _extend_loop(frame: Frame, sigma: Sigma, op: Op | None, loop: Loop, first: bool) -> Iterator[Sigma]:
    chain = loop.chain or (Op.NEXT if first else Op.STRICT)
    found = [t for way in loop.alternatives for t in extend(frame, sigma, op, way, first, None)]
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


def _extend_letter(frame: Frame, sigma: Sigma, op: Op | None, letter: Letter, prev: Mu | None) -> Iterator[Sigma]:
    occurrences = frame.occurrences(letter)
    for o in occurrences:
        joined = frame.joins(sigma.mu, prev, o)
        if joined is None:
            continue
        if sigma.end is None:
            start = (o.time, o.mu)
            yield Sigma(o.time, joined, o.bindings, leading=sigma.pending, first=start)
            continue
        assert sigma.first is not None
        if o.time <= sigma.end:
            continue  # simultaneous events never follow each other
        if frame.sliding and frame.clock(o.time) - frame.clock(sigma.first[0]) > frame.sliding.size:
            continue
        if op is Op.STRICT and any(sigma.end < t < o.time for t in frame.times):
            continue
        if op is Op.NEXT and any(
            sigma.end < other.time < o.time and frame.joins(sigma.mu, prev, other) is not None for other in occurrences
        ):
            continue
        if all(frame.absent(g, g.mu, sigma.end, o.time) for g in sigma.pending):
            yield replace(sigma, end=o.time, mu=joined, bindings=sigma.bindings | o.bindings, pending=())


# --- whole matches --------------------------------------------------------------------------------


def matches_in(frame: Frame, sequence: SequenceElement) -> Iterator[Match]:
    """Every match on the frame's events; one that can be read in two ways comes twice."""
    for way in expand(sequence):
        if way is None:
            continue
        for sigma in extend(frame, Sigma(), None, way, True, None):
            if sigma.end is not None and _opens_and_closes(frame, sigma):
                yield Match(sigma.end, sigma.mu, sigma.bindings)


def _opens_and_closes(frame: Frame, sigma: Sigma) -> bool:
    """Leading negations since the window opened, trailing ones until it closes."""
    assert sigma.end is not None and sigma.first is not None
    start, first_mu = sigma.first
    opened: int | None = None
    closed: int | None = None
    if frame.sliding:
        size = frame.sliding.size
        opened = _last(t for t in frame.times if frame.clock(t) < frame.clock(sigma.end) - size)
        closed = next((t for t in frame.times if frame.clock(t) > frame.clock(start) + size), None)
    return all(frame.absent(g, first_mu, opened, start) for g in sigma.leading) and all(
        frame.absent(g, g.mu, sigma.end, closed) for g in sigma.pending
    )


def _last(times: Iterator[int]) -> int | None:
    return max(times, default=None)


def frames(
    times: list[int],
    rows: Mapping[str, tuple[tuple[Event, Omega], ...]],
    stateful: Mapping[str, tuple[Expression, ...]],
    window: Window | None,
    start: int,
    kb: Store | None = None,
) -> Iterator[Frame]:
    """One frame per tumbling window (Def. 16); one for everything otherwise."""
    if window is None or window.sliding:
        yield Frame(tuple(times), rows, stateful, window, kb)
        return
    numbers = {t: (i if window.events else t - start) // window.size for i, t in enumerate(times)}
    for number in sorted(set(numbers.values())):
        inside = tuple(t for t in times if numbers[t] == number)
        kept = {
            name: tuple((e, omega) for e, omega in found if numbers[e.time] == number) for name, found in rows.items()
        }
        yield Frame(inside, kept, stateful, window, kb)
