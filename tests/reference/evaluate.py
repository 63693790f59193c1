"""The whole reference: a query, streams in order of arrival and a KB; out come rows.

    partitions → frames (windows) → matches → strategy, CONSUME BY → times → rows

LIMIT is not applied, since the specification leaves open which matches it drops: it counts the rows of one
partition and time, and `choose.is_choice` judges an answer. With SUPPRESS it is: then it takes the first.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from pyoxigraph import Store

from oxiseq.grammar.algebra import Query
from reference.choose import Candidate, answered
from reference.expand import all_names, names_in, seen_names
from reference.output import Row, passes, rows_of
from reference.partition import EVERYTHING, Group, Rows, groups_of
from reference.patterns import Mu, answer_kb, match_event, take_apart
from reference.scopes import shown
from reference.sequences import Binding, Conditions, Match, frames, iterated_in, sequences_in
from reference.streams import Arrival, Moment, instants, observe
from reference.summaries import is_summary, summarise
from reference.times import Clock, timed


@dataclass(frozen=True)
class ReferenceResult:
    """`rows`: one per match, in the order of semantics.md 2.6a. `late`: the number of late events.

    `ambiguous`: some match can be read in two ways that leave different variables visible (nested repeats
    over optional parts); the specification does not say which row it has.
    `watermark`: all instants before it are complete; all results before it have been reported.
    """

    rows: list[Row]
    late: int
    ambiguous: bool
    watermark: Moment

    def written(self) -> list[Arrival]:
        """What CONSTRUCT ... INTO STREAM writes: each result at its `at`, and a punctuation."""
        events: list[Arrival] = [(row.at, row.graph) for row in self.rows]
        return events if math.isinf(self.watermark) else [*events, (int(self.watermark), None)]


def evaluate(
    query: Query,
    streams: Mapping[str, Sequence[Arrival]],
    kb: Store | None = None,
    start: int | None = None,
    lateness: int = 0,
    open_end: bool = False,
) -> ReferenceResult:
    """Answer `query` (one that the checks accept) on streams that end, or that stay open.

    `streams`: IRI → (time in microseconds, triples) in order of arrival, punctuations without triples. `start`: the t
    of tumbling windows, by default the time of the first event; events before it are not seen. `lateness` in
    microseconds.
    """
    until = query.until
    iris = {s.name: s.iri.value for s in query.streams}
    seen = observe(iris.values(), streams, lateness, start)
    seen_by, left = seen_names(query.sequence), seen_names(query.sequence, partners=False)
    if until is not None:
        seen_by |= seen_names(until, frozenset(names_in(query.sequence)))
    binds = {gpm.name: frozenset(shown(gpm.pattern)) for gpm in query.gpms}
    parts = {
        gpm.name: take_apart(gpm, frozenset().union(*(binds[n] for n in seen_by.get(gpm.name, ()))))
        for gpm in query.gpms
    }
    rows: Rows = {}
    for name, part in parts.items():
        known = answer_kb(part, kb)
        mine = [e for e in seen.events if e.stream == iris[part.gpm.stream]]
        rows[name] = tuple((e, match_event(part, list(e.graph), known, kb)) for e in mine)
    iterated = iterated_in(query, parts)
    begin = start if start is not None else min(instants(seen.events), default=0)
    conditions = Conditions({name: part.stateful for name, part in parts.items()}, binds, seen_by, left)
    ends, reported = (math.inf, seen.watermark) if open_end else (seen.reached, math.inf)
    clock = Clock(query.window, tuple(instants(seen.events)), begin, ends, reported)
    groups = [Group(EVERYTHING, seen.events, rows)]
    if query.partition is not None:
        names = [*all_names(query.sequence), *([] if until is None else all_names(until))]
        groups = groups_of(query, parts, names, seen.events, rows, kb)
    sequences: list[Match] = []
    ambiguous = False
    for group in groups:
        found = [
            replace(match, partition=group.value)
            for frame in frames(
                instants(group.events),
                group.rows,
                conditions,
                query.window,
                begin,
                iterated,
                clock.ends,
                kb,
                until,
            )
            for match in sequences_in(frame, query.sequence)
        ]
        readings: dict[frozenset[Binding], set[Mu]] = {}
        for match in found:
            readings.setdefault(match.bindings, set()).add(match.mu)
        ambiguous = ambiguous or any(len(mus) > 1 for mus in readings.values())
        found.sort(key=lambda match: not match.refuted)  # it is a match where one of its readings is one
        sequences += {match.bindings: match for match in found}.values()
    visible = {v for name in names_in(query.sequence) for v in parts[name].variables}
    assert all(v in visible for match in sequences for v, _ in match.mu)
    sequences = [m for m in sequences if all(passes(query, parts, m, f.condition) for f in query.filters)]
    chosen = _chosen(query, groups, [m for m in sequences if not m.refuted])
    if is_summary(query):
        answers = summarise(query, parts, chosen, sequences, clock)
    else:
        answers = rows_of(query, parts, timed(query, chosen, sequences, clock))
    return ReferenceResult(answers, seen.late, ambiguous, seen.watermark)


def _chosen(query: Query, groups: list[Group], matches: list[Match]) -> list[Match]:
    """What the strategy and CONSUME BY leave. The D of a match are the instants of its events, counted in its
    partition's substream."""
    places = {g.value: {t: i for i, t in enumerate(instants(g.events))} for g in groups}
    candidates = [
        Candidate(min(m.times), m.end, frozenset(places[m.partition][t] for t in m.times), m.partition, m)
        for m in matches
    ]
    return [c.what for c in answered(candidates, query.selection, query.consumption)]
