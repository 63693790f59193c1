"""`oxiseq watch`: the matches of a server's query as they are found."""

from __future__ import annotations

import json
import time
from typing import Final

import click

from oxiseq.cli.elsewhere import RefusedError, Server, Told, UnreachableError, at_server, pause
from oxiseq.cli.options import quiet_option
from oxiseq.grammar.errors import OxiseqError

_OVER_STORE: Final = "sparql"
_NOTES: Final = ("cursor-too-old", "damaged")
_GO_ON: Final = ("the server is stopping", "replaced")
"""Reasons of an end behind which it goes on, sooner or later."""
_BUSY: Final = 503


@click.command("watch", short_help="Follow the matches of a server's query.")
@click.argument("name")
@click.option("--since", metavar="ID", type=click.IntRange(min=0),
              help="Begin behind this match; 0: with the first that is kept. [default: those found from now on]")
@click.option("--limit", metavar="N", type=click.IntRange(min=1), help="End after so many.")
@quiet_option
@at_server
def watch_command(server: Server, name: str, since: int | None, limit: int | None, quiet: bool) -> None:
    """Write each match of a query at a server, the moment it is found, as a line of JSON; of a query over the store its
    answer and what changes of it.

    When the server goes away, watching goes on behind the last match as soon as it is back: none is missed, none
    comes twice.

    \b
    oxiseq watch rises --url http://localhost:7878 | jq .bindings
    """
    query = server.ask("GET", "queries", name)
    over_store = query["language"] == _OVER_STORE
    cursor = since if since is not None or over_store else query["matches"]["next"] - 1
    _Watch(server, ("queries", name, "changes" if over_store else "matches"), quiet).follow(cursor, limit)


class _Watch:
    def __init__(self, server: Server, path: tuple[str, ...], quiet: bool) -> None:
        self._server, self._path, self._quiet = server, path, quiet
        self._turn = 0

    def follow(self, cursor: int | None, limit: int | None) -> None:
        at, count = None if cursor is None else str(cursor), 0
        while True:
            try:
                for told in self._server.listen(*self._path, since=at):
                    self._turn = 0
                    at = told.id or at
                    if told.kind == "end":
                        self._check_end(told.data)
                        break
                    self._say(told)
                    count += told.kind not in _NOTES
                    if count == limit:
                        return
                reason = f"{self._server.url} has ended the connection"
            except UnreachableError as error:
                reason = str(error)
            except RefusedError as error:
                if error.status != _BUSY:
                    raise
                reason = str(error)
            self._wait(reason)

    def _say(self, told: Told) -> None:
        if told.kind in _NOTES:
            click.echo(f"warning: {told.kind}: {told.data}", err=True)
        else:
            click.echo(told.data)

    def _check_end(self, data: str) -> None:
        """Raises OxiseqError if nothing will come any more: the query has been deleted, or has failed."""
        reason = json.loads(data)["reason"]
        if reason not in _GO_ON:
            raise OxiseqError(f"the query {self._path[1]}: {reason}")

    def _wait(self, reason: str) -> None:
        seconds = pause(self._turn)
        if not self._quiet:
            click.echo(f"note: {reason}; again in {seconds:g} s", err=True)
        self._turn += 1
        time.sleep(seconds)
