"""A query over streams that are given whole, as files, tables or lists."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Final

from oxiseq.engine.errors import ArgumentTypeError
from oxiseq.engine.importing import loading
from oxiseq.languages.language import Language
from oxiseq.languages.lints import lints_of, warn_of_lints
from oxiseq.languages.registry import check_kb, language_named
from oxiseq.matches.matches import Matches
from oxiseq.matches.shape import Shape
from oxiseq.options import QUERY, RUN, SOURCES, Options, said
from oxiseq.options.query_text import QueryText
from oxiseq.sources.knowledge import Kb, knowledge_of, opened

_ANY: Final = ("any stream",)
"""What an EP-SPARQL query that names no stream reads, when it is not known what there is."""


def answered(query: QueryText, streams: Mapping[str, Any], kb: Kb, given: Mapping[str, Any]) -> Matches:
    """All matches; `given`: the caller's options. Warnings are about the caller of who calls this.

    Raises QueryError, EventError, KbError, OxiseqError.
    """
    with loading():  # of a language's first query: its grammar's tables, its modules
        language: Language[Any] = language_named(query.language)
        algebra = query.algebra
        check_kb(language, kb)
        options = said(query.language, given, (QUERY, SOURCES, RUN), checked_names(streams))
        if language.asks_kb:
            kb = opened(kb)
        driver = language.driver(algebra, kb, options)
    lints = lints_of(query, knowledge_of(kb) if language.asks_kb else None, options.rules)
    warn_of_lints(each.to_json() for each in lints)
    language.prepare()
    for name, events in streams.items():
        driver.attach(name, events, options.on_error, options.time_predicate)
    return driver.matches()


def checked_names(streams: Mapping[str, Any]) -> tuple[str, ...]:
    """Of the streams. Raises OxiseqError where they are no mapping."""
    if not isinstance(streams, Mapping):
        raise ArgumentTypeError("streams are a mapping: the IRI of a stream → its file or events")
    return tuple(streams)


def shape_of(query: QueryText, reads: Collection[str] = ()) -> tuple[Shape, Mapping[str, str]]:
    """What its matches have in common, and the streams that it reads: its name → IRI. `reads`: those that there are,
    for an EP-SPARQL query that names none. Raises QueryError."""
    driver = language_named(query.language).driver(query.algebra, None, Options(reads=tuple(reads) or _ANY))
    return driver.shape, {name: iri for name, iri in driver.streams.items() if iri not in _ANY}
