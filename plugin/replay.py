"""`oxiseq.run`: a query over streams that are given whole, as files, tables or lists."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Literal, TypeAlias, overload

from pyoxigraph import NamedNode
from pyoxigraph import Store as RdfStore

from oxiseq.ceql.matches import ComplexMatches
from oxiseq.ceql.replay import CeqlReplay
from oxiseq.driving import Driver, Events, microseconds
from oxiseq.engine.errors import OxiseqError
from oxiseq.engine.events.quads import GENERATED_AT
from oxiseq.engine.events.report import OnError
from oxiseq.engine.events.time import to_microseconds
from oxiseq.engine.events.tuples import Naming
from oxiseq.engine.kb import StoreKb
from oxiseq.engine.output.batch import MatchBatch
from oxiseq.engine.plan.query import QueryPlan, compile_query
from oxiseq.engine.run.query import QueryRun
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.first_run import prepare
from oxiseq.formats import sorted_batch
from oxiseq.grammar import load
from oxiseq.grammar.algebra import Query
from oxiseq.grammar.ceql_algebra import CeqlQuery
from oxiseq.kb_loader import is_path, load_file, load_text, open_kb
from oxiseq.match import Shape
from oxiseq.matches import Matches
from oxiseq.store import Store

Kb: TypeAlias = str | Path | Store | RdfStore | None
"""A file, N-Quads text, a store's folder, or a store."""


@overload
def run(
    text: str,
    streams: Mapping[str, Events],
    kb: Kb = None,
    start: int | datetime | None = None,
    language: Literal["spaseq"] = "spaseq",
    *,
    lateness: int | timedelta = 0,
    on_error: OnError = "stop",
    time_predicate: str | NamedNode = GENERATED_AT,
) -> Matches: ...


@overload
def run(
    text: str,
    streams: Mapping[str, Any],
    kb: None = None,
    start: int | datetime | None = None,
    *,
    language: Literal["ceql"],
    lateness: int | timedelta = 0,
    on_error: OnError = "stop",
    time_predicate: str | NamedNode = GENERATED_AT,
    stream_names: Mapping[str, str] = {},
    type_column: str = "type",
    time_column: str = "time",
) -> ComplexMatches: ...


def run(
    text: str,
    streams: Mapping[str, Any],
    kb: Kb = None,
    start: int | datetime | None = None,
    language: str = "spaseq",
    *,
    lateness: int | timedelta = 0,
    on_error: OnError = "stop",
    time_predicate: str | NamedNode = GENERATED_AT,
    stream_names: Mapping[str, str] = {},
    type_column: str = "type",
    time_column: str = "time",
) -> Matches | ComplexMatches:
    """Answer a query over whole streams; when they end they are closed (trailing negations are decided).

    `streams`: IRI (or the name that the query gives it) → file, or (time, graph) pairs, time in microseconds
    or as datetime. `start`: the t of tumbling windows, default the first event's time; events before it are
    not seen. `lateness`: how much a stream may be out of order, in microseconds or as timedelta.
    `on_error="skip"` leaves out malformed events of files.

    With `language="ceql"` a stream may also be a table of tuple events: a CSV, Arrow or Parquet file, a pyarrow Table
    or a pandas DataFrame, with a column for the time (`time_column`: timestamps or integer microseconds), one for the
    type (`type_column`) and one per attribute. `stream_names`: name in FROM → IRI, where it is not the vocabulary's.

    Raises QueryError, EventError, KbError.
    """
    query = load(text, language)
    replay: Replay | CeqlReplay
    if isinstance(query, CeqlQuery):
        if kb is not None:
            raise OxiseqError("a CEQL query asks no knowledge base: leave out kb")
        replay = CeqlReplay(query, start, lateness, stream_names, Naming(type_column, time_column))
    else:
        if stream_names:
            raise OxiseqError("stream_names are for CEQL: a SPAseq query says its streams' IRIs itself")
        replay = Replay(query, kb, start, lateness)
    prepare(ceql=isinstance(query, CeqlQuery))
    for name, events in streams.items():
        replay.attach(name, events, on_error, time_predicate)
    return replay.matches()


def kb_store(kb: Kb) -> RdfStore:
    """The pyoxigraph store that `kb` means. Raises KbError."""
    if isinstance(kb, Store):
        return kb.inner
    if isinstance(kb, RdfStore):
        return kb
    store = RdfStore()
    if kb is None:
        return store
    if is_path(kb):
        if Path(kb).is_dir():
            return open_kb(Path(kb))
        load_file(store, kb)
    else:
        load_text(store, str(kb))
    return store


class Replay(Driver[MatchBatch]):
    """A SPAseq query and its streams."""

    def __init__(
        self, query: Query, kb: Kb, start: int | datetime | None = None, lateness: int | timedelta = 0
    ) -> None:
        terms = TermDictionary()
        self.plan: QueryPlan = compile_query(query, terms)
        begin = None if start is None else to_microseconds(start)
        self.run = QueryRun(self.plan, terms, StoreKb(kb_store(kb)), begin, microseconds(lateness))
        self.shape = Shape(self.plan, terms)
        super().__init__(self.run, terms, {s.name: s.iri.value for s in query.streams})

    def matches(self, progress: Callable[[], None] | None = None) -> Matches:
        """All matches, in order of end time."""
        batch = sorted_batch(self.shape, self.batches(progress))
        return Matches(self.shape, batch, self.run.events, self.late)
