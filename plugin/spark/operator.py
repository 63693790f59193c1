"""`oxiseq.spark.match`: a query over DataFrames of events, as a DataFrame of matches.

In the flow: DataFrames of streams → (dealer in `mapInArrow`, shuffle, buckets) → DataFrame of rows.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from pyspark.sql import Column, DataFrame, Observation, SparkSession
from pyspark.sql import functions as F

from oxiseq.engine.errors import QueryError
from oxiseq.engine.events.report import OnError
from oxiseq.engine.events.time import Time
from oxiseq.engine.plan.correlation import Correlation
from oxiseq.grammar import render
from oxiseq.grammar.algebra import NOWHERE
from oxiseq.grammar.languages import AnyQuery
from oxiseq.kb_loader import is_path
from oxiseq.languages.lints import lints_of, warn_of_lints
from oxiseq.languages.registry import language_named
from oxiseq.mappings.declared import Declared
from oxiseq.options import QUERY, SOURCES, said
from oxiseq.options.kinds import Duration
from oxiseq.options.query_text import QueryLike, QueryText, query_text
from oxiseq.spark.answers import (
    AT,
    LATE,
    STREAM,
    TERM_PARTS,
    TIME,
    event_columns,
    schema,
    span_columns,
    value_columns,
    value_parts,
)
from oxiseq.spark.balance import MOST, even_keys
from oxiseq.spark.checkpoint import check_checkpoint
from oxiseq.spark.errors import OnePartitionWarning, SparkError
from oxiseq.spark.facts import facts
from oxiseq.spark.given import Given, given_streams, texts
from oxiseq.spark.order import Form, Order
from oxiseq.spark.processor import DEALT, Buckets, Dealing, whole_of
from oxiseq.spark.types import Types, cast, cast_errors, casts, form_of
from oxiseq.spark.upstream import has_watermark, is_behind_state, metric_names
from oxiseq.spark.work import Work

_ROCKS: Final = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
_PROVIDER: Final = "spark.sql.streaming.stateStore.providerClass"
_PARTITIONS: Final = "spark.sql.shuffle.partitions"


def match(
    spark: SparkSession,
    query: QueryLike,
    streams: Mapping[str, DataFrame],
    kb: str | Path | None = None,
    *,
    origin: Time | None = None,
    lateness: Duration = "0s",
    buckets: int | None = None,
    late: bool = False,
    types: Types = "text",
    mappings: Mapping[str, Declared] | None = None,
    checkpoint: str | Path | None = None,
    on_error: OnError = "stop",
    language: str | None = None,
    name: str | Observation = "oxiseq",
) -> DataFrame:
    """The matches of a query over streams of events, as a DataFrame that is streaming if the streams are.

    `streams`: the query's name of a stream, or its IRI → its events. A DataFrame has a column `events` (what our Data
    Source gives; or N-Quads, text or binary, in which each event is a named graph with its time in the default graph),
    or `time` (timestamp, or bigint microseconds) and `graph` (one event's triples, N-Triples or Turtle). An event is
    one row's, whole. `mappings`: a stream → what rows of any other columns mean, as `oxiseq.StreamMapping` takes it.

    The answer has `at` (when the match was decided), `time` (the same, as event time), a column for each of the
    query's, for CONSTRUCT one column `graph`, and for each positive GPM, or variable of CEQL, `events_NAME`, the times
    of its events; rows of MATCH have `start` and `end`, and those that may be decided after their end have `end`. The
    rows are those of `oxiseq.run` over the same events, each once; those of one key come in order of `at`.

    `types` of the query's columns: "text" (strings: IRIs and lexical forms), "ntriples" (strings: RDF terms), "terms"
    (struct of `value`, `datatype`, `lang`, `kind`; events are structs of `stream` and `time`, too), "infer" (as the
    query's filters and expressions, mappings and the knowledge base make certain; else strings), or a mapping of names
    to types of Spark SQL's, such as {"p1": "double"}. A value without a place in its type becomes null, and is counted.

    `time` is the event time, with Spark's watermark: windows, deduplication within the watermark, stream-stream joins
    and another `match` may follow this one. It is `at`; where a window of events decides, the watermark under which the
    match was emitted, if that is later.

    Streaming: an event is late when it is older than Spark's watermark, which moves between micro-batches: the largest
    time of the micro-batches before, less `lateness`, of the stream that is furthest behind. A stream that has a
    watermark, by `withWatermark` or from a stateful operator before it, keeps it. Late events are not
    matched but counted: `lastProgress["observedMetrics"][name]` has `matches`, `late` and
    `cast_errors` of a micro-batch; each `match` in one streaming query needs a `name` of its own. An Observation as
    `name` gives them for DataFrames that do not stream.
    `late=True` adds a column `late` (struct of `stream`, `time`, `graph`), null in matches; a row in which it is not
    null stands for a late event that a pattern of the query matches, and nothing else.

    `buckets` runs share the keys (default: twice the cores); a checkpoint belongs to one number. `origin`: when
    tumbling windows begin, needed where these are time windows and the query is partitioned. `kb`: a file, a
    store's folder (opened for reading) or N-Quads text; a path must be good on every executor.

    `checkpoint`: the checkpointLocation that the streaming query will have. Its content is checked before anything
    runs; CheckpointError says what to do if this query cannot continue from it.

    Raises QueryError, OxiseqError. A query that cannot be partitioned runs in one task, with OnePartitionWarning, if it
    is in SPAseq; in other languages that is a QueryError.
    """
    asked = query_text(query, language)
    own = _own(asked)
    chosen = said(asked.language, {"origin": origin, "lateness": lateness, "on_error": on_error}, (QUERY, SOURCES))
    order = replace(_order(asked, own), origin=chosen.origin, on_error=chosen.on_error)
    at_work = Work(order)
    key = at_work.correlation
    _check_key(asked, own, key)
    warn_of_lints(each.to_json() for each in lints_of(asked, None))
    given = given_streams(at_work.names, streams, mappings)
    form = form_of(types)
    wanted = spark.sparkContext.defaultParallelism * 2 if buckets is None else buckets
    if not 1 <= wanted <= MOST:
        raise SparkError(f"buckets must be from 1 to {MOST}, but is {wanted}")
    number = wanted if key.by else 1
    _check(key, number, chosen.origin)
    behind = tuple(iri for iri, stream in given.items() if is_behind_state(stream.frame))
    order = replace(order, given=tuple(given), buckets=number, behind=behind, mappings=texts(given))
    at_work, order = Work(order), replace(order, kb=_kb(kb))
    _check_names(at_work, late)
    kinds = casts(types, own, value_columns(at_work), lambda: facts(given, order.kb))
    streaming = {each.frame.isStreaming for each in given.values()}
    if len(streaming) > 1:
        raise SparkError("either all streams are streaming DataFrames, or none is")
    if any(name in metric_names(each.frame) for each in given.values()):
        raise SparkError(f"a stream comes from another match with the name {name!r}: give name= to one of them")
    if chosen.lateness and streaming == {True} and all(has_watermark(each.frame) for each in given.values()):
        raise SparkError("the streams have watermarks of their own, which decide lateness: leave lateness out")
    keys = even_keys(number)
    dealt = _dealt(order, given, at_work.plan.streams, keys, chosen.lateness)
    grouped = dealt.groupBy("bucket")
    if streaming == {True}:
        _prepare(spark, number)
        if checkpoint is not None:
            check_checkpoint(spark, str(checkpoint), at_work)
        processor = Buckets(order, keys, form, late)
        rows = grouped.transformWithStateInPandas(processor, schema(at_work, form), "append", "EventTime", None, TIME)
    else:
        rows = grouped.applyInArrow(whole_of(order, form), schema(at_work, form))
    return _shown(rows, at_work, kinds, form, late, name)


def explain(query: QueryLike, language: str | None = None) -> str:
    """How `match` would partition a query, a line."""
    asked = query_text(query, language)
    return Work(_order(asked, _own(asked))).correlation.text()


def _own(query: QueryText) -> AnyQuery:
    """The query in a language of ours. Raises QueryError."""
    return language_named(query.language).own(query.algebra)


def _order(query: QueryText, own: AnyQuery) -> Order:
    """What executors read, which need no plug-in for it; for one bucket."""
    text = query.text if own is query.algebra else render(own)
    return Order(text, None, None, (), 1, language=own.language)


def _check_key(query: QueryText, own: AnyQuery, key: Correlation) -> None:
    """Raise QueryError where all events have to be in one place, and the language says no more of such queries."""
    if not key.by and not language_named(own.language).in_one_task:
        text, span = (query.text, key.span) if own is query.algebra else ("", None)
        raise QueryError(
            f"a query in {query.language} cannot be partitioned: {key.reason}",
            span or NOWHERE,
            text,
            hint="oxiseq.run takes it, with all events in one place",
            code="partition",
        )


def _check(key: Correlation, buckets: int, origin: int | None) -> None:
    if not key.by:
        warnings.warn(f"one task does all the matching: {key.reason}", OnePartitionWarning, stacklevel=3)
    elif key.needs_start and buckets > 1 and origin is None:
        raise SparkError(
            "tumbling windows begin with the first event, which no partition knows: give origin= (0: the first of "
            "1970, so that windows of an hour are hours), or buckets=1"
        )


def _check_names(at_work: Work, late: bool) -> None:
    """Raise SparkError if a variable has the name of another column of the answer, which Spark could not tell apart."""
    others = [AT, TIME, *span_columns(at_work.shape), *event_columns(at_work.shape), *[LATE] * late]
    for name in value_columns(at_work):
        if name.lower() in [other.lower() for other in others]:
            told = f"?{name} has the name of another column ({', '.join(others)})"
            raise SparkError(f"{told}: SELECT (?{name} AS ?other)")


def _kb(kb: str | Path | None) -> str | None:
    if kb is None or isinstance(kb, str):
        return str(Path(kb).resolve()) if kb is not None and is_path(kb) and Path(kb).exists() else kb
    if isinstance(kb, Path):
        return str(kb.resolve())
    raise SparkError("workers cannot share a Store that is open here: give a file, a store's folder or N-Quads text")


def _dealt(
    order: Order, given: Mapping[str, Given], streams: Sequence[str], keys: tuple[int, ...], lateness: int
) -> DataFrame:
    """The packed rows of all streams."""
    parts = []
    for iri, stream in given.items():
        frame = stream.frame
        part = frame.mapInArrow(Dealing(order, streams.index(iri), keys), DEALT)
        if frame.isStreaming and not has_watermark(frame):
            # Spark keeps a watermark for each stream, and takes the least. The column goes: with it Spark would drop
            # rows that are late, which we count. One ms more: Spark calls late what is equal to its watermark, we do
            # not.
            part = part.withColumn("at", F.timestamp_micros("high"))
            part = part.withWatermark("at", f"{-(-lateness // 1000) + 1} milliseconds").drop("at")
        parts.append(part)
    found = parts[0]
    for part in parts[1:]:
        found = found.unionAll(part)
    return found


def _prepare(spark: SparkSession, buckets: int) -> None:
    if spark.conf.get(_PROVIDER, "") != _ROCKS:
        spark.conf.set(_PROVIDER, _ROCKS)  # the operator has no other
    partitions = int(spark.conf.get(_PARTITIONS) or 200)
    if partitions > 2 * buckets:
        warnings.warn(
            f"{_PARTITIONS} is {partitions}, so each micro-batch starts as many tasks for {buckets} buckets; set it to "
            "the number of cores before the query's first start",
            stacklevel=3,
        )


def _shown(
    rows: DataFrame, at_work: Work, kinds: Mapping[str, str], form: Form, late: bool, metrics: str | Observation
) -> DataFrame:
    """The operator's columns under the names and with the types that users see."""
    values = _values(value_columns(at_work), at_work, form)
    if rows.isStreaming or isinstance(metrics, Observation):
        rows = rows.observe(
            metrics,
            F.count(AT).alias("matches"),
            F.count("late_stream").alias("late"),
            cast_errors(kinds, values).alias("cast_errors"),
        )
    columns = [F.timestamp_micros(AT).alias(AT), F.col(TIME)]
    columns += [F.timestamp_micros(name).alias(name) for name in span_columns(at_work.shape)]
    columns += [cast(column, kinds.get(name)).alias(name) for name, column in values.items()]
    streams = at_work.plan.streams if form == "terms" else ()
    columns += [_times(F.col(name), streams).alias(name) for name in event_columns(at_work.shape)]
    if late:
        told = F.struct(
            F.col("late_stream").alias("stream"),
            F.timestamp_micros("late_time").alias("time"),
            F.col("late_graph").alias("graph"),
        )
        columns.append(F.when(F.col("late_stream").isNotNull(), told).alias(LATE))
    else:
        rows = rows.where("late_stream is null")
    return rows.select(*columns)


def _values(names: list[str], at_work: Work, form: Form) -> dict[str, Column]:
    """The value columns by the names that users see."""
    if form != "terms" or at_work.shape.form == "CONSTRUCT":
        return {name: F.col(f"value_{i}") for i, name in enumerate(names)}
    found = {}
    for i, name in enumerate(names):
        parts = [F.col(column).alias(part) for column, part in zip(value_parts(i, form), TERM_PARTS, strict=True)]
        found[name] = F.when(F.col(f"kind_{i}").isNotNull(), F.struct(*parts))
    return found


def _times(text: Column, streams: Sequence[str]) -> Column:
    """Microseconds with commas between them as an array of timestamps, or with `streams` of (`stream`, `time`)."""

    def one(each: Column) -> Column:
        if not streams:
            return F.timestamp_micros(each.cast("bigint"))
        time, number = (F.split(each, STREAM)[i].cast("bigint") for i in (0, 1))
        stream = F.element_at(F.array(*map(F.lit, streams)), number.cast("int") + 1)
        return F.struct(stream.alias("stream"), F.timestamp_micros(time).alias("time"))

    several = F.transform(F.filter(F.split(text, ","), lambda each: each != ""), one)
    return F.when(text.isNotNull(), several)
