"""`POST /query` with the text of a query over streams: it runs once over the events that are kept."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, Literal

from oxiseq.engine.errors import OxiseqError
from oxiseq.grammar import QueryError, load
from oxiseq.grammar.languages import AnyQuery, media_types
from oxiseq.journal import LogSource
from oxiseq.languages.registry import language_for
from oxiseq.live.api.answers import follows
from oxiseq.live.api.answers import query as followed
from oxiseq.live.api.in_address import in_address, parameters_of
from oxiseq.live.api.problems import as_problem, query_problem
from oxiseq.live.api.table import Answer, Call, Need, Route
from oxiseq.live.service import LiveService
from oxiseq.matches.text import text_of
from oxiseq.matches.write import blocks_of
from oxiseq.options import QUERY, Options, said_as_data
from oxiseq.rights import Rights
from oxiseq.sparql.evaluation import Sink
from oxiseq.sparql.media import wanted
from oxiseq.sparql.messages import Response
from oxiseq.sparql.problems import Problem

Text = Literal["json", "csv", "tsv"]
_FORMATS: Final[Mapping[str, Text]] = {
    "application/sparql-results+json": "json",
    "application/json": "json",
    "text/csv": "csv",
    "text/tab-separated-values": "tsv",
}
_MEDIA_TYPES: Final[Mapping[str, str]] = {
    "json": "application/sparql-results+json",
    "csv": "text/csv; charset=utf-8",
    "tsv": "text/tab-separated-values; charset=utf-8",
}


def once(call: Call) -> Response:
    """POST /query."""
    known = media_types()
    if follows(call.request) and call.request.media_type not in known:
        return followed(call)
    language, text = known[call.request.media_type or ""], call.request.text()
    format, rights = wanted(call.request.header("accept"), _FORMATS), call.request.rights
    try:
        query = load(text, language)
        options = said_as_data(
            language,
            in_address(call, (QUERY,)),
            reads=[each.iri for each in call.service.streams.all() if rights.may("read", "stream", each.iri)],
        )
    except QueryError as error:
        raise query_problem(error, text, language) from None
    except OxiseqError as error:
        raise as_problem(error) from None

    def work(sink: Sink) -> None:
        sink.begin(_MEDIA_TYPES[format])
        try:
            for piece in _pieces(call.service, query, format, options, rights, sink):
                sink.write(piece.encode())
        except QueryError as error:
            raise query_problem(error, text, language) from None
        except OxiseqError as error:
            raise as_problem(error) from None

    return call.evaluations.answer(work, call.request.gone)


def _pieces(
    service: LiveService, query: AnyQuery, format: Text, options: Options, rights: Rights, sink: Sink
) -> Iterator[str]:
    spoken = language_for(query)
    spoken.prepare()
    driver = spoken.driver(query, service.kb_of_now if spoken.asks_kb else None, options)
    rights.demand_reading(driver.streams.values(), kb=bool(driver.run.kb_texts))
    known = options.reads
    read = [iri for iri in dict.fromkeys(driver.streams.values()) if iri in known]
    if not read:
        raise Problem(404, "no such stream", f"none of {', '.join(driver.streams.values())} is here")
    for iri in read:
        driver.attach(iri, LogSource(service.journal, iri))
    return text_of(driver.shape, blocks_of(driver.shape, driver.batches(sink.check), format), format)


ROUTES: Final = (
    Route(
        "POST",
        "/query",
        once,
        "queryOnce",
        "Run a query over streams (SPAseq, CEQL, EP-SPARQL) once over the events that are kept (SPARQL queries are "
        "sent here too, with their own media types; see GET for those that are followed).",
        Need("read", "stream", "body"),
        parameters_of(QUERY),
        bodies=tuple(media_types()),
        answers={200: Answer("Its matches.", tuple(_FORMATS)), 503: Answer("The time limit is reached.", ())},
    ),
)
