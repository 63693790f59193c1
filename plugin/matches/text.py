"""Blocks of matches as text: SPARQL JSON, CSV, TSV, a plain table for people, events in N-Quads or as RDF
messages.

In the flow: blocks → **pieces of text**, block by block, each distinct term once, so that they can be written while
the query runs; a table needs all matches in one block, because widths depend on them.

CSV, TSV and JSON follow the W3C's SPARQL 1.1 results formats, which have no column for a match's time: select
`(ENDTIME() AS ?time)` or `(DETECTTIME() AS ?known)` to have it. For ASK all text formats give `true` or `false` (JSON
in its boolean form).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from pyoxigraph import BlankNode, NamedNode, Triple
from pyoxigraph import Literal as RdfLiteral

from oxiseq.engine import kinds
from oxiseq.engine.events.encode import encode_events
from oxiseq.engine.events.messages.announced import RDF_FORMATS, MessageFormat
from oxiseq.engine.events.messages.writing import events_text, head
from oxiseq.engine.events.time import to_text
from oxiseq.engine.output.batch import MatchBatch
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.engine.terms.texts import Term
from oxiseq.grammar.render_sparql import SparqlWriter
from oxiseq.matches.match import Match
from oxiseq.matches.shape import Block, Shape

TextFormat: TypeAlias = Literal["table", "json", "csv", "tsv", "nquads"] | MessageFormat
EventText: TypeAlias = Literal["nquads"] | MessageFormat
"""Those that hold graphs."""
Blocks: TypeAlias = Iterable[Block]
_XSD_STRING: Final = "http://www.w3.org/2001/XMLSchema#string"
_ROWS: Final = 16_384
"""Rows of JSON that are made at a time."""
_GRAPHS: Final = 1024
"""Graphs of CONSTRUCT that are encoded at a time."""


class Table(NamedTuple):
    """For people: header, rows, and which columns are flush right."""

    header: list[str]
    rows: list[list[str]]
    right: list[bool]


def text_of(shape: Shape, blocks: Blocks, format: TextFormat) -> Iterator[str]:
    """The matches as pieces of text."""
    if shape.form == "ASK":
        yield _boolean(blocks, format)
    elif format == "nquads" or format in RDF_FORMATS:
        yield from _events(blocks, format)
    else:
        yield from _WRITERS[format](shape, blocks)


# --- rows -----------------------------------------------------------------------------------------


class TermTexts:
    """Texts of term ids in one format, each made once; `unbound` is the text for id 0."""

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


def _csv(shape: Shape, blocks: Blocks) -> Iterator[str]:
    yield ",".join(shape.told) + "\r\n"
    texts = TermTexts(shape.terms, lambda term: _csv_field(_plain(term)))
    for batch in map(Block.told, blocks):
        yield "".join(",".join(row) + "\r\n" for row in texts.rows(batch))


def _csv_field(text: str) -> str:
    if any(c in text for c in ',"\r\n'):
        return '"' + text.replace('"', '""') + '"'
    return text


def _tsv(shape: Shape, blocks: Blocks) -> Iterator[str]:
    yield "\t".join(f"?{name}" for name in shape.told) + "\n"
    texts = TermTexts(shape.terms, str)  # N-Triples escapes tabs and line breaks
    for batch in map(Block.told, blocks):
        yield "".join("\t".join(row) + "\n" for row in texts.rows(batch))


def _json(shape: Shape, blocks: Blocks) -> Iterator[str]:
    yield f'{{"head": {{"vars": {json.dumps(list(shape.told))}}}, "results": {{"bindings": ['
    names = [json.dumps(name) for name in shape.told]
    first = True
    for batch in map(Block.told, blocks):
        for low in range(0, len(batch), _ROWS):
            text = _json_rows(shape.terms, batch.values[low : low + _ROWS], names)
            yield text[1:] if first else text  # no comma before the first row
            first = False
    yield "\n]}}\n"


def _json_rows(terms: TermDictionary, values: NDArray[np.uint32], names: list[str]) -> str:
    """Rows, a comma and a line break before each."""
    if not has_triple_terms(terms, values):
        return terms.json_rows(values, names).decode()
    cells = {int(i): json.dumps(json_term(terms.term(int(i))), ensure_ascii=False) for i in np.unique(values) if i}
    rows = ([f"{name}: {cells[i]}" for name, i in zip(names, row, strict=True) if i] for row in values.tolist())
    return "".join(f",\n{{{', '.join(row)}}}" for row in rows)


def has_triple_terms(terms: TermDictionary, values: NDArray[np.uint32]) -> bool:
    """Whether triple terms may be among them."""
    others = values[terms.columns.kind[values] == kinds.OTHER]
    return any(isinstance(terms.term(int(i)), Triple) for i in np.unique(others))


def json_term(term: Term) -> dict[str, Any]:
    """A term as in the SPARQL 1.1 Query Results JSON Format."""
    if isinstance(term, NamedNode):
        return {"type": "uri", "value": term.value}
    if isinstance(term, BlankNode):
        return {"type": "bnode", "value": term.value}
    if isinstance(term, Triple):
        parts = {"subject": term.subject, "predicate": term.predicate, "object": term.object}
        return {"type": "triple", "value": {name: json_term(part) for name, part in parts.items()}}
    made = {"type": "literal", "value": term.value}
    if term.language:
        made["xml:lang"] = term.language
        if term.direction is not None:
            made["its:dir"] = term.direction.value
    elif term.datatype.value != _XSD_STRING:
        made["datatype"] = term.datatype.value
    return made


def _boolean(blocks: Blocks, format: TextFormat) -> str:
    answer = sum(map(len, blocks)) > 0  # all are read: the summary counts them
    if format == "json":
        return json.dumps({"head": {}, "boolean": answer}) + "\n"
    return "true\n" if answer else "false\n"


# --- for people -----------------------------------------------------------------------------------


def table_of(block: Block) -> Table:
    """Times in UTC, IRIs shortened by the query's prefixes, control characters escaped; a span where no events show
    it; an end where that may lie before."""
    shape, told = block.shape, block.told()
    writer = SparqlWriter(dict(shape.prefixes))

    def text(term: Term) -> str:
        return _visible(writer.iri(term) if isinstance(term, NamedNode) else _plain(term))

    times = {} if shape.form == "EVENTS" else {"at": block.rows.at}
    start, end, _ = block.spans()
    if shape.spans and not shape.lanes:
        times["start"] = start
    if shape.later or "start" in times:
        times["end"] = end
    columns = [list(map(to_text, of.tolist())) for of in times.values()]
    rows = [[*(of[i] for of in columns), *row] for i, row in enumerate(TermTexts(shape.terms, text).rows(told))]
    names = (f"?{name}" if name in shape.index else name for name in shape.told)
    return Table([*times, *names], rows, [False] * len(times) + _numeric(shape.terms, told))


def _numeric(terms: TermDictionary, told: MatchBatch) -> list[bool]:
    """Per column whether it holds numbers only, which are set flush right."""
    answer = []
    for column in told.values.T:
        some = [terms.term(i) for i in np.unique(column[column != 0])[:100].tolist()]
        answer.append(bool(some) and all(isinstance(t, RdfLiteral) and _is_number(t) for t in some))
    return answer


def _is_number(literal: RdfLiteral) -> bool:
    try:
        float(literal.value)
    except ValueError:
        return False
    return literal.datatype.value != _XSD_STRING


def _table(_: Shape, blocks: Blocks) -> Iterator[str]:
    (whole,) = blocks
    yield from flush_lines(*table_of(whole))


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


def _events(blocks: Blocks, format: EventText) -> Iterator[str]:
    """Each match's graph as an event, readable again by `oxiseq run` and `convert`."""
    terms = TermDictionary()
    pieces = (
        encode_events(((m.at_us, m.graph) for m in part), terms)
        for block in blocks
        for part in _parts([block.match(i) for i in range(len(block))])
    )
    yield head(format)
    yield from events_text(pieces, terms, format=format)


def _parts(matches: list[Match]) -> Iterator[list[Match]]:
    return (matches[low : low + _GRAPHS] for low in range(0, len(matches), _GRAPHS))


_WRITERS: Final[dict[TextFormat, Callable[[Shape, Blocks], Iterator[str]]]] = {
    "table": _table,
    "json": _json,
    "csv": _csv,
    "tsv": _tsv,
}
