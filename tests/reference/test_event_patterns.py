"""Facts about event patterns, worked out by hand from Eq. 4 to 11 and semantics.md 4."""

from __future__ import annotations

import re

import pytest
from pyoxigraph import Literal, Variable

from oxiseq.grammar.algebra import Choice, EventName, EventPattern, FirstOf, Following, LastOf
from reference.event_patterns import Basic, Event, event_mappings

A, B, C = EventName("A"), EventName("B"), EventName("C")
FREE: dict[str, str] = {}


def seq(one: EventPattern, two: EventPattern, choice: str = "") -> Following:
    return Following(one, two, Choice(choice))


def found(pattern: EventPattern, events: str, variables: dict[str, str] | None = None) -> list[str]:
    """The times of the items of each event mapping, sorted: `1-3`. `"A1 Bx2"`: an A at 1 and a B at 2 that binds x to
    the variable of B: by default no event binds anything."""
    of = variables or FREE
    items: dict[str, set[Event]] = {"A": set(), "B": set(), "C": set()}
    for name, value, time in re.findall(r"([A-Z])([a-z]?)(\d+)", events):
        mu = frozenset([(Variable(of[name]), Literal(value))]) if value else frozenset()
        items[name].add(Event(mu, int(time), int(time), frozenset([("s", int(time))])))
    given = {
        name: Basic(frozenset(each), frozenset([Variable(of[name])] if name in of else []))
        for name, each in items.items()
    }
    pairs = [sorted(position for _, position in e.items) for e in event_mappings(pattern, given)]
    return ["-".join(map(str, each)) for each in sorted(pairs)]


SAME = {"A": "x", "B": "x"}


@pytest.mark.parametrize(
    ("pattern", "events", "expected"),
    [
        (seq(A, B), "A1 A2 B2 B3", ["1-2", "1-3", "2-3"]),
        (seq(LastOf(A), B), "A1 B2 A3", ["1-2"]),
        (seq(FirstOf(A), B), "A1 A2 B3 B4", ["1-3", "1-4"]),
        (FirstOf(seq(A, B)), "A1 A2 B3 B4", ["1-3", "2-3"]),
        (seq(A, LastOf(B)), "A1 B2 B3 A4", ["1-3"]),
        (seq(A, B, "n"), "A1 B2 A3", []),
        (seq(A, B, "n"), "A1 A2 B3 B4", ["2-4"]),
        (seq(A, B, "c"), "A1 A2 B3 B4", ["1-3"]),
        (seq(A, B, "r"), "A1 A2 B3 B4", ["2-4"]),
        (seq(A, B, "c"), "B1 A2 B3 B4", ["2-3"]),  # the first that has an A
        (seq(A, B, "r"), "A1 B2 A3", ["1-2"]),
        (seq(seq(A, B, "n"), C), "A1 B2 C3 B4", ["1-2-3"]),
        (seq(seq(A, B, "r"), C), "A1 B2 C3 A4 B5 C6", ["1-2-3", "4-5-6"]),
        (seq(A, seq(B, C, "n")), "A1 B2 A3 C4", ["1-2-4"]),  # E1 lies before the B
    ],
)
def test_events_that_bind_nothing(pattern: EventPattern, events: str, expected: list[str]) -> None:
    assert found(pattern, events) == expected


@pytest.mark.parametrize(
    ("pattern", "events", "expected"),
    [
        (seq(FirstOf(A), B), "Ay1 Ax2 Ax3 Bx4", ["2-4"]),
        (seq(LastOf(A), B), "Ax1 Ay2 Bx3", ["1-3"]),
        (seq(LastOf(A), B), "Ax1 Ay2 Bx3 By4", ["1-3", "2-4"]),
        (seq(A, B, "c"), "Ay1 Ax2 Ax3 Bx4 By5", ["1-5", "2-4"]),
        (seq(A, B, "r"), "Ax1 Ay2 Bx3 Bx4", ["1-4"]),
        (seq(A, B, "r"), "Ax1 Bx2 By3", ["1-2"]),  # no A agrees with the later one
        (seq(A, B, "n"), "Ax1 Ay2 Bx3", []),
        (seq(A, B, "n"), "Ax1 Ay2 Bx3 By4", ["2-4"]),
    ],
)
def test_values_of_the_second_are_put_into_the_first(pattern: EventPattern, events: str, expected: list[str]) -> None:
    assert found(pattern, events, SAME) == expected


def test_values_are_put_into_selections() -> None:
    """(A SEQ^r B) SEQ C: of A and B those that agree with C, then the recent ones. With SEQ^n, too."""
    pairs = {"A": "x", "B": "y", "C": "x"}
    assert found(seq(seq(A, B, "r"), C), "Ax1 Ay2 Bx3 Cx4", pairs) == ["1-3-4"]
    assert found(seq(seq(A, B, "n"), C), "Ax1 Ay2 Bx3 Cx4", pairs) == ["1-3-4"]
    assert found(LastOf(seq(seq(A, B, "n"), C)), "Ax1 Ay2 Bx3 Cx4 Cy5", pairs) == ["2-3-5"]


def test_a_variable_with_a_value_does_not_part_competitors() -> None:
    """With C's value put in, both B are of x: the last one wins; without it each B competes with its equals."""
    pairs = {"A": "x", "B": "x", "C": "x"}
    assert found(seq(seq(A, B, "r"), C), "Ax1 Ay1 Bx2 By3 Bx4 Cx5", pairs) == ["1-4-5"]
    assert found(seq(A, B, "r"), "Ax1 Ay1 Bx2 By3 Bx4", pairs) == ["1-3", "1-4"]
