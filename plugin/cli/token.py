"""`oxiseq token`: named tokens of a server."""

from __future__ import annotations

from pathlib import Path

import click

from oxiseq.cli.tokens import add, listed, revoke
from oxiseq.rights import ANONYMOUS, Grant, Token, digest_of, grant_of, line_of, new_secret
from oxiseq.rights.named import checked_name

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
