"""A running query of the service: its run, the form of its matches, and its position.

How large a query's running state may become, and what happens when it becomes larger.

When a budget is examined: after each turn of the worker, which is after some thousands of events at most, so it may be
passed by what a turn adds. Records that are dead, but not freed yet, do not count: they are freed first.

Why matches are the same after a kill: a decision is made after an entry of the log and is part of the next checkpoint,
which is that entry's: the state without partial matches, and all matches up to it, in one transaction. Nothing behind
the entry is processed before the checkpoint is durable, so no restart ever reads the log across a decision. The
other way round, a restart must not decide where the run before it did not: where entries share a turn, and
what has been freed by then, is another matter each time. So nothing is decided before the entry that was the log's last
one when the query was restored (`LiveQuery.decided`): nobody has processed what comes behind it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import field
from typing import Any, Final, Literal, NamedTuple, TypeAlias, cast

import numpy as np
from pyoxigraph import RdfFormat, serialize

from oxiseq.engine.errors import OxiseqError
from oxiseq.engine.events.faults import NO_FAULTS, Faults
from oxiseq.engine.omissions import NO_OMISSIONS, Omissions
from oxiseq.engine.run.progress import ReadProgress
from oxiseq.engine.run.resets import Resets
from oxiseq.engine.run.run import Run
from oxiseq.engine.sharing.runs import Runs
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.grammar.records import dataclass
from oxiseq.languages.language import Language
from oxiseq.matches.shape import Shape
from oxiseq.options import Options
from oxiseq.sources.warned import LateBatch, graphs

# --- budgets ---------------------------------------------------------------------------------------------

Policy: TypeAlias = Literal["fail", "drop"]
_SLACK: Final = 16
"""Where freeing what is dead has brought it below the budget, it is examined again a part of the budget later."""


class BudgetError(OxiseqError):
    """A query's running state has become larger than it may."""


@dataclass(frozen=True, slots=True)
class Budget:
    """Bounds of the running state, None: none. `records`: what `oxiseq.engine` keeps of events and partial matches
    (`QueryRun.records`); `bytes`: of its arrays, which grow by doubling. `policy`: `fail` stops the query, `drop`
    lets it forget all partial matches and continue."""

    records: int | None = None
    bytes: int | None = None
    policy: Policy = "fail"

    @property
    def bounds(self) -> bool:
        """Whether there are any."""
        return self.records is not None or self.bytes is not None

    def of(self, options: Options) -> Budget:
        """That of a query registered with these options; this one is for what they do not say, and 0 is no bound."""
        records = self.records if options.max_state_records is None else options.max_state_records or None
        most = self.bytes if options.max_state_bytes is None else options.max_state_bytes or None
        return Budget(
            records, most, self.policy if options.on_state_limit is None else cast(Policy, options.on_state_limit)
        )

    def check(self, run: Run) -> None:
        """Raises BudgetError when a run that has not seen anything is beyond it."""
        if self.bytes is None:
            return
        run.reserve()
        if run.bytes > self.bytes:
            raise BudgetError(f"a state budget of {self.bytes:,} bytes: without any event it is {run.bytes:,}")

    def watch(self) -> Watch:
        """Looks after a run."""
        return Watch(self, self.records or 0)


@dataclass(slots=True)
class Watch:
    """`after`: how many records there are to be before it is worth while to free what is dead."""

    budget: Budget
    after: int

    def passed(self, run: Run, had: int) -> str:
        """In which way a run's state is beyond the budget, between batches; empty if it is not. `had`: its records
        before anything dead was freed, so that all that share a state are examined at the same time."""
        records, most = self.budget.records, self.budget.bytes
        if most is not None and run.bytes > most:
            return f"its running state has {run.bytes:,} bytes, and {most:,} are allowed"
        if records is None or had <= self.after:
            return ""
        run.collect()
        alive = run.records
        self.after = max(records, alive + records // _SLACK)
        return f"its running state has {alive:,} records, and {records:,} are allowed" if alive > records else ""


# --- live query ------------------------------------------------------------------------------------------


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
    """The log's entry before which nothing is decided about its budget."""
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


# --- at work ---------------------------------------------------------------------------------------------


class Readers(NamedTuple):
    """Queries that read a stream. `lateness`: the largest that one of them allows (µs); `fits`: those of which one may
    not take every event, by what they take."""

    queries: tuple[LiveQuery, ...]
    lateness: int
    fits: Mapping[Hashable, Sequence[LiveQuery]]

    @classmethod
    def of(cls, queries: tuple[LiveQuery, ...]) -> Readers:
        """Some queries."""
        fits = dict[Hashable, list[LiveQuery]]()
        for query in queries:
            if query.run.fits is not None:
                fits.setdefault(query.run.fits, []).append(query)
        lateness = max((query.run.lateness for query in queries), default=0)
        return cls(queries, lateness, fits)


class AtWork:
    """Queries at work. `failed`, `broken`: those that are no longer, since the last emission."""

    def __init__(self, terms: TermDictionary) -> None:
        self.runs = Runs(terms)
        self.failed: list[LiveQuery] = []
        self.broken: list[LiveQuery] = []
        self.found: dict[LiveQuery, None] = {}
        """Those with matches that are not packed yet."""
        self.omitted: dict[str, int] = {}
        """How many instants were left out for queries since the last emission, by name."""
        self.writers: dict[LiveQuery, None] = {}
        """Those whose results go to streams."""
        self._queries: dict[Run, LiveQuery] = {}
        self._readers: dict[str, tuple[LiveQuery, ...]] = {}
        self._known: dict[str, Readers] = {}
        """As they were when somebody asked."""
        self._kb_readers: dict[LiveQuery, None] = {}

    def add(self, query: LiveQuery) -> None:
        """One more."""
        self._queries[query.run] = query
        budget = query.watch.budget  # of bytes each query that shares a state has its part
        self.runs.add(query.run, query.origin, bounds=None if budget.records is None else budget)
        for stream in query.shape.reads:
            self._readers[stream] = (*self._readers.get(stream, ()), query)
        if query.shape.feeds is not None:
            self.writers[query] = None
        if query.run.reads_kb:
            self._kb_readers[query] = None

    def remove(self, query: LiveQuery) -> bool:
        """One less; whether it was at work."""
        if self._queries.pop(query.run, None) is None:
            return False
        self.runs.remove(query.run)
        self._kb_readers.pop(query, None)
        self.writers.pop(query, None)
        for stream in query.shape.reads:
            self._readers[stream] = tuple(each for each in self._readers[stream] if each is not query)
            if not self._readers[stream]:
                del self._readers[stream]
                self._known.pop(stream, None)
        return True

    def of(self, run: Run) -> LiveQuery:
        """Whose run that is."""
        return self._queries[run]

    def __contains__(self, query: LiveQuery) -> bool:
        return query.run in self._queries

    @property
    def queries(self) -> tuple[LiveQuery, ...]:
        """All, in the order in which they came."""
        return tuple(self._queries.values())

    @property
    def streams(self) -> set[str]:
        """Those that are read."""
        return set(self._readers)

    def readers(self, stream: str) -> Readers:
        """Those that read a stream. For other threads, too."""
        queries = self._readers.get(stream, ())
        known = self._known.get(stream)
        if known is None or known.queries is not queries:
            known = self._known[stream] = Readers.of(queries)
        return known

    @property
    def kb_readers(self) -> tuple[LiveQuery, ...]:
        """Those that ask the knowledge base."""
        return tuple(self._kb_readers)

    def stepped(self) -> list[LiveQuery]:
        """Those whose state may be another than at the last call."""
        return [self._queries[run] for run in self.runs.stepped() if run in self._queries]

    @property
    def upset(self) -> bool:
        """Whether some are no longer at work and this has not been reported."""
        return bool(self.failed or self.broken)
