"""What a route is, what its handler gets, and how it refuses."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import field
from functools import cached_property
from types import MappingProxyType
from typing import Annotated, Any, Final, Literal, TypeVar
from urllib.parse import quote

import msgspec
from msgspec import Meta

from oxiseq.api.store import ChangeRefusedError
from oxiseq.engine.errors import OxiseqError
from oxiseq.grammar import QueryError
from oxiseq.grammar.errors import as_values, close_name
from oxiseq.grammar.records import dataclass
from oxiseq.journal import (
    ConflictError,
    CursorError,
    DamagedBatchError,
    FullError,
    JournalError,
    LockedError,
    UnknownError,
)
from oxiseq.live.intake import RejectedError
from oxiseq.live.service import LiveService
from oxiseq.live.settings import BoundError, BusyError
from oxiseq.options import OPTIONS, Door, Option, options_for
from oxiseq.options.kinds import Kind as OptionKind
from oxiseq.options.kinds import NamesKind, QueriesKind, TimeKind, TimesKind
from oxiseq.options.query_text import findings_of
from oxiseq.rights import DeniedError, Kind, Right, Rights
from oxiseq.sparql.evaluation import Evaluations
from oxiseq.sparql.messages import Place, Problem, Request, Response, checked_iri, denied, utf8
from oxiseq.sparql.upstream import UpstreamError

# --- refusals --------------------------------------------------------------------------------------------


def as_problem(error: OxiseqError) -> Problem:
    """Status, title and what a client can go by."""
    text = str(error)
    if isinstance(error, DeniedError):
        return denied(error)
    if isinstance(error, BusyError):
        return Problem(error.status, "too busy", text, headers=(("Retry-After", str(error.retry)),))
    if isinstance(error, RejectedError):
        reasons = [reason.as_data() for reason in error.reasons]
        return Problem(400, "no event could be read", text, more={"rejected": error.rejected, "reasons": reasons})
    if isinstance(error, CursorError):
        return Problem(410, "cursor too old", text, more={"asked": error.asked, "first": error.first})
    if isinstance(error, UpstreamError):
        return Problem(error.status, "the knowledge base cannot be queried", text)
    if isinstance(error, DamagedBatchError):
        place = {"first": error.first, "next": error.next}
        return Problem(500, "damaged", f"{text}; what follows is numbered from {error.next} on", more=place)
    for kind, status, title in (
        (UnknownError, 404, "not found"),
        (ConflictError, 409, "conflict"),
        (BoundError, 403, "too many"),
        (FullError, 507, "no room"),
        (LockedError, 503, "locked"),
        (ChangeRefusedError, 503, "no change now"),
        (JournalError, 500, "the journal fails"),
    ):
        if isinstance(error, kind):
            return Problem(status, title, text)
    return Problem(400, "not accepted", text)


def query_problem(error: QueryError, text: str, language: str) -> Problem:
    """What `oxiseq check` says: the first error's message and place, and under `findings` all that the checks find."""
    told = error.to_json()
    place = Place(error.line, error.column)
    more = {name: value for name, value in told.items() if name not in ("line", "column", "severity")}
    more["findings"] = findings(text, language) or [as_values(error, text)]
    return Problem(400, "the query is not accepted", error.message, place, more=more)


def findings(text: str, language: str) -> list[dict[str, Any]]:
    """As `oxiseq check --json` has them, without the file; `sparql`: of a query over the store."""
    return [as_values(each, text) for each in findings_of(text, language)]


# --- the table -------------------------------------------------------------------------------------------

T = TypeVar("T")
JSON: Final = "application/json"
ON_ARRIVAL: Final = "arrival"
"""As ?time=: the server stamps the event."""
PROBLEM: Final = "application/problem+json"
_encoded: Final = json.JSONEncoder(ensure_ascii=False).encode


Natural = Annotated[int, Meta(ge=0, le=1 << 62)]


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of the query string, a header or a part of the path. `type`: of its value, as msgspec has types, or
    an option's kind."""

    name: str
    text: str
    type: Any = str
    where: Literal["query", "header", "path"] = "query"
    example: Any = None

    @property
    def argument(self) -> str:
        """The name under which the operation's function takes it."""
        return self.name.lower().replace("-", "_")

    def read(self, text: str) -> Any:
        """The value that a text says. Raises Problem 400."""
        if self.type is str:
            return text
        try:
            if isinstance(self.type, OptionKind):
                return self.type.data(text, self.name)
            digits = text.isascii() and text.isdecimal() and len(text) < 20
            return msgspec.convert(text, self.type, strict=not digits)  # strict: 5.0 is no whole number
        except msgspec.ValidationError as error:
            raise Problem(400, f"{self.name} is not accepted", f"{text[:40]!r}: {error}") from None
        except OxiseqError as error:
            raise Problem(400, f"{self.name} is no time", str(error)) from None

    @property
    def schema(self) -> dict[str, Any]:
        """As a JSON Schema."""
        return self.type.schema if isinstance(self.type, OptionKind) else msgspec.json.schema(self.type)


@dataclass(frozen=True, slots=True)
class Answer:
    """What a status means, and the media types and the schema of its body (a name in openapi.SCHEMAS)."""

    text: str
    media_types: tuple[str, ...] = (JSON,)
    schema: str | None = None


@dataclass(frozen=True, slots=True)
class Call:
    """A request at the function that answers it."""

    service: LiveService
    request: Request
    evaluations: Evaluations


class StreamIri(OptionKind[str]):
    """The IRI that names a stream."""

    schema: Any = MappingProxyType({"type": "string"})

    def read(self, given: Any, name: str) -> str:
        """Raises Problem 400 for one that is not absolute."""
        return checked_iri(given, "the stream")


class EventTime(TimeKind):
    """A time in microseconds, or `arrival`: that of the server."""

    schema: Any = MappingProxyType({"type": "string"})

    def read(self, given: Any, name: str) -> Any:
        """As it is told."""
        return given if given == ON_ARRIVAL else super().read(given, name)


def body_of(request: Request, type: Any) -> Any:
    """A body of JSON as a value of this type, which may name an `EXAMPLE`. Raises Problem 400."""
    try:
        return msgspec.convert(json.loads(utf8(request.body)), type)
    except msgspec.ValidationError as error:
        example = getattr(type, "EXAMPLE", "")
        told = f"{error}; for instance {example} is expected" if example else str(error)
        raise Problem(400, "the body is not accepted", told) from None
    except (ValueError, RecursionError) as error:
        raise Problem(400, "malformed JSON", str(error)) from None


@dataclass(frozen=True, slots=True)
class Need:
    """The right that a route needs. None: that of any token. `of`: where the thing's name is given. The path's is
    checked before the handler is called; names in the body the handler checks itself; and of a list it shows
    what may be read. `instead`: this right will do, too, as far as the handler needs no more."""

    right: Right | None
    kind: Kind = "server"
    of: Literal["path", "body", "list"] = "path"
    instead: Right | None = None

    def check(self, rights: Rights, parts: Mapping[str, str]) -> None:
        """Raises DeniedError for what the path names; a kind without names is one thing."""
        if self.right is None or self.of == "list":
            return
        if self.of == "body":
            rights.demand_some(self.right, self.kind)
            return
        name = parts.get(self.kind, "")
        if self.instead is None or not rights.may(self.instead, self.kind, name):
            rights.demand(self.right, self.kind, name)

    @property
    def changes(self) -> bool:
        """Whether something may be other afterwards."""
        return self.right not in ("read", None)

    def __str__(self) -> str:
        """For the description of the route."""
        if self.right is None:
            return "any token"
        what = f"{self.right}:{self.kind}"
        if self.of == "body":
            return f"{what} of each name in the body"
        if self.of == "list":
            return f"{what} of each one that is listed"
        whole = f"{what}:{{{self.kind}}}" if self.kind in ("stream", "query") else what
        return whole if self.instead is None else f"{whole}, without a body {self.instead} will do"


@dataclass(frozen=True)
class Operation:
    """A method of a path; parts of the path in braces are variables. needs: the client's right; options: the doors of
    options that it takes in the address; bodies: media types that it takes; body: the type of one in JSON. Its function
    gets the parameters by name, None where they are not given, and `body` where there is a type: None for another media
    type."""

    method: str
    path: str
    function: Callable[..., Response]
    name: str
    text: str
    needs: Need
    parameters: tuple[Parameter, ...] = ()
    bodies: tuple[str, ...] = ()
    body: Any = None
    answers: Mapping[int, Answer] = field(default_factory=dict)
    options: tuple[Door, ...] = ()

    @cached_property
    def documented(self) -> tuple[Parameter, ...]:
        """Its parameters and its options."""
        return (*self.parameters, *parameters_of(*self.options))

    @cached_property
    def in_query(self) -> frozenset[str]:
        """Names of the parameters of the query string."""
        return frozenset(each.name for each in self.documented if each.where == "query")

    def arguments(self, request: Request, parts: Mapping[str, str]) -> dict[str, Any]:
        """What its function takes. Raises Problem 400, 415."""
        given: dict[str, list[str]] = {}
        for name, value in request.parameters():
            given.setdefault(name, []).append(value)
        found: dict[str, Any] = {}
        for each in self.parameters:
            if each.where == "query":
                texts = given.get(each.name, [])
            else:
                text = parts[each.name] if each.where == "path" else request.header(each.name.lower())
                texts = [] if text is None or (not text and each.type is Natural) else [text]
            if len(texts) > 1:
                raise Problem(400, f"more than one {each.name}", f"{len(texts)} are given")
            found[each.argument] = each.read(texts[0]) if texts else None
        if self.body is not None:
            empty = self.needs.instead is not None and not request.body
            if not empty and request.media_type != JSON and self.bodies == (JSON,):  # its function knows others
                raise unsupported(request, self.bodies)
            found["body"] = None if empty or request.media_type != JSON else body_of(request, self.body)
        return found


PAGED: Final = (
    Parameter("limit", "At most this many, in the order of their names.", Annotated[int, Meta(ge=1)]),
    Parameter("after", "Only those whose names come after this one."),
)
"""Parameters of lists."""


def listed(
    path: str,
    member: str,
    items: Iterable[T],
    name: Callable[[T], str],
    value: Callable[[T], object],
    limit: int | None,
    after: str | None,
) -> Response:
    """A list as JSON, or the part of it that is asked for (`PAGED`), with a link to the next."""
    if limit is None and after is None:
        return json_response({member: [value(each) for each in items]})
    rest = [each for each in sorted(items, key=name) if after is None or name(each) > after]
    shown = rest[:limit]
    link = f'<{path}?after={quote(name(shown[-1]), safe="")}&limit={limit}>; rel="next"' if shown else ""
    more = (("link", link),) if len(shown) < len(rest) and shown else ()
    return json_response({member: [value(each) for each in shown]}, headers=more)


def check_known(request: Request, known: Collection[str]) -> None:
    """Raises Problem 400 for a parameter of the query string that is not known."""
    for name, _ in request.parameters():
        if name not in known:
            told = close_name(name, known, f"known: {', '.join(sorted(known)) or 'none'}")
            raise Problem(400, "unknown parameter", f"{name[:40]}; {told}")


def unsupported(request: Request, known: tuple[str, ...]) -> Problem:
    """The body's media type is not taken."""
    given = f"Content-Type {request.media_type}" if request.media_type else "no Content-Type"
    return Problem(415, "unsupported media type", f"{given}; known: {', '.join(known)}")


def json_response(value: object, status: int = 200, headers: tuple[tuple[str, str], ...] = ()) -> Response:
    """A JSON body."""
    body = _encoded(value).encode(errors="backslashreplace") + b"\n"  # half a character as JSON escapes it, too
    return Response(status, (("content-type", JSON), *headers), body)


# --- options in the address ------------------------------------------------------------------------------


def parameters_of(*doors: Door) -> tuple[Parameter, ...]:
    """As they are described."""
    return tuple(_parameter(option) for option in options_for(doors=doors))


def in_address(request: Request, doors: Collection[Door]) -> dict[str, Any]:
    """The options that are given, as data: lists by repeating, names as NAME=IRI. Raises Problem."""
    values: dict[str, Any] = {}
    for name, text in request.parameters():
        if name not in OPTIONS or OPTIONS[name].door not in doors:
            continue
        kind = OPTIONS[name].kind
        if isinstance(kind, TimesKind | QueriesKind):
            values.setdefault(name, []).append(text)
        elif isinstance(kind, NamesKind):
            key, _, iri = text.partition("=")
            values.setdefault(name, {})[key] = iri
        elif name in values:
            raise Problem(400, f"more than one {name}", "give it only once")
        else:
            values[name] = text
    return values


def _parameter(option: Option) -> Parameter:
    of = f" ({option.titles})" if option.special else ""
    several = isinstance(option.kind, TimesKind | QueriesKind | NamesKind)
    form = " As NAME=IRI; may be repeated." if isinstance(option.kind, NamesKind) else " May be repeated." * several
    about = f"With a text as body{of}: {option.help}{form}"
    return Parameter(option.name, about, list[str] if several else option.kind)
