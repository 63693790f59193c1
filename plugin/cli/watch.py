"""`oxiseq watch`: the matches of a server's query as they are found."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from oxiseq.cli.elsewhere import at_server
from oxiseq.cli.options import quiet_option
from oxiseq.grammar.languages import STANDING
from oxiseq.warmup.importing import loading

if TYPE_CHECKING:
    from oxiseq.served.wire import Wire


@click.command("watch", short_help="Follow the matches of a server's query.")
@click.argument("name")
@click.option(
    "--after",
    metavar="ID",
    type=click.IntRange(min=0),
    help="Begin after the match with this id; 0: with the first that is kept. [default: from now on]",
)
@click.option("--limit", metavar="N", type=click.IntRange(min=1), help="End after N matches.")
@quiet_option
@at_server
def watch_command(server: Wire, name: str, after: int | None, limit: int | None, quiet: bool) -> None:
    """Print each match of a server's query as a line of JSON, the moment it is found; for a query over the store, its
    answer and then each change.

    If the connection breaks, watching continues after the last match as soon as the server is back: no match is missed
    or repeated.

    \b
    oxiseq watch rises --url http://localhost:7878 | jq .bindings
    """
    with loading():
        from oxiseq.cli.watching import Watch  # noqa: PLC0415  loads the engine: see __init__.py

    query = server.send("GET", "queries", name, again=False).json()
    over_store = query["language"] == STANDING
    cursor = after if after is not None or over_store else query["matches"]["next"] - 1
    Watch(server, ("queries", name, "changes" if over_store else "matches"), quiet).follow(cursor, limit)
