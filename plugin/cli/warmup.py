"""`oxiseq warmup`: compile the kernels ahead."""

from __future__ import annotations

import click

from oxiseq.importing import loading


@click.command("warmup", short_help="Compile the kernels ahead.")
def warmup_command() -> None:
    """Compile the kernels ahead, so that the first query need not wait.

    It takes 15 to 30 seconds on two free cores; the result is kept on disk, and later calls take a second.
    """
    with loading():
        from oxiseq.warmup import warm_up  # noqa: PLC0415  loads the engine: see __init__.py

    click.echo("compiling the kernels...", err=True)
    click.echo(f"kernels ready after {warm_up():.1f} s")
