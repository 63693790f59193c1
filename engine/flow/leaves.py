"""Where the rows of patterns come from: one run of engine/windows for all conjunctions of a plan.

In the flow: events that come into windows, bounds below which they are out, the KB's graphs when they have
changed → **rows that are new or have ended**, by instant → operators. A window is a source of that run; so is a graph
of the KB, which holds the newest answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final, NamedTuple

import numpy as np

from oxiseq.engine.events.batch import EventBatch
from oxiseq.engine.flow.delta import I64, Buffer
from oxiseq.engine.flow.knowledge import KbGraph
from oxiseq.engine.flow.plan import FlowPlan, GraphPlace, Patterns, Place, WindowPlace
from oxiseq.engine.flow.sinks import Sinks
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.engine.terms.saved import Stateful, part, value
from oxiseq.engine.windows.plan import ConjunctiveQuery, compile_windows
from oxiseq.engine.windows.run import Report, WindowRun
from oxiseq.engine.windows.window import Window
from oxiseq.grammar.algebra import TriplePattern

_NEWEST: Final = Window(1, 1, counted=True)
"""Of a source that holds its last event."""


class Moves(NamedTuple):
    """How windows move through several instants: by content the events that come in, in the order of their places,
    each at the instant of a number: i64[events] each; and low: i64[instants, contents], the places below which events
    are out, none of which falls."""

    batches: Sequence[EventBatch]
    places: Sequence[I64]
    instants: Sequence[I64]
    low: I64


class Leaves(Stateful):
    """The conjunctions of a plan at work. windows: those of its contents, by number; wanted: which rows operators
    need, of all conjunctions or one for each."""

    made_of = part("_run"), value("_versions")

    def __init__(
        self, plan: FlowPlan, windows: Sequence[Window], wanted: Report | Sequence[Report], terms: TermDictionary
    ) -> None:
        self._nodes = [place for place, form in enumerate(plan.forms) if isinstance(form, Patterns)]
        forms = [form for form in plan.forms if isinstance(form, Patterns)]
        self.graphs = _graphs(forms)
        """The queries to the KB: further sources, behind the windows."""
        number: dict[Place, int] = {WindowPlace(n): n for n in range(len(windows))}
        number |= {graph.place: len(windows) + n for n, graph in enumerate(self.graphs)}
        self._widths = [plan.widths[place] for place in self._nodes]
        self.outs = [Buffer(width) for width in self._widths]
        """Into which is written what changes of each, in their order."""
        self._sinks = Sinks(self.outs)
        self._windows = len(windows)
        self._versions = 0
        queries = [_numbered(form, number) for form in forms]
        every = (*windows, *(_NEWEST for _ in self.graphs))
        self._run = WindowRun(compile_windows(queries, terms, len(every)), terms, every, wanted) if queries else None

    def push(self, batches: Sequence[EventBatch], graphs: Sequence[EventBatch], tick: int) -> I64:
        """Events by window, each in order of time, and the present content of the KB's graphs, at the time of the first
        event, if it has changed. The instants' times; each node's changes go into `outs`, that of instant k at `tick` +
        k."""
        self._sinks.tick = tick
        if self._run is None:
            return np.unique(np.concatenate([batch.time for batch in batches]))
        if self._windows + len(self.graphs) == 1:
            return self._run.push_on(batches, self._sinks.take)
        first = np.array([min(int(batch.time[0]) for batch in batches if len(batch))])
        known = [replace(graph, time=first) for graph in graphs] or [EventBatch.empty() for _ in self.graphs]
        return self._run.push_on([*batches, *known], self._sinks.take)

    def move(self, moves: Moves, graphs: Sequence[EventBatch], tick: int) -> None:
        """Several instants, for a run whose windows get their contents from outside; the present content of the KB's
        graphs, if that has changed, holds from the first on. Each node's changes go into `outs` as those of `push`."""
        self._sinks.tick = tick
        if self._run is None:
            return
        instants, clocks = [*moves.instants], [places + 1 for places in moves.places]
        self._versions += bool(graphs)
        for batch in graphs:
            instants.append(np.zeros(len(batch), np.int64))
            clocks.append(np.full(len(batch), self._versions))
        low = np.full((len(moves.low), self._windows + len(self.graphs)), self._versions - 1)
        low[:, : self._windows] = moves.low
        self._run.move_on([*moves.batches, *graphs], instants, clocks, low, self._sinks.take)

    @property
    def instants(self) -> list[int]:
        """By window how many instants it has had, if it counts them."""
        return [0] * self._windows if self._run is None else self._run.instants[: self._windows]

    def start(self, instants: Sequence[int]) -> None:
        """Windows have had so many, and hold nothing."""
        if self._run is not None:
            self._run.start(instants)

    @property
    def nodes(self) -> list[int]:
        """The operators of the plan whose changes are emitted, in their order."""
        return self._nodes

    # --- its memory ----------------------------------------------------------------------------------

    @property
    def triples(self) -> int:
        """Stored; a triple in two views is two."""
        return 0 if self._run is None else len(self._run)


def _graphs(forms: Sequence[Patterns]) -> list[KbGraph]:
    """The KB's graphs, each with all patterns that are about it."""
    found: dict[GraphPlace, dict[TriplePattern, None]] = {}
    for form in forms:
        for pattern, source in zip(form.query.patterns, form.query.sources, strict=True):
            place = form.places[source]
            if isinstance(place, GraphPlace):
                found.setdefault(place, {})[pattern] = None
    return [KbGraph(place, tuple(patterns)) for place, patterns in found.items()]


def _numbered(form: Patterns, number: dict[Place, int]) -> ConjunctiveQuery:
    return replace(form.query, sources=tuple(number[form.places[source]] for source in form.query.sources))
