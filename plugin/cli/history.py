"""The work of `oxiseq why` and `oxiseq compare`: queries over files, or over what a server has kept."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Final

import click

from oxiseq.api.comparison import compared
from oxiseq.cli.kept import check_place, check_span, kb_for, kept_events
from oxiseq.cli.knowledge import checked_kb
from oxiseq.cli.options import QuerySource
from oxiseq.cli.progress import working
from oxiseq.cli.request import HistoryRequest
from oxiseq.cli.running import stream_files, told
from oxiseq.grammar.languages import AnyQuery
from oxiseq.languages.reasons.read import Span, reading_of
from oxiseq.languages.reasons.report import WhyRequest
from oxiseq.languages.registry import language_for
from oxiseq.options import HISTORY, QUERY, SOURCES, Options, fitting, said_as_data
from oxiseq.sources.knowledge import Kb

_DOORS: Final = (QUERY, SOURCES, HISTORY)


@working("looking back", quiet=False)
def tell_why(source: QuerySource, request: HistoryRequest, form: str) -> str:
    """`text`, `json` or `prov`. Raises OxiseqError and click's usage errors."""
    query = source.load()
    language = language_for(query)
    checked_kb(language, request.kbs)
    with source.named():
        options = said_as_data(language.name, request.given, _DOORS, told(request.streams))
    with source.named(), _streams(request, [query], options) as (streams, kb):
        options = replace(options, reads=options.reads or tuple(streams))
        read = language.driver(query, None, options).streams.values()
        reading = reading_of(options, None if request.location is None else Span())
        mine = {iri: events for iri, events in streams.items() if iri in read}
        why = language.why(query, mine, kb, options, WhyRequest(reading, options.limit))
    if form == "json":
        return json.dumps(why.to_json(), indent=2, ensure_ascii=False) + "\n"
    return why.to_prov() if form == "prov" else str(why)


@working("running both queries", quiet=False)
def tell_difference(draft: QuerySource, against: QuerySource, request: HistoryRequest, as_json: bool) -> str:
    """Gained and lost. Raises OxiseqError and click's usage errors."""
    queries = draft.load(), against.load()
    options = said_as_data(language_for(queries[1]).name, request.given, _DOORS, told(request.streams))
    check_span(request.location, options)
    with _streams(request, queries, options) as (streams, kb):
        options = replace(options, reads=options.reads or tuple(streams))
        found = compared(*queries, streams, kb, options, fitting(language_for(queries[0]).name, options))
    return json.dumps(found.to_json(), indent=2, ensure_ascii=False) + "\n" if as_json else str(found)


@contextmanager
def _streams(
    request: HistoryRequest, queries: Sequence[AnyQuery], options: Options
) -> Iterator[tuple[Mapping[str, Any], Kb]]:
    """Stream IRI → its events, and the knowledge base: the folder's where none is named."""
    check_place(request.streams, request.location)
    kb = kb_for(request.kbs, request.location, all(language_for(query).asks_kb for query in queries))
    if request.location is None:
        yield stream_files(request.streams, _names(queries, options)), kb
        return
    with kept_events(request.location, options) as streams:
        yield streams, kb


def _names(queries: Sequence[AnyQuery], options: Options) -> dict[str, str]:
    """Name → IRI of all streams of the queries; a name that means two streams is none."""
    names: dict[str, str] = {}
    for query in queries:
        language = language_for(query)
        for name, iri in language.driver(query, None, fitting(language.name, options)).streams.items():
            if names.setdefault(name, iri) != iri:
                raise click.UsageError(f"the queries mean different streams by {name}: give --stream by IRI")
    return names
