"""`oxiseq run`: a query over files of events."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import click

from oxiseq.cli.options import (
    Duration,
    QueryFile,
    QuerySource,
    Time,
    language_option,
    on_error_option,
    quiet_option,
    time_predicate_option,
    time_unit_option,
)
from oxiseq.cli.request import OnError, RunRequest, TimeUnit
from oxiseq.importing import loading

FORMATS = ("table", "json", "csv", "tsv", "arrow", "parquet", "nquads")


@click.command("run", short_help="Answer a query over files of events.")
@click.argument("query", metavar="QUERY", type=QueryFile())
@click.option(
    "--stream", "-s", "streams", metavar="NAME=FILE", multiple=True, required=True,
    help="Events of a stream, by the query's name for it or its IRI; FILE alone if the query has one stream. "
    "N-Quads, TriG (.gz too), Arrow or Parquet event tables; for CEQL also tables of tuples: CSV, Arrow, Parquet.",
)  # fmt: skip
@language_option
@click.option(
    "--kb", "-k", "kbs", metavar="[IRI=]FILE", multiple=True,
    help="Knowledge base: an RDF file (into the graph IRI, if given) or a store's folder; several are put together.",
)  # fmt: skip
@click.option("--format", "-f", "format_", type=click.Choice(FORMATS), help="Default: by OUTPUT's name, else table.")
@click.option("--output", "-o", type=click.Path(dir_okay=False, path_type=Path), help="Write to a file, not to stdout.")
@click.option("--start", metavar="TIME", type=Time(), help="Where tumbling windows begin; earlier events are not seen. "
              "xsd:dateTime or microseconds. [default: the first event's time]")  # fmt: skip
@click.option("--lateness", metavar="DURATION", type=Duration(), default="0s",
              help="How much a stream may be out of order: 5s, 2m or PT5S. [default: 0s]")  # fmt: skip
@click.option("--late", "late", metavar="FILE", type=click.Path(dir_okay=False, path_type=Path),
              help="Write late events there; the name tells the format, as in convert.")  # fmt: skip
@click.option("--type-column", metavar="NAME", default="type", show_default=True,
              help="CEQL: the column of a table that holds an event's type.")  # fmt: skip
@click.option("--time-column", metavar="NAME", default="time", show_default=True,
              help="CEQL: the one that holds its time, timestamps or integer microseconds.")  # fmt: skip
@time_unit_option
@click.option("--report", type=click.Choice(["RSTREAM", "ISTREAM", "DSTREAM"], case_sensitive=False),
              help="Queries over windows: all answers at each instant, the new ones, or those that are gone. "
              "[default: what the query says, else RSTREAM for RSEP-QL, ISTREAM for the others]")  # fmt: skip
@click.option("--at", "instants", metavar="TIME", type=Time(), multiple=True,
              help="Queries over windows: answer at this time, not at each event's; may be repeated.")  # fmt: skip
@click.option("--consumption", type=click.Choice(["UNRESTRICTED", "CHRONOLOGICAL", "RECENT"], case_sensitive=False),
              help="RSEP-QL and EP-SPARQL: where the query has no CONSUME.")  # fmt: skip
@time_predicate_option
@on_error_option
@click.option("--rules", metavar="FILE", multiple=True, type=QueryFile(),
              help="EP-SPARQL: a CONSTRUCT query, over whose closure QUERY is answered; may be repeated.")  # fmt: skip
@click.option("--sort", is_flag=True, help="Matches of equal end time by the times of their events.")
@quiet_option
def run_command(
    query: QuerySource, streams: tuple[str, ...], language: str | None, kbs: tuple[str, ...], format_: str | None,
    output: Path | None, start: int | None, lateness: int, late: Path | None, type_column: str, time_column: str,
    time_unit: TimeUnit | None,
    time_predicate: str, on_error: OnError, sort: bool, quiet: bool, report: str | None, instants: tuple[int, ...],
    consumption: str | None, rules: tuple[QuerySource, ...],
) -> None:  # fmt: skip
    """Answer a query over files of events.

    QUERY is a file, or - for stdin. Matches go to stdout in order of end time, a summary to stderr.
    CSV, TSV and JSON are the W3C's results formats, which have no column for the time: select
    (ENDTIME() AS ?time) to have it. nquads writes the graphs of a CONSTRUCT query as events.
    A CEQL query gives time, start, end and positions, then the positions that each variable holds. Queries over
    windows (.rspql, .spectra, .rsepql) give rows in order of the instants at which they are told. EP-SPARQL rows in a
    table begin with start and end; a query that names no stream reads all that are given.

    \b
    oxiseq run rises.spaseq --stream S1=quotes.nq.gz --kb companies.ttl
    oxiseq run rises.spaseq -s S1=quotes.arrow -o rises.parquet
    oxiseq run sells.ceql -s Stock=trades.csv -f json
    oxiseq run averages.rspql -s readings.nq.gz --report RSTREAM
    """
    with loading():
        from oxiseq.cli.running import run_query  # noqa: PLC0415  loads the engine: see __init__.py

    run_query(
        RunRequest(
            replace(query, chosen=language), streams, kbs, format_, output, start, lateness, late,
            (type_column, time_column, time_unit), time_predicate, on_error, sort, quiet, report, instants or None,
            consumption, rules,
        )
    )  # fmt: skip
