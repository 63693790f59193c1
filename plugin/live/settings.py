"""What the live service allows.

What the live service refuses.

OxiseqError
├── QueryError            a query text that is not accepted (grammar/errors.py)
├── JournalError...       unknown, conflicting, full, too old (journal/errors.py)
├── RejectedError         a body of which nothing could be read (intake.py)
├── BusyError             a queue or a cap is full: try again later
└── BoundError            more streams or queries than the service keeps, more events than it reads
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field
from pathlib import Path
from typing import Any, Final

from oxiseq.engine.bounds import SERVED, InstantBounds
from oxiseq.engine.errors import OxiseqError
from oxiseq.grammar.records import dataclass
from oxiseq.live.live_query import Budget
from oxiseq.options import QUERY, STATE, Options, as_data, said_as_data
from oxiseq.sinks import Allowed, DeclaredSink

# --- errors ----------------------------------------------------------------------------------------------


class BusyError(OxiseqError):
    """A queue or a cap is full; `retry`: seconds after which to try again; `status`: HTTP's, 429 where the client is
    too fast, 503 where there are too many of them."""

    def __init__(self, message: str, retry: int = 1, status: int = 429) -> None:
        super().__init__(message)
        self.retry = retry
        self.status = status


class BoundError(OxiseqError):
    """More streams or queries than the service keeps, or more events than it reads."""


# --- options ---------------------------------------------------------------------------------------------

DOORS: Final = (QUERY, STATE)
"""What options a query that is registered has."""
_READS: Final = "reads"


def options_of(language: str, stored: Mapping[str, Any]) -> Options:
    """From the journal's JSON values. Raises OxiseqError for what the language does not take."""
    given = {name: value for name, value in stored.items() if name != _READS}
    return said_as_data(language, given, DOORS, stored.get(_READS, ()))


def stored_options(language: str, given: Mapping[str, Any], reads: Iterable[str]) -> dict[str, Any]:
    """What is given, as JSON values for the journal; `reads`: the streams that there are, for a query that names none.
    Raises OxiseqError."""
    options = options_of(language, given)
    return {**as_data(options), _READS: options.reads or list(reads)}


# --- settings --------------------------------------------------------------------------------------------

HOUR = 3_600_000_000
"""An hour in microseconds."""


@dataclass(frozen=True, slots=True)
class LiveSettings:
    """Bounds, and how often things are done; times in seconds.

    `waiting`: events in the log that no query has seen yet, beyond which pushes are refused; `idle`: without events
    for so long, the newest instant is taken as complete (None: never); `subscribers`: live ones at a time; `pushers`:
    long pushes at a time; `recent`: matches of a query that are kept in memory, and how far a subscriber may fall
    behind; `heartbeat`: between comments
    to a silent subscriber; `retention`: µs for which a new stream keeps its events; `matches`: how many a query keeps;
    `queries`, `streams`: at most; `checkpoint`: between checkpoints; `upkeep`: between deletions of what is old;
    `page`: matches or events of one answer; `graphs`: triples of events that are held in memory for SPARQL, and
    `unasked`: after how long without a question those of a stream are released;
    `past`: triples of events that one look at the past reads, and `past_matches`: matches of each query that it runs;
    `refresh`: between questions to a KB elsewhere (None: never again);
    `held`: quads that are held in memory for a query over the store, beyond which the store is queried instead;
    `answer`: rows of its answer, `asking`: seconds that the store may take for it (None:
    without end), `unread`: after how long without a reader one goes that has no name;
    `union`: whether the default graph of SPARQL queries is the union of all, which no such query reads;
    `ahead`: µs by which the time of an event, or up to which a stream is advanced, may be ahead of the clock (None:
    any);
    `bounds`: of what a query may do within an instant;
    `budget`: of the state of a query that has none of its own;
    `sinks`: at most, `sinks_allowed`: what they may reach, `sinks_spare`: files and
    folders to which none may write, beside those of journal and store; `sinks_declared`: those of the settings,
    `sink_pauses`: seconds before a delivery is tried again, at first and at most.
    """

    waiting: int = 200_000
    idle: float | None = 0.25
    subscribers: int = 64
    pushers: int = 256
    recent: int = 20_000
    heartbeat: float = 12.0
    retention: int = HOUR
    matches: int = 1_000_000
    queries: int = 1_000
    streams: int = 1_000
    checkpoint: float = 10.0
    upkeep: float = 5.0
    page: int = 10_000
    graphs: int = 4_000_000
    unasked: float = 600.0
    past: int = 2_000_000
    past_matches: int = 20_000
    refresh: float | None = None
    held: int = 5_000_000
    answer: int = 1_000_000
    asking: float | None = 300.0
    unread: float = 60.0
    union: bool = False
    ahead: int | None = None
    bounds: InstantBounds = SERVED
    budget: Budget = field(default_factory=Budget)
    sinks: int = 100
    sinks_allowed: Allowed = field(default_factory=Allowed)
    sinks_spare: tuple[Path, ...] = ()
    sinks_declared: tuple[DeclaredSink, ...] = ()
    sink_pauses: tuple[float, float] = (1.0, 300.0)
