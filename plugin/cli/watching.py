"""The work of `oxiseq watch`: server-sent events as lines, whatever becomes of the connection."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Final

import click

from oxiseq.engine.extras import needed
from oxiseq.grammar.errors import OxiseqError
from oxiseq.live.errors import BusyError
from oxiseq.served.wire import UnreachableError, Wire

if TYPE_CHECKING:
    import httpx
    import httpx_sse
else:
    httpx, httpx_sse = needed("httpx"), needed("httpx_sse")

_NOTES: Final = ("cursor-too-old", "damaged")
_GO_ON: Final = ("the server is stopping", "replaced")
"""Reasons of an end behind which it continues, sooner or later."""
_SILENCE: Final = 60.0
"""Seconds without a word after which a connection is taken for dead: the server sends comments."""
_PAUSES: Final = (0.5, 1, 2, 4, 8, 15)


class Watch:
    """A query's matches, or what changes of its answer, behind a cursor."""

    def __init__(self, server: Wire, path: tuple[str, ...], quiet: bool) -> None:
        self._server, self._path, self._quiet = server, path, quiet
        self._turn = 0

    def follow(self, cursor: int | None, limit: int | None) -> None:
        """Until there were `limit`. Raises OxiseqError when nothing will come any more."""
        at, count = None if cursor is None else str(cursor), 0
        while True:
            after = {} if at is None else {"after": at}
            try:
                with self._server.listening(*self._path, params=after, patience=_SILENCE) as reply:
                    for told in httpx_sse.EventSource(reply).iter_sse():
                        if not told.data:  # how long to wait before one comes back
                            continue
                        self._turn = 0
                        at = told.id or at
                        if told.event == "end":
                            self._check_end(told.data)
                            break
                        self._say(told)
                        count += told.event not in _NOTES
                        if count == limit:
                            return
                reason = f"{self._server.address} has ended the connection"
            except httpx.ReadTimeout:
                reason = f"{self._server.address} is silent"
            except (UnreachableError, BusyError) as error:
                reason = str(error)
            self._wait(reason)

    def _say(self, told: httpx_sse.ServerSentEvent) -> None:
        if told.event in _NOTES:
            click.echo(f"warning: {told.event}: {told.data}", err=True)
        else:
            click.echo(told.data)

    def _check_end(self, data: str) -> None:
        """Raises OxiseqError if nothing will come any more: the query has been deleted, or has failed."""
        reason = json.loads(data)["reason"]
        if reason not in _GO_ON:
            raise OxiseqError(f"the query {self._path[1]}: {reason}")

    def _wait(self, reason: str) -> None:
        seconds = _PAUSES[min(self._turn, len(_PAUSES) - 1)]
        if not self._quiet:
            click.echo(f"note: {reason}; again in {seconds:g} s", err=True)
        self._turn += 1
        time.sleep(seconds)
