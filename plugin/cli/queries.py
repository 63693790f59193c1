"""`oxiseq queries`: the continuous queries of a server."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from oxiseq.cli.elsewhere import at_server
from oxiseq.cli.options import QueryFile, QuerySource, any_language_option, flags, given_options
from oxiseq.options import QUERY, STATE

if TYPE_CHECKING:
    from oxiseq.served.wire import Wire


@click.group("queries", short_help="List, register, pause and delete a server's queries.")
def queries_command() -> None:
    """The continuous queries of a server, which `oxiseq watch` follows.

    \b
    oxiseq queries register rises.spaseq --name rises --url http://localhost:7878
    oxiseq queries list
    """


@queries_command.command("list")
@click.option("--json", "as_json", is_flag=True, help="All that the server says of them.")
@at_server
def list_command(server: Wire, as_json: bool) -> None:
    """Each query: its name, language, what it is doing, events, matches and what is wrong."""
    found = server.send("GET", "queries", again=False).json()["queries"]
    if as_json:
        click.echo(json.dumps(found, indent=2, ensure_ascii=False))
        return
    rows = [_row(each) for each in found]
    heading = ("name", "language", "state", "events", "late", "matches", "")
    widths = [max(map(len, column)) for column in zip(heading, *rows, strict=True)]
    for row in (heading, *rows) if rows else ():
        click.echo("  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip())


@queries_command.command("register")
@click.argument("query", metavar="QUERY", type=QueryFile())
@click.option("--name", metavar="NAME", help="Its name. [default: one that the server draws]")
@click.option("--replace", is_flag=True, help="Put it in the place of the query of this name; ids of matches go on.")
@any_language_option
@flags(QUERY, STATE)
@at_server
def register_command(server: Wire, query: QuerySource, name: str | None, replace: bool, language: str | None,
                     **options: Any) -> None:  # fmt: skip
    """Register the query in a file; it sees what is pushed from now on. Writes its name. `.rq`: SPARQL over the
    store."""
    body = {"text": query.text, "language": language or query.language, **given_options(options)}
    if replace and name is None:
        raise click.UsageError("--replace needs --name")
    if replace:
        made = server.send("PUT", "queries", str(name), json=body).json()
    else:
        made = server.send("POST", "queries", json=body | ({} if name is None else {"name": name})).json()
    for lint in made.get("lints", ()):
        click.echo(f"warning: line {lint['line']}, column {lint['column']}: {lint['message']}", err=True)
    click.echo(made["name"])


@queries_command.command("show")
@click.argument("name")
@at_server
def show_command(server: Wire, name: str) -> None:
    """All that the server says of a query, as JSON."""
    click.echo(json.dumps(server.send("GET", "queries", name, again=False).json(), indent=2, ensure_ascii=False))


@queries_command.command("pause")
@click.argument("name")
@at_server
def pause_command(server: Wire, name: str) -> None:
    """Let a query rest; what comes meanwhile it sees when it is resumed."""
    server.send("PATCH", "queries", name, json={"state": "paused"})


@queries_command.command("resume")
@click.argument("name")
@at_server
def resume_command(server: Wire, name: str) -> None:
    """Let a query go on that was paused, or has stopped with an error."""
    server.send("PATCH", "queries", name, json={"state": "running"})


@queries_command.command("delete")
@click.argument("name")
@at_server
def delete_command(server: Wire, name: str) -> None:
    """Forget a query and its matches."""
    server.send("DELETE", "queries", name, again=False)


def _row(query: dict[str, Any]) -> tuple[str, ...]:
    matches = query["matches"]["next"] - 1
    numbers = tuple(f"{number:,}" for number in (query["events"], query["late"], matches))
    return query["name"], query["language"], query["state"], *numbers, query["error"] or ""
