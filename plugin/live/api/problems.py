"""Refusals of the service as RFC 9457 problem details."""

from __future__ import annotations

from typing import Any

from oxiseq.api.store import ChangeRefusedError
from oxiseq.engine.errors import OxiseqError
from oxiseq.grammar import QueryError
from oxiseq.grammar.finding_tools import as_values
from oxiseq.journal import (
    ConflictError,
    CursorError,
    DamagedBatchError,
    FullError,
    JournalError,
    LockedError,
    UnknownError,
)
from oxiseq.live.errors import BoundError, BusyError
from oxiseq.live.intake import RejectedError
from oxiseq.options.query_text import findings_of
from oxiseq.rights import DeniedError
from oxiseq.sparql.problems import Place, Problem, denied
from oxiseq.sparql.upstream import UpstreamError


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
