"""Commands about this installation: `oxiseq demo`, `warmup`, `completion`."""

from __future__ import annotations

import os
from pathlib import PurePath
from typing import TYPE_CHECKING, Final

import click
from click.shell_completion import get_completion_class

from oxiseq.engine.extras import needed

if TYPE_CHECKING:
    from rich import console

    from oxiseq import demo
    from oxiseq.cli import progress
    from oxiseq.warmup import first_run as warmup
else:
    console = needed("rich.console")
    demo = needed("oxiseq.demo")
    progress = needed("oxiseq.cli.progress")
    warmup = needed("oxiseq.warmup.first_run")


# --- demo ------------------------------------------------------------------------------------------------


@click.command("demo", short_help="Find patterns in real stock quotes.")
def demo_command() -> None:
    """V-shape and head-and-shoulders over real daily stock quotes, joined with a small KB of companies."""
    shown = console.Console()
    with progress.lines(lambda: "looking for patterns", quiet=shown.is_terminal):  # there `show` has its own status
        demo.show(shown)


# --- warmup ----------------------------------------------------------------------------------------------


@click.command("warmup", short_help="Compile the kernels in advance.")
def warmup_command() -> None:
    """Compile the kernels in advance, so that the first query does not wait for it.

    It takes a minute on two free cores; the result is kept on disk, and later calls take a second, as does the first
    one where the package has brought them compiled.
    """
    with progress.working("compiling the kernels", quiet=False) as tell:
        seconds = warmup.warm_up(lambda done, count: tell(f"compiling {done} of {count} kernels"))
    click.echo(f"kernels ready after {seconds:.1f} s")


# --- completion ------------------------------------------------------------------------------------------

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
