"""The states that an automaton was in: a query run over a history, with a look at its partial matches now and then."""

from __future__ import annotations

from oxiseq.engine.errors import LimitError
from oxiseq.engine.run.query import QueryRun
from oxiseq.grammar.records import dataclass
from oxiseq.languages.reasons.bounds import Bounds
from oxiseq.languages.reasons.read import History
from oxiseq.languages.reasons.working import steps


@dataclass(frozen=True, slots=True)
class Point:
    """After all events up to `at` (µs): the groups of partial matches that wait at each edge of the automaton (in the
    order of the explanation's edges), and how many matches there were until then."""

    at: int
    waiting: tuple[int, ...]
    matches: int


def states_of(run: QueryRun, history: History, bounds: Bounds, points: int) -> tuple[Point, ...]:
    """`points` at most, with equally many instants between them; the last one is at the last event. `run` has seen
    nothing. Raises LimitError beyond `bounds.matches`, and whatever `bounds.check` raises."""
    instants = history.instants
    apart = -(-len(instants) // points) or 1
    found: list[Point] = []
    matches = 0
    for number, part in enumerate(steps(run, run.plan.streams, history, bounds, apart), 1):
        matches += sum(map(len, part))
        if bounds.matches is not None and matches > bounds.matches:
            raise LimitError(matches, bounds.matches, "matches of a query whose past states are shown")
        run.collect(run.clock.completed)  # what the window has closed waits no more
        if len(instants):
            found.append(Point(int(instants[min(number * apart, len(instants)) - 1]), run.waiting, matches))
    return tuple(found)
