"""Parameter types and options that several commands share."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Any, Final

import click
from pyoxigraph import Literal, NamedNode

from oxiseq.durations import LONGEST, data_duration
from oxiseq.engine.errors import EventError
from oxiseq.engine.events.time import to_microseconds
from oxiseq.grammar import LANGUAGES, QueryError, language_of, load
from oxiseq.grammar.errors import OxiseqError
from oxiseq.grammar.languages import AnyQuery

GENERATED_AT: Final = "http://www.w3.org/ns/prov#generatedAtTime"
STANDING: Final = "sparql"
"""The language of queries that stand over a store."""
_OVER_STORE: Final = (".rq", ".sparql")
_DATETIME: Final = NamedNode("http://www.w3.org/2001/XMLSchema#dateTime")
_DATE = re.compile(r"-?\d{4,}-\d\d-\d\d")


@dataclass(frozen=True, slots=True)
class QuerySource:
    """A query's text and the name of the file that it is from."""

    name: str
    text: str
    chosen: str | None = None
    """The language that the command line names."""

    @property
    def language(self) -> str:
        """What the command line or else the file's ending says, else `spaseq`."""
        over_store = PurePath(self.name).suffix.lower() in _OVER_STORE
        return self.chosen or (STANDING if over_store else language_of(self.name))

    def load(self) -> AnyQuery:
        """The checked query. Raises QueryError that names the file; OxiseqError for one over the store."""
        if self.language == STANDING:
            raise OxiseqError(f"{self.name}: SPARQL over the store reads no stream: register it with `oxiseq serve`")
        with self.named():
            return load(self.text, self.language)

    @contextmanager
    def named(self) -> Iterator[None]:
        """Errors of the query that are raised inside name the file."""
        try:
            yield
        except QueryError as error:
            raise self.located(error) from None

    def located(self, error: QueryError) -> QueryError:
        """The same error with the file's name before its message."""
        return QueryError(
            f"{self.name}: {error.message}", error.span, error.text, hint=error.hint, expected=error.expected,
            code=error.code,
        )  # fmt: skip


class QueryFile(click.ParamType[QuerySource]):
    """A query's file, or `-` for stdin."""

    name = "query"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> QuerySource:
        """Read it."""
        if isinstance(value, QuerySource):
            return value
        try:
            with click.open_file(value, encoding="utf-8") as file:
                return QuerySource("<stdin>" if value == "-" else value, file.read())
        except OSError as error:
            self.fail(f"{value}: {error.strerror or error}", param, ctx)
        except UnicodeDecodeError:
            self.fail(f"{value}: not UTF-8 text", param, ctx)


class Time(click.ParamType[int]):
    """A time: xsd:dateTime, a date (its first instant), or integer microseconds since 1970 UTC."""

    name = "time"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Microseconds since 1970 UTC."""
        if isinstance(value, int):
            return value
        try:
            if re.fullmatch(r"[+-]?\d+", value):
                return to_microseconds(int(value))
            text = f"{value}T00:00:00Z" if _DATE.fullmatch(value) else value
            return to_microseconds(Literal(text, datatype=_DATETIME))
        except EventError:
            self.fail(f"{value!r} is not a time: 2024-05-01T10:00:00Z, 2024-05-01 or integer microseconds", param, ctx)


class Duration(click.ParamType[int]):
    """A span of time with its unit: 5s, 2m, 1.5h, 1d, 200ms, PT5S. `least`, `most`: in microseconds."""

    name = "duration"

    def __init__(self, least: int = 0, most: int = LONGEST) -> None:
        self._least, self._most = least, most

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Microseconds."""
        try:
            return data_duration(value, least=self._least, most=self._most)
        except OxiseqError as error:
            self.fail(str(error), param, ctx)


class Iri(click.ParamType[str]):
    """An IRI, with or without its angle brackets."""

    name = "iri"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The IRI without brackets."""
        text = str(value).removeprefix("<").removesuffix(">")
        try:
            NamedNode(text)
        except ValueError as error:
            self.fail(f"{value!r} is not an IRI: {error}", param, ctx)
        return text


_LANGUAGE_HELP: Final = "The query's language. [default: what the file's ending says, else spaseq]"
language_option = click.option("--language", "-l", type=click.Choice(LANGUAGES), help=_LANGUAGE_HELP)
any_language_option = click.option(
    "--language", "-l", type=click.Choice((*LANGUAGES, STANDING)), help=_LANGUAGE_HELP
)  # fmt: skip
"""Queries over the store, too."""
time_predicate_option = click.option(
    "--time-predicate", metavar="IRI", type=Iri(), default=GENERATED_AT, show_default=True,
    help="The predicate that gives an event its time.",
)  # fmt: skip
time_unit_option = click.option(
    "--time-unit", type=click.Choice(["s", "ms", "us", "ns"]),
    help="The unit of integer times in tables. [default: us, and refused if it seems to be another]",
)  # fmt: skip
location_option = click.option(
    "--location", "-l", metavar="DIR", type=click.Path(exists=True, file_okay=False, path_type=Path), required=True,
    help="The folder of a server's store.",
)  # fmt: skip
on_error_option = click.option(
    "--on-error", type=click.Choice(["stop", "skip"]), default="stop", show_default=True,
    help="At a malformed line or event: stop, or leave it out and go on.",
)  # fmt: skip
quiet_option = click.option("--quiet", "-q", is_flag=True, help="No progress bar and no summary.")
