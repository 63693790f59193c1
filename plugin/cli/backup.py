"""`oxiseq backup` and `oxiseq restore`: copies of the event log, queries, checkpoints and matches."""

from __future__ import annotations

from pathlib import Path

import click

from oxiseq.cli.options import location_option, quiet_option
from oxiseq.warmup.importing import loading


@click.command("backup", short_help="Back up what a server keeps beside its store.")
@click.argument("named", metavar="TARGET", type=click.Path(allow_dash=True))
@location_option
@click.option(
    "--since",
    metavar="MARK",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Only entries since the last backup with this file, which records how far it got.",
)
@click.option("--full", is_flag=True, help="In a folder of backups: start again with a full copy.")
@quiet_option
def backup_command(named: str, location: Path, since: Path | None, full: bool, quiet: bool) -> None:
    """Back up event log, queries, checkpoints and matches, beside a running server, to a file, into a folder, or to
    stdout (-).

    A TARGET that ends in / is a folder: the first backup there is full, later ones are incremental, one file each;
    `oxiseq restore` reads them together. Each backup is consistent. The triples of the store are not in it.

    \b
    oxiseq backup --location data backups/
    oxiseq backup --location data monday.oxiseq
    oxiseq backup --location data --since last.mark - | ssh elsewhere 'cat > "$(date +%s).oxiseq"'
    """
    with loading():
        from oxiseq.cli.backing import STDOUT, back_up, back_up_into, back_up_since  # noqa: PLC0415  see __init__.py
        from oxiseq.cli.progress import working  # noqa: PLC0415  as above

    target = Path(named)
    folder = target.is_dir() or named.endswith("/")
    if folder and since is not None:
        raise click.UsageError("--since is for a file or a pipe: in a folder the last backup is found")
    if full and not folder:
        raise click.UsageError("--full is for a folder of backups")
    with working(f"copying to {target}", quiet=quiet):
        if folder:
            target, why = back_up_into(location, target, full=full)
            size = target.stat().st_size
        else:
            why = ""
            plain = since is None and str(target) != STDOUT
            size = back_up(location, target) if plain else back_up_since(location, since, target)
    if why:
        click.echo(f"note: a full copy: {why}", err=True)
    if not quiet:
        click.echo(f"{target}: {size:,} bytes", err=True)


@click.command("restore", short_help="Restore backups into a new folder.")
@click.argument("backups", metavar="BACKUP...", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path))
@click.option(
    "--location",
    "-l",
    metavar="DIR",
    type=click.Path(file_okay=False, path_type=Path),
    required=True,
    help="The new folder, made if missing. It may hold a store, but no journal.",
)
@quiet_option
def restore_command(backups: tuple[Path, ...], location: Path, quiet: bool) -> None:
    """Restore from a folder of backups (its newest chain), or from a full backup and the incremental ones after it, in
    order. Each byte is verified before anything is written.

    A server on that folder continues with the same ids. Its log and /streams/IRI say from which offset clients must
    push again, since events after the backup are not in it.

    \b
    oxiseq restore backups/ --location data2
    oxiseq restore monday.oxiseq tuesday.oxiseq --location data2
    """
    with loading():
        from oxiseq.cli.backing import UNCHECKED, restored  # noqa: PLC0415  see __init__.py
        from oxiseq.cli.progress import working  # noqa: PLC0415  as above
        from oxiseq.journal import FILE_NAME  # noqa: PLC0415  as above
        from oxiseq.journal.restoring import resumed  # noqa: PLC0415  as above

    with working(f"restoring to {location}", quiet=quiet):
        files, unchecked = restored(backups, location)
    if not quiet:
        click.echo(f"{location}: restored from {', '.join(path.name for path in files)}", err=True)
        for iri, stood in resumed(location / FILE_NAME).items():
            click.echo(f"<{iri}>: push again from offset {stood.next}", err=True)
    for path in unchecked:
        click.echo(f"note: {path}: {UNCHECKED}", err=True)
