"""`oxiseq demo`: SPAseq's Queries 4 and 3 over real stock quotes."""

from __future__ import annotations

import click

from oxiseq.warmup.importing import loading


@click.command("demo", short_help="Find patterns in real stock quotes.")
def demo_command() -> None:
    """V-shape and head-and-shoulders over real daily stock quotes, joined with a small KB of companies."""
    from rich.console import Console  # noqa: PLC0415  with the next one

    with loading():
        from oxiseq.cli.progress import lines  # noqa: PLC0415  with the next one
        from oxiseq.demo import show  # noqa: PLC0415  loads the engine: see __init__.py

    console = Console()
    with lines(lambda: "looking for patterns", quiet=console.is_terminal):  # there `show` has a status of its own
        show(console)
