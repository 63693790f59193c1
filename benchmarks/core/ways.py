"""Ways to answer a query over events that are loaded already: CEQL from a table, CEQL and SPAseq from RDF events."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyoxigraph import Literal, NamedNode

from benchmarks.core.queries import Query
from benchmarks.core.streams import numbers
from benchmarks.data import BATCH, Events, decimal, integer, iri
from benchmarks.drive import Prepared
from oxiseq.engine.cea.plan import compile_ceql
from oxiseq.engine.errors import QueryError
from oxiseq.engine.events.batch import EventBatch
from oxiseq.engine.events.tuples import read_rows
from oxiseq.engine.output.batch import MatchBatch
from oxiseq.engine.output.complex_events import ComplexEvents
from oxiseq.engine.run.tuples import Arrived, TupleRun
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.engine.terms.texts import Term
from oxiseq.grammar import load

Answer: TypeAlias = tuple[int, int]
"""The number of matches, and the sum of the times at which they end, modulo 2**64."""
TABLE = "CEQL, table"
RDF = "CEQL, RDF"
SPASEQ = "SPAseq, RDF"
TYPE = NamedNode("http://www.w3.org/1999/02/22-rdf-syntax-ns#type")


def from_table(query: Query, table: pa.Table) -> Callable[[], Answer]:
    """A task: predicates, automaton and enumeration, from the typed columns to columns of matches."""
    plan = compile_ceql(load(query.text, "ceql"))
    return lambda: _answer(batches(TupleRun(plan, TermDictionary()), read_rows(table)))


def from_rdf(query: Query, events: Events) -> Callable[[], Answer]:
    """The same from coded RDF events."""
    plan = compile_ceql(load(query.text, "ceql"))
    return lambda: _answer(batches(TupleRun(plan, events.terms), events.batches))


def spaseq(query: Query, events: Events) -> Callable[[], Answer] | None:
    """The query's SPAseq form over the same events; None if the engine lacks a clause that makes a difference."""
    try:
        prepared = Prepared.of(query.spaseq(clauses=True), events.terms)
    except QueryError:
        if not query.primed:
            return None
        prepared = Prepared.of(query.spaseq(clauses=False), events.terms)
    return lambda: _answer(prepared.run(events.batches))


def batches(run: TupleRun, source: Iterable[Arrived]) -> Iterator[ComplexEvents]:
    """All complex events of one stream, as columns."""
    (stream,) = run.plan.streams
    for batch in source:
        run.push(stream, batch)
        yield from run.advance()
    run.close()
    yield from run.advance()


def coded(table: pa.Table, terms: TermDictionary) -> Events:
    """The stock events as RDF: `_:e a :BUY ; :name ... ; :volume ... ; :price ... ; :stock_time ...`."""
    columns = {
        TYPE: _ids(table["type"], terms, iri),
        iri("name"): _ids(table["name"], terms, Literal),
        iri("volume"): _ids(table["volume"], terms, integer),
        iri("price"): _ids(table["price"], terms, lambda price: decimal(round(100 * price))),
        iri("stock_time"): _ids(table["stock_time"], terms, integer),
    }
    count, width = len(table), len(columns)
    subject = np.repeat(terms.blanks(count), width)
    predicate = np.tile(terms.intern_all(columns), count)
    objects = np.stack(list(columns.values()), axis=1).ravel()
    whole = EventBatch(numbers(table["time"]), width * np.arange(count + 1), subject, predicate, objects)
    terms.hold(*whole.ids)
    return Events(terms, tuple(whole.slice(low, low + BATCH) for low in range(0, count, BATCH)))


def _ids(column: pa.ChunkedArray, terms: TermDictionary, make: Callable[[Any], Term]) -> NDArray[np.uint32]:
    codes = column.combine_chunks()
    if not pa.types.is_dictionary(codes.type):
        codes = codes.dictionary_encode()
    ids = terms.intern_all(make(value) for value in codes.dictionary.to_pylist())
    rows: NDArray[np.uint32] = ids[np.from_dlpack(codes.indices)]
    return rows


def _answer(found: Iterable[ComplexEvents | MatchBatch]) -> Answer:
    count, times = 0, 0
    for batch in found:
        count += len(batch)
        times += int(batch.time.astype(np.uint64).sum(dtype=np.uint64))
    return count, times % 2**64
