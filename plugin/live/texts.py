"""Stored matches as text: SPARQL results and server-sent events."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any, cast

from pyoxigraph import (
    BlankNode,
    Literal,
    NamedNode,
    QueryResultsFormat,
    QuerySolutions,
    RdfFormat,
    parse,
    parse_query_results,
)

from oxiseq.engine.events.time import to_text
from oxiseq.journal import StoredMatches
from oxiseq.matches.text import json_term

_PLAIN = re.compile(r'"([^"\\]*)"(?:\^\^<([^<>\\]*)>)?')


def results(variables: Sequence[str], parts: Iterable[StoredMatches], format: QueryResultsFormat) -> bytes:
    """Matches as SPARQL results. SPARQL's TSV has terms as N-Triples has them, which is how they are stored; the other
    formats are made of it by pyoxigraph."""
    return results_of_rows(variables, [row for part in parts for row in part.rows()], format)


def results_of_rows(
    variables: Sequence[str], rows: Sequence[tuple[str | None, ...]], format: QueryResultsFormat
) -> bytes:
    """Rows of N-Triples texts, None where they are unbound, as SPARQL results."""
    if not variables:  # a TSV line without cells cannot be told from no line
        return _rowless(len(rows), format)
    lines = ["\t".join(f"?{name}" for name in variables)]
    lines += ["\t".join([text or "" for text in row]) for row in rows]
    text = "\n".join(lines) + "\n"
    if format == QueryResultsFormat.TSV:
        return text.encode()
    read = cast(QuerySolutions, parse_query_results(text, QueryResultsFormat.TSV))
    return cast(bytes, read.serialize(format=format))


def _rowless(count: int, format: QueryResultsFormat) -> bytes:
    """Solutions without variables: rows of nothing."""
    rows = json.dumps({"head": {"vars": []}, "results": {"bindings": [{} for _ in range(count)]}})
    if format == QueryResultsFormat.JSON:
        return rows.encode()
    read = cast(QuerySolutions, parse_query_results(rows, QueryResultsFormat.JSON))
    return cast(bytes, read.serialize(format=format))


def match_events(matches: StoredMatches) -> list[bytes]:
    """Each match as a server-sent event: its id, and as data what `match_lines` has."""
    return [
        b"id: %d\nevent: match\ndata: %b\n\n" % (number, line)
        for number, line in enumerate(match_lines(matches), matches.first)
    ]


def match_lines(matches: StoredMatches) -> list[bytes]:
    """Each match as an object on one line: id, at, SPARQL JSON bindings and, by GPM or variable, events."""
    names = _names(matches.heading.variables)
    cells = [None if text is None else json_cell(text) for text in matches.terms]
    found = []
    for i, (time, row) in enumerate(zip(matches.time.tolist(), matches.codes.tolist(), strict=True)):
        bound = ", ".join(
            f"{name}: {cell}" for name, code in zip(names, row, strict=True) if (cell := cells[code]) is not None
        )
        number = matches.first + i
        found.append(
            f'{{"id": {number}, "at": "{to_text(time)}", "bindings": {{{bound}}},'
            f' "events": {json.dumps(_events(matches, i))}}}'.encode()
        )
    return found


@lru_cache(256)
def _names(variables: tuple[str, ...]) -> list[str]:
    return [json.dumps(name) for name in variables]


def _events(matches: StoredMatches, index: int) -> dict[str, list[dict[str, str]]]:
    return {
        gpm: [{"stream": stream, "time": to_text(time)} for stream, time in events]
        for gpm, events in matches.events(index).items()
    }


@lru_cache(4096)
def json_cell(text: str) -> str:
    """The term of an N-Triples text as in SPARQL JSON results."""
    return json.dumps(json_term(term_of(text)))


def term_of(text: str) -> Any:
    """The term of an N-Triples text."""
    if text[0] == "<" and not text.startswith("<<"):
        return NamedNode(text[1:-1])
    if text.startswith("_:"):
        return BlankNode(text[2:])
    if plain := _PLAIN.fullmatch(text):  # no escapes: parsing takes ten times as long
        value, datatype = plain.groups()
        return Literal(value) if datatype is None else Literal(value, datatype=NamedNode(datatype))
    (quad,) = parse(f"<x:s> <x:p> {text} .", RdfFormat.N_TRIPLES)
    return quad.object
