"""The group of all commands, and how errors end."""

from __future__ import annotations

import errno
from typing import Any

import click
import rich_click

from oxiseq.cli.backup import backup_command
from oxiseq.cli.check import check_command
from oxiseq.cli.convert import convert_command
from oxiseq.cli.demo import demo_command
from oxiseq.cli.events import events_command
from oxiseq.cli.explain import explain_command
from oxiseq.cli.load import load_command
from oxiseq.cli.replay import replay_command
from oxiseq.cli.run import run_command
from oxiseq.cli.serve import serve_command
from oxiseq.cli.test import test_command
from oxiseq.cli.translate import translate_command
from oxiseq.cli.warmup import warmup_command
from oxiseq.cli.what_if import what_if_command
from oxiseq.cli.why import why_command
from oxiseq.grammar.errors import OxiseqError


class OxiseqGroup(rich_click.RichGroup):
    """Errors that are told on purpose end with their message and exit status 1, without a traceback."""

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


@click.group(cls=OxiseqGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="oxiseq", prog_name="oxiseq")
def main() -> None:
    """SPAseq and CEQL queries over event streams: event sequences beside an Oxigraph store.

    Begin with `oxiseq demo`, or check a query with `oxiseq check QUERY`.
    """


for command in (
    run_command, check_command, explain_command, translate_command, convert_command, events_command, load_command,
    replay_command, backup_command, test_command, why_command, what_if_command, serve_command, warmup_command,
    demo_command,
):  # fmt: skip
    main.add_command(command)
