"""`oxiseq run`: a query over files of events."""

from __future__ import annotations

from pathlib import Path

import click

from oxiseq.cli.options import (
    Duration,
    QueryFile,
    QuerySource,
    Time,
    on_error_option,
    quiet_option,
    time_predicate_option,
)
from oxiseq.cli.request import OnError, RunRequest

FORMATS = ("table", "json", "csv", "tsv", "arrow", "parquet", "nquads")


@click.command("run")
@click.argument("query", metavar="QUERY", type=QueryFile())
@click.option(
    "--stream", "-s", "streams", metavar="NAME=FILE", multiple=True, required=True,
    help="Events of a stream, by the query's name for it or its IRI; FILE alone if the query has one stream. "
    "N-Quads, TriG (.gz too), Arrow or Parquet event tables.",
)  # fmt: skip
@click.option(
    "--kb", "-k", "kbs", metavar="[IRI=]FILE", multiple=True,
    help="Knowledge base: an RDF file (into the graph IRI, if given) or a store's folder; several are put together.",
)  # fmt: skip
@click.option("--format", "-f", "format_", type=click.Choice(FORMATS), help="Default: by OUTPUT's name, else table.")
@click.option("--output", "-o", type=click.Path(dir_okay=False, path_type=Path), help="Write to a file, not to stdout.")
@click.option("--start", metavar="TIME", type=Time(), help="The t of tumbling windows; earlier events are not seen. "
              "xsd:dateTime or microseconds. [default: the first event's time]")  # fmt: skip
@click.option("--lateness", metavar="DURATION", type=Duration(), default=0,
              help="How much a stream may be out of order: 5s, 2m, PT5S or microseconds. [default: 0]")  # fmt: skip
@click.option("--late", "late", metavar="FILE", type=click.Path(dir_okay=False, path_type=Path),
              help="Write late events there; the name tells the format, as in convert.")  # fmt: skip
@time_predicate_option
@on_error_option
@click.option("--sort", is_flag=True, help="Matches of equal end time by the times of their events.")
@quiet_option
def run_command(
    query: QuerySource, streams: tuple[str, ...], kbs: tuple[str, ...], format_: str | None, output: Path | None,
    start: int | None, lateness: int, late: Path | None, time_predicate: str, on_error: OnError, sort: bool,
    quiet: bool,
) -> None:  # fmt: skip
    """Answer a query over files of events.

    QUERY is a file, or - for stdin. Matches go to stdout in order of end time, a summary to stderr.
    CSV, TSV and JSON are the W3C's results formats, which have no column for the time: select
    (ENDTIME() AS ?time) to have it. nquads writes the graphs of a CONSTRUCT query as events.

    \b
    oxiseq run rises.spaseq --stream S1=quotes.nq.gz --kb companies.ttl
    oxiseq run rises.spaseq -s S1=quotes.arrow -o rises.parquet
    """
    from oxiseq.cli.running import run_query  # noqa: PLC0415  loads the engine: see __init__.py

    run_query(
        RunRequest(query, streams, kbs, format_, output, start, lateness, late, time_predicate, on_error, sort, quiet)
    )
