"""Where messages go: what a POST to the stream does, in this process or at a server."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final, Protocol

from oxiseq.bridges.settings import BridgeError
from oxiseq.bridges.source import Message
from oxiseq.grammar.records import dataclass

FORMER_KEY: Final = "oxiseq-former-key"
"""The header that names the key which earlier versions gave a message."""
REFUSED: Final = frozenset((400, 409, 413, 415, 422))
"""Statuses that concern the message itself; all others may change later."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a message: `refused` says why it, or a part of it, was not taken; `duplicate`: it was known."""

    events: int = 0
    refused: str = ""
    duplicate: bool = False


class Intake(Protocol):
    """Takes messages in their order."""

    def knows(self, key: str) -> bool:
        """Whether a message of this key is stored, as far as it knows."""
        ...

    def push(self, messages: Sequence[Message]) -> Sequence[Outcome]:
        """What became of the first of them, which are durable or refused; at least of one. Raises OxiseqError, OSError
        where that is to be tried again."""
        ...


def key_headers(message: Message) -> tuple[tuple[str, str], ...]:
    """The headers of a POST by which a message is known again."""
    former = ((FORMER_KEY, message.former_key),) if message.former_key else ()
    return ("idempotency-key", message.key), *former


def outcome_of(status: int, body: bytes) -> Outcome:
    """Of the answer to a POST. Raises BridgeError where it is to be tried again."""
    try:
        told = json.loads(body)
    except ValueError:
        told = {}
    if not isinstance(told, dict):
        told = {}
    reasons = "; ".join([_reason(each) for each in told.get("reasons") or () if isinstance(each, dict)][:5])
    if 200 <= status < 300:
        refused = reasons or "a part" if told.get("rejected") else ""
        return Outcome(int(told.get("accepted") or 0), refused, bool(told.get("duplicates")))
    titles = [str(told[name]) for name in ("title", "detail") if told.get(name)]
    said = ": ".join([*titles, *([reasons] if reasons else [])]) or f"status {status}"
    if status in REFUSED:
        return Outcome(refused=said)
    raise BridgeError(f"{status} {said}")


def _reason(told: Mapping[str, Any]) -> str:
    column = told.get("column")
    return f"{told.get('reason')}" if column is None else f"{column}: {told.get('reason')}"
