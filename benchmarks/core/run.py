"""Measuring the queries: every way of each, interleaved, checked against each other and against the count."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

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


def found(query: Query, table: pa.Table, events: Events | None, rounds: int, counted: int) -> Found:
    """Measure one query; the matches of the first `counted` events are counted a second time."""
    ways = ways_of(query, table, events)
    measured = measure(ways, rounds, ways)
    answers = {name: m.answer for name, m in measured.items()}
    matches, _ = answers[TABLE]  # type: ignore[misc]  # an Answer
    rates = {name: len(table) / max(m.median, 1e-9) for name, m in measured.items()}
    return Found(query, rates, matches, tuple(_faults(query, table.slice(0, counted), answers)))


def _faults(query: Query, start: pa.Table, answers: dict[str, object]) -> Iterable[str]:
    for name, answer in answers.items():
        if answer != answers[TABLE]:
            yield f"{query.name}: {name} answers {answer}, {TABLE} {answers[TABLE]} (matches, sum of end times)"
    matches, _ = from_table(query, start)()
    counted = count(query, start)
    if matches != counted:
        yield f"{query.name}: {matches} matches among the first {len(start):,} events, {counted} were counted"
