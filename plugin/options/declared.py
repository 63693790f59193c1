"""`Options`: the record in which every option of a query is declared, once.

A field is what the engine gets, its metadata is the `Option`: kind and unit, default, whether all languages have it,
help; a language lists the others that it takes itself (`Syntax.options`). All doors read and refuse by `said` and
`said_as_data`, and write by `as_data`.

The options as Python's keywords, with the types that callers give: what type checkers and editors see.

That these are the declared options, with their doors, is tested (tests/plugin/test_options.py). `documented` gives the
functions that take them their real signature, for `help` and notebooks.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import field, fields, replace
from difflib import get_close_matches
from enum import Enum
from inspect import Parameter, signature
from typing import Any, Final, Literal, TypedDict, TypeVar

from pyoxigraph import NamedNode

from oxiseq.engine.errors import ArgumentTypeError
from oxiseq.engine.events.report import OnError
from oxiseq.engine.events.time import Time
from oxiseq.engine.events.units import TimeUnit
from oxiseq.grammar.languages import known, syntax_named
from oxiseq.grammar.records import dataclass
from oxiseq.grammar.rsp_algebra import Consume, Report
from oxiseq.options.kinds import (
    COUNT,
    DURATION,
    IRI,
    NAMES,
    QUERIES,
    TEXT,
    TIME,
    TIMES,
    CountKind,
    Duration,
    Kind,
    WordKind,
)
from oxiseq.options.query_text import QueryLike


class Door(Enum):
    """Who takes an option."""

    QUERY = "query"
    """Whoever runs or registers a query."""
    SOURCES = "sources"
    """Who reads files and tables of events."""
    RUN = "run"
    """Who answers a query over whole streams."""
    STATE = "state"
    """Who keeps a query at work for long: a server."""
    HISTORY = "history"
    """Options of a look at a stretch of the past."""


QUERY, SOURCES, RUN, STATE, HISTORY = Door.QUERY, Door.SOURCES, Door.RUN, Door.STATE, Door.HISTORY
LATE_POLICIES: Final = ("warn", "error", "ignore")
_GENERATED_AT: Final = "http://www.w3.org/ns/prov#generatedAtTime"


@dataclass(frozen=True, slots=True)
class Option:
    """`default`: as the engine gets it; `special`: only languages that name it have it."""

    name: str
    kind: Kind[Any]
    default: Any
    door: Door
    special: bool
    help: str

    def takes(self, language: str) -> bool:
        """Whether queries of the language have it."""
        return not self.special or self.name in syntax_named(language).options

    @property
    def titles(self) -> str:
        """The languages that have it, for people, plug-ins aside; empty for all."""
        return ", ".join(each.title for each in known() if self.special and self.name in each.options)


def _option(kind: Kind[Any], default: Any, help: str, door: Door = QUERY, *, special: bool = False) -> Any:
    declared = {"declared": (kind, default, door, special, help)}
    if isinstance(default, Mapping):
        return field(default_factory=lambda: dict(default), metadata=declared)
    return field(default=default, metadata=declared)


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """Options of a query beside its text; times and durations in microseconds."""

    origin: int | None = _option(
        TIME, None, "Where tumbling windows begin; events before it are ignored. The default is the first event's time."
    )
    lateness: int = _option(DURATION, 0, "How much events may be out of order.")
    stream_names: Mapping[str, str] = _option(
        NAMES, {}, "Names in FROM with the IRIs of their streams, where these are not in the vocabulary.", special=True
    )
    stream_operator: Report | None = _option(
        WordKind(tuple(r.value for r in Report), Report),
        None,
        "Which answers an instant emits, where the query does not say: all, the new ones, or those that no longer "
        "hold. The default is RSTREAM for RSEP-QL and ISTREAM for the others.",
        special=True,
    )
    evaluation_times: tuple[int, ...] | None = _option(
        TIMES, None, "The times at which the query is answered; by default the times of the events.", special=True
    )
    consumption: Consume | None = _option(
        WordKind(tuple(c.value for c in Consume), Consume),
        None,
        "Which triples an answer consumes, where the query has no CONSUME.",
        special=True,
    )
    rules: tuple[str, ...] = _option(
        QUERIES, (), "CONSTRUCT queries that derive triples; the query is answered over their closure.", special=True
    )
    on_error: OnError = _option(
        WordKind(("stop", "skip")),
        "stop",
        "At a malformed line or event: stop, or skip it.",
        door=SOURCES,
    )
    time_predicate: str = _option(IRI, _GENERATED_AT, "The predicate that gives an event its time.", door=SOURCES)
    type_column: str = _option(TEXT, "type", "The column of a table that holds an event's type.", SOURCES, special=True)
    time_column: str | None = _option(
        TEXT,
        None,
        "The column that holds an event's time: timestamps, ISO texts or integers. The default is time, timestamp, ts "
        "or at, the first that there is, or the only column of times.",
        SOURCES,
        special=True,
    )
    time_unit: TimeUnit | None = _option(
        WordKind(("s", "ms", "us", "ns")),
        None,
        "The unit of integer times in tables. The default is us; values that look like another unit are refused.",
        SOURCES,
        special=True,
    )
    late: str = _option(
        WordKind(LATE_POLICIES),
        "warn",
        "At events of an iterator or a pipe that are older than their stream's watermark: warn, stop, or say nothing.",
        door=RUN,
    )
    end: str = _option(
        WordKind(("closed", "open")),
        "closed",
        "When all events are read: closed decides what waits for time alone, open does not report what is undecided.",
        door=RUN,
    )
    max_state_records: int | None = _option(
        CountKind(0), None, "How many records the query's running state may have; 0 is no limit.", door=STATE
    )
    max_state_bytes: int | None = _option(
        CountKind(0), None, "How many bytes the query's running state may take; 0 is no limit.", door=STATE
    )
    on_state_limit: str | None = _option(
        WordKind(("fail", "drop")),
        None,
        "When the state exceeds its limit: fail stops the query, drop discards its partial matches and continues.",
        door=STATE,
    )
    since: int | None = _option(TIME, None, "Only events from this time on.", door=HISTORY)
    until: int | None = _option(TIME, None, "Only events before this time.", door=HISTORY)
    limit: int = _option(COUNT, 3, "How many matches are traced back to their events and facts.", door=HISTORY)
    reads: tuple[str, ...] = ()
    """No option: the streams that there are, for an EP-SPARQL query that names none."""


OPTIONS: Final[Mapping[str, Option]] = {
    each.name: Option(each.name, *each.metadata["declared"]) for each in fields(Options) if each.metadata
}
"""All of them, in the order of declaration."""


def options_for(language: str | None = None, doors: Collection[Door] = tuple(Door)) -> tuple[Option, ...]:
    """Those that a query of the language has (None: of any) at these doors, in the order of declaration."""
    return tuple(o for o in OPTIONS.values() if o.door in doors and (language is None or o.takes(language)))


def said(
    language: str, given: Mapping[str, Any], doors: Collection[Door] = (QUERY,), reads: Collection[str] = ()
) -> Options:
    """What Python code says of a query of the language; None is the default. Raises OxiseqError for what is no option
    here, for one that the language does not have, and for values that are none."""
    return _made(language, given, doors, reads, data=False)


def said_as_data(
    language: str, given: Mapping[str, Any], doors: Collection[Door] = (QUERY,), reads: Collection[str] = ()
) -> Options:
    """The same from JSON, TOML, or the parameters of an address."""
    return _made(language, given, doors, reads, data=True)


def _made(
    language: str, given: Mapping[str, Any], doors: Collection[Door], reads: Collection[str], *, data: bool
) -> Options:
    values = {}
    for name, value in given.items():
        option = OPTIONS.get(name)
        if option is None or option.door not in doors:
            raise ArgumentTypeError(_unknown(name, language, doors))
        if value is None:
            continue
        read = option.kind.data(value, name) if data else option.kind.read(value, name)
        if read == option.default:
            continue
        if not option.takes(language):
            title = syntax_named(language).title
            raise ArgumentTypeError(f"the option {name} is for {option.titles}: a query of {title} has none")
        values[name] = read
    return Options(**values, reads=tuple(reads))


def _unknown(name: str, language: str, doors: Collection[Door]) -> str:
    known = [each.name for each in options_for(language, doors)]
    near = get_close_matches(name, known, 1)
    return f"there is no option {name!r}" + (f": {near[0]}?" if near else f"; known: {', '.join(known)}")


def as_data(options: Options) -> dict[str, Any]:
    """What differs from the defaults, as JSON values that `said_as_data` reads."""
    return {
        option.name: option.kind.write(value)
        for option in OPTIONS.values()
        if (value := getattr(options, option.name)) != option.default
    }


def fitting(language: str, options: Options) -> Options:
    """As far as a query of another language has them."""
    others = {o.name: o.default for o in OPTIONS.values() if not o.takes(language)}
    return replace(options, **others)


# --- as Python's keywords --------------------------------------------------------------------------------

F = TypeVar("F", bound=Callable[..., Any])


class QueryKeywords(TypedDict, total=False):
    """Of whoever runs or registers a query."""

    origin: Time | None
    lateness: Duration
    stream_names: Mapping[str, str]
    stream_operator: Literal["RSTREAM", "ISTREAM", "DSTREAM"] | str | None
    evaluation_times: Iterable[Time] | None
    consumption: Literal["UNRESTRICTED", "CHRONOLOGICAL", "RECENT"] | str | None
    rules: Sequence[QueryLike]


class RunKeywords(QueryKeywords, total=False):
    """Of whoever runs it over files and tables."""

    on_error: OnError
    time_predicate: str | NamedNode
    type_column: str
    time_column: str | None
    time_unit: TimeUnit | None


class AnswerKeywords(RunKeywords, total=False):
    """Of whoever has it answered over whole streams."""

    late: Literal["warn", "error", "ignore"]
    end: Literal["closed", "open"]


class WhyKeywords(RunKeywords, total=False):
    """For a look at a stretch of the past."""

    since: Time | None
    until: Time | None
    limit: int


def documented(*doors: Door) -> Callable[[F], F]:
    """A function's `**options` spelled out: its signature lists them, its docstring describes them."""

    def decorate(function: F) -> F:
        plain = signature(function)
        options = options_for(doors=doors)
        usual = {o.name: None if o.default is None else o.kind.write(o.default) for o in options}
        named = [Parameter(name, Parameter.KEYWORD_ONLY, default=default) for name, default in usual.items()]
        fixed = [p for p in plain.parameters.values() if p.kind is not Parameter.VAR_KEYWORD]
        function.__signature__ = plain.replace(parameters=[*fixed, *named])  # type: ignore[attr-defined]
        lines = [f"    {o.name}: {o.help}" + (f" ({o.titles} only)" if o.special else "") for o in options]
        function.__doc__ = f"{function.__doc__ or ''}\n\n    Options:\n\n" + "\n".join(lines)
        return function

    return decorate
