"""`oxiseq backup`: a copy of the event log, queries, checkpoints and matches."""

from __future__ import annotations

from pathlib import Path

import click

from oxiseq.cli.options import location_option, quiet_option
from oxiseq.warmup.importing import loading


@click.command("backup", short_help="Copy what a server keeps beside its store.")
@click.argument("file", metavar="FILE", type=click.Path(dir_okay=False, path_type=Path))
@location_option
@quiet_option
def backup_command(file: Path, location: Path, quiet: bool) -> None:
    """Copy event log, queries, checkpoints and matches to FILE, while a server uses them.

    The copy is of one moment, and is looked through. The triples of the store are not in it.

    \b
    oxiseq backup --location data backups/monday.oxiseq
    """
    with loading():
        from oxiseq.cli.backing import back_up  # noqa: PLC0415  loads the engine: see __init__.py
        from oxiseq.cli.progress import working  # noqa: PLC0415  as above

    with working(f"copying to {file}", quiet=quiet):
        size = back_up(location, file)
    if not quiet:
        click.echo(f"{file}: {size:,} bytes", err=True)
