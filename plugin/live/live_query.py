"""A running query of the service: its run, the form of its matches, and its position."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import field
from typing import Any, Final

import numpy as np
from pyoxigraph import RdfFormat, serialize

from oxiseq.engine.events.faults import NO_FAULTS, Faults
from oxiseq.engine.omissions import NO_OMISSIONS, Omissions
from oxiseq.engine.run.progress import ReadProgress
from oxiseq.engine.run.resets import Resets
from oxiseq.engine.run.run import Run
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.grammar.records import dataclass
from oxiseq.languages.language import Language
from oxiseq.live.budgets import Budget, Watch
from oxiseq.matches.shape import Shape
from oxiseq.sources.warned import LateBatch, graphs


@dataclass(frozen=True, slots=True)
class Seen:
    """The counters of a query when somebody last looked at it between two turns. `waiting`: of each edge of a SPAseq
    query's automaton, how many groups wait there; None for others."""

    events: int = 0
    late: int = 0
    faults: Faults = NO_FAULTS
    omitted: Omissions = NO_OMISSIONS
    state: Mapping[str, int] = field(default_factory=dict)
    resets: Resets = field(default_factory=Resets)
    waiting: tuple[int, ...] | None = None


LATE: Final = 1_000
"""Late events of a query that are kept: the newest."""


@dataclass(frozen=True, slots=True)
class Late:
    """A late event. `number`: how many of the query were late before it, and it; `graph`: N-Triples."""

    number: int
    stream: str
    time: int
    graph: str


@dataclass(slots=True, eq=False)
class LiveQuery:
    """A query at work. `count`: the id of the last match found; `stored`: up to which id they are stored already;
    `position`: the log's entry after which it began."""

    name: str
    language: Language[Any]
    run: Run
    shape: Shape
    origin: int | None
    count: int = 0
    stored: int = 0
    position: int = 0
    error: str = ""
    watch: Watch = field(default_factory=lambda: Budget().watch())
    """Its state's budget."""
    decided: int = 0
    """The log's entry before which nothing is decided about its budget (see budgets.py)."""
    saved: int = -1
    """The log's entry after which its last checkpoint was made."""
    passed: int = 0
    """How many events the worker had seen by then."""
    batches: list[Any] = field(default_factory=list)
    """Found, and not packed yet."""
    omitted: int = 0
    """Of the instants that were left out for it those that have been reported."""
    progress: ReadProgress = field(init=False)
    """How far the streams have come that it reads."""
    passed_over: frozenset[int] = frozenset()
    """The log's entries that are quarantined for it: it does not see them."""
    retired: bool = False
    """Whether it has been deleted or replaced: nothing that it finds is stored or told any more."""
    seen: Seen = field(default_factory=Seen)
    late_count: int = 0
    late: deque[Late] = field(default_factory=lambda: deque(maxlen=LATE))
    """The newest late events."""

    def __post_init__(self) -> None:
        self.progress = ReadProgress(lambda: self.run, self.shape.reads)

    def add_late(self, stream: str, batch: LateBatch, terms: TermDictionary) -> None:
        """Late events of a stream."""
        self.late_count += len(batch)
        newest = batch.take(np.arange(max(0, len(batch) - LATE), len(batch)))
        for number, (time, graph) in enumerate(
            graphs(newest, terms, self.shape.vocab), self.late_count - len(newest) + 1
        ):
            text = serialize(graph, format=RdfFormat.N_TRIPLES) or b""
            self.late.append(Late(number, stream, time, text.decode()))

    @property
    def faults(self) -> Faults:
        """Events that it ignores because its language cannot take them."""
        return self.run.faults
