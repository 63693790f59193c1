"""Stored matches as text: SPARQL results and server-sent events."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import cast

from pyoxigraph import QueryResultsFormat, QuerySolutions, parse_query_results

from oxiseq.journal import StoredMatches
from oxiseq.journal.lines import match_lines


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
