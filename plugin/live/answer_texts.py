"""Answers of queries over the store and their changes as text: SPARQL results, graphs, server-sent events."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Final, cast

from pyoxigraph import QueryBoolean, QueryResultsFormat, RdfFormat, parse, parse_query_results, serialize

from oxiseq.api.standing.query import Form
from oxiseq.engine.events.time import to_text
from oxiseq.journal import StoredMatches
from oxiseq.journal.lines import json_cell
from oxiseq.live.answers import PART, Answer, Row, signed_rows, stored_columns
from oxiseq.live.texts import results_of_rows

_END: Final = b"\n\n"


def answer_results(answer: Answer, format: QueryResultsFormat) -> bytes:
    """Of SELECT and ASK: SPARQL results."""
    if answer.form == "ASK":
        text = json.dumps({"head": {}, "boolean": bool(answer.rows)})
        found = cast(QueryBoolean, parse_query_results(text, QueryResultsFormat.JSON))
        return cast(bytes, found.serialize(format=format))
    return results_of_rows(answer.columns, [*_repeated(answer)], format)


def answer_graph(answer: Answer, format: RdfFormat) -> bytes:
    """Of CONSTRUCT: its graph."""
    text = "".join(f"{' '.join(map(str, row))} .\n" for row in answer.rows)
    if format == RdfFormat.N_TRIPLES:
        return text.encode()
    return serialize((quad.triple for quad in parse(text, RdfFormat.N_TRIPLES)), format=format) or b""


def answer_events(answer: Answer) -> Iterator[bytes]:
    """As `snapshot` events, some rows at a time. The last one alone has the id: who has not got it begins again."""
    rows = _repeated(answer)
    head = f'"at": "{to_text(answer.at)}"'
    if answer.form == "ASK":
        yield _event("snapshot", answer.number, f'{head}, "part": 0, "answer": {_truth(answer.rows)}, "more": false')
        return
    head += f', "variables": {json.dumps(answer.columns)}'
    left, number = answer.size, 0
    while True:
        texts = [_bindings(answer.columns, row) for row, _ in zip(rows, range(min(left, PART)))]  # noqa: B905  # a part
        left -= len(texts)
        data = f'{head}, "part": {number}, "rows": [{", ".join(texts)}], "more": {_truth(left)}'
        yield _event("snapshot", answer.number, data, named=not left)
        if not left:
            return
        number += 1


def change_events(stored: StoredMatches, form: Form) -> list[bytes]:
    """Rows of one change as a `change` event, whose id is that of the last of them."""
    return [_event("change", stored.last, change_text(stored, form)[1:-1])] if len(stored) else []


def change_text(stored: StoredMatches, form: Form) -> str:
    """The same as JSON alone."""
    at, more = to_text(int(stored.time[-1])), _truth(stored.heading.more)
    head = f'{{"id": {stored.last}, "at": "{at}"'
    rows = signed_rows(stored)
    if form == "ASK":
        return f'{head}, "answer": {_truth(any(came for _, came in rows))}, "more": {more}}}'
    columns = stored_columns(stored)
    removed, added = (
        ", ".join(_bindings(columns, row) for row, came in rows if came == side) for side in (False, True)
    )
    return f'{head}, "removed": [{removed}], "added": [{added}], "more": {more}}}'


def _repeated(answer: Answer) -> Iterator[Row]:
    return (row for row, count in answer.rows.items() for _ in range(count))


def _bindings(columns: Sequence[str], row: Row) -> str:
    bound = (f"{json.dumps(n)}: {json_cell(text)}" for n, text in zip(columns, row, strict=True) if text is not None)
    return f"{{{', '.join(bound)}}}"


def _truth(value: object) -> str:
    return "true" if value else "false"


def _event(kind: str, number: int, members: str, named: bool = True) -> bytes:
    head = f"id: {number}\n" if named else ""
    data = members if members.startswith('"id"') else f'"id": {number}, {members}'
    return f"{head}event: {kind}\ndata: {{{data}}}".encode() + _END
