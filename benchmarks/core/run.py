"""Measuring the queries: every way of each, interleaved, checked against each other and against the count."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import cast

import pyarrow as pa

from benchmarks.core.count import count
from benchmarks.core.queries import Query
from benchmarks.core.ways import RDF, SPASEQ, TABLE, Answer, from_rdf, from_table, spaseq
from benchmarks.data import Events
from benchmarks.measure import measure


@dataclass(frozen=True, slots=True)
class Found:
    """Of one query: events per second of CPU time by way (median of the rounds), and the matches."""

    query: Query
    rates: dict[str, float]
    matches: int
    faults: tuple[str, ...]
    """Ways that differ, in words; empty when all is well."""


def ways_of(query: Query, table: pa.Table, events: Events | None) -> dict[str, Callable[[], Answer]]:
    """The tasks; `events` are the stream as RDF, if it is to be asked too."""
    ways = {TABLE: from_table(query, table)}
    if events is not None and query.coded:
        ways[RDF] = from_rdf(query, events)
        sequence = spaseq(query, events)
        if sequence is not None:
            ways[SPASEQ] = sequence
    return ways


def found(
    queries: Sequence[Query], table: pa.Table, events: Events | None, rounds: int, counted: int
) -> dict[str, Found]:
    """Measure queries over one stream, all of them interleaved; by name. The matches of the first `counted` events are
    counted a second time."""
    ways = {(q.name, way): task for q in queries for way, task in ways_of(q, table, events).items()}
    tasks = {" ".join(key): task for key, task in ways.items()}
    measured = dict(zip(ways, measure(tasks, rounds, tasks).values(), strict=True))
    results = {}
    for query in queries:
        mine = {way: m for (name, way), m in measured.items() if name == query.name}
        answers = {way: cast(Answer, m.answer) for way, m in mine.items()}  # as the tasks return it
        matches, _ = answers[TABLE]
        rates = {way: len(table) / max(m.median, 1e-9) for way, m in mine.items()}
        faults = tuple(_faults(query, table.slice(0, counted), answers))
        results[query.name] = Found(query, rates, matches, faults)
    return results


def _faults(query: Query, start: pa.Table, answers: dict[str, Answer]) -> Iterable[str]:
    for name, answer in answers.items():
        if answer != answers[TABLE]:
            yield f"{query.name}: {name} answers {answer}, {TABLE} {answers[TABLE]} (matches, sum of end times)"
    matches, _ = from_table(query, start)()
    counted = count(query, start)
    if matches != counted:
        yield f"{query.name}: {matches} matches among the first {len(start):,} events, {counted} were counted"
