"""Commands for who runs a server: `oxiseq serve`, `token`, `backup`, `restore`, `verify`."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from oxiseq.cli.options import location_option, quiet_option
from oxiseq.cli.settings import (
    ENVIRONMENT,
    TABLES,
    config_options,
    print_if_asked,
    setting_flags,
    settings_of,
    tables_of,
)
from oxiseq.engine.extras import needed
from oxiseq.grammar.errors import OxiseqError
from oxiseq.rights import ANONYMOUS, Grant, Token, TokenError, digest_of, grant_of, line_of, new_secret, tokens_of
from oxiseq.rights.grants import checked_name

if TYPE_CHECKING:
    from oxiseq import journal
    from oxiseq.cli import backing, progress, serving
    from oxiseq.journal import restoring
    from oxiseq.live import verifying
else:
    backing = needed("oxiseq.cli.backing")
    progress = needed("oxiseq.cli.progress")
    serving = needed("oxiseq.cli.serving")
    verifying = needed("oxiseq.live.verifying")
    journal = needed("oxiseq.journal")
    restoring = needed("oxiseq.journal.restoring")


# --- serve -----------------------------------------------------------------------------------------------


@click.command("serve", short_help="Serve a store, streams and queries over HTTP.", context_settings=ENVIRONMENT)
@config_options("read_token", "write_token", "token_lines", "upstream_token", tables=TABLES)
@setting_flags
@click.pass_context
def serve_command(ctx: click.Context, /, **options: Any) -> None:
    """Serve a store to SPARQL clients: /query, /update, /store; with streams and continuous queries: /streams,
    /queries, described by /openapi.json; /health, /ready, /metrics.

    With --location everything survives a restart: the store, and beside it a journal of events, queries and matches.
    Each option can also be given by an environment variable (--max-rows as OXISEQ_MAX_ROWS) or in a TOML file.

    \b
    oxiseq serve --location kb
    curl localhost:7878/query --data-urlencode 'query=SELECT * { ?s ?p ?o } LIMIT 5'
    """
    if print_if_asked(ctx):
        return
    serving.serve(settings_of(options), tables_of(ctx))


# --- token -----------------------------------------------------------------------------------------------

_FILE = click.Path(dir_okay=False, path_type=Path)


class GrantWord(click.ParamType[Grant]):
    """RIGHT, RIGHT:KIND or RIGHT:KIND:NAMES."""

    name = "grant"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> Grant:
        """Reads it. Raises OxiseqError with the reason."""
        return value if isinstance(value, Grant) else grant_of(str(value))


@click.group("token", short_help="Make, list and revoke tokens of a server.")
def token_command() -> None:
    """Named tokens for `oxiseq serve --tokens FILE`: who may read, push, register and update what.

    The file has one line per token, with its hash; the token itself is printed once and stored nowhere. A running
    server picks up a change within a second.
    """


@token_command.command("new")
@click.argument("name")
@click.argument("grants", nargs=-1, required=True, metavar="GRANT...", type=GrantWord())
@click.option("--file", metavar="FILE", type=_FILE, help="Add the line to this file, made if missing.")
def new_command(name: str, grants: tuple[Grant, ...], file: Path | None) -> None:
    """Make a token and print it with its line for the file of tokens; --file adds the line there.

    A grant is RIGHT, RIGHT:KIND or RIGHT:KIND:NAMES, where * in NAMES stands for any characters: read of stream, query,
    kb and server; push of stream; register of stream and query; update of kb and server. The name `anonymous` grants
    rights to requests without a token.

    \b
    oxiseq token new plant1 'push:stream:http://example.org/plant1/*' 'read:query:plant1-*' --file tokens
    oxiseq token new analyst read register:query:draft-* --file tokens
    oxiseq token new admin read push register update --file tokens
    """
    secret = "" if name == ANONYMOUS else new_secret()
    token = Token(checked_name(name), digest_of(secret) if secret else b"", grants)
    if file is not None:
        add(file, token)
    if secret:
        click.echo(secret)
    if file is None:
        click.echo(line_of(token))
    else:
        click.echo(f"{file}: {name} is added", err=True)


@token_command.command("list")
@click.argument("file", type=_FILE)
def list_command(file: Path) -> None:
    """List the tokens of a file and their rights."""
    for name, grants in listed(file):
        click.echo(f"{name}  {grants}")


@token_command.command("revoke")
@click.argument("file", type=_FILE)
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
def revoke_command(file: Path, names: tuple[str, ...]) -> None:
    """Remove the lines of these tokens from a file."""
    revoke(file, names)
    click.echo(f"{file}: revoked {', '.join(names)}", err=True)


def add(file: Path, token: Token) -> None:
    """Raises TokenError where the file has one of this name, or a line that is none; OSError."""
    text = _text(file) if file.exists() else ""
    added = f"{text}{'' if not text or text.endswith(chr(10)) else chr(10)}{line_of(token)}\n"
    tokens_of(added, str(file))
    _write(file, added)


def listed(file: Path) -> Iterator[tuple[str, str]]:
    """Name and rights of each. Raises TokenError, OSError."""
    for token in tokens_of(_text(file), str(file)):
        yield token.name, "  ".join(map(str, token.grants))


def revoke(file: Path, names: Iterable[str]) -> None:
    """Raises OxiseqError for a name that is not there, and then none is revoked; TokenError, OSError."""
    text, gone = _text(file), set(names)
    known = {token.name for token in tokens_of(text, str(file))}
    if missing := sorted(gone - known):
        raise OxiseqError(f"{file}: there is no token {', '.join(missing)}; there are {', '.join(sorted(known))}")
    kept = [line for line in text.splitlines(keepends=True) if not gone.intersection(line.split()[:1])]
    _write(file, "".join(kept))


def _text(file: Path) -> str:
    try:
        return file.read_text("utf-8-sig")
    except UnicodeDecodeError as error:
        raise TokenError(f"{file}: {error}") from None


def _write(file: Path, text: str) -> None:
    """In the place of what was there, at one moment: a server may be reading it. For its owner's eyes only."""
    part = file.with_name(f".{file.name}.part")
    part.touch(mode=0o600)
    try:
        if file.exists():
            part.chmod(file.stat().st_mode)
        part.write_text(text, "utf-8")
        part.replace(file)
    finally:
        part.unlink(missing_ok=True)


# --- backup, restore -------------------------------------------------------------------------------------


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
    target = Path(named)
    folder = target.is_dir() or named.endswith("/")
    if folder and since is not None:
        raise click.UsageError("--since is for a file or a pipe: in a folder the last backup is found")
    if full and not folder:
        raise click.UsageError("--full is for a folder of backups")
    with progress.working(f"copying to {target}", quiet=quiet):
        if folder:
            target, why = backing.back_up_into(location, target, full=full)
            size = target.stat().st_size
        else:
            why = ""
            plain = since is None and str(target) != backing.STDOUT
            size = backing.back_up(location, target) if plain else backing.back_up_since(location, since, target)
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
    with progress.working(f"restoring to {location}", quiet=quiet):
        files, unchecked = backing.restored(backups, location)
    if not quiet:
        click.echo(f"{location}: backing.restored from {', '.join(path.name for path in files)}", err=True)
        for iri, stood in restoring.resumed(location / journal.FILE_NAME).items():
            click.echo(f"<{iri}>: push again from offset {stood.next}", err=True)
    for path in unchecked:
        click.echo(f"note: {path}: {backing.UNCHECKED}", err=True)


# --- verify ----------------------------------------------------------------------------------------------


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
    with progress.working(f"looking {folder} through", quiet=quiet):
        found = backing.verified(folder) if backing.is_backup(folder) else verifying.verify(folder)
    if as_json:
        click.echo(json.dumps(asdict(found), indent=2, ensure_ascii=False))
    else:
        for line in found.holds:
            click.echo(line)
        for fault in found.faults:
            click.echo(f"damaged {fault.part}: {fault.what}\n    then: {fault.then}")
    if found.faults:
        ctx.exit(1)
