"""The time of a match and the order of results (semantics.md 2.6a).

When a match is decided by itself is in `sequences.py`; here is what becomes of it where matches are compared, the order
of matches, and the stream that CONSTRUCT ... INTO STREAM writes.

Readings (the specification is silent): SAMPLE compares as LIMIT does. An event that two GPMs bind is once in the list
of a match's events; a stream that stands twice in FROM STREAM has its first place. An unbound value is the empty text.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from oxiseq.grammar.algebra import OnClose, Query, Window
from reference.patterns import Parts
from reference.sequences import Match
from reference.streams import Moment


@dataclass(frozen=True)
class Clock:
    """The instants of the query's streams, the t of its tumbling windows, how far the streams have come.

    `ends`: when what only further instants would decide is decided: at the end of the streams, never if they stay
    open. `until`: results before it are reported: all, or those before the watermark if the streams stay open.
    """

    window: Window | None
    times: tuple[int, ...]
    begin: int
    ends: Moment
    until: Moment

    def closing(self, time: int) -> Moment:
        """When the tumbling window that holds the instant closes: with its last microsecond or n-th instant, or with
        the streams."""
        assert self.window is not None and not self.window.sliding
        if not self.window.events:
            return self.begin + ((time - self.begin) // self.window.size + 1) * self.window.size - 1
        last = (self.times.index(time) // self.window.size + 1) * self.window.size - 1
        return self.times[last] if last < len(self.times) else self.ends


def timed(query: Query, chosen: Sequence[Match], sequences: Sequence[Match], clock: Clock) -> list[Match]:
    """The matches that are reported, each with its `at`. `sequences`: all that pass the FILTERs, refuted ones, too."""
    found = [replace(match, at=_at(query, match, sequences, clock)) for match in chosen]
    return [match for match in found if match.at < clock.until]


def _at(query: Query, match: Match, sequences: Sequence[Match], clock: Clock) -> Moment:
    if isinstance(query.summary.report, OnClose):
        return clock.closing(match.end)
    if compares(query):
        return max(s.at for s in sequences if s.end == match.end and s.partition == match.partition)
    return match.at


def compares(query: Query) -> bool:
    """Whether the matches of one end are decided together."""
    strategy = query.selection is not None and query.selection.strategy is not None
    return strategy or query.limit is not None or query.sample is not None or bool(query.summary.order_by)


def order_of(query: Query, parts: Mapping[str, Parts], match: Match) -> tuple[object, ...]:
    """By what matches are in order: all events; those of each GPM in the order of DEFINE; the values."""
    number: dict[str, int] = {}
    for stream in query.streams:
        number.setdefault(stream.iri.value, len(number))
    places = [(name, (event.time, number[event.stream])) for name, event, _ in match.bindings]
    of_gpms = [sorted({place for name, place in places if name == gpm.name}) for gpm in query.gpms]
    bound = {v.value: str(t) for v, t in match.mu}
    names = sorted({v.value for part in parts.values() for v in part.variables})
    return sorted({place for _, place in places}), of_gpms, [bound.get(name, "") for name in names]
