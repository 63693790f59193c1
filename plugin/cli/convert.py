"""`oxiseq convert`: events from one format to another."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from oxiseq.cli.options import flag, quiet_option
from oxiseq.warmup.importing import loading

MESSAGES = ("messages-nquads", "messages-trig", "messages-ntriples", "messages-turtle", "messages-ndjsonld")
FORMATS = ("nquads", "trig", "jelly", "arrow", "parquet", *MESSAGES)


@click.command("convert", short_help="Write events in another format.")
@click.argument("source", metavar="IN", type=click.Path(path_type=Path))
@click.argument("target", metavar="OUT", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--from", "source_format", type=click.Choice(FORMATS), help="Default: by IN's name.")
@click.option("--to", "target_format", type=click.Choice(FORMATS), help="Default: by OUT's name.")
@flag("time_predicate", usual=True)
@flag("on_error", usual=True)
@quiet_option
def convert_command(**given: Any) -> None:
    """Convert events between N-Quads, TriG, RDF Messages (.gz too), Arrow and Parquet event tables.

    Files that end in .nt, .ttl and .ndjsonld hold RDF Messages, and so do N-Quads and TriG that announce them; --to
    messages-nquads and --to messages-trig write these.

    Event tables load without parsing: convert a file that you read often.

    \b
    oxiseq convert quotes.nq.gz quotes.arrow
    """
    with loading():
        from oxiseq.cli.converting import convert_events  # noqa: PLC0415  loads the engine: see __init__.py

    convert_events(**given)
