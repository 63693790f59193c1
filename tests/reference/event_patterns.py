"""Event patterns of MATCH, Eq. 4 to 11 of RSEP-QL as semantics.md 4 reads them: every definition word by word.

⟦E⟧ is asked with values (a mapping µ, empty at the top) and on a part of the windows (the items before a moment, all
of them at the top). With values it is µ(E): the values are put in at the event names, before any FIRST, LAST or
selection above chooses. The part is W*: in E1 SEQ E2, E1 is evaluated on what lies before E2 starts.

Readings (the specification is silent): a value is put in by keeping the mappings that are compatible with it; a
variable that has a value is a constant, so SEQ^c and SEQ^r do not compare by it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from pyoxigraph import Variable

from oxiseq.grammar.algebra import Choice, EventName, EventPattern, FirstOf, Following, LastOf
from reference.patterns import Mu, join


@dataclass(frozen=True)
class Event:
    """An event mapping (µ, t1, t2) and the items that justify it."""

    mu: Mu
    start: int
    end: int
    items: frozenset[tuple[str, int]]


@dataclass(frozen=True)
class Basic:
    """What EVENT ON w { P } AS E defines: its mappings on each item of the window (Eq. 4), the variables of P, and the
    FIRST or LAST that stands in front of it, if one does."""

    events: frozenset[Event]
    variables: frozenset[Variable]
    choice: Callable[[Collection[Event]], frozenset[Event]] | None = None


Definitions = Mapping[str, Basic]
NOTHING: Mu = frozenset()


def event_mappings(
    pattern: EventPattern, given: Definitions, values: Mu = NOTHING, before: int | None = None
) -> frozenset[Event]:
    """⟦µ(E)⟧ on W*: `values` is µ, `before` the moment before which the items of W* lie."""
    match pattern:
        case EventName(name):
            found = frozenset(
                e for e in given[name].events if (before is None or e.end < before) and join(e.mu, values) is not None
            )
            choose = given[name].choice
            return found if choose is None else choose(found)
        case FirstOf(inner):  # Eq. 5
            return first(event_mappings(inner, given, values, before))
        case LastOf(inner):  # Eq. 6
            return last(event_mappings(inner, given, values, before))
        case Following(_, _, Choice.NAIVE):
            return _naive(pattern, given, values, before)
        case Following(_, _, Choice.UNRESTRICTED):
            return _unrestricted(pattern, given, values, before)
        case Following():
            return _selected(pattern, given, values, before)


def first(events: Collection[Event]) -> frozenset[Event]:
    """Those before which none ends (Eq. 5; ≺ orders by the ends)."""
    return frozenset(e for e in events if not any(other.end < e.end for other in events))


def last(events: Collection[Event]) -> frozenset[Event]:
    """Those after which none ends (Eq. 6)."""
    return frozenset(e for e in events if not any(e.end < other.end for other in events))


def variables_of(pattern: EventPattern, given: Definitions) -> frozenset[Variable]:
    """What the pattern may bind."""
    match pattern:
        case EventName(name):
            return given[name].variables
        case FirstOf(inner) | LastOf(inner):
            return variables_of(inner, given)
        case Following(one, two):
            return variables_of(one, given) | variables_of(two, given)


def _unrestricted(pattern: Following, given: Definitions, values: Mu, before: int | None) -> frozenset[Event]:
    """Eq. 7: every (µ2, t3, t4) of ⟦E2⟧ with every (µ1, t1, t2) of ⟦µ2(E1)⟧ on what lies before t3."""
    seconds = event_mappings(pattern.second, given, values, before)
    return frozenset(_pair(one, two) for two in seconds for one in _firsts(pattern, given, values, two))


def _naive(pattern: Following, given: Definitions, values: Mu, before: int | None) -> frozenset[Event]:
    """Eq. 9: LAST E1 and LAST E2 on the whole window, without regard to each other; what agrees and t2 < t3."""
    ones = last(event_mappings(pattern.first, given, values, before))
    twos = last(event_mappings(pattern.second, given, values, before))
    return frozenset(
        _pair(one, two) for two in twos for one in ones if join(one.mu, two.mu) is not None and one.end < two.start
    )


def _selected(pattern: Following, given: Definitions, values: Mu, before: int | None) -> frozenset[Event]:
    """Eq. 10 and 11: the first (SEQ^c) or last (SEQ^r) of those E2 that are equal on the variables shared with E1 and
    have an earlier E1 that agrees; for each of them FIRST µ2(E1) or LAST µ2(E1) on what lies before it."""
    best = first if pattern.choice is Choice.CHRONOLOGICAL else last
    shared = variables_of(pattern.first, given) & variables_of(pattern.second, given)
    shared -= {variable for variable, _ in values}
    able = [
        two for two in event_mappings(pattern.second, given, values, before) if _firsts(pattern, given, values, two)
    ]

    def on_shared(two: Event) -> Mu:
        return frozenset((variable, term) for variable, term in two.mu if variable in shared)

    return frozenset(
        _pair(one, two)
        for two in able
        if two in best([other for other in able if on_shared(other) == on_shared(two)])
        for one in best(_firsts(pattern, given, values, two))
    )


def _firsts(pattern: Following, given: Definitions, values: Mu, two: Event) -> frozenset[Event]:
    """⟦µ2(E1)⟧ on W*, the items before E2 starts; the values from further out are put in, too."""
    both = join(values, two.mu)
    assert both is not None  # E2 has been evaluated with them
    return event_mappings(pattern.first, given, both, two.start)


def _pair(one: Event, two: Event) -> Event:
    return Event(one.mu | two.mu, one.start, two.end, one.items | two.items)
