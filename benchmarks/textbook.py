"""The textbook's way, to compare with: an NFA whose runs stand in a list, in plain Python.

Every event is tried on every run (SASE, Agrawal et al., SIGMOD 2008, and Flink's CEP work like this). A run is the
events chosen so far and one edge of the automaton on which it waits: after an iteration of a Kleene step there are
two such edges, hence two runs. What the operator says happens to the run that waits:

    :   it continues waiting after it has taken an event: a later one is another match
    ;   it waits until the first event that fits, and is used up by it
    ,   the very next event fits, or the run is gone

Runs whose first event is out of the window are dropped. Nothing is shared and nothing indexed: runs multiply with
the window. Each event is an instant of its own here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

Event: TypeAlias = tuple[Any, ...]
"""Plain values; the first is the clock in the window's unit."""
Chosen: TypeAlias = tuple[Event, ...]
Fits: TypeAlias = Callable[[Event, Chosen], bool]
"""Whether an event may follow those chosen."""


@dataclass(frozen=True, slots=True)
class Step:
    """One pattern: reached by `operator` from the step before; iterated by `loop`, if that is not empty, where
    `again` is asked of further iterations."""

    fits: Fits
    operator: str = ""
    loop: str = ""
    again: Fits | None = None


@dataclass(frozen=True, slots=True)
class Edge:
    """A way to take `step` once; `again` when it has been taken before."""

    step: int
    fits: Fits
    operator: str


Runs: TypeAlias = list[tuple[Edge, Chosen]]


@dataclass(frozen=True, slots=True)
class Outcome:
    """The matches among the first `seen` events, each with the clocks of its events; how often an event was tried
    on a run."""

    matches: list[tuple[int, ...]]
    seen: int
    tries: int


class Nfa:
    """A sequence of steps in a sliding window: the last clock minus the first is at most `window`."""

    def __init__(self, steps: Sequence[Step], window: int) -> None:
        self._window = window
        self._start = steps[0].fits
        self._last = len(steps) - 1
        self._after = [_edges_after(steps, number) for number in range(len(steps))]

    def run(self, events: Sequence[Event], most: int) -> Outcome:
        """The matches; stops before the event at which `most` tries are exceeded, and never before the first."""
        runs: Runs = []
        matches: list[Chosen] = []
        seen = tries = 0
        for event in events:
            if tries > most:
                break
            tries += len(runs) + 1
            seen += 1
            runs = self.take(event, runs, matches)
        return Outcome([tuple(event[0] for event in chosen) for chosen in matches], seen, tries)

    def take(self, event: Event, runs: Runs, matches: list[Chosen]) -> Runs:
        """Try one event on all runs; those that wait from now on. Matches that it completes are appended."""
        oldest = event[0] - self._window
        kept: Runs = []
        born: Runs = []
        for run in runs:
            edge, chosen = run
            if chosen[0][0] < oldest:
                continue
            if edge.fits(event, chosen):
                self._reach(edge.step, (*chosen, event), born, matches)
                if edge.operator == ":":
                    kept.append(run)
            elif edge.operator != ",":
                kept.append(run)
        if self._start(event, ()):
            self._reach(0, (event,), born, matches)
        kept += born
        return kept

    def _reach(self, step: int, chosen: Chosen, born: Runs, matches: list[Chosen]) -> None:
        born += [(edge, chosen) for edge in self._after[step]]
        if step == self._last:
            matches.append(chosen)


def _edges_after(steps: Sequence[Step], number: int) -> tuple[Edge, ...]:
    step = steps[number]
    edges = []
    if step.loop:
        edges.append(Edge(number, step.again or step.fits, step.loop))
    if number + 1 < len(steps):
        edges.append(Edge(number + 1, steps[number + 1].fits, steps[number + 1].operator))
    return tuple(edges)
