"""`oxiseq verify`: whether a server's folder, or a backup, is whole, and what can be rebuilt."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import click

from oxiseq.cli.options import quiet_option
from oxiseq.warmup.importing import loading


@click.command("verify", short_help="Check a server's folder (journal, checkpoints, store), or backups.")
@click.argument("folder", metavar="FOLDER", type=click.Path(exists=True, path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Report contents and damage as JSON.")
@quiet_option
@click.pass_context
def verify_command(ctx: click.Context, folder: Path, as_json: bool, quiet: bool) -> None:
    """Check a server's folder: read every event, match and triple, and try every checkpoint. For each damage, report
    whether the server can rebuild it or it is lost. The exit status is 1 if anything is damaged.

    The server may be running; then the store is not checked. Of a backup, or a folder of backups, every byte is
    compared with the checksums in it.
    """
    with loading():
        from oxiseq.cli.progress import working  # noqa: PLC0415  see __init__.py
        from oxiseq.cli.verifying import is_backup, verified  # noqa: PLC0415  as above
        from oxiseq.live.verifying import verify  # noqa: PLC0415  loads the engine: as above

    with working(f"looking {folder} through", quiet=quiet):
        found = verified(folder) if is_backup(folder) else verify(folder)
    if as_json:
        click.echo(json.dumps(asdict(found), indent=2, ensure_ascii=False))
    else:
        for line in found.holds:
            click.echo(line)
        for fault in found.faults:
            click.echo(f"damaged {fault.part}: {fault.what}\n    then: {fault.then}")
    if found.faults:
        ctx.exit(1)
