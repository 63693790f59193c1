"""`oxiseq why`: why a query matches or does not."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import click

from oxiseq.cli.options import (
    Duration,
    QueryFile,
    QuerySource,
    Time,
    on_error_option,
    time_predicate_option,
    time_unit_option,
)
from oxiseq.cli.request import HistoryRequest, OnError, TimeUnit
from oxiseq.grammar.languages import LANGUAGES
from oxiseq.importing import loading


@click.command("why", short_help="Tell why a query matches, and why not.")
@click.argument("query", metavar="QUERY", type=QueryFile())
@click.option("--language", type=click.Choice(LANGUAGES), help="Default: by QUERY's ending, else spaseq.")
@click.option("--stream", "-s", "streams", metavar="NAME=FILE", multiple=True, help="Events of a stream, as in run.")
@click.option("--location", "-l", metavar="DIR", type=click.Path(exists=True, file_okay=False, path_type=Path),
              help="Instead of files: the events that the server of this folder has kept.")  # fmt: skip
@click.option("--kb", "-k", "kbs", metavar="[IRI=]FILE", multiple=True, help="Knowledge base, as in run.")
@click.option("--from", "begin", metavar="TIME", type=Time(), help="Only events from then on.")
@click.option("--to", "end", metavar="TIME", type=Time(), help="Only events before that.")
@click.option("--start", metavar="TIME", type=Time(), help="Where tumbling windows begin.")
@click.option("--lateness", metavar="DURATION", type=Duration(), default="0s",
              help="How much a stream may be out of order.")  # fmt: skip
@click.option("--type-column", metavar="NAME", default="type", show_default=True, help="CEQL, as in run.")
@click.option("--time-column", metavar="NAME", default="time", show_default=True, help="CEQL, as in run.")
@time_unit_option
@click.option("--at", "instants", metavar="TIME", type=Time(), multiple=True,
              help="Queries over windows: look at this instant only, or at these. [default: at the one where the query "
              "comes furthest]")  # fmt: skip
@click.option("--consumption", type=click.Choice(["UNRESTRICTED", "CHRONOLOGICAL", "RECENT"], case_sensitive=False),
              help="RSEP-QL and EP-SPARQL: where the query has no CONSUME.")  # fmt: skip
@click.option("--rules", metavar="FILE", multiple=True, type=QueryFile(), help="EP-SPARQL, as in run.")
@click.option("--json", "form", flag_value="json", help="All of it as JSON.")
@click.option("--prov", "form", flag_value="prov", help="What the matches were made of, as PROV-O in TriG.")
@click.option("--matches", metavar="N", type=click.IntRange(0), default=3, show_default=True,
              help="Of how many matches it is told what they were made of.")  # fmt: skip
@time_predicate_option
@on_error_option
def why_command(
    query: QuerySource, language: str | None, streams: tuple[str, ...], location: Path | None, kbs: tuple[str, ...],
    begin: int | None, end: int | None, start: int | None, lateness: int, type_column: str, time_column: str,
    time_unit: TimeUnit | None,
    instants: tuple[int, ...], consumption: str | None, rules: tuple[QuerySource, ...], form: str | None, matches: int,
    time_predicate: str, on_error: OnError,
) -> None:  # fmt: skip
    """Why a query matches, and why not.

    SPAseq: for each graph pattern how many events it saw and how many passed its constants, the pattern, each FILTER,
    the knowledge base; for the sequence how many matches its beginnings have. CEQL: for each event of the formula how
    many events are of its type and pass each condition; for the automaton how many events complete each place. Of both,
    which conditions of the step where it ends, left out one at a time, would let it go on, with the events that come
    nearest.

    Queries over windows and EP-SPARQL: what the windows and streams hold, how many rows each pattern has and how many
    are left as WHERE grows part by part, and what would be there without one condition of the part where it ends.

    \b
    oxiseq why rises.spaseq --stream S1=quotes.nq --from 2024-05-01T10:00:00Z --to 2024-05-01T11:00:00Z
    oxiseq why rises.spaseq --location data --prov > matches.trig
    """
    with loading():
        from oxiseq.cli.history import tell_why  # noqa: PLC0415  loads the engine: see __init__.py

    request = HistoryRequest(streams, location, kbs, begin, end, start, lateness, time_predicate,
                             (type_column, time_column, time_unit), instants or None, consumption, rules,
                             on_error)  # fmt: skip
    click.echo(tell_why(replace(query, chosen=language), request, form or "text", matches), nl=False)
