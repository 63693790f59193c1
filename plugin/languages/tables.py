"""Streams that are given whole as tables: one row is one event.

CEQL takes the rows as they are. The languages over graphs take each as a graph (semantics.md 3):
`_:e a :R ; :a v`, where `:` is the query's own empty prefix.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyoxigraph import NamedNode, Variable

from oxiseq.engine.errors import OxiseqError
from oxiseq.engine.events.report import OnError, ReadReport
from oxiseq.engine.events.row_events import RowEncoder
from oxiseq.engine.events.tuples import Naming, TupleRows, is_table, is_tuple_file, open_rows, read_rows
from oxiseq.engine.extras import installed, needed
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.grammar.algebra import PathNegated, PathRepeat, TriplePattern
from oxiseq.grammar.languages import AnyQuery
from oxiseq.grammar.parts import parts
from oxiseq.languages.driving import Opener, Told
from oxiseq.options import Options
from oxiseq.sources.sources import batches_of, given_batches, in_time_order, is_stream
from oxiseq.sources.warned import LateBatch, warn_caller

if TYPE_CHECKING:
    from oxiseq.mappings import usual
else:
    usual = needed("oxiseq.mappings.usual")

Encode = Callable[[TupleRows, TermDictionary], LateBatch]
"""Makes of rows what a language takes."""


def naming_of(options: Options, *, typed: bool) -> Naming:
    """The columns of tables that hold type and time. `typed`: there has to be a type."""
    return Naming(options.type_column, options.time_column, options.time_unit, typed)


def rows_opener(options: Options) -> Opener:
    """Tables as rows; anything else as events of graphs."""
    return _opener(naming_of(options, typed=True), lambda rows, terms: rows)


def graphs_opener(query: AnyQuery, options: Options, otherwise: Opener = given_batches) -> Opener:
    """Tables as graphs; anything else as events of graphs, too, which `otherwise` reads."""
    naming, asked = naming_of(options, typed=False), asked_predicates(query)

    def vocab() -> str:
        if (found := names_in(query)) is None:
            raise OxiseqError("the query has no PREFIX : <...>, so the columns of a table are no predicates of it")
        return found

    def encode(rows: TupleRows, terms: TermDictionary) -> LateBatch:
        return RowEncoder(terms, vocab(), asked).encode(rows)

    tables = _opener(naming, encode, otherwise)

    def of(
        events: Any, terms: TermDictionary, on_error: OnError, time_predicate: NamedNode, told: Told
    ) -> Iterator[LateBatch]:
        if (columns := usual.plain_columns(events) if _may_be_plain(events) else None) is None:
            return tables(events, terms, on_error, time_predicate, told)
        if isinstance(events, str | Path):
            warn_caller(f"{events} is read without pyarrow, slower: pip install 'oxiseq[arrow]'", UserWarning)
        mapping = usual.usual_mapping(columns, naming, vocab(), asked)
        batches = batches_of(events, terms, on_error, time_predicate, told, mapping)
        return in_time_order(batches, lambda: batches_of(events, TermDictionary(), "skip", mapping=mapping), terms)

    return of


def _may_be_plain(events: object) -> bool:
    """Whether it may be rows without a table: most streams are not, and do without the modules of mappings."""
    rows = isinstance(events, list | tuple) and bool(events) and isinstance(events[0], Mapping)
    return rows or (isinstance(events, str | Path) and not installed("pyarrow"))


def names_in(query: AnyQuery) -> str | None:
    """The namespace of columns and types: the empty prefix; None where the query declares none."""
    return dict[str, str](getattr(query, "prefixes", ())).get("")


def asked_predicates(query: object) -> frozenset[str] | None:
    """The IRIs that a query names; None if a pattern may read triples with any predicate."""
    if any(isinstance(each.predicate, Variable) for each in parts(query, TriplePattern)):
        return None
    if any(parts(query, PathNegated)) or any(each.mark != "+" for each in parts(query, PathRepeat)):
        return None  # `*` and `?` find every node that there is
    return frozenset(each.value for each in parts(query, NamedNode))


def _opener(naming: Naming, encode: Encode, otherwise: Opener = given_batches) -> Opener:
    def of(
        events: Any, terms: TermDictionary, on_error: OnError, time_predicate: NamedNode, told: Told
    ) -> Iterator[LateBatch]:
        if isinstance(events, str | Path) and is_tuple_file(events):
            report = ReadReport(str(events))
            if told is not None:
                told(report)
            rows = in_time_order(open_rows(events, naming, report), lambda: open_rows(events, naming), terms)
            return (encode(part, terms) for part in rows)
        if is_table(events):
            rows = read_rows(events, naming)
            if not is_stream(events):
                rows = in_time_order(rows, lambda: read_rows(events, naming), terms)
            return (encode(part, terms) for part in rows)
        return otherwise(events, terms, on_error, time_predicate, told)

    return of
