"""`oxiseq completion`: what makes a shell complete commands, options and files."""

from __future__ import annotations

import os
from pathlib import PurePath
from typing import Final

import click
from click.shell_completion import get_completion_class

VARIABLE: Final = "_OXISEQ_COMPLETE"
"""The variable by which the shell calls the program, as in click."""
_SHELLS: Final = ("bash", "fish", "zsh")


@click.command("completion", short_help="Set up completion of commands and options in your shell.")
@click.argument("shell", type=click.Choice(_SHELLS), required=False)
def completion_command(shell: str | None) -> None:
    """Print the script that completes `oxiseq` in SHELL, by default the one you use ($SHELL). bash must be 4.4 or
    newer.

    \b
    eval "$(oxiseq completion bash)"                                       # in ~/.bashrc, zsh likewise in ~/.zshrc
    oxiseq completion fish > ~/.config/fish/completions/oxiseq.fish
    """
    chosen = shell or PurePath(os.environ.get("SHELL", "")).name
    made = get_completion_class(chosen)
    if made is None or chosen not in _SHELLS:
        raise click.UsageError(f"which shell? Give one of {', '.join(_SHELLS)}")
    group = click.get_current_context().find_root().command
    click.echo(made(group, {}, "oxiseq", VARIABLE).source())
