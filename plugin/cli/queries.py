"""`oxiseq queries`: the continuous queries of a server."""

from __future__ import annotations

import json
import tomllib
from typing import IO, TYPE_CHECKING, Any

import click

from oxiseq.cli.elsewhere import at_server
from oxiseq.cli.options import QueryFile, QuerySource, any_language_option, flags, given_options
from oxiseq.grammar.finding_tools import one_line
from oxiseq.options import QUERY, STATE

if TYPE_CHECKING:
    from oxiseq.served.wire import Wire


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
    found = server.send("GET", "queries", again=False).json()["queries"]
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
        made = server.send("PUT", "queries", str(name), json=body).json()
    else:
        made = server.send("POST", "queries", json=body | ({} if name is None else {"name": name})).json()
    for lint in made.get("lints", ()):
        click.echo(f"warning: {one_line(lint)}", err=True)
    click.echo(made["name"])


@queries_command.command("show")
@click.argument("name")
@at_server
def show_command(server: Wire, name: str) -> None:
    """Show everything about a query, as JSON."""
    click.echo(json.dumps(server.send("GET", "queries", name, again=False).json(), indent=2, ensure_ascii=False))


@queries_command.command("pause")
@click.argument("name")
@at_server
def pause_command(server: Wire, name: str) -> None:
    """Pause a query; it catches up with missed events when it is resumed."""
    server.send("PATCH", "queries", name, json={"state": "paused"})


@queries_command.command("resume")
@click.argument("name")
@at_server
def resume_command(server: Wire, name: str) -> None:
    """Resume a query that was paused or stopped with an error."""
    server.send("PATCH", "queries", name, json={"state": "running"})


@queries_command.command("delete")
@click.argument("name")
@at_server
def delete_command(server: Wire, name: str) -> None:
    """Delete a query and its matches."""
    server.send("DELETE", "queries", name, again=False)


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
    server.send("PUT", "queries", name, "sinks", sink, json={**given, **more})


@sink_group.command("list")
@click.argument("name")
@at_server
def list_sinks_command(server: Wire, name: str) -> None:
    """List the sinks of the query NAME: id, kind, state, matches and errors."""
    found = server.send("GET", "queries", name, "sinks", again=False).json()["sinks"]
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


@sink_group.command("show")
@click.argument("name")
@click.argument("sink")
@at_server
def show_sink_command(server: Wire, name: str, sink: str) -> None:
    """Show everything about a sink, as JSON, without its secrets."""
    found = server.send("GET", "queries", name, "sinks", sink, again=False).json()
    click.echo(json.dumps(found, indent=2, ensure_ascii=False))


@sink_group.command("delete")
@click.argument("name")
@click.argument("sink")
@at_server
def delete_sink_command(server: Wire, name: str, sink: str) -> None:
    """Delete a sink: nothing more is delivered to it."""
    server.send("DELETE", "queries", name, "sinks", sink, again=False)


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
