"""`oxiseq compare`: a draft beside a query."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from oxiseq.cli.options import QueryFile, QuerySource, flags, given_options, language_option, log_option
from oxiseq.cli.request import HistoryRequest
from oxiseq.options import HISTORY, QUERY, SOURCES
from oxiseq.warmup.importing import loading


@click.command("compare", short_help="Compare a draft with a query: which matches it gains and loses.")
@click.argument("draft", metavar="DRAFT", type=QueryFile())
@click.option("--against", "-a", metavar="QUERY", type=QueryFile(), required=True, help="The current query.")
@language_option
@click.option(
    "--stream",
    "-s",
    "streams",
    metavar="NAME=FILE",
    multiple=True,
    help="Events of a stream, by IRI or by a name in either query.",
)
@log_option
@click.option("--kb", "-k", "kbs", metavar="[IRI=]FILE", multiple=True, help="Knowledge base, as in run.")
@flags(QUERY, SOURCES, HISTORY, without=("limit",))
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
def compare_command(
    draft: QuerySource,
    against: QuerySource,
    language: str | None,
    streams: tuple[str, ...],
    location: Path | None,
    kbs: tuple[str, ...],
    as_json: bool,
    **options: Any,
) -> None:
    """Show the matches that DRAFT gains (+) and loses (-) compared with QUERY over the same events.

    Matches are compared by their time and by the variables that both queries select.

    \b
    oxiseq compare draft.spaseq --against rises.spaseq --stream S1=quotes.nq
    oxiseq compare draft.spaseq --against rises.spaseq --location data --since 2024-05-01
    """
    with loading():
        from oxiseq.cli.history import tell_difference  # noqa: PLC0415  loads the engine: see __init__.py

    request = HistoryRequest(streams, location, kbs, given_options(options))
    draft, against = (replace(source, chosen=language) for source in (draft, against))
    click.echo(tell_difference(draft, against, request, as_json), nl=False)
