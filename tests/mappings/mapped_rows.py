"""Rows through a mapping, and through Oxigraph alone: what both make is compared."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pyoxigraph import CanonicalizationAlgorithm, Dataset, Quad, Triple

from oxiseq.engine.events.encode import decode_events, encode_events
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.kb_loader.rows import Rows
from oxiseq.kb_loader.tables import Mapping as Query
from oxiseq.kb_loader.tables import variable_name
from oxiseq.mappings.declared import StreamMapping
from oxiseq.mappings.events import mapped
from oxiseq.mappings.rows import BadRow, Table, object_table

Event = tuple[int, frozenset[str]]


def events_of(table: Table, mapping: StreamMapping, time: int | None = None) -> tuple[list[Event], list[BadRow]]:
    """The events, with their graphs in canonical form, and the rows that are left out."""
    terms = TermDictionary()
    events: list[Event] = []
    bad: list[BadRow] = []
    for part in mapped(table, mapping, terms, time):
        events += [(at, canonical(graph)) for at, graph in decode_events(part.batch, terms)]
        bad += part.bad
    return events, bad


def rows_of(rows: Sequence[Mapping[str, Any]], given: Any, time: int | None = None) -> tuple[list[Event], list[BadRow]]:
    """Of dicts."""
    mapping = StreamMapping(given)
    return events_of(object_table(rows, mapping.key), mapping, time)


def asked(
    rows: Sequence[Mapping[str, Any]], construct: str, named: Mapping[str, str] | None = None
) -> list[frozenset[str]]:
    """What Oxigraph makes of each row; `named`: the variable of a column (default: as `oxiseq load` has it)."""
    query, found = Query(construct), []
    for row in rows:
        there = {name: value for name, value in row.items() if value is not None}
        values = {(named or {}).get(name, variable_name(name)): value for name, value in there.items()}
        triples = list(query.triples(Rows(tuple(values), [tuple(values.values())], [None])))
        terms = TermDictionary()
        found += [canonical(graph) for _, graph in decode_events(encode_events([(0, triples)], terms), terms)]
    return found


def canonical(graph: Sequence[Triple]) -> frozenset[str]:
    """With blank nodes of canonical names."""
    dataset = Dataset(Quad(t.subject, t.predicate, t.object) for t in graph)
    dataset.canonicalize(CanonicalizationAlgorithm.UNSTABLE)
    return frozenset(map(str, dataset))
