"""`oxiseq warmup`: compile the kernels ahead."""

from __future__ import annotations

import click

from oxiseq.warmup.importing import loading


@click.command("warmup", short_help="Compile the kernels in advance.")
def warmup_command() -> None:
    """Compile the kernels in advance, so that the first query does not wait for it.

    It takes a minute on two free cores; the result is kept on disk, and later calls take a second, as does the first
    one where the package has brought them compiled.
    """
    with loading():
        from oxiseq.cli.progress import working  # noqa: PLC0415  with the next one
        from oxiseq.warmup.warmup import warm_up  # noqa: PLC0415  loads the engine: see __init__.py

    with working("compiling the kernels", quiet=False) as tell:
        seconds = warm_up(lambda done, count: tell(f"{done} of {count}"))
    click.echo(f"kernels ready after {seconds:.1f} s")
