"""Answers of queries over the store, and what changes of them, as the journal has them.

In the flow: `oxiseq.api.standing` → **blobs** → journal, topics; and back: what has been emitted of an answer so far.

A row is a tuple of N-Triples texts (None: unbound), a row of CONSTRUCT a triple. A change is stored row by row, each as
often as it comes or goes and under an id of its own, those that go first; a last column says which. A change of many
rows is several batches; all but the last say that it continues.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, TypeAlias, cast

import numpy as np
from pyoxigraph import (
    QueryBoolean,
    QueryResultsFormat,
    QuerySolutions,
    RdfFormat,
    Triple,
    parse,
    parse_query_results,
    serialize,
)

from oxiseq.api.standing.query import Form
from oxiseq.api.standing.query import Row as Told
from oxiseq.engine.events.time import to_text
from oxiseq.engine.output.batch import MatchBatch
from oxiseq.grammar.records import dataclass
from oxiseq.journal import DamagedError, Found, Heading, Journal, StoredMatches, unpack_matches
from oxiseq.journal.lines import json_cell, match_lines
from oxiseq.journal.rows import pack_rows

# --- answers ---------------------------------------------------------------------------------------------

Row: TypeAlias = tuple[str | None, ...]
Rows: TypeAlias = Mapping[Row, int]
"""How often each is there; of a change below 0 how often it goes."""
OF_ANSWER: Final = "{!r} is a query over the store: it has an answer and its changes, but no matches"
PART: Final = 1000
"""Rows of a batch: a reader of live changes gets one at a time."""
TRIPLE: Final = ("subject", "predicate", "object")
_SIGN: Final = ""
"""The column that says whether a row came: no variable is called so."""
_CAME: Final = '"+"'
_WENT: Final = '"-"'


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer: `number` is the id of the last change in it; `at`: µs, when it was read."""

    form: Form
    columns: tuple[str, ...]
    number: int
    at: int
    rows: Rows

    @property
    def size(self) -> int:
        """Its rows, each as often as it is there."""
        return sum(self.rows.values())


def columns_of(form: Form, variables: Sequence[str]) -> tuple[str, ...]:
    """Of the rows of a query: of ASK none."""
    return TRIPLE if form == "CONSTRUCT" else tuple(variables)


def rows_of(weighed: Iterable[tuple[Told, int]]) -> Counter[Row]:
    """Rows as a standing query has them."""
    found: Counter[Row] = Counter()
    for row, weight in weighed:
        terms = (row.subject, row.predicate, row.object) if isinstance(row, Triple) else row.values()
        found[tuple(None if term is None else str(term) for term in terms)] += weight
    return found


def difference(before: Rows, now: Rows) -> Counter[Row]:
    """What changes the one into the other."""
    changed = Counter({row: count - before.get(row, 0) for row, count in now.items() if count != before.get(row, 0)})
    changed.update({row: -count for row, count in before.items() if row not in now})
    return changed


def size_of(change: Rows) -> int:
    """How many ids it takes."""
    return sum(map(abs, change.values()))


def packed(query: str, first: int, columns: Sequence[str], at: int, change: Rows) -> Iterator[Found]:
    """A change made at a time (µs), from the id `first` on."""
    rows = [(*row, _WENT) for row, weight in change.items() for _ in range(-weight)]
    rows += [(*row, _CAME) for row, weight in change.items() for _ in range(weight)]
    for start in range(0, len(rows), PART):
        heading = Heading((*columns, _SIGN), more=start + PART < len(rows))
        yield Found(query, first + start, _blob(rows[start : start + PART], heading, at))


def saved(answer: Answer) -> bytes:
    """For a checkpoint."""
    rows = [(*row, _CAME) for row, count in answer.rows.items() for _ in range(count)]
    return _blob(rows, Heading((*answer.columns, _SIGN)), answer.at) if rows else b""


def told_rows(journal: Journal, query: str) -> Counter[Row]:
    """What readers have got of an answer: that of the last checkpoint, and the changes since. Raises JournalError
    where either cannot be read."""
    found: Counter[Row] = Counter()
    checkpoint = journal.checkpoints.latest(query)
    if checkpoint is None:
        raise DamagedError(f"the answer of {query!r} is lost")
    cursor = checkpoint.matches.get(query, 0)
    if checkpoint.state:
        _add(found, unpack_matches(checkpoint.state, 1))
    while parts := journal.matches.read(query, cursor):
        for part in parts:
            _add(found, part)
        cursor = parts[-1].last
    return Counter({row: count for row, count in found.items() if count})


def signed_rows(stored: StoredMatches) -> list[tuple[Row, bool]]:
    """The rows of a change, and whether each came."""
    return [(row[:-1], row[-1] == _CAME) for row in stored.rows()]


def stored_columns(stored: StoredMatches) -> tuple[str, ...]:
    """Those of the answer."""
    return stored.heading.variables[:-1]


def _add(found: Counter[Row], stored: StoredMatches) -> None:
    for row, came in signed_rows(stored):
        found[row] += 1 if came else -1


def _blob(rows: Sequence[Row], heading: Heading, at: int) -> bytes:
    numbers: dict[str | None, int] = {None: 0}
    codes = [[numbers.setdefault(text, len(numbers)) for text in row] for row in rows]
    count = len(rows)
    batch = MatchBatch(
        np.full(count, at, np.int64),
        np.zeros((count, 0), np.uint32),
        np.zeros(count + 1, np.int64),
        np.zeros(0, np.int32),
        np.zeros(0, np.int64),
    )
    texts = [text.encode() for text in numbers if text is not None]
    return pack_rows(batch, heading, np.array(codes, np.int32), texts)


# --- texts -----------------------------------------------------------------------------------------------


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


# --- answer texts ----------------------------------------------------------------------------------------

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
