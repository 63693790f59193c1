"""Matches as text and files: SPARQL JSON, CSV, TSV, a plain table, Arrow, Parquet, events in N-Quads.

Where it stands: match batches → **bytes**. The text formats are made batch by batch, each distinct term once,
so that they can be written while the query runs; a table, Arrow and Parquet need all matches first, because
widths and types depend on them.

CSV, TSV and JSON follow the W3C's SPARQL 1.1 results formats, which have no column for a match's time: select
`(ENDTIME() AS ?time)` to have it. For ASK all text formats give `true` or `false` (JSON in its boolean form).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any, BinaryIO, Final, Literal, Protocol, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray
from pyoxigraph import BlankNode, NamedNode, Triple
from pyoxigraph import Literal as RdfLiteral

from oxiseq.engine import kinds
from oxiseq.engine.errors import OxiseqError
from oxiseq.engine.events.encode import encode_events
from oxiseq.engine.events.quads import GENERATED_AT
from oxiseq.engine.events.time import to_text
from oxiseq.engine.events.write import quads_text
from oxiseq.engine.output.batch import MatchBatch
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.engine.terms.texts import Term
from oxiseq.grammar.render_sparql import SparqlWriter
from oxiseq.spaseq.columns import arrow_table
from oxiseq.spaseq.match import Shape

ResultFormat: TypeAlias = Literal["table", "json", "csv", "tsv", "arrow", "parquet", "nquads"]
Batches: TypeAlias = Iterable[MatchBatch]


class MakesGraph(Protocol):
    """A row with the triples that CONSTRUCT makes of it."""

    @property
    def time(self) -> int: ...

    @property
    def graph(self) -> tuple[Triple, ...]: ...


class Rows(Protocol):
    """What the rows of one query have in common, of whatever language answers rows of terms."""

    @property
    def terms(self) -> TermDictionary: ...

    @property
    def variables(self) -> tuple[str, ...]: ...

    @property
    def asks(self) -> bool: ...

    @property
    def makes_graphs(self) -> bool: ...

    @property
    def prefixes(self) -> Mapping[str, str]: ...

    def match(self, batch: MatchBatch, index: int) -> MakesGraph: ...


ENDINGS: Final[dict[str, ResultFormat]] = {
    ".txt": "table",
    ".json": "json",
    ".srj": "json",
    ".csv": "csv",
    ".tsv": "tsv",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".ipc": "arrow",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".nq": "nquads",
    ".nquads": "nquads",
}
BINARY: Final = frozenset(["arrow", "parquet"])
"""Formats that are not for a terminal."""
_XSD_STRING: Final = "http://www.w3.org/2001/XMLSchema#string"
_ROWS: Final = 16_384
"""Rows of JSON that are made at a time."""
_GRAPHS: Final = 1024
"""Graphs of CONSTRUCT that are encoded at a time."""


def result_format(path: str | Path) -> ResultFormat:
    """The format that a file's name tells; a `.gz` at its end is passed over. Raises OxiseqError."""
    name = Path(path)
    ending = (name.with_suffix("") if name.suffix.lower() == ".gz" else name).suffix.lower()
    if ending not in ENDINGS:
        raise OxiseqError(f"{path}: the ending {ending or '(none)'} tells no format; known: {', '.join(ENDINGS)}")
    return ENDINGS[ending]


def check_format(shape: Rows, format: ResultFormat) -> None:
    """Raise OxiseqError if the query's results cannot be written so."""
    if format == "nquads" and not shape.makes_graphs:
        raise OxiseqError("nquads needs a CONSTRUCT query, rows are no triples: use json, csv, tsv or arrow")


def write_results(
    shape: Shape, batches: Batches, format: ResultFormat, out: BinaryIO, *, stream: bool = False
) -> int:
    """Write matches in the order given; returns how many. `stream`: Arrow as an IPC stream, not a file."""
    check_format(shape, format)
    count = 0

    def counted() -> Iterator[MatchBatch]:
        nonlocal count
        for batch in batches:
            count += len(batch)
            yield batch

    if format in BINARY:
        _write_table(shape, counted(), format, out, stream=stream)
    else:
        write_text(result_text(shape, counted(), format), out)
    return count


def write_text(pieces: Iterable[str], out: BinaryIO) -> None:
    """Pieces of text in UTF-8."""
    for text in pieces:
        out.write(text.encode())


def result_text(shape: Rows, batches: Batches, format: ResultFormat) -> Iterator[str]:
    """The matches as pieces of text; `format` is one of the text formats."""
    if shape.asks:
        yield _boolean(batches, format)
    else:
        yield from _WRITERS[format](shape, batches)


def sorted_batch(shape: Shape, batches: Batches, *, ties: bool = False) -> MatchBatch:
    """All matches in order of end time; with `ties` those of equal end time by the times of their events."""
    batch = MatchBatch.concat(list(batches), len(shape.plan.answer.columns))
    if ties:
        times = batch.time.tolist()
        keys = [batch.event_time[a:b].tolist() for a, b in pairwise(batch.ends)]
        batch = batch.take(np.array(sorted(range(len(batch)), key=lambda i: (times[i], keys[i])), np.int64))
    else:
        batch = batch.by_end()
    shape.terms.hold(batch.values)
    return batch


def completes_in_order(shape: Shape) -> bool:
    """Whether matches complete in the order of their ends: not with a trailing negation, whose matches wait."""
    return not any(ending.guards for ending in shape.plan.automaton.endings)


# --- rows -----------------------------------------------------------------------------------------


class TermTexts:
    """Texts of term ids in one format, each made once; `unbound` stands for id 0."""

    def __init__(self, terms: TermDictionary, text: Callable[[Term], str], unbound: str = "") -> None:
        self._terms = terms
        self._text = text
        self._unbound = unbound
        self._known: dict[int, str] = {}
        self._generation = -1

    def rows(self, batch: MatchBatch) -> Iterator[list[str]]:
        """The texts of each match's row."""
        if self._generation != self._terms.generation:  # ids have been freed
            self._known, self._generation = {0: self._unbound}, self._terms.generation
        known = self._known
        for i in np.unique(batch.values).tolist():
            if i not in known:
                known[i] = self._text(self._terms.term(i))
        return ([known[i] for i in row] for row in batch.values.tolist())


def _csv(shape: Rows, batches: Batches) -> Iterator[str]:
    yield ",".join(shape.variables) + "\r\n"
    texts = TermTexts(shape.terms, lambda term: _csv_field(_plain(term)))
    for batch in batches:
        yield "".join(",".join(row) + "\r\n" for row in texts.rows(batch))


def _csv_field(text: str) -> str:
    if any(c in text for c in ',"\r\n'):
        return '"' + text.replace('"', '""') + '"'
    return text


def _tsv(shape: Rows, batches: Batches) -> Iterator[str]:
    yield "\t".join(f"?{name}" for name in shape.variables) + "\n"
    texts = TermTexts(shape.terms, str)  # N-Triples escapes tabs and line breaks
    for batch in batches:
        yield "".join("\t".join(row) + "\n" for row in texts.rows(batch))


def _json(shape: Rows, batches: Batches) -> Iterator[str]:
    yield f'{{"head": {{"vars": {json.dumps(list(shape.variables))}}}, "results": {{"bindings": ['
    names = [json.dumps(name) for name in shape.variables]
    first = True
    for batch in batches:
        for low in range(0, len(batch), _ROWS):
            text = _json_rows(shape.terms, batch.values[low : low + _ROWS], names)
            yield text[1:] if first else text  # no comma before the first row
            first = False
    yield "\n]}}\n"


def _json_rows(terms: TermDictionary, values: NDArray[np.uint32], names: list[str]) -> str:
    """Rows, a comma and a line break before each."""
    if not has_triple_terms(terms, values):
        return terms.json_rows(values, names).decode()
    cells = {int(i): json.dumps(_json_term(terms.term(int(i))), ensure_ascii=False) for i in np.unique(values) if i}
    rows = ([f"{name}: {cells[i]}" for name, i in zip(names, row, strict=True) if i] for row in values.tolist())
    return "".join(f",\n{{{', '.join(row)}}}" for row in rows)


def has_triple_terms(terms: TermDictionary, values: NDArray[np.uint32]) -> bool:
    """Whether triple terms may stand among them."""
    others = values[terms.columns.kind[values] == kinds.OTHER]
    return any(isinstance(terms.term(int(i)), Triple) for i in np.unique(others))


def _json_term(term: Term) -> dict[str, Any]:
    if isinstance(term, NamedNode):
        return {"type": "uri", "value": term.value}
    if isinstance(term, BlankNode):
        return {"type": "bnode", "value": term.value}
    if isinstance(term, Triple):
        parts = {"subject": term.subject, "predicate": term.predicate, "object": term.object}
        return {"type": "triple", "value": {name: _json_term(part) for name, part in parts.items()}}
    made = {"type": "literal", "value": term.value}
    if term.language:
        made["xml:lang"] = term.language
    elif term.datatype.value != _XSD_STRING:
        made["datatype"] = term.datatype.value
    return made


def _boolean(batches: Batches, format: ResultFormat) -> str:
    answer = sum(len(batch) for batch in batches) > 0  # all are read: the summary counts them
    if format == "json":
        return json.dumps({"head": {}, "boolean": answer}) + "\n"
    return "true\n" if answer else "false\n"


# --- for people -----------------------------------------------------------------------------------


def table_rows(shape: Rows, batch: MatchBatch) -> tuple[list[str], list[list[str]]]:
    """Header and rows for people: end time in UTC, IRIs shortened by the query's prefixes, control characters
    escaped."""
    writer = SparqlWriter(dict(shape.prefixes))

    def text(term: Term) -> str:
        return _visible(writer.iri(term) if isinstance(term, NamedNode) else _plain(term))

    texts = TermTexts(shape.terms, text)
    rows = [[to_text(time), *row] for time, row in zip(batch.time.tolist(), texts.rows(batch), strict=True)]
    return ["time", *(f"?{name}" for name in shape.variables)], rows


def is_numeric(shape: Rows, batch: MatchBatch) -> list[bool]:
    """Per column of `table_rows` whether it holds numbers only, which are set flush right."""
    answer = [False]
    for column in batch.values.T:
        terms = [shape.terms.term(i) for i in np.unique(column[column != 0])[:100].tolist()]
        answer.append(bool(terms) and all(isinstance(t, RdfLiteral) and _is_number(t) for t in terms))
    return answer


def _is_number(literal: RdfLiteral) -> bool:
    try:
        float(literal.value)
    except ValueError:
        return False
    return literal.datatype.value != _XSD_STRING


def _table(shape: Rows, batches: Batches) -> Iterator[str]:
    batch = MatchBatch.concat(list(batches), len(shape.variables))
    header, rows = table_rows(shape, batch)
    right = is_numeric(shape, batch)
    yield from flush_lines(header, rows, right)


def flush_lines(header: list[str], rows: list[list[str]], right: list[bool]) -> Iterator[str]:
    """Lines of a plain table; the columns of numbers are flush right."""
    widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]

    def line(cells: list[str]) -> str:
        set_ = (c.rjust(w) if r else c.ljust(w) for c, w, r in zip(cells, widths, right, strict=True))
        return "  ".join(set_).rstrip() + "\n"

    yield line(header)
    yield line(["-" * width for width in widths])
    for row in rows:
        yield line(row)


def _plain(term: Term) -> str:
    """An IRI's text, a literal's lexical form, a blank node with its label, a triple term in N-Triples."""
    return str(term) if isinstance(term, BlankNode | Triple) else term.value


def _visible(text: str) -> str:
    return text if text.isprintable() else "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


# --- events ---------------------------------------------------------------------------------------


def _nquads(shape: Rows, batches: Batches) -> Iterator[str]:
    """Each match's graph as an event, readable again by `oxiseq run` and `convert`."""
    terms = TermDictionary()
    pieces = (
        encode_events(((m.time, m.graph) for m in part), terms)
        for batch in batches
        for part in _parts([shape.match(batch, i) for i in range(len(batch))])
    )
    yield from quads_text(pieces, terms, time_predicate=GENERATED_AT)


def _parts(matches: list[MakesGraph]) -> Iterator[list[MakesGraph]]:
    return (matches[low : low + _GRAPHS] for low in range(0, len(matches), _GRAPHS))


_WRITERS: Final[dict[str, Callable[[Rows, Batches], Iterator[str]]]] = {
    "table": _table,
    "json": _json,
    "csv": _csv,
    "tsv": _tsv,
    "nquads": _nquads,
}


# --- Arrow and Parquet ----------------------------------------------------------------------------


def _write_table(shape: Shape, batches: Batches, format: ResultFormat, out: Any, *, stream: bool) -> None:
    batch = MatchBatch.concat(list(batches), len(shape.plan.answer.columns))
    write_arrow(arrow_table(batch, shape.plan, shape.terms), format, out, stream=stream)


def write_arrow(table: pa.Table, format: ResultFormat, out: Any, *, stream: bool) -> None:
    """A table in one of the `BINARY` formats. `stream`: Arrow as an IPC stream, not a file."""
    if format == "parquet":
        pq.write_table(table, out, compression="zstd")
        return
    new = pa.ipc.new_stream if stream else pa.ipc.new_file
    with new(out, table.schema) as writer:
        writer.write_table(table)


__all__ = [
    "BINARY",
    "ENDINGS",
    "ResultFormat",
    "TermTexts",
    "check_format",
    "completes_in_order",
    "flush_lines",
    "is_numeric",
    "result_format",
    "result_text",
    "sorted_batch",
    "table_rows",
    "write_arrow",
    "write_results",
    "write_text",
]
