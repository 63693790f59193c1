"""A language as another package would bring it: who reads it knows oxiseq's public names and nothing else.

    on <http://e/s> of <http://e/>: Low then High then Low within 10s by company

Events have types; each must be followed by one of the next type that agrees in the attribute after `by`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import oxiseq
from oxiseq.grammar import Finding, load
from oxiseq.grammar.algebra import Query, Span
from oxiseq.grammar.errors import span_at
from oxiseq.grammar.translating import Translation
from oxiseq.languages import LoweredLanguage, Syntax

TEXT = re.compile(
    r"\s*on <(?P<stream>[^>]*)> of <(?P<names>[^>]*)>:\s*(?P<types>\w+(?: then \w+)*)"
    r"(?: within (?P<seconds>\d+)s)?(?: by (?P<by>\w+))?\s*"
)


@dataclass(frozen=True)
class ThenQuery:
    """What a text says."""

    stream: str
    names: str
    types: tuple[str, ...]
    seconds: int | None
    by: str | None
    text: str
    language: str = "then"

    @property
    def span(self) -> Span:
        return span_at(self.text, 0, len(self.text))


def parse(text: str) -> ThenQuery:
    found = TEXT.match(text)
    end = 0 if found is None else found.end()
    if found is None or end < len(text):
        message = "`on <stream> of <names>: Type then Type within 10s by attribute` is expected"
        raise oxiseq.QueryError(message, span_at(text, end, len(text)), text, code="syntax")
    seconds = None if found["seconds"] is None else int(found["seconds"])
    return ThenQuery(found["stream"], found["names"], tuple(found["types"].split(" then ")), seconds, found["by"], text)


def check(query: ThenQuery, text: str) -> Iterator[Finding]:
    if query.seconds == 0:
        at = text.index(" 0s") + 1
        yield Finding("error", "window", "within 0s holds nothing", span_at(text, at, at + 2))
    if query.seconds is None and len(query.types) > 1:
        yield Finding("lint", "unbounded", "without `within` a match may take for ever", query.span)


def render(query: ThenQuery) -> str:
    within = "" if query.seconds is None else f" within {query.seconds}s"
    by = "" if query.by is None else f" by {query.by}"
    return f"on <{query.stream}> of <{query.names}>: {' then '.join(query.types)}{within}{by}"


def lowered(query: ThenQuery) -> Query:
    """In SPAseq."""
    letters = [f"E{number}" for number in range(len(query.types))]
    by = f"; <{query.names}{query.by}> ?{query.by} " if query.by else ""
    within = "" if query.seconds is None else f"WITHIN {query.seconds} SECONDS SLIDING"
    gpms = (
        f"DEFINE GPM {letter} ON S {{ ?{letter.lower()} a <{query.names}{kind}> {by}}}"
        for letter, kind in zip(letters, query.types, strict=True)
    )
    text = f"SELECT * {within} FROM STREAM S <{query.stream}> WHERE {{ SEQ({'; '.join(letters)}) {' '.join(gpms)} }}"
    return load(text)


class Then(LoweredLanguage[ThenQuery]):
    syntax = Syntax(
        "then",
        "Then",
        parse,
        check,
        render,
        words=("on", "of", "then", "within", "by"),
        translations={"spaseq": lambda query: Translation(lowered(query))},
    )

    def lower(self, query: ThenQuery) -> Any:
        return lowered(query)
