"""`oxiseq replay`: a query over the event log of a server's folder."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import click

from oxiseq.cli.options import QueryFile, QuerySource, flags, given_options, language_option, location_option
from oxiseq.cli.request import ReplayRequest, RunRequest
from oxiseq.cli.run import run_command
from oxiseq.options import HISTORY, QUERY
from oxiseq.warmup.importing import loading

_AS_IN_RUN: Final = ("kbs", "format_", "output", "late", "sort", "quiet")


@click.command("replay", short_help="Answer a query over the events that a server has kept.")
@click.argument("query", metavar="QUERY", type=QueryFile())
@location_option
@language_option
@flags(QUERY, HISTORY, without=("limit",))
def replay_command(
    query: QuerySource, location: Path, language: str | None, since: int | None, until: int | None,
    kbs: tuple[str, ...], format_: str | None, output: Path | None, late: Path | None, sort: bool, quiet: bool,
    **options: Any,
) -> None:  # fmt: skip
    """Answer a query over the events that a server has kept.

    QUERY is a file, or - for stdin; the streams are those of the log by their IRIs. The server may run meanwhile.
    Without --kb the knowledge base is the store in the folder, as it is now. Matches are written as by `run`.

    \b
    oxiseq replay rises.spaseq --location data --since 2024-05-01T10:00:00Z --until 2024-05-01T11:00:00Z
    """
    with loading():
        from oxiseq.cli.replaying import replay_log  # noqa: PLC0415  loads the engine: see __init__.py

    run = RunRequest(
        replace(query, chosen=language), (), kbs, format_, output, late, sort, quiet, given_options(options),
        options["rules"],
    )  # fmt: skip
    replay_log(ReplayRequest(run, location, since, until))


replay_command.params += [option for option in run_command.params if option.name in _AS_IN_RUN]
