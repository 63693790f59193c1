"""`oxiseq test`: files of tests for queries."""

from __future__ import annotations

from pathlib import Path

import click

from oxiseq.warmup.importing import loading


@click.command("test", short_help="Run tests of queries (*.oxitest.toml).")
@click.argument("files", metavar="FILES...", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path))
@click.option("--only", "-k", metavar="TEXT", help="Run only cases whose name contains this.")
@click.option("--exitfirst", "-x", is_flag=True, help="Stop at the first failure.")
@click.option("--no-why", is_flag=True, help="Do not explain why matches are missing.")
@click.option("--quiet", "-q", is_flag=True, help="Only failures and the summary.")
@click.pass_context
def test_command(
    ctx: click.Context, files: tuple[Path, ...], only: str | None, exitfirst: bool, no_why: bool, quiet: bool
) -> None:
    """Run tests of queries.

    FILES end in .oxitest.toml, or are folders with such files. Each case has events, a query and the matches that it
    must find, at the end or at given times of the clock. The exit status is 1 if a case fails.

    \b
    oxiseq test alarms.oxitest.toml
    oxiseq test examples -k absence
    """
    with loading():
        from oxiseq.cli.testing import run_tests  # noqa: PLC0415  loads the engine: see __init__.py

    if not run_tests(files, only, stop=exitfirst, why=not no_why, quiet=quiet):
        ctx.exit(1)


test_command.__test__ = False  # type: ignore[attr-defined]  # pytest collects functions by their names
