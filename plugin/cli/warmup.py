"""`oxiseq warmup`: compile the kernels ahead."""

from __future__ import annotations

import sys
from typing import Final

import click

from oxiseq.importing import loading

_WIDTH: Final = 60
"""Columns of a line that tells how far it is."""


@click.command("warmup", short_help="Compile the kernels ahead.")
def warmup_command() -> None:
    """Compile the kernels ahead, so that the first query need not wait.

    It takes 15 to 30 seconds on two free cores; the result is kept on disk, and later calls take a second.
    """
    with loading():
        from oxiseq.warmup import warm_up  # noqa: PLC0415  loads the engine: see __init__.py

    terminal = sys.stderr.isatty()
    if not terminal:
        click.echo("compiling the kernels...", err=True)

    def tell(done: int, count: int, what: str) -> None:
        if terminal:
            click.echo(f"\r{done:3} of {count} steps: the kernels of {what:<20}", nl=False, err=True)

    seconds = warm_up(tell)
    if terminal:
        click.echo("\r" + " " * _WIDTH + "\r", nl=False, err=True)
    click.echo(f"kernels ready after {seconds:.1f} s")
