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


@click.command("why", short_help="Explain why a query matches, and why not.")
@click.argument("query", metavar="QUERY", type=QueryFile())
@language_option
@click.option("--stream", "-s", "streams", metavar="NAME=FILE", multiple=True, help="Events of a stream, as in run.")
@log_option
@click.option("--kb", "-k", "kbs", metavar="[IRI=]FILE", multiple=True, help="Knowledge base, as in run.")
@flags(QUERY, SOURCES, HISTORY)
@click.option("--json", "form", flag_value="json", help="All of it as JSON.")
@click.option(
    "--prov", "form", flag_value="prov", help="Print which events and facts the matches come from, as PROV-O in TriG."
)
def why_command(
    query: QuerySource,
    language: str | None,
    streams: tuple[str, ...],
    location: Path | None,
    kbs: tuple[str, ...],
    form: str | None,
    **options: Any,
) -> None:
    """Explain why a query matches, and why not.

    SPAseq: for each graph pattern, how many events it saw and how many passed its constants, the pattern, each FILTER
    and the knowledge base; for the sequence, how many matches each prefix has. CEQL: for each event of the formula, how
    many events have its type and pass each condition; for the automaton, how many events complete each position. For
    both: which conditions of the first step without a match would let it match if left out one at a time, with the
    events that come closest.

    Queries over windows and EP-SPARQL: what the windows and streams hold, how many rows each pattern has, how many
    remain after each part of WHERE, and how many there would be without one condition of the first part that leaves
    none.

    \b
    oxiseq why rises.spaseq --stream S1=quotes.nq --since 2024-05-01T10:00:00Z --until 2024-05-01T11:00:00Z
    oxiseq why rises.spaseq --location data --prov > matches.trig
    """
    with loading():
        from oxiseq.cli.history import tell_why  # noqa: PLC0415  loads the engine: see __init__.py

    request = HistoryRequest(streams, location, kbs, given_options(options))
    click.echo(tell_why(replace(query, chosen=language), request, form or "text"), nl=False)
