"""The whole reference: a query, streams in order of arrival and a KB; out come rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from pyoxigraph import Store, Triple

from oxiseq.grammar.algebra import Query
from reference.expand import names_in
from reference.output import Row, rows_of
from reference.patterns import Mu, answer_kb, match_event, take_apart
from reference.sequences import Binding, frames, matches_in
from reference.streams import instants, observe


@dataclass(frozen=True)
class ReferenceResult:
    """`rows`: one per match, in order of end time. `late`: the number of late events.

    `ambiguous`: some match can be read in two ways that leave different variables visible (nested repeats
    over optional parts); the specification does not say which row it has.
    """

    rows: list[Row]
    late: int
    ambiguous: bool


def evaluate(
    query: Query,
    streams: Mapping[str, Sequence[tuple[int, Iterable[Triple]]]],
    kb: Store | None = None,
    start: int | None = None,
    lateness: int = 0,
) -> ReferenceResult:
    """Answer `query` (one that the checks accept) on streams that end.

    `streams`: IRI → (time in microseconds, triples) in order of arrival. `start`: the t of tumbling windows,
    by default the time of the first event; events before it are not seen. `lateness` in microseconds.
    """
    iris = {s.name: s.iri.value for s in query.streams}
    seen = observe(iris.values(), streams, lateness, start)
    parts = {gpm.name: take_apart(gpm) for gpm in query.gpms}
    rows = {}
    for name, part in parts.items():
        known = answer_kb(part, kb)
        mine = [e for e in seen.events if e.stream == iris[part.gpm.stream]]
        rows[name] = tuple((e, match_event(part, list(e.graph), known, kb)) for e in mine)
    times = instants(seen.events)
    begin = start if start is not None else min(times, default=0)
    stateful = {name: part.stateful for name, part in parts.items()}
    found = [
        match
        for frame in frames(times, rows, stateful, query.window, begin)
        for match in matches_in(frame, query.sequence)
    ]
    readings: dict[frozenset[Binding], set[Mu]] = {}
    for match in found:
        readings.setdefault(match.bindings, set()).add(match.mu)
    unique = list({match.bindings: match for match in found}.values())
    visible = {v for name in names_in(query.sequence) for v in parts[name].variables}
    assert all(v in visible for match in unique for v, _ in match.mu)
    return ReferenceResult(rows_of(query, parts, unique), seen.late, any(len(mus) > 1 for mus in readings.values()))
