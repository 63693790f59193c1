"""What goes wrong, as exceptions and as responses.

Exception
├── Problem        refused before anything was sent: a status, RFC 9457 problem details
└── Interrupted    broken off after the status was sent: the connection must be cut
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Final

from oxiseq.api.store import SparqlError
from oxiseq.grammar.over_sparql import refusal
from oxiseq.grammar.records import dataclass
from oxiseq.rights import DeniedError

MALFORMED: Final = "malformed SPARQL"
TOKEN_NEEDED: Final = "a token is needed"


@dataclass(frozen=True, slots=True)
class Place:
    """Line and column in the text that was sent, both counted from 1."""

    line: int
    column: int


class Problem(Exception):
    """A request that is not answered: status, short title, the store's message, its place in the text.

    `more`: further members of the problem details. `shown`: the detail for people, where there is more room.
    """

    def __init__(
        self,
        status: int,
        title: str,
        detail: str = "",
        place: Place | None = None,
        headers: tuple[tuple[str, str], ...] = (),
        more: Mapping[str, object] | None = None,
        shown: str = "",
    ) -> None:
        super().__init__(status, title, detail)
        self.status = status
        self.title = title
        self.detail = detail
        self.place = place
        self.headers = headers
        self.more = dict(more or {})
        self.shown = shown or detail

    def as_json(self) -> bytes:
        """`application/problem+json` (RFC 9457)."""
        members: dict[str, object] = {"type": "about:blank", "title": self.title, "status": self.status}
        if self.detail:
            members["detail"] = self.detail
        if self.place is not None:
            members |= {"line": self.place.line, "column": self.place.column}
        members |= self.more
        return json.dumps(members, ensure_ascii=True).encode() + b"\n"

    def as_text(self) -> bytes:
        """For people: `title: detail`."""
        text = f"{self.title}: {self.shown}\n" if self.shown else f"{self.title}\n"
        return text.encode(errors="backslashreplace")


class Interrupted(Exception):
    """An answer that cannot be completed; `str()` says why."""


def challenge(error: str = "") -> tuple[str, str]:
    """The header of a 401 or 403 (RFC 6750, 3)."""
    return "WWW-Authenticate", 'Bearer realm="oxiseq"' + (f', error="{error}"' if error else "")


def denied(error: DeniedError) -> Problem:
    """A right that is lacking: 401 to who brought no token, else 403."""
    if error.token is None:
        return Problem(401, TOKEN_NEEDED, str(error), headers=(challenge(),))
    return Problem(403, "the token lacks a right", str(error), headers=(challenge("insufficient_scope"),))


def syntax_problem(title: str, error: SyntaxError) -> Problem:
    """pyoxigraph's error of RDF."""
    place = None if error.lineno is None else Place(error.lineno, error.offset or 1)
    return Problem(400, title, str(error.msg or error), place)


def sparql_problem(text: str, error: SyntaxError, *, update: bool) -> Problem:
    """The store's refusal of a SPARQL text, in the form of our own languages' errors."""
    told = error if isinstance(error, SparqlError) else refusal(text, error, "update" if update else "query")
    detail = told.message
    for name, words in (("expected", told.expected), ("hint", told.hint)):
        detail += f"; {name}: {words}" if words else ""
    value = told.to_json()
    more = {name: value[name] for name in ("code", "message", "expected", "hint", "start", "end")}
    return Problem(400, MALFORMED, detail, Place(told.line, told.column), more=more, shown=str(told))


def store_problem(error: Exception) -> Problem:
    """A failure while the store evaluates or writes: the request's fault where Oxigraph's words say so."""
    for words, status, title, hint in _AT_FAULT:
        if (found := words.search(str(error))) is not None:
            return Problem(status, title, hint.format(*found.groups()))
    return Problem(500, "the store cannot answer", str(error))


_AT_FAULT: Final = (
    (
        re.compile("custom (?:aggregate )?function (<.*>) is not supported"),
        400,
        "unknown function",
        "there is no function {0}: those of SPARQL 1.1, casts to xsd: types and GeoSPARQL's are known",
    ),
    (
        re.compile("graph (<.*>) does not exist"),
        404,
        "no such graph",
        "there is no graph {0}: with SILENT (as in DROP SILENT GRAPH {0}) that is no error",
    ),
    (
        re.compile("graph (<.*>) already exists"),
        409,
        "the graph exists",
        "there is a graph {0}: with SILENT (CREATE SILENT GRAPH {0}) that is no error",
    ),
    (
        re.compile("JSON-LD does not support RDF 1.2"),
        406,
        "not acceptable",
        "JSON-LD cannot write triple terms: accept text/turtle, application/n-triples or another type",
    ),
)
"""What Oxigraph says of requests that cannot be answered: status, title and what to do."""
