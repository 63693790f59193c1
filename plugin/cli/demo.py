"""`oxiseq demo`: SPAseq's Queries 4 and 3 over real stock quotes."""

from __future__ import annotations

from importlib.util import find_spec

import click

from oxiseq.importing import loading


@click.command("demo", short_help="Find patterns in real stock quotes.")
@click.pass_context
def demo_command(ctx: click.Context) -> None:
    """V-shape and head-and-shoulders over real daily stock quotes, joined with a small KB of companies.

    Needs the extra: pip install 'oxiseq[examples]'
    """
    missing = [name for name in ("bokeh_sampledata", "pandas") if find_spec(name) is None]
    if missing:
        click.echo(f"the demo's data need {' and '.join(missing)}: pip install 'oxiseq[examples]'", err=True)
        ctx.exit(1)
    from rich.console import Console  # noqa: PLC0415  with the next one

    with loading():
        from oxiseq.demo import show  # noqa: PLC0415  loads the engine: see __init__.py

    show(Console())
