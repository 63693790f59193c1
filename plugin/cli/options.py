"""Parameter types and options that several commands share, and the requests that they make."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from functools import wraps
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click
from click.shell_completion import CompletionItem
from pyoxigraph import NamedNode

from oxiseq.engine.extras import loaded, needed
from oxiseq.grammar import QueryError
from oxiseq.grammar.errors import OxiseqError
from oxiseq.grammar.languages import STANDING, AnyQuery, language_names, language_of
from oxiseq.grammar.records import dataclass
from oxiseq.options import OPTIONS, Door, options_for
from oxiseq.options.kinds import (
    LONGEST,
    TIME,
    CountKind,
    DurationKind,
    IriKind,
    Kind,
    NamesKind,
    QueriesKind,
    TextKind,
    TimeKind,
    TimesKind,
    WordKind,
    data_duration,
)
from oxiseq.options.query_text import known_text

if TYPE_CHECKING:
    from oxiseq.served import wire
else:
    wire = needed("oxiseq.served.wire")


_OVER_STORE: Final = (".rq", ".sparql")
F = TypeVar("F", bound=Callable[..., Any])


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
        if self.chosen is not None:
            return self.chosen
        over_store = PurePath(self.name).suffix.lower() in _OVER_STORE
        return STANDING if over_store else language_of(self.name)

    def load(self) -> AnyQuery:
        """The checked query. Raises QueryError that names the file; OxiseqError for one over the store."""
        if self.language == STANDING:
            raise OxiseqError(f"{self.name}: SPARQL over the store reads no stream: register it with `oxiseq serve`")
        with self.named():
            return known_text(self.text, self.language).algebra

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
            f"{self.name}: {error.message}",
            error.span,
            error.text,
            hint=error.hint,
            expected=error.expected,
            code=error.code,
        )


class QueryFile(click.ParamType[QuerySource]):
    """A query's file, or `-` for stdin."""

    name = "query"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> QuerySource:
        """Read it."""
        if isinstance(value, QuerySource):
            return value
        try:
            with click.open_file(value, encoding="utf-8-sig") as file:
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
            return TIME.data(value, "time")
        except OxiseqError:
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


class StreamName(click.ParamType[tuple[str, str]]):
    """NAME=IRI."""

    name = "name"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, str]:
        """The name and the IRI."""
        if isinstance(value, tuple):
            return value
        name, separator, iri = str(value).partition("=")
        if not name or not separator:
            self.fail(f"{value!r}: NAME=IRI is expected", param, ctx)
        return name, Iri().convert(iri, param, ctx)


def flag(name: str, *, usual: bool = False) -> Callable[[F], F]:
    """A declared option as a flag of the command line. None where it is not given; `usual`: its default."""
    option = OPTIONS[name]
    metavar, kind, several = _flag_type(option.kind)
    default = option.default is not None and not several
    shown = f" [default: {option.kind.write(option.default)}]" if default else ""
    about = f"{option.titles}: {option.help}" if option.special else option.help
    return click.option(
        f"--{name.replace('_', '-')}",
        name,
        metavar=metavar,
        type=kind,
        multiple=several,
        default=option.default if usual else None,
        help=about.removesuffix(".") + ("; may be repeated." if several else ".") + shown,
    )


def flags(*doors: Door, without: Collection[str] = ()) -> Callable[[F], F]:
    """All declared options of these doors; the command takes them as keywords, and passes them to `given_options`."""

    def decorate(function: F) -> F:
        for option in reversed(options_for(doors=doors)):
            if option.name not in without:
                function = flag(option.name)(function)
        return function

    return decorate


def given_options(values: Mapping[str, Any]) -> dict[str, Any]:
    """What was given of them, as data that `said_as_data` reads."""
    given: dict[str, Any] = {}
    for name, option in OPTIONS.items():
        value = values.get(name)
        if value is None or value == ():
            continue
        if isinstance(option.kind, NamesKind):
            value = dict(value)
        elif isinstance(option.kind, QueriesKind):
            value = tuple(source.text for source in value)
        given[name] = option.kind.write(value)
    return given


def _flag_type(kind: Kind[Any]) -> tuple[str | None, click.ParamType[Any], bool]:
    """Placeholder, type, whether it may be repeated."""
    if isinstance(kind, WordKind):
        return None, click.Choice(kind.words, case_sensitive=False), False
    if isinstance(kind, CountKind):
        return "N", click.IntRange(kind.least), False
    return _FLAG_TYPES[type(kind)]


_FLAG_TYPES: Final[Mapping[type[Kind[Any]], tuple[str, click.ParamType[Any], bool]]] = {
    DurationKind: ("DURATION", Duration(), False),
    TimeKind: ("TIME", Time(), False),
    TimesKind: ("TIME", Time(), True),
    TextKind: ("NAME", click.STRING, False),
    IriKind: ("IRI", Iri(), False),
    NamesKind: ("NAME=IRI", StreamName(), True),
    QueriesKind: ("FILE", QueryFile(), True),
}
_LANGUAGE_HELP: Final = "The query's language. [default: what the file's ending says, else spaseq]"


class LanguageName(click.ParamType[str]):
    """One of the languages; plug-ins are looked for when it is needed. `more`: what is taken beside them."""

    name = "language"

    def __init__(self, *more: str) -> None:
        self._more = more

    @property
    def _choice(self) -> click.Choice[str]:
        return click.Choice((*language_names(), *self._more))

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str | None:
        """All of them."""
        return self._choice.get_metavar(param, ctx)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The name."""
        return self._choice.convert(value, param, ctx)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """Those that begin so."""
        return self._choice.shell_complete(ctx, param, incomplete)


language_option = click.option("--language", "-L", type=LanguageName(), help=_LANGUAGE_HELP)
any_language_option = click.option("--language", "-L", type=LanguageName(STANDING), help=_LANGUAGE_HELP)
"""Queries over the store, too."""
location_option = click.option(
    "--location",
    "-l",
    metavar="DIR",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    required=True,
    help="The folder of a server's store.",
)
log_option = click.option(
    "--location",
    "-l",
    metavar="DIR",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Read the events that the server of this folder has kept, instead of files.",
)
quiet_option = click.option("--quiet", "-q", is_flag=True, help="No progress bar and no summary.")


# --- requests --------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RunRequest:
    """The arguments of `oxiseq run`: over files, or over a server's folder. `given`: the declared options, as data."""

    query: QuerySource
    streams: tuple[str, ...]
    location: Path | None
    kbs: tuple[str, ...]
    format: str | None
    output: Path | None
    late: Path | None
    sort: bool
    quiet: bool
    given: Mapping[str, Any]
    rules: tuple[QuerySource, ...] = ()
    """The files of the rules in `given`."""


@dataclass(frozen=True, slots=True)
class HistoryRequest:
    """Over which events `why` and `compare` work: files, or a server's folder. `given`: the declared options."""

    streams: tuple[str, ...]
    location: Path | None
    kbs: tuple[str, ...]
    given: Mapping[str, Any]


# --- a server elsewhere ----------------------------------------------------------------------------------

_PATIENCE: Final = 60.0
"""Seconds for which a request that may be repeated is tried."""


def at_server(command: F) -> F:
    """The options `--url` and `--token`: the command is called with an open wire as `server`."""

    @click.option(
        "--url",
        metavar="URL",
        envvar="OXISEQ_URL",
        default="http://127.0.0.1:7878",
        show_default=True,
        show_envvar=True,
        help="The server's address.",
    )
    @click.option(
        "--token",
        metavar="TOKEN",
        envvar="OXISEQ_TOKEN",
        show_envvar=True,
        help="Its token; better given by the environment.",
    )
    @wraps(command)
    def opened(*given: Any, url: str, token: str | None, **more: Any) -> Any:
        loaded("httpx_sse")  # or the error names the extra that brings it
        server = wire.wire_to(url, token, _PATIENCE, lambda note: click.echo(f"note: {note}", err=True))
        try:
            return command(*given, server=server, **more)
        finally:
            server.close()

    return opened  # type: ignore[return-value]  # with two parameters instead of one
