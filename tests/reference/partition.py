"""PARTITION BY of SPAseq: the substream of each value (semantics.md 2.1).

Readings: GPMs that neither SEQ nor UNTIL names put no event into a partition; of several variables one mapping must
give all values; a mapping of a GPM that should bind a variable and leaves it unbound is in no partition, one of a GPM
that never binds it (only negated ones) is in every partition that its event belongs to.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from pyoxigraph import Store, Variable

from oxiseq.grammar.algebra import Filter, Query, Term
from oxiseq.grammar.algebra import Group as Pattern
from reference.patterns import Mu, Omega, Parts, match_pattern
from reference.scopes import shown
from reference.streams import Event

Value: TypeAlias = tuple[Term, ...]
"""A term for each variable of PARTITION BY."""
Rows: TypeAlias = dict[str, tuple[tuple[Event, Omega], ...]]
"""GPM name → its mappings on each event of its stream."""
EVERYTHING: Value = ()
"""The partition of a query without PARTITION BY."""


@dataclass(frozen=True)
class Group:
    """A partition: its value, its events in order, and the mappings that are visible in it."""

    value: Value
    events: tuple[Event, ...]
    rows: Rows


def groups_of(
    query: Query,
    parts: Mapping[str, Parts],
    names: Sequence[str],
    events: Sequence[Event],
    rows: Rows,
    kb: Store | None,
) -> list[Group]:
    """The partitions of `query`, each with what it sees. `names`: the GPMs that SEQ and UNTIL name."""
    assert query.partition is not None
    by = query.partition.by
    streams = {s.name: s.iri.value for s in query.streams}
    values = {
        event: {
            value
            for name in names
            if streams[parts[name].gpm.stream] == event.stream
            for value in _values(by, parts[name], event, kb)
        }
        for event in events
    }
    groups = []
    for value in dict.fromkeys(v for event in events for v in sorted(values[event], key=str)):
        mine = {event for event in events if value in values[event]}
        visible: Rows = {
            name: tuple(
                (event, frozenset(mu for mu in omega if _agrees(by, value, parts[name], mu)))
                for event, omega in rows[name]
                if event in mine
            )
            for name in names
        }
        groups.append(Group(value, tuple(e for e in events if e in mine), visible))
    return groups


def _values(by: tuple[Variable, ...], parts: Parts, event: Event, kb: Store | None) -> set[Value]:
    """What the GPM's pattern, its FILTERs aside, binds to the variables on this event."""
    pattern = Pattern(tuple(e for e in parts.pattern.elements if not isinstance(e, Filter)))
    if not set(by) <= set(shown(pattern)):
        return set()
    found = match_pattern(pattern, list(event.graph), kb if parts.needs_kb_inside else None)
    return {tuple(dict(mu)[v] for v in by) for mu in found if set(by) <= dict(mu).keys()}


def _agrees(by: tuple[Variable, ...], value: Value, parts: Parts, mu: Mu) -> bool:
    bound, mine = dict(mu), parts.variables
    return all(bound.get(v) == term for v, term in zip(by, value, strict=True) if v in mine)
