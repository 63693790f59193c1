"""What a route is, and what its handler gets."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import field
from typing import Any, Final, Literal, TypeVar
from urllib.parse import quote

from oxiseq.grammar.finding_tools import close_name
from oxiseq.grammar.records import dataclass
from oxiseq.live.service import LiveService
from oxiseq.rights import Kind, Right, Rights
from oxiseq.sparql.evaluation import Evaluations
from oxiseq.sparql.messages import Request, Response, utf8
from oxiseq.sparql.problems import Problem

T = TypeVar("T")
JSON: Final = "application/json"
PROBLEM: Final = "application/problem+json"
_encoded: Final = json.JSONEncoder(ensure_ascii=False).encode


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of the query string, a header or a part of the path; `schema` is a JSON Schema."""

    name: str
    text: str
    schema: Mapping[str, Any] = field(default_factory=lambda: {"type": "string"})
    where: Literal["query", "header", "path"] = "query"
    example: Any = None


@dataclass(frozen=True, slots=True)
class Answer:
    """What a status means, and the media types and the schema of its body (a name in openapi.SCHEMAS)."""

    text: str
    media_types: tuple[str, ...] = (JSON,)
    schema: str | None = None


@dataclass(frozen=True, slots=True)
class Call:
    """A request at its handler: `parts` are the path's variables, decoded."""

    service: LiveService
    request: Request
    parts: Mapping[str, str]
    evaluations: Evaluations

    def one(self, name: str) -> str | None:
        """A parameter of the query string, given once or not at all. Raises Problem 400."""
        found = [value for key, value in self.request.parameters() if key == name]
        if len(found) > 1:
            raise Problem(400, f"more than one {name}", f"{len(found)} are given")
        return found[0] if found else None

    def number(self, name: str, most: int = (1 << 62)) -> int | None:
        """A parameter that is a number from 0 on. Raises Problem 400."""
        given = self.one(name)
        return None if given is None else natural(given, name, most)

    def check_parameters(self, known: Collection[str]) -> None:
        """Raises Problem 400 for a parameter of the query string that is not known: a misspelt one would do nothing."""
        for name, _ in self.request.parameters():
            if name not in known:
                told = close_name(name, known, f"known: {', '.join(sorted(known)) or 'none'}")
                raise Problem(400, "unknown parameter", f"{name[:40]}; {told}")

    def json(self) -> dict[str, Any]:
        """The body as a JSON object. Raises Problem 400 or 415."""
        if self.request.media_type != JSON:
            raise unsupported(self.request, (JSON,))
        try:
            found = json.loads(utf8(self.request.body))
        except (ValueError, RecursionError) as error:
            raise Problem(400, "malformed JSON", str(error)) from None
        if not isinstance(found, dict):
            raise Problem(400, "malformed JSON", "an object is expected")
        return found


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


@dataclass(frozen=True, slots=True)
class Route:
    """A method of a path; parts of the path in braces are variables. needs: the client's right; bodies: media types
    that it takes."""

    method: str
    path: str
    handler: Callable[[Call], Response]
    name: str
    text: str
    needs: Need
    parameters: tuple[Parameter, ...] = ()
    bodies: tuple[str, ...] = ()
    body_schema: str | None = None
    answers: Mapping[int, Answer] = field(default_factory=dict)

    @property
    def in_query(self) -> frozenset[str]:
        """Names of the parameters of the query string."""
        return frozenset(each.name for each in self.parameters if each.where == "query")


PAGED: Final = (
    Parameter("limit", "At most this many, in the order of their names.", {"type": "integer", "minimum": 1}),
    Parameter("after", "Only those whose names come after this one."),
)
"""Parameters of lists."""


def listed(
    call: Call, member: str, items: Iterable[T], name: Callable[[T], str], value: Callable[[T], object]
) -> Response:
    """A list as JSON, or the part of it that is asked for (`PAGED`), with a link to the next."""
    limit, after = call.number("limit"), call.one("after")
    if limit is None and after is None:
        return json_response({member: [value(each) for each in items]})
    rest = [each for each in sorted(items, key=name) if after is None or name(each) > after]
    shown = rest[:limit]
    link = f'<{call.request.path}?after={quote(name(shown[-1]), safe="")}&limit={limit}>; rel="next"' if shown else ""
    more = (("link", link),) if len(shown) < len(rest) and shown else ()
    return json_response({member: [value(each) for each in shown]}, headers=more)


def natural(text: str, name: str, most: int = (1 << 62)) -> int:
    """A number from 0 to `most`. Raises Problem 400."""
    if not text.isascii() or not text.isdecimal() or len(text) > 19 or int(text) > most:
        raise Problem(400, f"{name} is no number", f"{text[:40]!r}: 0 to {most} is expected")
    return int(text)


def unsupported(request: Request, known: tuple[str, ...]) -> Problem:
    """The body's media type is not taken."""
    given = f"Content-Type {request.media_type}" if request.media_type else "no Content-Type"
    return Problem(415, "unsupported media type", f"{given}; known: {', '.join(known)}")


def json_response(value: object, status: int = 200, headers: tuple[tuple[str, str], ...] = ()) -> Response:
    """A JSON body."""
    body = _encoded(value).encode(errors="backslashreplace") + b"\n"  # half a character as JSON escapes it, too
    return Response(status, (("content-type", JSON), *headers), body)
