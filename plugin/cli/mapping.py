"""`oxiseq mapping`: what a mapping makes of rows."""

from __future__ import annotations

import json
from pathlib import Path

import click

from oxiseq.warmup.importing import loading


@click.group("mapping", short_help="Suggest and try mappings of rows to events; fetch contexts.")
def mapping_command() -> None:
    """Mappings turn rows of CSV, JSON and the like into events: see docs/mappings.md."""


@mapping_command.command("try", short_help="Show the first events that a mapping makes of a file.")
@click.argument("file", metavar="FILE", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option(
    "--mapping",
    "-m",
    metavar="FILE|NAME",
    required=True,
    help="A CONSTRUCT query, or (.json) a mapping, or the name of a ready one.",
)
@click.option(
    "--first",
    "-n",
    metavar="N",
    default=3,
    show_default=True,
    type=click.IntRange(1, 1000),
    help="How many events are shown.",
)
def try_command(file: Path, mapping: str, first: int) -> None:
    """Show the first events that a mapping makes of a table (CSV, TSV, JSON, JSON Lines, Parquet), the rows that it
    rejects, and its variables that are no columns. The exit status is 1 if there are any of these, or no event.

    \b
    oxiseq mapping try readings.csv --mapping readings.json
    """
    with loading():
        from oxiseq.cli.mapping_tried import shown  # noqa: PLC0415  loads the engine: see __init__.py

    if not shown(file, mapping, first):
        raise SystemExit(1)


@mapping_command.command("suggest", short_help="Print a first mapping for a table.")
@click.argument("file", metavar="FILE", type=click.Path(exists=True, dir_okay=False, path_type=Path))
def suggest_command(file: Path) -> None:
    """Print a first mapping for a table (CSV, TSV, JSON, JSON Lines, Parquet): each column a predicate, with the type
    that all of its texts have. Texts as 007 stay texts. Read it, correct it, and try it.

    \b
    oxiseq mapping suggest readings.csv > readings.json
    """
    with loading():
        from oxiseq.cli.mapping_tried import suggested_for  # noqa: PLC0415

    click.echo(json.dumps(suggested_for(file), ensure_ascii=False, indent=2))


@mapping_command.command("fetch", short_help="Fetch the JSON-LD contexts of a mapping, and print it.")
@click.argument("file", metavar="FILE", type=click.Path(exists=True, dir_okay=False, path_type=Path))
def fetch_command(file: Path) -> None:
    """Fetch the contexts of a mapping that are null, and print the mapping with them. A server fetches none itself.

    \b
    echo '{"contexts": {"https://www.w3.org/ns/activitystreams": null}}' > wanted.json
    oxiseq mapping fetch wanted.json > mapping.json
    """
    with loading():
        from oxiseq.cli.arranging import json_of  # noqa: PLC0415
        from oxiseq.mappings.declared import StreamMapping  # noqa: PLC0415

    click.echo(json.dumps(StreamMapping.fetching(json_of(file)).as_data(), ensure_ascii=False, indent=2))
