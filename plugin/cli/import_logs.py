"""`oxiseq import`: raw logs into event tables, in order of time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from oxiseq.cli.options import Duration, flag, quiet_option
from oxiseq.warmup.importing import loading


@click.command("import", short_help="Turn raw logs into event tables in time order.")
@click.argument("sources", metavar="SOURCE...", nargs=-1, required=True)
@click.option(
    "--output",
    "-o",
    metavar="DIR",
    required=True,
    type=click.Path(file_okay=False, path_type=Path),
    help="The folder for the tables; the log may continue after tables that are there already.",
)
@click.option(
    "--mapping",
    "-m",
    metavar="FILE",
    type=click.Path(dir_okay=False, path_type=Path),
    help="For tables: a SPARQL CONSTRUCT query that makes each row's graph from its columns, or (.json) "
    "file, a mapping as a stream has one.",
)
@click.option(
    "--time",
    default="time",
    show_default=True,
    metavar="COLUMN",
    help="For tables: the column of times: timestamps, xsd:dateTime or integers.",
)
@flag("time_unit")
@click.option(
    "--every",
    default="1h",
    show_default=True,
    metavar="DURATION",
    type=Duration(least=1),
    help="The span of time in one file: 5m, 1h, 1d or PT1H.",
)
@click.option(
    "--to",
    "format",
    type=click.Choice(["parquet", "arrow"]),
    default="parquet",
    show_default=True,
    help="The tables' format.",
)
@click.option(
    "--engine",
    type=click.Choice(["plain", "spark"]),
    default="plain",
    show_default=True,
    help="Run in this process, or on Spark; on a cluster every worker must see sources and output.",
)
@click.option("--master", metavar="URL", default="local[*]", show_default=True, help="Spark's master.")
@click.option("--memory", metavar="SIZE", default="2g", show_default=True, help="Java memory of Spark.")
@flag("time_predicate", usual=True)
@quiet_option
def import_command(**given: Any) -> None:
    """Turn raw logs into event tables in time order, one file per hour, for `run --stream S=DIR`.

    SOURCE is a file, a folder or a glob: N-Quads, TriG, RDF Messages and event tables; with a mapping also CSV, TSV,
    Parquet and JSON Lines whose rows are events. Bad rows, and rows too late for a file that is already written, go to
    a quarantine folder beside the output.

    \b
    oxiseq import logs/*.csv --mapping quote.rq --output quotes
    oxiseq run rises.spaseq --stream S=quotes
    """
    with loading():
        from oxiseq.cli.arranging import arrange_events  # noqa: PLC0415  loads the engine: see __init__.py

    arrange_events(**given)
