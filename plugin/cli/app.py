"""The group of all commands, and how errors end."""

from __future__ import annotations

import atexit
import errno
import gc
from functools import cache
from pathlib import Path
from typing import Any, Final

import click

from oxiseq.cli.data import convert_command, import_command, load_command, mapping_command
from oxiseq.cli.installation import completion_command, demo_command, warmup_command
from oxiseq.cli.local import (
    check_command,
    compare_command,
    declare_command,
    explain_command,
    run_command,
    test_command,
    translate_command,
    why_command,
)
from oxiseq.cli.remote import bridge_command, push_command, queries_command, watch_command
from oxiseq.cli.server import backup_command, restore_command, serve_command, token_command, verify_command
from oxiseq.grammar.errors import OxiseqError, close_name, listing

SECTIONS: Final[dict[str, tuple[click.Command, ...]]] = {
    "Queries": (run_command, check_command, explain_command, translate_command, declare_command),
    "Why, and comparisons": (test_command, why_command, compare_command),
    "Events and knowledge": (convert_command, import_command, mapping_command, load_command),
    "Server": (
        serve_command,
        token_command,
        queries_command,
        push_command,
        bridge_command,
        watch_command,
        backup_command,
        restore_command,
        verify_command,
    ),
    "This installation": (demo_command, warmup_command, completion_command),
}
"""The commands as `--help` lists them."""


class OxiseqGroup(click.Group):
    """Expected errors end with their message and exit status 1, without a traceback."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The commands by section, each on a line."""
        width = max(map(len, self.commands))
        for title, commands in SECTIONS.items():
            with formatter.section(title):
                formatter.write_dl([(f"{each.name:<{width}}", each.short_help or "") for each in commands])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """An unknown name is answered with the command that comes close, or with all of them."""
        name = args[0]
        if name not in self.commands and not name.startswith("-"):
            hint = close_name(name, self.commands, f"the commands are {listing(self.commands)}")
            hint = f"did you mean oxiseq run {name}?" if Path(name).is_file() else hint
            ctx.fail(f"no such command {name!r}: {hint}")
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the chosen command."""
        try:
            return super().invoke(ctx)
        except OxiseqError as error:
            complain(str(error))
        except OSError as error:
            if error.errno == errno.EPIPE:  # `| head` has seen enough: click ends quietly
                raise
            complain(str(error))
        raise click.exceptions.Exit(1)


def complain(message: str) -> None:
    """A message on stderr."""
    click.echo(click.style("error: ", fg="red", bold=True) + message, err=True)


@cache
def _end_at_once() -> None:
    """To look through all objects for cycles before the process ends takes half a second."""
    atexit.register(gc.freeze)


@click.group(cls=OxiseqGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="oxiseq", prog_name="oxiseq")
def main() -> None:
    """Event sequences and continuous queries over RDF streams, beside an Oxigraph store.

    Begin with `oxiseq demo`; `oxiseq COMMAND --help` describes each command. The ending of a query's file gives its
    language: .ceql, .rspql, .spectra, .rsepql or .epsparql; any other is SPAseq.
    """
    _end_at_once()


for section in SECTIONS.values():
    for command in section:
        main.add_command(command)
