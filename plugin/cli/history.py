"""The work of `oxiseq why` and `oxiseq what-if`: queries over files, or over what a server has kept."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import click
from pyoxigraph import NamedNode

from oxiseq.cli.knowledge import checked_kb, combined
from oxiseq.cli.options import QuerySource
from oxiseq.cli.progress import working
from oxiseq.cli.request import HistoryRequest
from oxiseq.cli.running import stream_files, told
from oxiseq.engine.events.tuples import Naming
from oxiseq.grammar.languages import AnyQuery
from oxiseq.journal import FILE_NAME, Journal, LogSource
from oxiseq.knowledge import Kb
from oxiseq.languages.front import Options, said, without_reports
from oxiseq.languages.registry import front_of, rules_of
from oxiseq.reasons.read import Reading, Span
from oxiseq.reasons.report import WhyRequest
from oxiseq.what_if import compared

_PLAIN = Options()


@working("looking back", quiet=False)
def tell_why(source: QuerySource, request: HistoryRequest, form: str, matches: int) -> str:
    """`text`, `json` or `prov`. Raises OxiseqError and click's usage errors."""
    query = source.load()
    front = front_of(query)
    checked_kb(front, request.kbs)
    with source.named():
        options = Options(
            request.start, request.lateness, naming=Naming(*request.columns),
            said=said(None, request.instants, request.consumption),
            rules=rules_of(front, [rule.text for rule in request.rules]), reads=told(request.streams),
        )  # fmt: skip
        without_reports(front, options)
    with source.named(), _streams(request, [query], options) as (streams, kb):
        options = replace(options, reads=options.reads or tuple(streams))
        read = front.replay(query, None, options).streams.values()
        span = Span(None, None) if request.location is not None else Span(request.begin, request.end)
        reading = Reading(span, request.start, request.lateness, request.on_error, NamedNode(request.time_predicate))
        mine = {iri: events for iri, events in streams.items() if iri in read}
        why = front.why(query, mine, kb, options, WhyRequest(reading, matches))
    if form == "json":
        return json.dumps(why.to_json(), indent=2, ensure_ascii=False) + "\n"
    return why.to_prov() if form == "prov" else str(why)


@working("running both queries", quiet=False)
def tell_difference(draft: QuerySource, against: QuerySource, request: HistoryRequest, as_json: bool) -> str:
    """Gained and lost. Raises OxiseqError and click's usage errors."""
    queries = draft.load(), against.load()
    if request.location is None and (request.begin is not None or request.end is not None):
        raise click.UsageError("--from and --to are for --location")
    options = Options(
        request.start, request.lateness, naming=Naming(*request.columns), reads=told(request.streams),
        rules=rules_of(front_of(queries[1]), [rule.text for rule in request.rules]),
    )  # fmt: skip
    with _streams(request, queries, options) as (streams, kb):
        found = compared(*queries, streams, kb, replace(options, reads=options.reads or tuple(streams)))
    return json.dumps(found.to_json(), indent=2, ensure_ascii=False) + "\n" if as_json else str(found)


@contextmanager
def _streams(
    request: HistoryRequest, queries: Any, options: Options = _PLAIN
) -> Iterator[tuple[Mapping[str, Any], Kb]]:
    """Stream IRI → its events, and the knowledge base: the folder's where none is named."""
    if (request.location is None) == (not request.streams):
        raise click.UsageError("give --stream or --location")
    kb = combined(request.kbs)
    if request.location is None:
        yield stream_files(request.streams, _names(queries, options)), kb
        return
    asks = all(front_of(query).asks_kb for query in queries)
    if asks and kb is None and (request.location / "CURRENT").exists():  # every RocksDB folder has that file
        kb = request.location
    with Journal(request.location / FILE_NAME, read_only=True) as journal:
        streams = [stream.iri for stream in journal.streams.all()]
        yield {iri: LogSource(journal, iri, request.begin, request.end) for iri in streams}, kb


def _names(queries: Sequence[AnyQuery], options: Options) -> dict[str, str]:
    """Name → IRI of all streams of the queries; a name that means two streams is none."""
    names: dict[str, str] = {}
    for query in queries:
        for name, iri in front_of(query).replay(query, None, options).streams.items():
            if names.setdefault(name, iri) != iri:
                raise click.UsageError(f"the queries mean different streams by {name}: give --stream by IRI")
    return names
