"""`oxiseq why`: why a query matches or does not."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from oxiseq.cli.options import QueryFile, QuerySource, flags, given_options, language_option, log_option
from oxiseq.cli.request import HistoryRequest
from oxiseq.options import HISTORY, QUERY, SOURCES
from oxiseq.warmup.importing import loading


@click.command("why", short_help="Tell why a query matches, and why not.")
@click.argument("query", metavar="QUERY", type=QueryFile())
@language_option
@click.option("--stream", "-s", "streams", metavar="NAME=FILE", multiple=True, help="Events of a stream, as in run.")
@log_option
@click.option("--kb", "-k", "kbs", metavar="[IRI=]FILE", multiple=True, help="Knowledge base, as in run.")
@flags(QUERY, SOURCES, HISTORY)
@click.option("--json", "form", flag_value="json", help="All of it as JSON.")
@click.option("--prov", "form", flag_value="prov", help="What the matches were made of, as PROV-O in TriG.")
def why_command(
    query: QuerySource,
    language: str | None,
    streams: tuple[str, ...],
    location: Path | None,
    kbs: tuple[str, ...],
    form: str | None,
    **options: Any,
) -> None:
    """Why a query matches, and why not.

    SPAseq: for each graph pattern how many events it saw and how many passed its constants, the pattern, each FILTER,
    the knowledge base; for the sequence how many matches its beginnings have. CEQL: for each event of the formula how
    many events are of its type and pass each condition; for the automaton how many events complete each place. Of both,
    which conditions of the step where it ends, left out one at a time, would let it go on, with the events that come
    nearest.

    Queries over windows and EP-SPARQL: what the windows and streams hold, how many rows each pattern has and how many
    are left as WHERE grows part by part, and what would be there without one condition of the part where it ends.

    \b
    oxiseq why rises.spaseq --stream S1=quotes.nq --since 2024-05-01T10:00:00Z --until 2024-05-01T11:00:00Z
    oxiseq why rises.spaseq --location data --prov > matches.trig
    """
    with loading():
        from oxiseq.cli.history import tell_why  # noqa: PLC0415  loads the engine: see __init__.py

    request = HistoryRequest(streams, location, kbs, given_options(options))
    click.echo(tell_why(replace(query, chosen=language), request, form or "text"), nl=False)
