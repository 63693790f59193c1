"""All events of the streams in one dictionary, each stream a single batch in order of time (then of arrival); and runs
over them: step by step, with a look at the partial matches, or for a page of the matches that end at one instant.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from pyoxigraph import NamedNode, Triple

from oxiseq.engine.errors import ArgumentValueError, LimitError
from oxiseq.engine.events.batch import EventBatch
from oxiseq.engine.events.encode import decode_events
from oxiseq.engine.events.quads import GENERATED_AT
from oxiseq.engine.events.report import OnError
from oxiseq.engine.events.time import Time, to_microseconds
from oxiseq.engine.matches.frozen import MOST_LIMBS
from oxiseq.engine.matches.paging import Page
from oxiseq.engine.order.watermarks import AFTER_ALL
from oxiseq.engine.run.query import QueryRun
from oxiseq.engine.run.run import Run
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.grammar.algebra import Query
from oxiseq.grammar.records import dataclass
from oxiseq.languages.driving import Opener
from oxiseq.matches.matches import Matches
from oxiseq.matches.shape import Shape
from oxiseq.options import Options
from oxiseq.options.kinds import CountKind, whole_number
from oxiseq.sources.sources import given_batches
from oxiseq.sources.warned import as_graphs, warn_unread

# --- bounds ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Bounds:
    """`matches`: for each query that is run, no more than so many are examined (None: all of them); `check` is called
    now and then, and may raise whatever is to end the work."""

    matches: int | None = None
    check: Callable[[], None] = lambda: None


FREE = Bounds()
"""No bounds."""


# --- read --------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Span:
    """Events from `since` to before `until` (µs; None: all)."""

    since: int | None = None
    until: int | None = None


@dataclass(frozen=True, slots=True)
class History:
    """What the query would see: per stream IRI one batch, in order of time; `start` is the t of tumbling windows,
    `late` how many events came too late and were not seen."""

    terms: TermDictionary
    batches: Mapping[str, EventBatch]
    start: int | None
    late: int

    @property
    def instants(self) -> NDArray[np.int64]:
        """All times at which something happens, ascending."""
        return np.unique(np.concatenate([np.zeros(0, np.int64), *(batch.time for batch in self.batches.values())]))


@dataclass(frozen=True, slots=True)
class Reading:
    """How streams are read, times in µs: only a span of time, from `origin` on, with so much disorder."""

    span: Span = Span()
    origin: int | None = None
    lateness: int = 0
    on_error: OnError = "stop"
    time_predicate: NamedNode = GENERATED_AT


def reading_of(options: Options, span: Span | None = None) -> Reading:
    """How the options say it; `span`: where the events are given by it already."""
    chosen = Span(options.since, options.until) if span is None else span
    predicate = NamedNode(options.time_predicate)
    return Reading(chosen, options.origin, options.lateness, options.on_error, predicate)


def read_history(
    query: Query, streams: Mapping[str, Any], reading: Reading, opener: Opener = given_batches, vocab: str = ""
) -> History:
    """Read all that a SPAseq query reads, an event per instant. Raises EventError."""
    names = {s.name: s.iri.value for s in query.streams}
    return read_streams(names, streams, reading, merged=True, opener=opener, vocab=vocab)


def read_streams(
    names: Mapping[str, str],
    streams: Mapping[str, Any],
    reading: Reading,
    *,
    merged: bool = False,
    opener: Opener = given_batches,
    vocab: str = "",
) -> History:
    """Read all streams; `names`: name in the query → IRI. `merged`: simultaneous events of a stream are one; else they
    are in order of arrival, and events before `origin` are not seen. A stream that the query does not read is left
    out, with a warning. Tables become the graphs that their rows stand for (semantics.md 3), so that all events are
    treated alike; `vocab`: the namespace of their names. Raises EventError."""
    terms = TermDictionary()
    batches: dict[str, EventBatch] = {}
    late, first = 0, reading.origin
    for name, events in streams.items():
        iri = names.get(name, name)
        if iri not in names.values():
            warn_unread(name, names)
            continue
        given = opener(events, terms, reading.on_error, reading.time_predicate, None)
        parts = [as_graphs(batch, terms, vocab) for batch in given]
        for part in parts:
            terms.hold(*part.ids)
        whole, behind = (in_order if merged else ordered)(parts, reading.lateness)
        late += behind
        if not merged and reading.origin is not None:
            whole = within(whole, Span(reading.origin, None))
        if reading.origin is None and len(whole):
            first = int(whole.time[0]) if first is None else min(first, int(whole.time[0]))
        batches[iri] = within(whole, reading.span)
    empty = EventBatch.empty()
    return History(terms, {iri: batches.get(iri, empty) for iri in dict.fromkeys(names.values())}, first, late)


def in_order(parts: Sequence[EventBatch], lateness: int) -> tuple[EventBatch, int]:
    """One batch without late events, those of one time merged; and how many were late."""
    batch, late = ordered(parts, lateness)
    instants, first = np.unique(batch.time, return_index=True)
    return EventBatch(instants, np.append(batch.offset[first], batch.offset[-1]), *batch.ids), late


def ordered(parts: Sequence[EventBatch], lateness: int) -> tuple[EventBatch, int]:
    """The same, but that events of one time are in order of arrival."""
    whole = EventBatch.concat(list(parts))
    newest = np.maximum.accumulate(whole.time) if len(whole) else whole.time
    kept = np.flatnonzero(whole.time >= newest - lateness)
    return whole.take(kept[np.argsort(whole.time[kept], kind="stable")]), len(whole) - len(kept)


def spans(history: History, instants: int) -> Iterator[Span]:
    """So many instants each, one after the other; the last one is open."""
    begin = None
    for end in (*history.instants[instants::instants].tolist(), None):
        yield Span(begin, end)
        begin = end


def within(batch: EventBatch, span: Span) -> EventBatch:
    """The events of a span of time, of a batch in order of time."""
    low = 0 if span.since is None else int(np.searchsorted(batch.time, span.since))
    high = len(batch) if span.until is None else int(np.searchsorted(batch.time, span.until))
    high = max(high, low)
    return batch.slice(low, high)


def graph_of(history: History, stream: str, time: int) -> tuple[Triple, ...]:
    """The triples of a stream at a time; none where it has no event then."""
    batch = within(history.batches[stream], Span(time, time + 1))
    return tuple(t for _, graph in decode_events(batch, history.terms) for t in graph) if np.size(batch.time) else ()


# --- working -----------------------------------------------------------------------------------------


STEP = 1_024
"""Instants that are processed at a time."""


def steps(
    run: Run, streams: Sequence[str], history: History, bounds: Bounds, instants: int | None = None
) -> Iterator[Sequence[Any]]:
    """All streams to the same time, again and again; what is found at each step. `instants` of one: STEP."""
    for span in spans(history, instants or STEP):
        bounds.check()
        for iri in dict.fromkeys(streams):
            batch = within(history.batches[iri], span)
            if len(batch):
                run.push(iri, batch)
            run.punctuate(iri, AFTER_ALL if span.until is None else span.until)
        yield run.advance()


def worked(
    run: Run,
    streams: Sequence[str],
    history: History,
    bounds: Bounds,
    most: int | None,
    instants: int | None = None,
) -> tuple[list[Any], bool]:
    """What is found until it is `most` (None: all); whether it is so many, so that there may be more."""
    found: list[Any] = []
    for part in steps(run, streams, history, bounds, instants):
        found += part
        if most is not None and sum(map(len, found)) >= most:
            return found, True
    return found, False


# --- states ------------------------------------------------------------------------------------------


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


# --- paging ------------------------------------------------------------------------------------------


MOST: Final = 10_000
"""Matches of a page."""
_BITS: Final = 64 * MOST_LIMBS


def page_asked(time: Time, offset: int, limit: int) -> Page:
    """What callers ask for. Raises EventError, ArgumentValueError, ArgumentTypeError."""
    if isinstance(offset, int) and offset.bit_length() > _BITS:
        raise ArgumentValueError(f"offset: no more than 2^{_BITS} matches are counted")
    CountKind(most=1 << _BITS).read(offset, "offset")
    if whole_number(limit, "limit") > MOST:
        raise ArgumentValueError(f"limit: a page has {MOST:,} matches at most, not {limit:,}")
    return Page(to_microseconds(time), offset, limit)


def reach(at: int, window: int | None, start: int | None, waits: int | None, *, sliding: bool) -> Span:
    """Which events decide what ends at `at` (µs). window: its length in µs, None where the query looks back without
    end; start: the t of windows that tumble; waits: for how long after its end a match may be undecided, None: without
    end."""
    since = None
    if window is not None and sliding:
        since = at - window
    elif window is not None and start is not None:
        since = start + (at - start) // window * window
    return Span(since, None if waits is None else at + waits + 1)


def paged(run: Run, shape: Shape, streams: Sequence[str], history: History, bounds: Bounds) -> Matches:
    """The page that a run finds that was compiled for it and has seen nothing. Raises LimitError, and whatever
    `bounds.check` raises."""
    found: list[Any] = []
    for part in steps(run, streams, history, bounds):
        found += part
    events = sum(map(len, history.batches.values()))
    return Matches(shape.block(found), events, total=run.paged)
