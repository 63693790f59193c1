"""`oxiseq push`: events of files to a server's stream."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from oxiseq.cli.elsewhere import at_server
from oxiseq.cli.options import Iri, flag, quiet_option
from oxiseq.warmup.importing import loading

if TYPE_CHECKING:
    from oxiseq.served.wire import Wire


@click.command("push", short_help="Push events of files to a server's stream.")
@click.argument("stream", metavar="STREAM", type=Iri())
@click.argument("files", metavar="FILE...", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path))
@click.option("--create", is_flag=True, help="Create the stream if it does not exist.")
@click.option(
    "--mapping",
    "-m",
    metavar="FILE|NAME",
    help="For tables: a CONSTRUCT query, or (.json) a mapping, or the name of a ready one. [default: the stream's own]",
)
@click.option(
    "--session",
    metavar="NAME",
    help="The name, 1 to 200 visible ASCII characters, under which the server counts the events of this one file, for "
    "a day: those that it has are passed over, also when the file has grown. [default: one for each content]",
)
@flag("on_error", usual=True)
@flag("time_predicate", usual=True)
@quiet_option
@at_server
def push_command(
    server: Wire,
    stream: str,
    files: tuple[Path, ...],
    create: bool,
    mapping: str | None,
    session: str | None,
    on_error: str,
    time_predicate: str,
    quiet: bool,
) -> None:
    """Push the events of files to the stream of this IRI, in the order given: N-Quads, TriG, RDF Messages, Jelly,
    event tables; and tables of rows (CSV, TSV, JSON, JSON Lines, Parquet), which a mapping makes into events.

    An acknowledged event is on the server's disk. Events are sent over a WebSocket and acknowledged while more are
    sent. After a broken connection the command sends again what is not stored, for a minute; started again, it
    continues after the events that the server has. Without WebSockets events are sent in batches, each stored once.

    \b
    oxiseq push http://example.org/quotes quotes.nq --url http://localhost:7878
    oxiseq push http://example.org/quotes quotes.csv --mapping quotes.json
    """
    with loading():
        from oxiseq.cli.pushing import push_files  # noqa: PLC0415  loads the engine: see __init__.py

    if create:
        server.send("PUT", "streams", stream)
    push_files(server, stream, files, on_error, time_predicate, mapping, session, quiet=quiet)
