"""`oxiseq replay`: a query over the event log of a server's folder."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import click

from oxiseq.cli.options import GENERATED_AT, QueryFile, QuerySource, Time, location_option
from oxiseq.cli.request import ReplayRequest, RunRequest
from oxiseq.cli.run import run_command
from oxiseq.grammar import LANGUAGES
from oxiseq.importing import loading

_AS_IN_RUN: Final = (
    "kbs", "format_", "output", "start", "lateness", "late", "report", "instants", "consumption", "sort", "quiet",
    "rules",
)  # fmt: skip


@click.command("replay", short_help="Answer a query over the events that a server has kept.")
@click.argument("query", metavar="QUERY", type=QueryFile())
@location_option
@click.option("--language", type=click.Choice(LANGUAGES), help="[default: what the file's ending says, else spaseq]")
@click.option("--from", "begin", metavar="TIME", type=Time(), help="Only events from then on. [default: all kept]")
@click.option("--to", "end", metavar="TIME", type=Time(), help="Only events before that.")
def replay_command(
    query: QuerySource, location: Path, language: str | None, begin: int | None, end: int | None,
    format_: str | None, instants: tuple[int, ...], **others: Any,
) -> None:  # fmt: skip
    """Answer a query over the events that a server has kept.

    QUERY is a file, or - for stdin; the streams are those of the log by their IRIs. The server may run meanwhile.
    Without --kb the knowledge base is the store in the folder, as it is now. Matches are written as by `run`.

    \b
    oxiseq replay rises.spaseq --location data --from 2024-05-01T10:00:00Z --to 2024-05-01T11:00:00Z
    """
    with loading():
        from oxiseq.cli.replaying import replay_log  # noqa: PLC0415  loads the engine: see __init__.py

    run = RunRequest(
        replace(query, chosen=language), (), format=format_, columns=("type", "time", None),
        time_predicate=GENERATED_AT, on_error="stop", instants=instants or None, **others,
    )  # fmt: skip
    replay_log(ReplayRequest(run, location, begin, end))


replay_command.params += [option for option in run_command.params if option.name in _AS_IN_RUN]
