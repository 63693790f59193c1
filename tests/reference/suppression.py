"""SUPPRESS, word by word after semantics.md 2.6c: which rows, in order, are covered by an earlier one of their key.

Readings (the specification is silent): a row that DISTINCT drops is what the equal row is. ORDER BY orders the matches
of one end (of one window, where they are reported at its close) of all partitions together. Without BY the key of an
aggregate query is made of the GROUP BY keys that are variables or expressions with a name.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cmp_to_key
from typing import TypeAlias

from pyoxigraph import Variable

from oxiseq.grammar.algebra import Limit, OnClose, Query, Suppression, Term
from reference.ranking import compared
from reference.sequences import Match
from reference.streams import Moment

Key: TypeAlias = tuple[Term | None, ...]
"""The values of the key's variables; unbound is a value of its own."""


@dataclass
class Emissions:
    """What has been emitted and dropped so far: rows come in order."""

    interval: int
    emitted: dict[Key, list[Moment]] = field(default_factory=dict)
    dropped: Counter[Key] = field(default_factory=Counter)
    """Since the last emitted one."""

    def covers(self, key: Key, at: Moment) -> bool:
        """Whether the row is covered; then it is counted."""
        covered = any(at - earlier < self.interval for earlier in self.emitted.get(key, ()))
        self.dropped[key] += covered
        return covered

    def emit(self, key: Key, at: Moment) -> None:
        """The row is emitted, and begins an interval."""
        self.emitted.setdefault(key, []).append(at)
        self.dropped[key] = 0


@dataclass
class Places:
    """LIMIT and OFFSET: how many rows of each group have asked for a place."""

    limit: Limit | None
    used: Counter[Hashable] = field(default_factory=Counter)

    def has_room(self, group: Hashable) -> bool:
        """Whether the next row of the group has one."""
        if self.limit is None:
            return True
        self.used[group] += 1
        return self.limit.offset < self.used[group] <= self.limit.offset + self.limit.count


def key_variables(query: Query, suppression: Suppression, aggregates: bool) -> tuple[Variable, ...]:
    """The variables whose values are a row's key; `aggregates`: it is of a group."""
    if suppression.by is not None:
        return suppression.by
    if aggregates:
        names = (key[1] if isinstance(key, tuple) else key for key in query.summary.group_by)
        return tuple(name for name in names if isinstance(name, Variable))
    return query.partition.by if query.partition is not None else ()


def key_of(variables: Sequence[Variable], bound: Mapping[Variable, Term]) -> Key:
    return tuple(bound.get(v) for v in variables)


def emitted(query: Query, suppression: Suppression, matches: Iterable[Match]) -> Iterator[Match]:
    """The matches that are emitted, of all in order, each with the number of those dropped before it."""
    variables = key_variables(query, suppression, False)
    emissions, places = Emissions(suppression.interval), Places(query.limit)
    for match in matches:
        key = key_of(variables, dict(match.mu))
        if emissions.covers(key, match.at) or not places.has_room((match.partition, ranked_at(query, match))):
            continue
        yield replace(match, suppressed=emissions.dropped[key])
        emissions.emit(key, match.at)


def ranked_at(query: Query, match: Match) -> Moment:
    """Equal for matches that ORDER BY and LIMIT compare: those of one end, or of one window."""
    return match.at if isinstance(query.summary.report, OnClose) else match.end


def sort_by(query: Query, rows: list[tuple[Match, Sequence[Term | None]]]) -> list[Match]:
    """Matches in the order of ORDER BY, which come in that of 2.6a, each with what ORDER BY compares."""
    for place in range(len(query.summary.order_by) - 1, -1, -1):
        by = cmp_to_key(lambda a, b, place=place: compared(a[1][place], b[1][place]))
        rows = sorted(rows, key=by, reverse=query.summary.order_by[place][1])
    return [match for match, _ in rows]
