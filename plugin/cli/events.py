"""`oxiseq events`: raw logs into event tables, in order of time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from oxiseq.cli.options import Duration, flag, quiet_option
from oxiseq.warmup.importing import loading


@click.command("events", short_help="Make event tables of raw logs, in order of time.")
@click.argument("sources", metavar="SOURCE...", nargs=-1, required=True)
@click.option(
    "--output",
    "-o",
    metavar="DIR",
    required=True,
    type=click.Path(file_okay=False, path_type=Path),
    help="The folder for the tables; a log may go on behind those that are there.",
)
@click.option(
    "--mapping",
    "-m",
    metavar="FILE",
    type=click.Path(dir_okay=False, path_type=Path),
    help="For tables: a SPARQL CONSTRUCT query that makes a row's graph of its columns; or, in a .json "
    "file, a mapping as a stream has one.",
)
@click.option(
    "--time",
    default="time",
    show_default=True,
    metavar="COLUMN",
    help="For tables: timestamps, xsd:dateTime or integers.",
)
@flag("time_unit")
@click.option(
    "--every",
    default="1h",
    show_default=True,
    metavar="DURATION",
    type=Duration(least=1),
    help="The time that a file covers: 5m, 1h, 1d or PT1H.",
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
    help="This process, or Spark's tasks; on a cluster all must see sources and output.",
)
@click.option("--master", metavar="URL", default="local[*]", show_default=True, help="Spark's master.")
@click.option("--memory", metavar="SIZE", default="2g", show_default=True, help="Java memory of Spark.")
@flag("time_predicate", usual=True)
@quiet_option
def events_command(**given: Any) -> None:
    """Raw logs as coded event tables in order of time, a file for each hour, which `run --stream S=DIR` reads.

    SOURCE is a file, a folder or a glob of N-Quads, TriG, RDF Messages and event tables, and with a mapping of CSV,
    TSV, Parquet and JSON Lines whose rows are events. Bad rows, and those that come too late for a file that is there,
    go to a quarantine folder beside the output.

    \b
    oxiseq events logs/*.csv --mapping quote.rq --output quotes
    oxiseq run rises.spaseq --stream S=quotes
    """
    with loading():
        from oxiseq.cli.arranging import arrange_events  # noqa: PLC0415  loads the engine: see __init__.py

    arrange_events(**given)
