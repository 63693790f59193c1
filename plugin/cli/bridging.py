"""What `oxiseq bridge` does."""

from __future__ import annotations

import signal
from collections.abc import Sequence
from typing import Any, Final

import click

from oxiseq.bridges import Bridge, BridgeError, BridgeSettings, DeadLetters, Message, Outcome, opener_of, outcome_of
from oxiseq.bridges.intake import REFUSED, key_headers
from oxiseq.journal import ConflictError
from oxiseq.served.wire import AnswerError, Wire

_KNOWN: Final = 100_000
"""Keys: more than an MQTT broker has numbers."""


class Elsewhere:
    """The intake of a server: one POST for each message."""

    def __init__(self, server: Wire, settings: BridgeSettings) -> None:
        self._server, self._settings = server, settings
        self._known: dict[str, None] = {}

    def knows(self, key: str) -> bool:
        """See Intake: of those that this process has pushed, the last 100,000."""
        return key in self._known

    def push(self, messages: Sequence[Message]) -> Sequence[Outcome]:
        """See Intake: the first of them."""
        message, settings = messages[0], self._settings
        params = None if settings.time is None else {"time": settings.time}
        try:
            reply = self._server.send(
                "POST",
                "streams",
                settings.into,
                params=params,
                content=message.body,
                kind=settings.media_type,
                key=message.key,
                headers=dict(key_headers(message)),
            )
        except ConflictError as error:
            return [Outcome(refused=str(error))]
        except AnswerError as error:
            if error.status not in REFUSED:
                raise
            return [Outcome(refused=str(error))]
        outcome = outcome_of(reply.status_code, reply.content)
        self._known[message.key] = None
        if len(self._known) > _KNOWN:
            del self._known[next(iter(self._known))]
        return [outcome]


def bridge(server: Wire, source: str, given: dict[str, Any]) -> None:
    """Until SIGTERM or SIGINT, or the end of stdin. Raises OxiseqError."""
    options = dict(_option(each) for each in given.pop("options"))
    settings = BridgeSettings(url=source, options=options, **given)
    server.send("PUT", "streams", settings.into)
    letters = DeadLetters(settings.dead_letter)
    made = Bridge(settings.shown, opener_of(settings), Elsewhere(server, settings), letters)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: made.stop())
    click.echo(f"bringing {settings.shown} into <{settings.into}>", err=True)
    made.run()
    counts = made.counts
    click.echo(
        f"{counts.messages:,} messages, {counts.events:,} events, {counts.duplicates:,} known, {counts.refused:,} "
        "refused" + (f" (see {settings.dead_letter})" if counts.refused else ""),
        err=True,
    )


def _option(text: str) -> tuple[str, str]:
    key, separator, value = text.partition("=")
    if not separator:
        raise BridgeError(f"--option {text}: write KEY=VALUE")
    return key, value
