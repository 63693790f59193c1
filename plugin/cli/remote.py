"""Commands that speak to a server: `oxiseq queries`, `push`, `bridge`, `watch`.

at_server ─▶ `oxiseq.served.wire` ─▶ HTTP ─▶ oxiseq serve
"""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final

import click

from oxiseq.cli.options import (
    Iri,
    QueryFile,
    QuerySource,
    any_language_option,
    at_server,
    flag,
    flags,
    given_options,
    quiet_option,
)
from oxiseq.engine.extras import needed
from oxiseq.grammar.errors import one_line
from oxiseq.grammar.languages import STANDING
from oxiseq.options import QUERY, STATE

if TYPE_CHECKING:
    from oxiseq.cli import sending
    from oxiseq.served.wire import How, Wire
else:
    sending = needed("oxiseq.cli.sending")

_ONCE: Final[How] = {"again": False}
"""Whoever asks hears of a failure at once."""

# --- queries ---------------------------------------------------------------------------------------------


@click.group("queries", short_help="List, register, pause and delete a server's queries.")
def queries_command() -> None:
    """Manage the continuous queries of a server; `oxiseq watch` follows them.

    \b
    oxiseq queries register rises.spaseq --name rises --url http://localhost:7878
    oxiseq queries list
    """


@queries_command.command("list")
@click.option("--json", "as_json", is_flag=True, help="Everything about them, as JSON.")
@at_server
def list_command(server: Wire, as_json: bool) -> None:
    """List the queries: name, language, state, events, matches and errors."""
    found = server.call("listQueries", _ONCE).json()["queries"]
    if as_json:
        click.echo(json.dumps(found, indent=2, ensure_ascii=False))
        return
    _print_table(("name", "language", "state", "events", "late", "matches", ""), [_row(each) for each in found])


@queries_command.command("register")
@click.argument("query", metavar="QUERY", type=QueryFile())
@click.option("--name", metavar="NAME", help="Its name. [default: the server chooses one]")
@click.option("--replace", is_flag=True, help="Replace the query of this name; the ids of matches continue.")
@any_language_option
@flags(QUERY, STATE)
@at_server
def register_command(
    server: Wire, query: QuerySource, name: str | None, replace: bool, language: str | None, **options: Any
) -> None:
    """Register the query in a file and print its name; it sees what is pushed from now on. `.rq`: SPARQL over the
    store."""
    body = {"text": query.text, "language": language or query.language, **given_options(options)}
    if replace and name is None:
        raise click.UsageError("--replace needs --name")
    if replace:
        made = server.call("replaceQuery", {"json": body}, query=name).json()
    else:
        made = server.call("registerQuery", {"json": body | ({} if name is None else {"name": name})}).json()
    for lint in made.get("lints", ()):
        click.echo(f"warning: {one_line(lint)}", err=True)
    click.echo(made["name"])


def _verb(group: click.Group, name: str, operation: str, about: str, how: How = _ONCE, *, sink: bool = False) -> None:
    """A command that is one operation of the server's table, over a query or a sink of it; what it gets is printed."""

    @at_server
    def command(server: Wire, **given: str) -> None:
        reply = server.call(operation, how, **given)
        if operation.startswith("get"):
            click.echo(json.dumps(reply.json(), indent=2, ensure_ascii=False))

    if sink:
        command = click.argument("sink")(command)
    group.command(name, help=about)(click.argument("query", metavar="NAME")(command))


_verb(queries_command, "show", "getQuery", "Show everything about a query, as JSON.")
_verb(
    queries_command,
    "pause",
    "changeQuery",
    "Pause a query; it catches up with missed events when it is resumed.",
    {"json": {"state": "paused"}},
)
_verb(
    queries_command,
    "resume",
    "changeQuery",
    "Resume a query that was paused or stopped with an error.",
    {"json": {"state": "running"}},
)
_verb(queries_command, "delete", "deleteQuery", "Delete a query and its matches.")


@queries_command.group("sink", short_help="Manage where a query's matches are delivered.")
def sink_group() -> None:
    """Manage the sinks of a query: webhooks, files, brokers, mail.

    \b
    oxiseq queries sink put rises chat chat.toml
    oxiseq queries sink list rises
    """


@sink_group.command("put")
@click.argument("name")
@click.argument("sink")
@click.argument("settings", type=click.File("rb"))
@click.option(
    "--after",
    type=click.IntRange(min=0),
    metavar="ID",
    help="Begin after the match with this id; 0: with the first that is kept. [default: from now on]",
)
@at_server
def put_sink_command(server: Wire, name: str, sink: str, settings: IO[bytes], after: int | None) -> None:
    """Deliver matches of the query NAME as the file SETTINGS says, JSON or TOML; - is stdin."""
    given = _settings(settings)
    more = {} if after is None else {"after": after}
    server.call("putSink", {"json": {**given, **more}}, query=name, sink=sink)


@sink_group.command("list")
@click.argument("name")
@at_server
def list_sinks_command(server: Wire, name: str) -> None:
    """List the sinks of the query NAME: id, kind, state, matches and errors."""
    found = server.call("listSinks", _ONCE, query=name).json()["sinks"]
    rows = [
        (
            each["id"],
            each["kind"],
            each["state"],
            *(f"{each[key]:,}" for key in ("delivered", "waiting", "lost")),
            each["error"] or "",
        )
        for each in found
    ]
    _print_table(("id", "kind", "state", "delivered", "waiting", "lost", ""), rows)


_verb(sink_group, "show", "getSink", "Show everything about a sink, as JSON, without its secrets.", sink=True)
_verb(sink_group, "delete", "deleteSink", "Delete a sink: nothing more is delivered to it.", sink=True)


def _settings(file: IO[bytes]) -> dict[str, Any]:
    """JSON, or else TOML. Raises UsageError."""
    try:
        text = file.read().decode("utf-8-sig")
        found = json.loads(text) if text.lstrip().startswith("{") else tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # of TOML and UTF-8, too
        raise click.UsageError(f"{file.name}: neither JSON nor TOML: {error}") from None
    return dict(found)


def _print_table(heading: tuple[str, ...], rows: list[tuple[str, ...]]) -> None:
    widths = [max(map(len, column)) for column in zip(heading, *rows, strict=True)]
    for row in (heading, *rows) if rows else ():
        click.echo("  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip())


def _row(query: dict[str, Any]) -> tuple[str, ...]:
    matches = query["matches"]["next"] - 1
    numbers = tuple(f"{number:,}" for number in (query["events"], query["late"], matches))
    return query["name"], query["language"], query["state"], *numbers, query["error"] or ""


# --- push ------------------------------------------------------------------------------------------------


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
    if create:
        server.call("putStream", stream=stream)
    sending.push_files(server, stream, files, on_error, time_predicate, mapping, session, quiet=quiet)


# --- bridge ----------------------------------------------------------------------------------------------


@click.command("bridge", short_help="Push messages of a broker, a file or stdin to a stream.")
@click.argument("source", metavar="SOURCE")
@click.option("--into", metavar="IRI", required=True, help="The stream; made if missing.")
@click.option(
    "--topic",
    metavar="NAME",
    default="",
    help="MQTT: a filter such as a/#; Kafka: a topic; NATS: a subject; Redis: a stream; WebSocket: the first message "
    "to send.",
)
@click.option(
    "--group",
    metavar="NAME",
    default="oxiseq",
    show_default=True,
    help="The consumer group; the bridge continues from the group's position.",
)
@click.option(
    "--media-type",
    metavar="TYPE",
    default="application/n-quads",
    show_default=True,
    help="The messages' media type, as in a POST to the stream.",
)
@click.option("--time", metavar="TIME", help="The time of messages that have none; `arrival` is the server's clock.")
@click.option(
    "--start",
    type=click.Choice(["new", "all"]),
    default="new",
    show_default=True,
    help="Where to begin if nothing has been acknowledged yet.",
)
@click.option("--field", metavar="NAME", help="Redis: the field that holds the message.")
@click.option(
    "--option", "options", metavar="KEY=VALUE", multiple=True, help="For librdkafka, or LDES. May be repeated."
)
@click.option(
    "--position",
    metavar="FILE",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Remember in this file how far the source has been read.",
)
@click.option(
    "--dead-letter",
    metavar="FILE",
    type=click.Path(dir_okay=False, path_type=Path),
    default=Path("dead-letters.jsonl"),
    show_default=True,
    help="Where rejected messages go.",
)
@at_server
def bridge_command(server: Wire, source: str, **given: Any) -> None:
    """Push messages of SOURCE to a stream until stopped: mqtt://, mqtts://, kafka://, nats://, nats+tls://, redis://,
    rediss://, ws://, wss://, ldes+http://, ldes+https://, a file that grows (as tail -F), or - for stdin, to its end.

    A message is acknowledged at its source once the server has stored it; a message that is delivered again is stored
    once.

    \b
    oxiseq bridge mqtt://localhost --topic 'plant/#' --into http://example.org/plant --url http://localhost:7878
    """
    sending.bridge(server, source, given)


# --- watch -----------------------------------------------------------------------------------------------


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
    query = server.call("getQuery", _ONCE, query=name).json()
    over_store = query["language"] == STANDING
    cursor = after if after is not None or over_store else query["matches"]["next"] - 1
    sending.Watch(server, "changes" if over_store else "matches", name, quiet).follow(cursor, limit)
