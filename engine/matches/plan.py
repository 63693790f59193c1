"""The plan of a query about the order of events: one for every language, and for both runners.

In the flow: text → algebra → **plan** → runner → matches. Live keys run it where filters correlate events, determinised
sets where nothing does (docs/explanation/architecture.md); explain, why, snapshots, pages and Spark read it.
"""

from __future__ import annotations

from dataclasses import field
from typing import Any, Final, Generic, Protocol, TypeAlias, TypeVar

from pyoxigraph import Variable

from oxiseq.engine.kernels.matches.records import EVERYTHING, NO_LIMIT, NOTHING, THE_PARTITION
from oxiseq.grammar.algebra import Consumption, Partition, Strategy
from oxiseq.grammar.records import dataclass


class SequenceQuery(Protocol):
    """What the queries of all languages have that have a `SequencePlan`."""

    @property
    def window(self) -> Any: ...

    @property
    def partition(self) -> Partition | None: ...

    @property
    def consumption(self) -> Consumption | None: ...


Q = TypeVar("Q", bound=SequenceQuery)
L = TypeVar("L")
K = TypeVar("K")
S = TypeVar("S")
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Clauses:
    """What the kernels do with the matches of one instant (of one partition): a strategy chooses among them, those
    that a ranking chooses are picked (`picks`), the first `limit` found are emitted. `consumes`: what they make
    forgotten, NOTHING, EVERYTHING or THE_PARTITION."""

    limit: int = NO_LIMIT
    strategy: Strategy | None = None
    consumes: int = NOTHING
    partitioned: bool = False
    picks: bool = False
    notes: bool = False
    """What ends is weighed, without being enumerated (output/weighing.py)."""
    together: bool = False
    """What is counted in a tumbling window is counted together."""
    reach: int = field(default=0, repr=False)
    """REACHES or LISTS_REACHED (kernels/sequence): what is told of sequences that wait for time; 0: nothing."""

    @property
    def chooses(self) -> bool:
        """Whether not all matches of an instant are enumerated."""
        return self.strategy is not None or self.picks


NO_CLAUSES: Final = Clauses()


@dataclass(frozen=True, slots=True, weakref_slot=True)
class SequencePlan(Generic[Q, L, K, S, R]):
    """A query ready to run. It never changes.

    Q, the query: as its language has it. L, a letter: a graph pattern or a typed predicate. K, a ranking; S, a summary:
    how matches are ordered, and how they become rows of groups. R: what one of the runners needs, and no other.
    """

    query: Q
    streams: tuple[str, ...]
    """IRIs in the order of the text; a stream declared twice is listed once by SPAseq."""
    letters: tuple[L, ...]
    """What an event may be for the sequence, each once, however many positions need it."""
    clauses: Clauses
    ranking: K | None
    """Which matches of an end are emitted, where ORDER BY or SAMPLE says so."""
    summary: S | None
    """How matches become rows of groups; None: each match is a row."""
    runner: R
    because: str
    """Why it has this runner: `live keys, since ...`."""

    @property
    def window(self) -> Any:
        """WITHIN, as the query's language has it."""
        return self.query.window

    @property
    def by(self) -> tuple[Variable, ...]:
        """PARTITION BY."""
        return () if self.query.partition is None else self.query.partition.by


AnySequencePlan: TypeAlias = SequencePlan[Any, Any, Any, Any, Any]


def forgotten_by(query: SequenceQuery) -> int:
    """What CONSUME BY makes forgotten."""
    if query.consumption is None:
        return NOTHING
    return EVERYTHING if query.consumption.whole_query or query.partition is None else THE_PARTITION
