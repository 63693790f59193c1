"""`oxiseq run`: a query over files of events, or over those that a server has kept."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from oxiseq.cli.convert import MESSAGES
from oxiseq.cli.options import QueryFile, QuerySource, flags, given_options, language_option, log_option, quiet_option
from oxiseq.cli.request import RunRequest
from oxiseq.options import HISTORY, LATE_POLICIES, OPTIONS, QUERY, RUN, SOURCES
from oxiseq.warmup.importing import loading

FORMATS = ("table", "json", "csv", "tsv", "arrow", "parquet", "nquads", *MESSAGES)


@click.command("run", short_help="Run a query over events in files or in a server's folder.")
@click.argument("query", metavar="QUERY", type=QueryFile())
@click.option(
    "--stream",
    "-s",
    "streams",
    metavar="NAME=FILE",
    multiple=True,
    help="Events of a stream, by the query's name for it or its IRI; FILE alone if the query has one stream. "
    "N-Quads, TriG, RDF Messages (.gz too), Arrow or Parquet event tables; tables of rows: CSV, Arrow, "
    "Parquet.",
)
@log_option
@language_option
@click.option(
    "--kb",
    "-k",
    "kbs",
    metavar="[IRI=]FILE",
    multiple=True,
    help="Knowledge base: an RDF file (into the graph IRI, if given) or a store's folder; several are merged.",
)
@click.option("--format", "-f", "format_", type=click.Choice(FORMATS), help="Default: by OUTPUT's name, else table.")
@click.option("--output", "-o", type=click.Path(dir_okay=False, path_type=Path), help="Write to a file, not to stdout.")
@click.option(
    "--late",
    "late",
    metavar="warn|error|ignore|FILE",
    default=None,
    help=f"{OPTIONS['late'].help} A FILE gets them; its name gives the format, as in convert.",
)
@flags(QUERY, SOURCES, RUN, HISTORY, without=("limit", "late"))
@click.option("--sort", is_flag=True, help="Order matches of equal end time by the times of their events.")
@quiet_option
def run_command(
    query: QuerySource,
    streams: tuple[str, ...],
    location: Path | None,
    language: str | None,
    kbs: tuple[str, ...],
    format_: str | None,
    output: Path | None,
    late: str | None,
    sort: bool,
    quiet: bool,
    **options: Any,
) -> None:
    """Run a query over files of events, or over the events that a server has kept.

    QUERY is a file, or - for stdin. With --location the streams are those of the folder's log, by their IRIs, and the
    knowledge base is the folder's current store unless --kb is given; the server may be running.
    Files are sorted by time first; a pipe is a stream, read as it comes.
    Matches go to stdout in order of end time, a summary to stderr.
    CSV, TSV and JSON are the W3C's results formats, which have no column for the time: select (ENDTIME() AS ?time) to
    get one. nquads writes the graphs of a CONSTRUCT query as events, messages-... as RDF
    messages.
    A CEQL query gives time, start, end and positions, then the positions that each variable holds. Queries over windows
    (.rspql, .spectra, .rsepql) give rows in the order of the instants that emit them. EP-SPARQL rows in a table begin
    with start and end; a query that names no stream reads all given streams.

    \b
    oxiseq run rises.spaseq --stream S1=quotes.nq.gz --kb companies.ttl
    oxiseq run rises.spaseq -s S1=quotes.arrow -o rises.parquet
    oxiseq run sells.ceql -s Stock=trades.csv -f json
    oxiseq run averages.rspql -s readings.nq.gz --stream-operator RSTREAM
    oxiseq run rises.spaseq --location data --since 2024-05-01T10:00:00Z --until 2024-05-01T11:00:00Z
    """
    with loading():
        from oxiseq.cli.running import run_query  # noqa: PLC0415  loads the engine: see __init__.py

    policy = late if late in LATE_POLICIES else None
    run_query(
        RunRequest(
            replace(query, chosen=language),
            streams,
            location,
            kbs,
            format_,
            output,
            None if late is None or policy else Path(late),
            sort,
            quiet,
            given_options({**options, "late": policy}),
            options["rules"],
        )
    )
